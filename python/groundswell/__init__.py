"""Groundswell: tile-level GPU kernels, compiled to AMD CDNA machine code inside the process.

Kernels are written as text, or taken from the ready ones; they are launched on a GPU through HIP or on the built-in
simulator. See ``Kernel``, ``Device`` and ``Buffer``.
"""

import ctypes
import json

from ._library import Error, call_text, checked, library, text

__all__ = ["Buffer", "Device", "Error", "Executable", "Kernel", "f32", "f64", "i32", "i64", "version"]

#: The version of the library.
version = library.groundswell_version().decode()


class _Scalar:
    """A scalar argument with its type."""

    #: Bits of an integer; 0 of floats.
    bits = 0

    def __init__(self, value):
        self.value = _integer(value, self.bits) if self.bits else float(value)


def _integer(value, bits=64):
    """An integer that fits: ctypes would drop the bits above."""
    value = int(value)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise Error(f"{value} does not fit into {bits} bits")
    return value


class f32(_Scalar):
    """A scalar argument of f32."""

    add = library.groundswell_launch_f32


class f64(_Scalar):
    """A scalar argument of f64."""

    add = library.groundswell_launch_f64


class i32(_Scalar):
    """A scalar argument of i32."""

    bits = 32
    add = library.groundswell_launch_i32


class i64(_Scalar):
    """A scalar argument of i64."""

    bits = 64
    add = library.groundswell_launch_i64


class _Owned:
    """An object of the library, which is freed with its Python object."""

    _free = None

    def __init__(self, handle):
        self._handle = checked(handle)

    def __del__(self):
        handle = getattr(self, "_handle", None)
        if handle:
            self._free(handle)
            self._handle = None


class Kernel(_Owned):
    """A kernel of a text (docs/language.md), or a ready one: ``Kernel.ready("gemm", dtype="bf16")``."""

    _free = library.groundswell_kernel_free

    def __init__(self, source, file="kernel.gsw"):
        super().__init__(library.groundswell_kernel_parse(text(source), text(file)))

    @classmethod
    def ready(cls, name, dtype=None):
        """A ready kernel, whose symbols have defaults."""
        kernel = cls.__new__(cls)
        _Owned.__init__(kernel, library.groundswell_kernel_ready(text(name), None if dtype is None else text(dtype)))
        return kernel

    def has_symbol(self, name):
        """Whether the kernel has a symbol of that name."""
        return bool(library.groundswell_kernel_has_symbol(self._handle, text(name)))

    def compile(self, target, sizes=None, dynamic=(), schedule=None, fast_math=False):
        """Compiles for a target (``gfx942``): ``sizes`` binds symbols, those in ``dynamic`` are left open until launch,
        ``schedule`` is a word of ``groundswell compile --schedule``. What was compiled before is found in a cache."""
        options = checked(library.groundswell_options_new(text(target)))
        try:
            for symbol, value in (sizes or {}).items():
                checked(library.groundswell_options_set(options, text(symbol), _integer(value)), status=True)
            for symbol in dynamic:
                checked(library.groundswell_options_dynamic(options, text(symbol)), status=True)
            if schedule is not None:
                checked(library.groundswell_options_schedule(options, text(schedule)), status=True)
            if fast_math:
                checked(library.groundswell_options_fast_math(options), status=True)
            return Executable(library.groundswell_compile(self._handle, options))
        finally:
            library.groundswell_options_free(options)


class Executable(_Owned):
    """A compiled kernel."""

    _free = library.groundswell_executable_free

    @property
    def object(self):
        """The code object, an ELF file."""
        size = ctypes.c_size_t()
        data = library.groundswell_executable_object(self._handle, ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    @property
    def report(self):
        """The compiler's report as a dictionary."""
        return json.loads(call_text(library.groundswell_executable_report, self._handle))

    @property
    def assembly(self):
        """The kernel as assembly text that LLVM takes."""
        return call_text(library.groundswell_executable_assembly, self._handle)


class Device(_Owned):
    """A device: ``sim``, ``sim:gfx950``, ``hip``, ``hip:1``; without a name the one that ``GROUNDSWELL_DEVICE`` names, or
    else the first GPU, or else the simulator."""

    _free = library.groundswell_device_free

    def __init__(self, name=None):
        super().__init__(library.groundswell_device_open(None if name is None else text(name)))

    @property
    def name(self):
        """One line for people."""
        return call_text(library.groundswell_device_name, self._handle)

    @property
    def target(self):
        """The target to compile for."""
        return call_text(library.groundswell_device_target, self._handle)

    @property
    def is_simulator(self):
        """Whether it is the simulator."""
        return bool(library.groundswell_device_is_simulator(self._handle))

    def allocate(self, size):
        """A buffer of so many bytes, whose contents are undefined."""
        if size < 0:
            raise Error(f"a buffer has no {size} bytes")
        return Buffer(library.groundswell_buffer_new(self._handle, _integer(size)))

    def upload(self, array, dtype=None):
        """A buffer with the contents of a numpy array, or of anything with the buffer protocol. ``dtype`` says what the
        elements are where numpy does not know them (``bf16``, ``f8e4m3fnuz``)."""
        view = memoryview(array)
        if not view.c_contiguous:
            raise Error("the array's elements do not lie row after row; copy it first (numpy.ascontiguousarray)")
        if view.format.startswith((">", "!")):
            raise Error("the array's bytes are swapped; convert it first (array.astype(array.dtype.newbyteorder('<')))")
        buffer = self.allocate(view.nbytes)
        if view.nbytes:
            bytes_type = ctypes.c_char * view.nbytes
            # Only memory that can be written is taken where it is.
            source = bytes_type.from_buffer_copy(view.tobytes()) if view.readonly else bytes_type.from_buffer(array)
            checked(library.groundswell_buffer_write(buffer._handle, source, view.nbytes), status=True)
        dtype = dtype or _DTYPES.get(view.format)
        if dtype is not None:
            buffer.set_dtype(dtype)
        return buffer

    def from_dlpack(self, tensor):
        """A buffer over the memory of a tensor, without a copy: of this GPU, or of the host for the simulator. Nobody else
        may use it while a kernel does."""
        capsule = tensor.__dlpack__()
        pointer = _capsule_pointer(capsule, _NEW)
        # Whoever takes a tensor renames its capsule, which then no longer releases it.
        _rename_capsule(capsule, _USED)
        return Buffer(library.groundswell_buffer_from_dlpack(self._handle, pointer))

    def launch(self, executable, *arguments, **symbols):
        """Runs a kernel and waits for it: buffers and scalars in the order of their declarations, and the values of
        symbols that were left open."""
        launch = _Launch(self, executable, arguments, symbols)
        checked(library.groundswell_launch_run(launch._handle), status=True)

    def check(self, executable, *arguments, seed=0, **symbols):
        """Runs a kernel on the simulator with every step judged. The report's ``findings`` are empty if all is well."""
        launch = _Launch(self, executable, arguments, symbols)
        return json.loads(call_text(library.groundswell_launch_check, launch._handle, seed))

    def time(self, executable, *arguments, **symbols):
        """Estimates on the simulator how long a launch takes on a chip."""
        launch = _Launch(self, executable, arguments, symbols)
        return json.loads(call_text(library.groundswell_launch_time, launch._handle))

    def synchronize(self):
        """Waits until everything that was enqueued has happened."""
        checked(library.groundswell_device_synchronize(self._handle), status=True)


class Buffer(_Owned):
    """Memory of a device."""

    _free = library.groundswell_buffer_free

    @property
    def size(self):
        """Bytes."""
        return library.groundswell_buffer_bytes(self._handle)

    @property
    def address(self):
        """The address on the device."""
        return library.groundswell_buffer_address(self._handle)

    def set_dtype(self, dtype):
        """Declares what the buffer holds (``f16``, ``bf16``, ``f32``, ...), which launches then check."""
        checked(library.groundswell_buffer_set_dtype(self._handle, text(dtype)), status=True)

    def __bytes__(self):
        size = self.size
        data = ctypes.create_string_buffer(size)
        checked(library.groundswell_buffer_read(self._handle, data, size), status=True)
        return data.raw

    def numpy(self, dtype, shape):
        """The contents as a new numpy array."""
        import numpy

        count = 1
        for size in shape:
            count *= size
        return numpy.frombuffer(bytes(self), dtype=dtype, count=count).reshape(shape).copy()

    def to_dlpack(self, shape):
        """The buffer of a GPU, whose dtype was declared, as the capsule of a DLPack tensor."""
        sizes = (ctypes.c_size_t * len(shape))(*shape)
        pointer = checked(library.groundswell_buffer_to_dlpack(self._handle, sizes, len(shape)))
        return _new_capsule(pointer, _NEW, _release_capsule)


class _Launch(_Owned):
    """A launch with its arguments."""

    _free = library.groundswell_launch_free

    def __init__(self, device, executable, arguments, symbols):
        super().__init__(library.groundswell_launch_new(device._handle, executable._handle))
        for argument in arguments:
            if isinstance(argument, Buffer):
                checked(library.groundswell_launch_buffer(self._handle, argument._handle), status=True)
            elif isinstance(argument, _Scalar):
                checked(type(argument).add(self._handle, argument.value), status=True)
            else:
                raise Error(f"an argument is a Buffer or a scalar such as f32(1.0), not {argument!r}")
        for symbol, value in symbols.items():
            checked(library.groundswell_launch_set(self._handle, text(symbol), _integer(value)), status=True)


#: Formats of the buffer protocol, and what they are to kernels.
_DTYPES = {"f": "f32", "d": "f64", "e": "f16", "b": "i8", "h": "i16", "i": "i32", "l": "i64", "q": "i64"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.restype = ctypes.c_int
_rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

#: Names of the capsules of tensors, which capsules point to: of one that nobody has taken, and of one that somebody has.
_NEW = b"dltensor"
_USED = b"used_dltensor"

_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.restype = ctypes.c_int
_is_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_capsule_contents = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _ManagedTensor(ctypes.Structure):
    """The end of DLPack's `DLManagedTensor`, after the tensor itself (48 bytes on 64-bit machines)."""

    _fields_ = [
        ("tensor", ctypes.c_uint64 * 6),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _release(capsule):
    # A capsule that nobody has taken still owns its tensor.
    if _is_capsule(capsule, _NEW):
        pointer = _capsule_contents(capsule, _NEW)
        _ManagedTensor.from_address(pointer).deleter(pointer)


_release_capsule = ctypes.cast(_release, ctypes.c_void_p)
