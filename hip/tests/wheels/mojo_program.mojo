"""Kernels whose results have to be those of the same functions on the CPU, bit for bit."""

from std.atomic import Atomic
from std.math import sqrt
from std.memory import bitcast, stack_allocation

from max.gpu import barrier, block_idx, global_idx, thread_idx
from max.gpu.host import DeviceContext
from max.gpu.memory import AddressSpace
from max.gpu.primitives import block, warp

comptime COUNT = 1000
comptime THREADS = 256
comptime BLOCKS = 4
comptime TILE = 16
comptime Numbers[dtype: DType] = Pointer[Scalar[dtype], MutAnyOrigin]


def say(name: String, wrong: Int):
    print("right:" if wrong == 0 else "WRONG:", name, wrong)


def mix(x: UInt64) -> UInt64:
    """SplitMix64 (Steele, Lea and Flood 2014)."""
    var z = x + 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def pick(place: Int, salt: Int, most: Int) -> Int:
    """Some whole number from -most to most."""
    return Int(mix(UInt64(place * 64 + salt)) % UInt64(2 * most + 1)) - most


def factor(place: Int, salt: Int) -> Float32:
    return Float32(pick(place, salt, 10000)) * 0.0137


# One element at a time: what IEEE 754 or integers determine to the last bit.


def quotient(x: Float32, y: Float32) -> UInt64:
    return UInt64(bitcast[DType.uint32](x / y))


def root(x: Float32, y: Float32) -> UInt64:
    return UInt64(bitcast[DType.uint32](sqrt(abs(x))))


def double_quotient(x: Float32, y: Float32) -> UInt64:
    return bitcast[DType.uint64](Float64(x) / sqrt(Float64(abs(y))))


def narrowed(x: Float32, y: Float32) -> UInt64:
    var bits = bitcast[DType.uint16](BFloat16(x)).cast[DType.uint64]()
    return bits << 16 | bitcast[DType.uint16](Float16(y)).cast[DType.uint64]()


def divided(x: Float32, y: Float32) -> UInt64:
    var divisor = Int64(y * 7) | 1
    return UInt64(Int64(x * 1000) // divisor) ^ UInt64(Int32(x) % Int32(divisor))


def mixed(x: Float32, y: Float32) -> UInt64:
    return mix(UInt64(bitcast[DType.uint32](x))) ^ UInt64(bitcast[DType.uint32](y))


comptime FUNCTIONS = 6


def apply[which: Int](x: Float32, y: Float32) -> UInt64:
    comptime if which == 0:
        return quotient(x, y)
    comptime if which == 1:
        return root(x, y)
    comptime if which == 2:
        return double_quotient(x, y)
    comptime if which == 3:
        return narrowed(x, y)
    comptime if which == 4:
        return divided(x, y)
    return mixed(x, y)


def map_kernel(to: Numbers[DType.uint64], x: Numbers[DType.float32], y: Numbers[DType.float32], count: Int32):
    var i = Int(global_idx.x)
    if i < Int(count):
        comptime for which in range(FUNCTIONS):
            to[unsafe_offset = which * Int(count) + i] = apply[which](x[unsafe_offset=i], y[unsafe_offset=i])


def one_by_one(ctx: DeviceContext) raises:
    var x = ctx.enqueue_create_buffer[DType.float32](COUNT)
    var y = ctx.enqueue_create_buffer[DType.float32](COUNT)
    var out = ctx.enqueue_create_buffer[DType.uint64](FUNCTIONS * COUNT)
    with x.map_to_host() as to_x, y.map_to_host() as to_y:
        for i in range(COUNT):
            to_x[i] = factor(i, 1)
            to_y[i] = factor(i, 2) + 0.001
    ctx.enqueue_function[map_kernel](out, x, y, Int32(COUNT), grid_dim=BLOCKS, block_dim=THREADS)
    var names: List[String] = [
        "quotients",
        "roots",
        "quotients and roots of doubles",
        "conversions to half",
        "quotients and remainders of integers",
        "products of 64 bits",
    ]
    with out.map_to_host() as found:
        comptime for which in range(FUNCTIONS):
            var wrong = 0
            for i in range(COUNT):
                wrong += Int(found[which * COUNT + i] != apply[which](factor(i, 1), factor(i, 2) + 0.001))
            say(names[which], wrong)


# Work-items together: lanes, LDS, atomics.


def sum_kernel(to: Numbers[DType.int32], count: Int32):
    var sums = stack_allocation[THREADS, Int32, address_space=AddressSpace.SHARED]()
    var item = Int(thread_idx.x)
    var total = Int32(0)
    for i in range(Int(global_idx.x), Int(count), THREADS * BLOCKS):
        total += Int32(pick(i, 3, 1000))
    sums[unsafe_offset=item] = total
    barrier()
    if item < 64:
        comptime for step in range(1, THREADS // 64):
            total += sums[unsafe_offset = item + step * 64]
        total = warp.sum(total)
        if item == 0:
            _ = Atomic.fetch_add(to, total)


def scan_kernel(to: Numbers[DType.int32]):
    var i = Int(global_idx.x)
    to[unsafe_offset=i] = block.prefix_sum[block_size=THREADS](Int32(pick(i, 4, 1000)))


def turn_kernel(to: Numbers[DType.uint64], rows: Int32, columns: Int32):
    var tile = stack_allocation[TILE * (TILE + 1), UInt64, address_space=AddressSpace.SHARED]()
    var x, y = Int(thread_idx.x), Int(thread_idx.y)
    var row, column = Int(block_idx.y) * TILE + y, Int(block_idx.x) * TILE + x
    if row < Int(rows) and column < Int(columns):
        tile[unsafe_offset = y * (TILE + 1) + x] = mix(UInt64(row * Int(columns) + column))
    barrier()
    row, column = Int(block_idx.x) * TILE + y, Int(block_idx.y) * TILE + x
    if row < Int(columns) and column < Int(rows):
        to[unsafe_offset = row * Int(rows) + column] = tile[unsafe_offset = x * (TILE + 1) + y]


def together(ctx: DeviceContext) raises:
    var one = ctx.enqueue_create_buffer[DType.int32](1)
    one.enqueue_fill(0)
    ctx.enqueue_function[sum_kernel](one, Int32(COUNT * 5), grid_dim=BLOCKS, block_dim=THREADS)
    var total = Int32(0)
    for i in range(COUNT * 5):
        total += Int32(pick(i, 3, 1000))
    with one.map_to_host() as found:
        say("a sum", Int(found[0] != total))

    var sums = ctx.enqueue_create_buffer[DType.int32](BLOCKS * THREADS)
    ctx.enqueue_function[scan_kernel](sums, grid_dim=BLOCKS, block_dim=THREADS)
    var wrong = 0
    with sums.map_to_host() as found:
        for i in range(BLOCKS * THREADS):
            total = Int32(pick(i, 4, 1000)) + (total if i % THREADS != 0 else 0)
            wrong += Int(found[i] != total)
    say("sums of all before", wrong)

    comptime ROWS = 37
    comptime COLUMNS = 50
    var turned = ctx.enqueue_create_buffer[DType.uint64](ROWS * COLUMNS)
    var grid = ((COLUMNS + TILE - 1) // TILE, (ROWS + TILE - 1) // TILE)
    ctx.enqueue_function[turn_kernel](turned, Int32(ROWS), Int32(COLUMNS), grid_dim=grid, block_dim=(TILE, TILE))
    wrong = 0
    with turned.map_to_host() as found:
        for i in range(ROWS * COLUMNS):
            wrong += Int(found[i] != mix(UInt64(i % ROWS * COLUMNS + i // ROWS)))
    say("a matrix turned round", wrong)


def main() raises:
    var ctx = DeviceContext()
    one_by_one(ctx)
    together(ctx)
