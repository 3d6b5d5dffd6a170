"""The kernels of the wheel bitsandbytes compute on the simulator what numpy computes."""

import unittest

from wheels import HERE, WheelTest

CHECKS = 80


class BitsandbytesTest(WheelTest):
    needs = ["bitsandbytes"]

    def test_every_check_is_right(self):
        for target in ["gfx90a", "gfx942", "gfx950"]:
            with self.subTest(target=target):
                program = [HERE / "bitsandbytes_program.py", self.paths[0]]
                code, text = self.run_on_simulator(["--target", target], program)
                self.assertEqual(code, 0, text)
                lines = [line for line in text.splitlines() if line.startswith(("right", "WRONG"))]
                self.assertEqual([line for line in lines if line.startswith("WRONG")], [])
                self.assertEqual(len(lines), CHECKS, text)


if __name__ == "__main__":
    unittest.main()
