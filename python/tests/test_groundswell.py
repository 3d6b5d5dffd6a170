"""The Python package on the simulator: python3 -m unittest discover python/tests"""

import gc
import threading
import unittest

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
        with self.assertRaisesRegex(gs.Error, "no -1 bytes"):
            device.allocate(-1)
        with self.assertRaisesRegex(gs.Error, "Buffer or a scalar"):
            device.launch(saxpy(device), 1.0)
        with self.assertRaisesRegex(gs.Error, "f16"):
            half = device.upload(np.zeros(64, dtype=np.float16))
            device.launch(saxpy(device), half, half, gs.f32(1.0), M=64)
        self.assertEqual(device.upload(np.zeros(0, dtype=np.float32)).size, 0)
        self.assertTrue(gs.Kernel(SAXPY).has_symbol("M") and not gs.Kernel(SAXPY).has_symbol("N"))


if __name__ == "__main__":
    unittest.main()
