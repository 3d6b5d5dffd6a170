"""Calls the kernels of bitsandbytes' library for ROCm 7.15 and compares them with numpy; a line for each check."""

import ctypes
import sys
from pathlib import Path

import numpy as np
from device import Device, check

DEVICE = Device(7)
LIBRARY = ctypes.CDLL(str(next(Path(sys.argv[1]).glob("bitsandbytes/libbitsandbytes_rocm715.so"))))
# Of codes 0 to 15: quantiles of a normal distribution (Dettmers et al. 2023), and bitsandbytes' own floats of four bits, which
# are no numbers of OCP.
NF4 = np.array(
    "-1 -0.6961928 -0.52507305 -0.3949175 -0.28444138 -0.18477343 -0.09105004 0 0.0795803 0.1609302 0.2461123 0.33791524"
    " 0.44070983 0.562617 0.72295684 1".split(),
    np.float32,
)
FP4 = np.array([0, 0.0625 / 12, 8 / 12, 1, 4 / 12, 6 / 12, 2 / 12, 3 / 12], np.float32)
CODES = {"nf4": NF4, "fp4": np.concatenate([FP4, -FP4])}
EIGHT_BITS = np.tanh(np.linspace(-3, 3, 256)).astype(np.float32)
STEPS = {"fp32": 2.0**-20, "fp16": 2.0**-10, "bf16": 2.0**-7}
random = np.random.default_rng(3)


def encoded(values, dtype):
    """Numbers as memory holds them."""
    if dtype == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return values.astype(np.float16 if dtype == "fp16" else np.float32)


def decoded(values, dtype):
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def memory_type(dtype):
    return {"bf16": np.uint16, "fp16": np.float16, "fp32": np.float32}[dtype]


def numbers(count, dtype):
    return decoded(encoded(random.standard_normal(count), dtype), dtype)


def quantised(values, code, block):
    """The codes nearest to a block's numbers, and the scales."""
    blocks = values.reshape(-1, block)
    scales = np.abs(blocks).max(axis=1)
    near = np.abs((blocks / scales[:, None])[..., None] - code).argmin(axis=-1)
    return near.reshape(-1), scales


def packed(codes):
    return (codes[0::2] << 4 | codes[1::2]).astype(np.uint8)


def unpacked(data):
    return np.stack([data >> 4, data & 15], axis=1).reshape(-1)


def quantisation(dtype, kind, block):
    """Both ways, of four or eight bits."""
    four = kind in CODES
    code = CODES.get(kind, EIGHT_BITS)
    count = 4 * block
    values = numbers(count, dtype)
    suffix = f"blockwise_{dtype}" + (f"_{kind}" if four else "")
    of_code = None if four else DEVICE.buffer(code)
    out, scales = DEVICE.buffer(np.zeros(count // (2 if four else 1), np.uint8)), DEVICE.buffer(np.zeros(count // block, np.float32))
    getattr(LIBRARY, f"cquantize_{suffix}")(of_code, DEVICE.buffer(encoded(values, dtype)), scales, out, block, count)
    codes = unpacked(DEVICE.array(out)) if four else DEVICE.array(out)
    near, expected_scales = quantised(values, code, block)
    exact = np.abs(values.reshape(-1, block) / expected_scales[:, None]).reshape(-1) * np.sign(values)
    # What lies in the middle between two codes may become either.
    off = np.abs(code[codes] - exact) - np.abs(code[near] - exact)
    check(f"cquantize_{suffix}, blocks of {block}", off, 0, 1e-5)
    check(f"scales of cquantize_{suffix}, blocks of {block}", DEVICE.array(scales), expected_scales, 1e-6)
    back = DEVICE.buffer(np.zeros(count, memory_type(dtype)))
    data = packed(near) if four else near.astype(np.uint8)
    getattr(LIBRARY, f"cdequantize_{suffix}")(of_code, DEVICE.buffer(data), DEVICE.buffer(expected_scales), back, block, count, None)
    expected = (code[near].reshape(-1, block) * expected_scales[:, None]).reshape(-1)
    check(f"cdequantize_{suffix}, blocks of {block}", decoded(DEVICE.array(back), dtype), expected, 4 * STEPS[dtype])


def products(dtype, kind, shape, block=64):
    """A product with weights of four bits."""
    rows, columns, inner = shape
    code = CODES[kind]
    codes, scales = quantised(random.standard_normal(columns * inner).astype(np.float32), code, block)
    weights = (code[codes].reshape(-1, block) * scales[:, None]).reshape(columns, inner)
    left = numbers(rows * inner, dtype).reshape(rows, inner)
    expected = left.astype(np.float64) @ weights.T.astype(np.float64)
    tolerance = 4 * STEPS[dtype] * np.sqrt(inner) + 1e-3
    out = DEVICE.buffer(np.zeros(rows * columns, memory_type(dtype)))
    arguments = [DEVICE.buffer(encoded(left, dtype)), DEVICE.buffer(packed(codes)), DEVICE.buffer(scales), None, None, None, out, None]
    number = {"fp4": 1, "nf4": 2}[kind]
    getattr(LIBRARY, f"cgemm_4bit_{dtype}")(*arguments, rows, columns, inner, block, number, None)
    check(f"cgemm_4bit_{dtype} of {kind}, {shape}", decoded(DEVICE.array(out), dtype), expected.reshape(-1), tolerance)
    if rows == 1:
        out = DEVICE.buffer(np.zeros(columns, memory_type(dtype)))
        arguments = [DEVICE.buffer(encoded(left, dtype)), DEVICE.buffer(packed(codes)), DEVICE.buffer(scales), DEVICE.buffer(code), out]
        function = getattr(LIBRARY, f"cgemm_4bit_inference_naive_{dtype}")
        function(columns, 1, inner, *arguments, columns, (inner + 1) // 2, columns, block, None)
        name = f"cgemm_4bit_inference_naive_{dtype} of {kind}, {shape}"
        check(name, decoded(DEVICE.array(out), dtype), expected.reshape(-1), tolerance)


def integers(rows, columns):
    values = numbers(rows * columns, "fp16").reshape(rows, columns)
    out, scales = DEVICE.buffer(np.zeros((rows, columns), np.int8)), DEVICE.buffer(np.zeros(rows, np.float32))
    LIBRARY.cint8_vector_quant(DEVICE.buffer(values.astype(np.float16)), out, scales, ctypes.c_float(0), rows, columns, None)
    largest = np.abs(values).max(axis=1)
    check(f"cint8_vector_quant, {rows} rows: scales", DEVICE.array(scales), largest, 1e-6)
    off = np.abs(DEVICE.array(out) - values * 127 / largest[:, None])
    check(f"cint8_vector_quant, {rows} rows", np.maximum(off - 0.5, 0), 0, 0.01)
    sums = random.integers(-30000, 30000, (rows, columns)).astype(np.int32)
    by_row, by_column = np.abs(numbers(rows, "fp32")), np.abs(numbers(columns, "fp32"))
    bias, out = numbers(columns, "fp16"), DEVICE.buffer(np.zeros((rows, columns), np.float16))
    arguments = [DEVICE.buffer(sums), DEVICE.buffer(by_row), DEVICE.buffer(by_column), out, DEVICE.buffer(bias.astype(np.float16))]
    LIBRARY.cdequant_mm_int32_fp16(*arguments, rows, columns, None)
    expected = sums * by_row[:, None] * by_column / 127**2 + bias
    check(f"cdequant_mm_int32_fp16, {rows} rows", DEVICE.array(out), expected, 8 * STEPS["fp16"] * np.abs(expected).max())


def fills(count):
    out = DEVICE.buffer(np.zeros(count, np.float32))
    LIBRARY.cfill_fp32(out, None, ctypes.c_float(2.5), ctypes.c_long(count))
    check("cfill_fp32", DEVICE.array(out), 2.5, 0)
    LIBRARY.carange_fp32(out, None, ctypes.c_float(1), ctypes.c_long(count))
    check("carange_fp32", DEVICE.array(out), np.arange(count), 0)


for dtype in STEPS:
    for kind in ["nf4", "fp4", ""]:
        for block in [64, 512]:
            quantisation(dtype, kind, block)
    for kind in CODES:
        products(dtype, kind, (1, 96, 256))
        products(dtype, kind, (17, 80, 128))
integers(1, 200)
integers(5, 768)
fills(1000)
