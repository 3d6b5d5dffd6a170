"""Groundswell: tile-level GPU kernels, compiled to AMD CDNA machine code inside the process.

Kernels are written as text, or taken from the ready ones; they are launched on a GPU through HIP or on the built-in
simulator. See ``Kernel``, ``Device`` and ``Buffer``.
"""

import collections.abc
import ctypes
import json
import math
import operator
import re

from ._library import Error, call_text, checked, kind, library, text

__all__ = ["Buffer", "Device", "Error", "Executable", "Kernel", "f32", "f64", "i32", "i64", "version"]

#: The version of the library.
version = library.groundswell_version().decode()


def _integer(value, what, bits=64, signed=True):
    """An integer that fits: ``int()`` would round and read text, and ctypes would drop the bits above."""
    try:
        # A truth value is an integer to Python, but hardly what was meant.
        number = operator.index(None if isinstance(value, bool) else value)
    except TypeError:
        raise TypeError(f"{what} is an integer, not {kind(value)}") from None
    low = -(1 << (bits - 1)) if signed else 0
    if not low <= number < low + (1 << bits):
        raise Error(f"{what} has {bits} bits: it is from {low} to {low + (1 << bits) - 1}")
    return number


def _float(value, what, as_passed):
    """A number: ``float()`` would read text, and ctypes would make an infinity of what is too large for an f32."""
    try:
        number = ctypes.c_double(None if isinstance(value, bool) else value).value
    except TypeError:
        raise TypeError(f"{what} is a number, not {kind(value)}") from None
    if math.isinf(as_passed(number).value) and not math.isinf(number):
        raise OverflowError(f"{number} is too large for {what}")
    return number


def _sizes(sizes, keywords=None):
    """The names and the values of symbols, of a mapping and of keywords, as the library takes them."""
    sizes, keywords = {} if sizes is None else sizes, keywords or {}
    if not isinstance(sizes, collections.abc.Mapping):
        raise TypeError(f'sizes is a mapping such as {{"M": 100}}, not {kind(sizes)}')
    for symbol in keywords.keys() & sizes.keys():
        raise TypeError(f"the symbol {symbol} is given in sizes, and again as a keyword")
    values = {**sizes, **keywords}
    return [(text(symbol, "a symbol"), _integer(value, f"the value of {symbol}")) for symbol, value in values.items()]


def _dtype_name(dtype):
    """The name of a dtype, which may be given as one of numpy or of ml_dtypes."""
    if isinstance(dtype, str):
        return _NUMPY.get(dtype, dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name not in _NUMPY or not getattr(dtype, "isnative", True):
        raise TypeError(f"a dtype is a str such as 'bf16', or that of numpy for {', '.join(_NUMPY)}, not {kind(dtype)}")
    return _NUMPY[name]


#: What numpy and ml_dtypes call the dtypes that kernels have too.
_NUMPY = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bfloat16": "bf16",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
}

#: Codes of the buffer protocol for floats and signed integers. Their widths are known from elsewhere.
_CODES = {**dict.fromkeys("efd", "f"), **dict.fromkeys("bhilqn", "i")}


class _Scalar:
    """A scalar argument with its type."""

    #: Bits of an integer; 0 of floats.
    bits = 0

    def __init__(self, value):
        what = f"an {type(self).__name__}"
        self.value = _integer(value, what, self.bits) if self.bits else _float(value, what, self.add.argtypes[1])


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

    _handle = None
    _free = None
    #: Where objects of a class come from whose constructor is not for users.
    _origin = None

    def __init__(self, *_):
        raise TypeError(f"{kind(self)} is not made directly: {self._origin} returns one")

    @classmethod
    def _own(cls, handle):
        owned = cls.__new__(cls)
        owned._handle = checked(handle)
        return owned

    def __reduce__(self):
        # Two objects with one handle would free it twice. Copies and pickles of all protocols come by here.
        raise TypeError(
            f"{kind(self)} is neither copied nor pickled, for it owns memory of this process: share the object, or "
            f"make another (bytes(buffer) are the contents of a Buffer)"
        )

    def __del__(self):
        if self._handle:
            self._free(self._handle)
            self._handle = None


class Kernel(_Owned):
    """A kernel of a text (docs/language.md), or a ready one: ``Kernel.ready("gemm", dtype="bf16")``."""

    _free = library.groundswell_kernel_free
    _name = ""

    def __init__(self, source, file="kernel.gsw"):
        contents = text(source, "the text of a kernel", "; pathlib.Path(...).read_text() is that of a file")
        self._handle = checked(library.groundswell_kernel_parse(contents, text(file, "the name of the text")))
        name = re.search(r"^\s*kernel\s+(\w+)", source, re.MULTILINE)
        self._name = name[1] if name else file

    def __repr__(self):
        return f"<Kernel {self._name}>"

    @classmethod
    def ready(cls, name, dtype=None):
        """A ready kernel, whose symbols have defaults. ``dtype`` is that of its inputs, such as ``"f16"`` or
        ``numpy.float16``."""
        inputs = None if dtype is None else text(_dtype_name(dtype), "a dtype")
        kernel = cls._own(library.groundswell_kernel_ready(text(name, "the name of a ready kernel"), inputs))
        kernel._name = name
        return kernel

    def has_symbol(self, name):
        """Whether the kernel has a symbol of that name."""
        return bool(library.groundswell_kernel_has_symbol(self._handle, text(name, "a symbol")))

    def compile(self, target, sizes=None, dynamic=(), schedule=None, fast_math=False):
        """Compiles for a target (``gfx942``): ``sizes`` binds symbols (``{"M": 100}``), those in ``dynamic``
        (``["M"]``) are left open until launch, ``schedule`` is a word of ``groundswell compile --schedule``. What was
        compiled before is found in a cache."""
        if isinstance(dynamic, str):
            raise TypeError(f"dynamic is a list of symbols; write dynamic=[{dynamic!r}] for the one symbol {dynamic}")
        options = checked(library.groundswell_options_new(text(target, "a target", "; Device.target is one")))
        try:
            for symbol, value in _sizes(sizes):
                checked(library.groundswell_options_set(options, symbol, value), status=True)
            for symbol in dynamic:
                checked(library.groundswell_options_dynamic(options, text(symbol, "a symbol")), status=True)
            if schedule is not None:
                checked(library.groundswell_options_schedule(options, text(schedule, "a schedule")), status=True)
            if fast_math:
                checked(library.groundswell_options_fast_math(options), status=True)
            return Executable._own(library.groundswell_compile(self._handle, options))
        finally:
            library.groundswell_options_free(options)


class Executable(_Owned):
    """A compiled kernel."""

    _free = library.groundswell_executable_free
    _origin = "Kernel.compile(target)"

    def __repr__(self):
        report = self.report
        return f"<Executable {report['kernel']} for {report['target']}>"

    @property
    def object(self):
        """The code object, an ELF file."""
        size = ctypes.c_size_t()
        data = checked(library.groundswell_executable_object(self._handle, ctypes.byref(size)))
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
        name = None if name is None else text(name, "the name of a device")
        self._handle = checked(library.groundswell_device_open(name))

    def __repr__(self):
        return f"<Device {self.name}, for {self.target}>"

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
        size = _integer(size, "the size of a buffer", signed=False)
        return Buffer._own(library.groundswell_buffer_new(self._handle, size))

    def upload(self, array, dtype=None):
        """A buffer with the contents of a numpy array, or of anything with the buffer protocol, whose elements are
        floats or signed integers. ``dtype`` says what the bytes of other elements are, which are taken as they are:
        ``upload(array.view(numpy.uint16), dtype="bf16")``, ``upload(bytes, dtype="f32")``."""
        try:
            view = memoryview(array)
        except (TypeError, ValueError) as reason:
            raise TypeError(
                f"{kind(array)} does not lend its memory ({reason}): numpy.asarray makes an array of numbers, and "
                f"upload(array.view(numpy.uint8), dtype=...) takes one of a dtype that is not numpy's own"
            ) from None
        if not view.c_contiguous:
            raise Error("the array's elements do not lie row after row; copy it first (numpy.ascontiguousarray)")
        if view.format.startswith((">", "!")):
            raise Error("the array's bytes are swapped; convert it first (array.astype(array.dtype.newbyteorder('<')))")
        # The width is not that of the code: ctypes writes "<l" for eight bytes.
        code = _CODES.get(view.format.lstrip("<=@"))
        known = f"{code}{8 * view.itemsize}" if code else None
        if known is None and dtype is None:
            raise Error(
                f"elements of the format {view.format!r} have no dtype; those of f16, f32, f64, i8, i16, i32 and i64 "
                f'have. Convert the array, or say what its bytes are: upload(array.view(numpy.uint8), dtype="f32")'
            )
        dtype = known if dtype is None else _dtype_name(dtype)
        if known not in (None, dtype) and (code == "f" or dtype in ("i8", "i16", "i32", "i64")):
            raise Error(
                f"the array holds {known}, which upload does not convert to {dtype}: pass array.astype(...), or "
                f"array.view(numpy.uint8) if its bytes are of {dtype}"
            )
        buffer = self.allocate(view.nbytes)
        if view.nbytes:
            bytes_type = ctypes.c_char * view.nbytes
            # Only memory that can be written is taken where it is.
            source = bytes_type.from_buffer_copy(view.tobytes()) if view.readonly else bytes_type.from_buffer(array)
            checked(library.groundswell_buffer_write(buffer._handle, source, view.nbytes), status=True)
        buffer.set_dtype(dtype)
        return buffer

    def from_dlpack(self, tensor):
        """A buffer over the memory of a tensor, without a copy: of this GPU, or of the host for the simulator. Nobody else
        may use it while a kernel does, and it may not overlap the memory of another buffer."""
        if not hasattr(tensor, "__dlpack__"):
            raise TypeError(f"from_dlpack takes a tensor, which has __dlpack__, not {kind(tensor)}")
        capsule = tensor.__dlpack__()
        pointer = _capsule_pointer(capsule, _NEW)
        # Whoever takes a tensor renames its capsule, which then no longer releases it.
        _rename_capsule(capsule, _USED)
        return Buffer._own(library.groundswell_buffer_from_dlpack(self._handle, pointer))

    def launch(self, executable, /, *arguments, sizes=None, **symbols):
        """Runs a kernel and waits for it: buffers and scalars in the order of their declarations, and the values of
        symbols that were left open, as keywords (``M=100``) or in a mapping (``sizes={"M": 100}``), whatever their
        names."""
        launch = _Launch(self, executable, arguments, sizes, symbols)
        checked(library.groundswell_launch_run(launch._handle), status=True)

    def check(self, executable, /, *arguments, seed=0, sizes=None, **symbols):
        """Runs a kernel as ``launch`` does, on the simulator with every step judged, in an order of waves that ``seed``
        decides; a symbol called ``seed`` is given in ``sizes``. The report's ``findings`` are empty if all is well."""
        launch = _Launch(self, executable, arguments, sizes, symbols)
        seed = _integer(seed, "the seed", signed=False)
        return json.loads(call_text(library.groundswell_launch_check, launch._handle, seed))

    def time(self, executable, /, *arguments, sizes=None, **symbols):
        """Estimates on the simulator how long a launch, given as to ``launch``, takes on a chip."""
        launch = _Launch(self, executable, arguments, sizes, symbols)
        return json.loads(call_text(library.groundswell_launch_time, launch._handle))

    def synchronize(self):
        """Waits until everything that was enqueued has happened."""
        checked(library.groundswell_device_synchronize(self._handle), status=True)


class Buffer(_Owned):
    """Memory of a device."""

    _free = library.groundswell_buffer_free
    _origin = "Device.allocate, upload or from_dlpack"
    #: What ``set_dtype`` declared; a tensor's dtype is known to the library only.
    _dtype = None

    def __repr__(self):
        dtype = f" of {self._dtype}" if self._dtype else ""
        return f"<Buffer of {self.size} bytes{dtype}>"

    @property
    def size(self):
        """Bytes."""
        return library.groundswell_buffer_bytes(self._handle)

    @property
    def address(self):
        """The address on the device."""
        return library.groundswell_buffer_address(self._handle)

    def set_dtype(self, dtype):
        """Declares what the buffer holds (``f16``, ``bf16``, ``f32``, ..., or ``numpy.float32``), which launches then
        check."""
        name = _dtype_name(dtype)
        checked(library.groundswell_buffer_set_dtype(self._handle, text(name, "a dtype")), status=True)
        self._dtype = name

    def __bytes__(self):
        size = self.size
        data = ctypes.create_string_buffer(size)
        checked(library.groundswell_buffer_read(self._handle, data, size), status=True)
        return data.raw

    def numpy(self, dtype, shape):
        """The contents as a new numpy array."""
        import numpy

        count = math.prod(_integer(size, "a size of a shape") for size in shape)
        return numpy.frombuffer(bytes(self), dtype=dtype, count=count).reshape(shape).copy()

    def to_dlpack(self, shape):
        """The buffer of a GPU, whose dtype was declared, as the capsule of a DLPack tensor; numpy is needed."""
        shape = [_integer(size, "a size of a shape", signed=False) for size in shape]
        sizes = (ctypes.c_size_t * len(shape))(*shape)
        destructor = _numpy_destructor()
        pointer = checked(library.groundswell_buffer_to_dlpack(self._handle, sizes, len(shape)))
        return _new_capsule(pointer, _NEW, destructor)


class _Launch(_Owned):
    """A launch with its arguments."""

    _free = library.groundswell_launch_free

    def __init__(self, device, executable, arguments, sizes, symbols):
        if not isinstance(executable, Executable):
            missing = "; its .compile(target) is missing" if isinstance(executable, Kernel) else ""
            raise TypeError(f"what is launched is an Executable, not {kind(executable)}{missing}")
        values = _sizes(sizes, symbols)
        self._handle = checked(library.groundswell_launch_new(device._handle, executable._handle))
        for argument in arguments:
            if isinstance(argument, Buffer):
                checked(library.groundswell_launch_buffer(self._handle, argument._handle), status=True)
            elif isinstance(argument, _Scalar):
                checked(type(argument).add(self._handle, argument.value), status=True)
            else:
                raise TypeError(
                    f"an argument is a Buffer or a scalar such as f32(1.0), not {kind(argument)}; Device.upload makes "
                    f"a Buffer of an array"
                )
        for symbol, value in values:
            checked(library.groundswell_launch_set(self._handle, symbol, value), status=True)


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.restype = ctypes.c_int
_rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_destructor = ctypes.pythonapi.PyCapsule_GetDestructor
_capsule_destructor.restype = ctypes.c_void_p
_capsule_destructor.argtypes = [ctypes.py_object]

#: Names of the capsules of tensors, which capsules point to: of one that nobody has taken, and of one that somebody has.
_NEW = b"dltensor"
_USED = b"used_dltensor"
for _bytes in (_NEW, _USED):
    # A capsule may outlive this module when the interpreter ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_bytes))


def _numpy_destructor():
    """What releases the tensor of a capsule that nobody has taken. It may run while a consumer's exception is pending,
    or after the last of Python, and no function of Python can do that. That of numpy can, and suits all such capsules.
    """
    import numpy

    return _capsule_destructor(numpy.zeros(0).__dlpack__())
