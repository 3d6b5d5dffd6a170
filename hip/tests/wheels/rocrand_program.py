"""Random numbers of rocRAND: two generators exactly, two by their mean and variance."""

import ctypes
import sys
from pathlib import Path

import numpy as np
from device import Device, check

DEVICE = Device(5)
LIBRARY = ctypes.CDLL(str(next(Path(sys.argv[1]).rglob("librocrand.so.1"))))
XORWOW, MRG32K3A, PHILOX, SOBOL = 401, 402, 404, 501
COUNT, SEED = 4096, 12345


def philox(counters, seed):
    """Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011) of counters below 2^32."""
    low = np.uint64(0xFFFFFFFF)
    state = [counters.astype(np.uint64)] + [np.zeros(len(counters), np.uint64)] * 3
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        first, second = state[0] * np.uint64(0xD2511F53), state[2] * np.uint64(0xCD9E8D57)
        upper = [product >> np.uint64(32) for product in (first, second)]
        state = [upper[1] ^ state[1] ^ keys[0], second & low, upper[0] ^ state[3] ^ keys[1], first & low]
        keys = [keys[0] + np.uint64(0x9E3779B9) & low, keys[1] + np.uint64(0xBB67AE85) & low]
    return np.stack(state, axis=1).reshape(-1)


def generated(kind, function, like, *more):
    generator = ctypes.c_void_p()
    assert LIBRARY.rocrand_create_generator(ctypes.byref(generator), kind) == 0
    if kind != SOBOL:
        assert LIBRARY.rocrand_set_seed(generator, ctypes.c_ulonglong(SEED)) == 0
    buffer = DEVICE.buffer(np.zeros(COUNT, like))
    assert getattr(LIBRARY, function)(generator, buffer, ctypes.c_size_t(COUNT), *more) == 0
    return DEVICE.array(buffer)


bits = generated(PHILOX, "rocrand_generate", np.uint32)
expected = philox(np.arange(COUNT // 4), SEED)
check("Philox", bits, expected, 0)
uniform = generated(PHILOX, "rocrand_generate_uniform", np.float32)
check("Philox, uniform", uniform, (expected + 1) / 2**32, 2**-23)
places = np.arange(COUNT, dtype=np.uint32)
gray = places ^ places >> 1
reversed_bits = sum((gray >> bit & 1).astype(np.uint64) << np.uint64(31 - bit) for bit in range(12))
check("Sobol, first dimension", generated(SOBOL, "rocrand_generate", np.uint32), reversed_bits, 0)
for name, kind in [("XORWOW", XORWOW), ("MRG32k3a", MRG32K3A)]:
    normal = generated(kind, "rocrand_generate_normal", np.float32, ctypes.c_float(1), ctypes.c_float(2))
    check(f"{name}, normal: mean", normal.mean(), 1, 5 * 2 / COUNT**0.5)
    check(f"{name}, normal: deviation", normal.std(), 2, 5 * 2 / (2 * COUNT) ** 0.5)
