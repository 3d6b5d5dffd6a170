"""The Python package on the simulator: python3 -m unittest discover python/tests"""

import array
import copy
import ctypes
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import unittest
import unittest.mock

import groundswell as gs
import numpy as np

SAXPY = """kernel saxpy {
  workgroup M, 64, 0
  wave M, 64
  x = memory [M] global f32
  y = memory [M] global f32
  alpha = scalar f32
  %x = read x
  %y = read y
  %scaled = mul %x, alpha
  %sum = add %scaled, %y
  write %sum, y
}
"""


def saxpy(device):
    return gs.Kernel(SAXPY, "saxpy.gsw").compile(device.target, dynamic=["M"])


class Launches(unittest.TestCase):
    def setUp(self):
        self.device = gs.Device("sim:gfx942")

    def test_saxpy(self):
        x = np.arange(1000, dtype=np.float32)
        a, b = self.device.upload(x), self.device.upload(np.ones(1000, dtype=np.float32))
        self.device.launch(saxpy(self.device), a, b, gs.f32(2.0), M=1000)
        np.testing.assert_array_equal(b.numpy(np.float32, (1000,)), 2 * x + 1)

    def test_sizes_of_zero_launch_nothing(self):
        a, b = self.device.upload(np.zeros(0, dtype=np.float32)), self.device.upload(np.ones(4, dtype=np.float32))
        self.device.launch(saxpy(self.device), a, b, gs.f32(2.0), M=0)
        self.assertEqual(self.device.check(saxpy(self.device), a, b, gs.f32(2.0), M=0)["findings"], [])
        np.testing.assert_array_equal(b.numpy(np.float32, (4,)), np.ones(4))

    def test_one_buffer_for_two_tensors(self):
        text = """kernel turned {
  workgroup M, 16, 0
  workgroup N, 16, 1
  x = memory [M, N] global f32
  y = memory [N, M] global f32
  %v = read x
  write %v, y
}"""
        turned = gs.Kernel(text).compile(self.device.target, sizes={"M": 64, "N": 64})
        both = self.device.upload(np.zeros((64, 64), dtype=np.float32))
        for run in (self.device.launch, self.device.check, self.device.time):
            with self.assertRaisesRegex(gs.Error, "`x` and `y` share memory, and `turned` writes `y`"):
                run(turned, both, both)
        same = gs.Kernel(text.replace("[N, M]", "[M, N]")).compile(self.device.target, sizes={"M": 64, "N": 64})
        self.device.launch(same, both, both)

    def test_gemm_of_every_float(self):
        for dtype, name in [(np.float16, "f16"), (np.float32, "f32")]:
            gemm = gs.Kernel.ready("gemm", dtype=name)
            executable = gemm.compile(self.device.target, sizes={"M": 70, "N": 33, "K": 50})
            rng = np.random.default_rng(1)
            a = rng.integers(-4, 5, (70, 50)).astype(dtype)
            b = rng.integers(-4, 5, (33, 50)).astype(dtype)
            c = self.device.upload(np.zeros((70, 33), dtype=np.float32))
            self.device.launch(executable, self.device.upload(a), self.device.upload(b), c)
            expected = a.astype(np.float32) @ b.T.astype(np.float32)
            np.testing.assert_array_equal(c.numpy(np.float32, (70, 33)), expected)

    def test_dlpack_without_a_copy(self):
        x = np.arange(256, dtype=np.float32)
        y = np.ones(256, dtype=np.float32)
        a, b = self.device.from_dlpack(x), self.device.from_dlpack(y)
        self.assertEqual(b.address, y.ctypes.data)
        self.device.launch(saxpy(self.device), a, b, gs.f32(3.0), M=256)
        del a, b
        gc.collect()
        np.testing.assert_array_equal(y, 3 * x + 1)

    def test_check_and_time(self):
        x = self.device.upload(np.arange(128, dtype=np.float32))
        y = self.device.upload(np.ones(128, dtype=np.float32))
        arguments = (saxpy(self.device), x, y, gs.f32(2.0))
        self.assertEqual(self.device.check(*arguments, M=128)["findings"], [])
        self.assertGreater(self.device.time(*arguments, M=128)["estimate"]["clk"], 0)
        # A kernel that is told a wrong size leaves its memory.
        short = self.device.allocate(64)
        with self.assertRaisesRegex(gs.Error, "needs 512 bytes"):
            self.device.launch(arguments[0], x, short, gs.f32(2.0), M=128)

    def test_reports(self):
        executable = saxpy(self.device)
        self.assertTrue(executable.object.startswith(b"\x7fELF"))
        self.assertIn("s_endpgm", executable.assembly)
        report = executable.report
        self.assertEqual((report["kernel"], report["target"]), ("saxpy", "gfx942"))
        self.assertGreater(report["report"]["vgprs"], 0)

    def test_threads(self):
        failures = []

        def work(number):
            try:
                executable = saxpy(self.device)
                for _ in range(5):
                    x = np.full(100, number, dtype=np.float32)
                    a, b = self.device.upload(x), self.device.upload(x)
                    self.device.launch(executable, a, b, gs.f32(1.0), M=100)
                    np.testing.assert_array_equal(b.numpy(np.float32, (100,)), 2 * x)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Mistakes(unittest.TestCase):
    def test_errors_say_where_and_why(self):
        with self.assertRaisesRegex(gs.Error, r"mine\.gsw:2"):
            gs.Kernel("kernel k {\n  %x = raed a\n}\n", "mine.gsw")
        with self.assertRaisesRegex(gs.Error, "gfx1100"):
            gs.Kernel(SAXPY).compile("gfx1100")
        with self.assertRaisesRegex(gs.Error, "M"):
            gs.Kernel(SAXPY).compile("gfx942")
        with self.assertRaisesRegex(gs.Error, "gemm"):
            gs.Kernel.ready("gem")
        with self.assertRaisesRegex(gs.Error, "hip:1"):
            gs.Device("gpu")
        device = gs.Device("sim")
        with self.assertRaisesRegex(gs.Error, "row after row"):
            device.upload(np.zeros((4, 4), dtype=np.float32).T)
        with self.assertRaisesRegex(gs.Error, "swapped"):
            device.upload(np.zeros(4, dtype=">f4"))
        with self.assertRaisesRegex(gs.Error, "32 bits"):
            gs.i32(3_000_000_000)
        with self.assertRaisesRegex(gs.Error, "size of a buffer has 64 bits: it is from 0"):
            device.allocate(-1)
        with self.assertRaisesRegex(TypeError, "Buffer or a scalar"):
            device.launch(saxpy(device), 1.0)
        with self.assertRaisesRegex(gs.Error, "f16"):
            half = device.upload(np.zeros(64, dtype=np.float16))
            device.launch(saxpy(device), half, half, gs.f32(1.0), M=64)
        self.assertEqual(device.upload(np.zeros(0, dtype=np.float32)).size, 0)
        self.assertTrue(gs.Kernel(SAXPY).has_symbol("M") and not gs.Kernel(SAXPY).has_symbol("N"))

    def test_what_is_launched_is_an_executable(self):
        device = gs.Device("sim")
        kernel, buffer = gs.Kernel(SAXPY), device.allocate(4)
        for run in (device.launch, device.check, device.time):
            with self.assertRaisesRegex(TypeError, r"Executable, .* Kernel; its \.compile\(target\) is missing"):
                run(kernel, buffer, buffer, gs.f32(1.0), M=1)
            for other in (device, buffer, None, 5):
                with self.assertRaisesRegex(TypeError, "Executable, not an object of type " + type(other).__name__):
                    run(other, buffer, buffer, gs.f32(1.0), M=1)
        # Handles of one kind are not taken for those of another, whoever calls.
        with self.assertRaisesRegex(ctypes.ArgumentError, "wrong type"):
            gs.Device.allocate(buffer, 4)

    def test_objects_are_made_and_freed_once(self):
        device = gs.Device("sim")
        for owned in (device, device.allocate(4), gs.Kernel(SAXPY), saxpy(device)):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "neither copied nor pickled.* share the object"):
                    copied(owned)
        for made, origin in [(gs.Buffer, "Device.allocate"), (gs.Executable, "Kernel.compile")]:
            for arguments in [(5,), (), (device,)]:
                with self.assertRaisesRegex(TypeError, origin):
                    made(*arguments)
        with self.assertRaisesRegex(gs.Error, "NULL"):
            gs.Kernel.__new__(gs.Kernel).compile("gfx942")

    def test_numbers(self):
        device = gs.Device("sim")
        buffer = device.upload(np.zeros(100, dtype=np.float32))
        kernel, executable = gs.Kernel(SAXPY), saxpy(device)
        for value in (1.5, np.float64(50.7), "100", b"3", True, None, np.zeros(2)):
            for taken in (
                gs.i32,
                gs.i64,
                device.allocate,
                lambda value: device.launch(executable, buffer, buffer, gs.f32(1.0), M=value),
                lambda value: device.check(executable, buffer, buffer, gs.f32(1.0), M=1, seed=value),
                lambda value: kernel.compile("gfx942", sizes={"M": value}),
                lambda value: buffer.numpy(np.float32, (value,)),
                lambda value: buffer.to_dlpack((value,)),
            ):
                with self.assertRaisesRegex(TypeError, "is an integer, not an object of type"):
                    taken(value)
        for value in (1 << 63, -(1 << 63) - 1, 10**5000):
            with self.assertRaisesRegex(gs.Error, "value of M has 64 bits"):
                kernel.compile("gfx942", sizes={"M": value})
            with self.assertRaisesRegex(gs.Error, "64 bits"):
                gs.i64(value)
        for seed in (1 << 64, -1):
            with self.assertRaisesRegex(gs.Error, "seed has 64 bits: it is from 0 to 18446744073709551615"):
                device.check(executable, buffer, buffer, gs.f32(1.0), M=1, seed=seed)
        self.assertEqual(device.check(executable, buffer, buffer, gs.f32(1.0), M=1, seed=7)["seed"], 7)
        with self.assertRaisesRegex(gs.Error, "shape has 64 bits"):
            buffer.to_dlpack((-1,))
        for value in ("3", b"3", True, None, 1j):
            for scalar in (gs.f32, gs.f64):
                with self.assertRaisesRegex(TypeError, "is a number, not an object of type"):
                    scalar(value)
        for value in (1e300, -1e39):
            with self.assertRaisesRegex(OverflowError, "too large for an f32"):
                gs.f32(value)
        self.assertEqual(gs.f32(float("inf")).value, float("inf"))
        self.assertEqual((gs.f64(1e300).value, gs.f32(np.float32(0.5)).value), (1e300, 0.5))
        self.assertEqual(gs.i32(np.int64(-3)).value, -3)
        with self.assertRaisesRegex(TypeError, r"dynamic=\['MN'\]"):
            kernel.compile("gfx942", dynamic="MN")

    def test_elements_without_a_dtype(self):
        device = gs.Device("sim")
        formats = ["?", "u1", "u2", "u4", "u8", "c8", "c16", "g", "S3", "U3", "V4", "O", [("a", "<i4"), ("b", "<f4")]]
        for given in [*(np.zeros(4, dtype=dtype) for dtype in formats), b"abcd", bytearray(4)]:
            with self.assertRaisesRegex(gs.Error, r"f16, f32, f64, i8.*dtype=\"f32\""):
                device.upload(given)
        for given in ([1.0], 1.0, None, "abcd", np.zeros(4, dtype="M8[s]")):
            with self.assertRaisesRegex(TypeError, r"does not lend its memory.*array\.view\(numpy\.uint8\)"):
                device.upload(given)
        with self.assertRaisesRegex(gs.Error, "swapped"):
            device.upload((ctypes.c_float.__ctype_be__ * 4)())
        for given, dtype in [(np.zeros(4), "f32"), (np.zeros(4), np.float32), (np.arange(4), np.int32)]:
            with self.assertRaisesRegex(gs.Error, r"holds .64, which upload does not convert to .32"):
                device.upload(given, dtype=dtype)
        # What is known is found in all writings.
        for given, dtype in [
            ((ctypes.c_double * 4)(), "f64"),
            ((ctypes.c_long * 4)(), f"i{8 * ctypes.sizeof(ctypes.c_long)}"),
            (array.array("f", [1.0]), "f32"),
            (np.zeros(4, dtype="<i2"), "i16"),
            (np.float16(1.0), "f16"),
        ]:
            self.assertRegex(repr(device.upload(given)), f" of {dtype}>$")
        # The others are taken with a dtype.
        for given, dtype in [
            (b"\0\0\x80\x3f", "f32"),
            (bytearray(4), np.dtype("f4")),
            (np.zeros(4, dtype="u1"), "f8e4m3fnuz"),
            (np.zeros(4, dtype="u2"), "bf16"),
            (np.zeros(4, dtype="i2"), "bf16"),
            (np.zeros(4, dtype="u4"), "i32"),
            (np.zeros(4, dtype="?"), "i1"),
            (np.zeros(4, dtype="i1"), "i1"),
        ]:
            self.assertEqual(bytes(device.upload(given, dtype=dtype)), bytes(given))

    def test_types(self):
        device = gs.Device("sim")
        kernel, executable, buffer = gs.Kernel(SAXPY), saxpy(device), device.allocate(4)
        for message, mistake in [
            ("target", lambda: kernel.compile(None)),
            ("target is a str, .* Device; Device.target is one", lambda: kernel.compile(device)),
            ("sizes is a mapping", lambda: kernel.compile("gfx942", sizes=[("M", 3)])),
            ("sizes is a mapping", lambda: device.launch(executable, buffer, sizes=[("M", 3)])),
            ("symbol is a str", lambda: kernel.compile("gfx942", sizes={3: 3})),
            ("symbol is a str", lambda: kernel.compile("gfx942", dynamic=[3])),
            ("schedule is a str", lambda: kernel.compile("gfx942", sizes={"M": 3}, schedule=3)),
            ("symbol is a str", lambda: kernel.has_symbol(None)),
            ("str, not an object of type bytes", lambda: gs.Kernel(SAXPY.encode())),
            (r"not an object of type \w*Path; .*read_text\(\)", lambda: gs.Kernel(pathlib.Path("saxpy.gsw"))),
            ("name of the text", lambda: gs.Kernel(SAXPY, None)),
            ("name of a ready kernel", lambda: gs.Kernel.ready(None)),
            ("'bf16'", lambda: gs.Kernel.ready("gemm", dtype=3)),
            ("'bf16'", lambda: buffer.set_dtype(None)),
            ("'bf16'", lambda: buffer.set_dtype(np.dtype(">f4"))),
            ("'bf16'", lambda: buffer.set_dtype(np.complex64)),
            ("name of a device", lambda: gs.Device(3)),
            ("has __dlpack__", lambda: device.from_dlpack([1.0])),
            (r"ndarray; Device\.upload", lambda: device.launch(executable, np.zeros(4), buffer)),
        ]:
            with self.subTest(message), self.assertRaisesRegex(TypeError, message):
                mistake()
        for dtype in ("f32", "float32", np.float32, np.dtype("f4"), np.zeros(1, dtype=np.float32).dtype):
            untyped = device.allocate(4)
            untyped.set_dtype(dtype)
            self.assertEqual(repr(untyped), "<Buffer of 4 bytes of f32>")
        self.assertEqual(gs.Kernel.ready("gemm", dtype=np.float16).compile("gfx942").report["target"], "gfx942")

    def test_texts_do_not_end_early(self):
        kernel = gs.Kernel(SAXPY)
        for mistake in (
            lambda: gs.Kernel(SAXPY + "\0and more"),
            lambda: gs.Kernel(SAXPY, "a\0b"),
            lambda: gs.Kernel.ready("gemm\0"),
            lambda: gs.Kernel.ready("gemm", dtype="f16\0"),
            lambda: gs.Device("sim\0"),
            lambda: kernel.compile("gfx942\0", sizes={"M": 3}),
            lambda: kernel.compile("gfx942", sizes={"M\0x": 3}),
            lambda: kernel.compile("gfx942", dynamic=["M\0x"]),
            lambda: kernel.has_symbol("M\0x"),
        ):
            with self.assertRaisesRegex(gs.Error, "zero character"):
                mistake()

    def test_symbols_of_all_names(self):
        device = gs.Device("sim")
        x = device.upload(np.zeros(4, dtype=np.float32))
        for name in ("seed", "self", "executable", "sizes", "arguments"):
            executable = gs.Kernel(SAXPY.replace("M", name)).compile(device.target, dynamic=[name])
            arguments = (executable, x, x, gs.f32(1.0))
            device.launch(*arguments, sizes={name: 4})
            self.assertEqual(device.check(*arguments, seed=3, sizes={name: 4})["findings"], [])
            device.time(*arguments, sizes={name: 4})
            if name != "sizes":
                device.launch(*arguments, **{name: 4})
        with self.assertRaisesRegex(TypeError, "symbol M is given in sizes, and again"):
            device.launch(saxpy(device), x, x, gs.f32(1.0), sizes={"M": 4}, M=4)

    def test_representations(self):
        device = gs.Device("sim:gfx942")
        self.assertEqual(repr(device), f"<Device {device.name}, for gfx942>")
        self.assertEqual(repr(device.allocate(12)), "<Buffer of 12 bytes>")
        self.assertEqual(repr(device.upload(np.zeros(3, dtype=np.float32))), "<Buffer of 12 bytes of f32>")
        self.assertEqual(repr(gs.Kernel("; a kernel of rows\n" + SAXPY)), "<Kernel saxpy>")
        self.assertEqual(repr(gs.Kernel.ready("gemm")), "<Kernel gemm>")
        self.assertEqual(repr(saxpy(device)), "<Executable saxpy for gfx942>")

    def test_a_library_that_is_not_there(self):
        # A file that is missing, one that is no library, and one of somebody else.
        for path in ("/nowhere/libgroundswell_c.so", __file__, ctypes.pythonapi._name or "libc.so.6"):
            environment = {**os.environ, "GROUNDSWELL_LIBRARY": path}
            command = [sys.executable, "-c", "import groundswell"]
            errors = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True).stderr
            self.assertRegex(errors, "ImportError: .*cargo build --release -p groundswell-c.*GROUNDSWELL_LIBRARY")


class Capsules(unittest.TestCase):
    """Capsules of `to_dlpack`, which is of GPUs: a tensor of the test stands in for the library's."""

    def setUp(self):
        self.released = []
        self.release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.released.append)
        self.elements = np.ones(4, dtype=np.float32)
        self.shape = ctypes.c_int64(4)

    def tensor(self, data, device, release):
        """The words of a `DLManagedTensor` of four f32."""
        release = ctypes.cast(release, ctypes.c_void_p).value
        return (ctypes.c_uint64 * 8)(data, device, 1 | 0x1_20_02 << 32, ctypes.addressof(self.shape), 0, 0, 0, release)

    def exported(self, tensor):
        """An object that gives the capsule away, so that who takes it has the last reference."""
        address = ctypes.addressof(tensor)
        buffer = gs.Device("sim").allocate(16)
        with unittest.mock.patch.object(gs.library, "groundswell_buffer_to_dlpack", lambda *_: address):
            capsules = [buffer.to_dlpack((4,))]
        exported = unittest.mock.Mock(spec=["__dlpack__", "__dlpack_device__"])
        exported.__dlpack__ = lambda **_: capsules.pop()
        exported.__dlpack_device__ = lambda: (1, 0)
        return exported

    def test_who_rejects_a_capsule_is_heard_and_the_tensor_released(self):
        # Like the library's, this release is a function of C, which a pending exception does not concern: it adds one
        # to the first word, the address of the data.
        unknown = self.tensor(0, 99, ctypes.CDLL(None).sem_post)
        with self.assertRaisesRegex((RuntimeError, BufferError), "(?i)unsupported device"):
            np.from_dlpack(self.exported(unknown))
        self.assertEqual(unknown[0], 1)

    def test_a_tensor_is_released_once(self):
        untaken = self.tensor(0, 1, self.release)
        exported = self.exported(untaken)
        self.assertEqual(self.released, [])
        del exported
        gc.collect()
        self.assertEqual(self.released, [ctypes.addressof(untaken)])
        taken = self.tensor(self.elements.ctypes.data, 1, self.release)
        buffer = gs.Device("sim").from_dlpack(self.exported(taken))
        self.assertEqual(len(self.released), 1)
        self.assertEqual(buffer.numpy(np.float32, (4,)).tolist(), [1.0] * 4)
        del buffer
        gc.collect()
        self.assertEqual(self.released[1:], [ctypes.addressof(taken)])

    def test_a_capsule_may_outlive_python(self):
        # The release of this tensor is the C library's, which is there to the end.
        program = """
import ctypes, sys
import groundswell as gs
c = ctypes.CDLL(None)
c.calloc.restype = ctypes.c_void_p
tensor = c.calloc(8, 8)
ctypes.c_void_p.from_address(tensor + 56).value = ctypes.cast(c.free, ctypes.c_void_p).value
gs.library.groundswell_buffer_to_dlpack = lambda *_: tensor
sys.kept = gs.Device("sim").allocate(4).to_dlpack((1,))
"""
        run = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
