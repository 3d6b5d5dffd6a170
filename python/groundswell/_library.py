"""The shared library: where it is, the types of its functions, errors."""

import ctypes
import os
import pathlib


class Error(Exception):
    """What is wrong, where, and a way out."""


# A handle of each kind has a type of its own: ctypes then refuses one in the place of another.
_KERNEL, _OPTIONS, _EXECUTABLE, _DEVICE, _BUFFER, _LAUNCH = (
    type(_kind, (ctypes.c_void_p,), {})
    for _kind in ("KernelHandle", "OptionsHandle", "ExecutableHandle", "DeviceHandle", "BufferHandle", "LaunchHandle")
)
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_STATUS = ctypes.c_int

# For each function its result and its arguments. Texts that the caller frees are pointers.
_FUNCTIONS = {
    "version": (_TEXT, []),
    "error": (_TEXT, []),
    "string_free": (None, [_POINTER]),
    "kernel_parse": (_KERNEL, [_TEXT, _TEXT]),
    "kernel_ready": (_KERNEL, [_TEXT, _TEXT]),
    "kernel_has_symbol": (ctypes.c_int32, [_KERNEL, _TEXT]),
    "kernel_free": (None, [_KERNEL]),
    "options_new": (_OPTIONS, [_TEXT]),
    "options_set": (_STATUS, [_OPTIONS, _TEXT, ctypes.c_int64]),
    "options_dynamic": (_STATUS, [_OPTIONS, _TEXT]),
    "options_schedule": (_STATUS, [_OPTIONS, _TEXT]),
    "options_fast_math": (_STATUS, [_OPTIONS]),
    "options_free": (None, [_OPTIONS]),
    "compile": (_EXECUTABLE, [_KERNEL, _OPTIONS]),
    "executable_object": (_POINTER, [_EXECUTABLE, ctypes.POINTER(ctypes.c_size_t)]),
    "executable_report": (_POINTER, [_EXECUTABLE]),
    "executable_assembly": (_POINTER, [_EXECUTABLE]),
    "executable_free": (None, [_EXECUTABLE]),
    "device_open": (_DEVICE, [_TEXT]),
    "device_name": (_POINTER, [_DEVICE]),
    "device_target": (_POINTER, [_DEVICE]),
    "device_is_simulator": (ctypes.c_int, [_DEVICE]),
    "device_synchronize": (_STATUS, [_DEVICE]),
    "device_free": (None, [_DEVICE]),
    "buffer_new": (_BUFFER, [_DEVICE, ctypes.c_uint64]),
    "buffer_set_dtype": (_STATUS, [_BUFFER, _TEXT]),
    "buffer_write": (_STATUS, [_BUFFER, _POINTER, ctypes.c_size_t]),
    "buffer_read": (_STATUS, [_BUFFER, _POINTER, ctypes.c_size_t]),
    "buffer_bytes": (ctypes.c_uint64, [_BUFFER]),
    "buffer_address": (ctypes.c_uint64, [_BUFFER]),
    "buffer_from_dlpack": (_BUFFER, [_DEVICE, _POINTER]),
    "buffer_to_dlpack": (_POINTER, [_BUFFER, ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t]),
    "buffer_free": (None, [_BUFFER]),
    "launch_new": (_LAUNCH, [_DEVICE, _EXECUTABLE]),
    "launch_buffer": (_STATUS, [_LAUNCH, _BUFFER]),
    "launch_f32": (_STATUS, [_LAUNCH, ctypes.c_float]),
    "launch_f64": (_STATUS, [_LAUNCH, ctypes.c_double]),
    "launch_i32": (_STATUS, [_LAUNCH, ctypes.c_int32]),
    "launch_i64": (_STATUS, [_LAUNCH, ctypes.c_int64]),
    "launch_set": (_STATUS, [_LAUNCH, _TEXT, ctypes.c_int64]),
    "launch_run": (_STATUS, [_LAUNCH]),
    "launch_check": (_POINTER, [_LAUNCH, ctypes.c_uint64]),
    "launch_time": (_POINTER, [_LAUNCH]),
    "launch_free": (None, [_LAUNCH]),
}


def _load():
    path = os.environ.get("GROUNDSWELL_LIBRARY") or str(pathlib.Path(__file__).with_name("libgroundswell_c.so"))
    try:
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, f"groundswell_{name}")
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as reason:
        raise ImportError(
            f"the library of this package is not at {path} ({reason}): build it by `cargo build --release -p "
            f"groundswell-c`, and copy target/release/libgroundswell_c.so there, or name it in GROUNDSWELL_LIBRARY"
        ) from None
    return loaded


library = _load()


def checked(result, status=False):
    """The result of a function, or the library's error."""
    if (result != 0) if status else (not result):
        raise Error(library.groundswell_error().decode())
    return result


def text(value, what, way_out=""):
    """A text for the library; ``what`` is what it is to the user."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, not {kind(value)}{way_out}")
    if "\0" in value:
        raise Error(f"{what} holds a zero character, at which the library would take it to end")
    return value.encode()


def kind(value):
    """What a value is, for messages: its contents may be long."""
    return f"an object of type {type(value).__name__}"


def call_text(function, *arguments):
    """The text that a function returns."""
    pointer = checked(function(*arguments))
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        library.groundswell_string_free(pointer)
