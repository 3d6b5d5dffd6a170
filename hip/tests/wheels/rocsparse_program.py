"""Products with and solutions of a sparse triangular matrix by rocSPARSE, compared with numpy."""

import ctypes
import sys
from pathlib import Path

import numpy as np
from device import Device, check

DEVICE = Device(5)
LIBRARY = ctypes.CDLL(str(next(Path(sys.argv[1]).rglob("librocsparse.so.0"))))
NO_TRANSPOSITION, LOWER = 111, 0


def call(name, *arguments):
    status = getattr(LIBRARY, f"rocsparse_{name}")(*arguments)
    assert status == 0, (name, status)


def made(name):
    handle = ctypes.c_void_p()
    call(f"create_{name}", ctypes.byref(handle))
    return handle


rows = int(sys.argv[2])
random = np.random.default_rng(1)
dense = np.tril((random.random((rows, rows)) < 0.05) * random.standard_normal((rows, rows)), -1)
dense = (dense + np.diag(2 + random.random(rows))).astype(np.float32)
counts = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
columns = np.nonzero(dense)[1].astype(np.int32)
values = dense[dense != 0]
x, y = random.standard_normal((2, rows)).astype(np.float32)

handle, description, information = made("handle"), made("mat_descr"), made("mat_info")
call("set_mat_fill_mode", description, LOWER)
matrix = [DEVICE.buffer(values), DEVICE.buffer(counts), DEVICE.buffer(columns)]
on_x, on_y = DEVICE.buffer(x), DEVICE.buffer(y)
alpha, beta = ctypes.c_float(1.5), ctypes.c_float(-0.5)
shape = [handle, NO_TRANSPOSITION, rows, rows, len(values), ctypes.byref(alpha), description]
call("scsrmv", *shape, *matrix, None, on_x, ctypes.byref(beta), on_y)
check("scsrmv", DEVICE.array(on_y), 1.5 * dense.astype(np.float64) @ x - 0.5 * y, 1e-5)

size = ctypes.c_size_t()
shape = [handle, NO_TRANSPOSITION, rows, len(values)]
call("scsrsv_buffer_size", *shape, description, *matrix, information, ctypes.byref(size))
room = DEVICE.buffer(np.zeros(size.value, np.uint8))
call("scsrsv_analysis", *shape, description, *matrix, information, 0, 0, room)
call("scsrsv_solve", *shape, ctypes.byref(alpha), description, *matrix, information, on_x, on_y, 0, room)
check("scsrsv_solve", dense.astype(np.float64) @ DEVICE.array(on_y), 1.5 * x, 1e-5)
