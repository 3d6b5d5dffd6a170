"""The shared library: where it is, the types of its functions, errors."""

import ctypes
import os
import pathlib


class Error(Exception):
    """What is wrong, where, and a way out."""


def _find():
    named = os.environ.get("GROUNDSWELL_LIBRARY")
    return named or str(pathlib.Path(__file__).with_name("libgroundswell_c.so"))


library = ctypes.CDLL(_find())

_OBJECT = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_STATUS = ctypes.c_int

# For each function its result and its arguments. Texts that the caller frees are pointers.
_FUNCTIONS = {
    "version": (_TEXT, []),
    "error": (_TEXT, []),
    "string_free": (None, [_OBJECT]),
    "kernel_parse": (_OBJECT, [_TEXT, _TEXT]),
    "kernel_ready": (_OBJECT, [_TEXT, _TEXT]),
    "kernel_has_symbol": (ctypes.c_int32, [_OBJECT, _TEXT]),
    "kernel_free": (None, [_OBJECT]),
    "options_new": (_OBJECT, [_TEXT]),
    "options_set": (_STATUS, [_OBJECT, _TEXT, ctypes.c_int64]),
    "options_dynamic": (_STATUS, [_OBJECT, _TEXT]),
    "options_schedule": (_STATUS, [_OBJECT, _TEXT]),
    "options_fast_math": (_STATUS, [_OBJECT]),
    "options_free": (None, [_OBJECT]),
    "compile": (_OBJECT, [_OBJECT, _OBJECT]),
    "executable_object": (_OBJECT, [_OBJECT, ctypes.POINTER(ctypes.c_size_t)]),
    "executable_report": (_OBJECT, [_OBJECT]),
    "executable_assembly": (_OBJECT, [_OBJECT]),
    "executable_free": (None, [_OBJECT]),
    "device_open": (_OBJECT, [_TEXT]),
    "device_name": (_OBJECT, [_OBJECT]),
    "device_target": (_OBJECT, [_OBJECT]),
    "device_is_simulator": (ctypes.c_int, [_OBJECT]),
    "device_synchronize": (_STATUS, [_OBJECT]),
    "device_free": (None, [_OBJECT]),
    "buffer_new": (_OBJECT, [_OBJECT, ctypes.c_uint64]),
    "buffer_set_dtype": (_STATUS, [_OBJECT, _TEXT]),
    "buffer_write": (_STATUS, [_OBJECT, ctypes.c_void_p, ctypes.c_size_t]),
    "buffer_read": (_STATUS, [_OBJECT, ctypes.c_void_p, ctypes.c_size_t]),
    "buffer_bytes": (ctypes.c_uint64, [_OBJECT]),
    "buffer_address": (ctypes.c_uint64, [_OBJECT]),
    "buffer_from_dlpack": (_OBJECT, [_OBJECT, ctypes.c_void_p]),
    "buffer_to_dlpack": (_OBJECT, [_OBJECT, ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t]),
    "buffer_free": (None, [_OBJECT]),
    "launch_new": (_OBJECT, [_OBJECT, _OBJECT]),
    "launch_buffer": (_STATUS, [_OBJECT, _OBJECT]),
    "launch_f32": (_STATUS, [_OBJECT, ctypes.c_float]),
    "launch_f64": (_STATUS, [_OBJECT, ctypes.c_double]),
    "launch_i32": (_STATUS, [_OBJECT, ctypes.c_int32]),
    "launch_i64": (_STATUS, [_OBJECT, ctypes.c_int64]),
    "launch_set": (_STATUS, [_OBJECT, _TEXT, ctypes.c_int64]),
    "launch_run": (_STATUS, [_OBJECT]),
    "launch_check": (_OBJECT, [_OBJECT, ctypes.c_uint64]),
    "launch_time": (_OBJECT, [_OBJECT]),
    "launch_free": (None, [_OBJECT]),
}

for _name, (_result, _arguments) in _FUNCTIONS.items():
    _function = getattr(library, f"groundswell_{_name}")
    _function.restype = _result
    _function.argtypes = _arguments


def checked(result, status=False):
    """The result of a function, or the library's error."""
    if (result != 0) if status else (not result):
        raise Error(library.groundswell_error().decode())
    return result


def text(value):
    """A text for the library."""
    return value.encode()


def call_text(function, *arguments):
    """The text that a function returns."""
    pointer = checked(function(*arguments))
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        library.groundswell_string_free(pointer)
