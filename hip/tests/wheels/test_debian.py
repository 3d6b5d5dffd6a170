"""rocSPARSE and rocRAND, as Debian has them, compute on the simulator what numpy computes."""

import unittest

from wheels import HERE, WheelTest


class SparseTest(WheelTest):
    needs = ["librocsparse0"]

    def test_products_and_solutions(self):
        for arguments in [[], ["--check"]]:
            with self.subTest(arguments=arguments):
                program = [HERE / "rocsparse_program.py", self.paths[0], 300]
                self.assert_right([*arguments, "--target", "gfx90a"], program, 2)


class RandomTest(WheelTest):
    needs = ["librocrand1"]

    def test_generators(self):
        self.assert_right(["--target", "gfx90a"], [HERE / "rocrand_program.py", self.paths[0]], 7)


if __name__ == "__main__":
    unittest.main()
