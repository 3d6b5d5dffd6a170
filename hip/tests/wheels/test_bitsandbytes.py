"""The kernels of the wheel bitsandbytes compute on the simulator what numpy computes."""

import unittest

from wheels import HERE, WheelTest


class BitsandbytesTest(WheelTest):
    needs = ["bitsandbytes"]

    def test_every_check_is_right(self):
        for target in ["gfx90a", "gfx942", "gfx950"]:
            with self.subTest(target=target):
                self.assert_right(["--target", target], [HERE / "bitsandbytes_program.py", self.paths[0]], 80)


if __name__ == "__main__":
    unittest.main()
