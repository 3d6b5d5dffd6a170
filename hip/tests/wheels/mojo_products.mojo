"""The same with products of Mojo's library. Factors are small whole numbers, so every order of their sums has one result."""

from std.sys.info import _accelerator_arch
from std.utils import Index

from layout import Coord, Idx, TileTensor, row_major
from linalg.matmul.gpu import multistage_gemm
from linalg.utils_gpu import MatmulConfig
from max.gpu.host import DeviceContext
from mojo_program import one_by_one, pick, say, together


def product[dtype: DType, transposed: Bool, N: Int, K: Int](ctx: DeviceContext, M: Int, name: String) raises:
    var a = ctx.enqueue_create_buffer[dtype](M * K)
    var b = ctx.enqueue_create_buffer[dtype](N * K)
    var c = ctx.enqueue_create_buffer[DType.float32](M * N)
    c.enqueue_fill(-1)
    with a.map_to_host() as to_a, b.map_to_host() as to_b:
        for i in range(M * K):
            to_a[i] = Scalar[dtype](pick(i, 5, 8))
        for i in range(N * K):
            to_b[i] = Scalar[dtype](pick(i, 6, 8))
    comptime b_rows = N if transposed else K
    comptime b_columns = K if transposed else N
    var a_tile = TileTensor(a, row_major(Coord(M, Idx[K]))).as_imm()
    var b_tile = TileTensor(b, row_major(Coord(Idx[b_rows], Idx[b_columns]))).as_imm()
    var c_tile = TileTensor(c, row_major(Coord(M, Idx[N])))
    comptime config = MatmulConfig[dtype, dtype, DType.float32, transposed](
        block_tile_shape=Index(64, 64, 64), warp_tile_shape=Index(32, 32, 64)
    )
    multistage_gemm[transpose_b=transposed, config=config](c_tile, a_tile, b_tile, ctx)
    var wrong = 0
    with c.map_to_host() as found:
        for i in range(M):
            for j in range(N):
                var total = 0
                for k in range(K):
                    total += pick(i * K + k, 5, 8) * pick(j * K + k if transposed else k * N + j, 6, 8)
                wrong += Int(found[i * N + j] != Float32(total))
    say(name, wrong)


def main() raises:
    var ctx = DeviceContext()
    one_by_one(ctx)
    together(ctx)
    comptime if "gfx950" in _accelerator_arch():
        product[DType.float8_e4m3fn, True, 128, 128](ctx, 64, "a product of 8-bit floats")
    else:
        product[DType.bfloat16, True, 128, 128](ctx, 128, "a product in matrix instructions")
        product[DType.bfloat16, False, 128, 128](ctx, 67, "the same, not transposed, with rows left over")
