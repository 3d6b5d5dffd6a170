"""Device memory through HIP, and checks that print a line each."""

import ctypes

import numpy as np


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Device:
    """HIP, as the library with the number of a version; libraries that are loaded later find its functions."""

    def __init__(self, version):
        self.hip = ctypes.CDLL(f"libamdhip64.so.{version}", mode=ctypes.RTLD_GLOBAL)

    def buffer(self, array):
        """Device memory with a copy of an array."""
        array, place = np.ascontiguousarray(array), ctypes.c_void_p()
        size = ctypes.c_size_t(max(array.nbytes, 1))
        assert self.hip.hipMalloc(ctypes.byref(place), size) == 0
        assert self.hip.hipMemcpy(place, pointer(array), ctypes.c_size_t(array.nbytes), 1) == 0
        place.like = array
        return place

    def array(self, buffer):
        """What is in device memory once the device has done everything."""
        result = np.empty_like(buffer.like)
        assert self.hip.hipDeviceSynchronize() == 0
        assert self.hip.hipMemcpy(pointer(result), buffer, ctypes.c_size_t(result.nbytes), 2) == 0
        return result


def check(name, found, expected, tolerance):
    worst = np.abs(np.asarray(found, np.float64) - expected).max()
    print("right" if worst <= tolerance else f"WRONG by {worst}:", name)
