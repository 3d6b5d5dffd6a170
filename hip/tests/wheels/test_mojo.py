"""Kernels that Mojo compiles compute on the simulator what Mojo computes on the CPU, bit for bit, and their objects come back from
assembler text."""

import json
import os
import re
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

from code_objects import differences
from wheels import GROUNDSWELL, HERE, WheelTest

# What runs on a chip, and how many checks it makes. What uses Mojo's products takes three times as long to compile.
PROGRAMS = {
    "gfx942": ("mojo_products.mojo", 11),
    "gfx950": ("mojo_products.mojo", 10),
    "gfx90a": ("mojo_program.mojo", 9),
}


class MojoTest(WheelTest):
    # One directory has the compiler, its library, kernels, and the functions that launch them.
    needs = ["mojo-compiler"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Nothing is kept elsewhere, and nobody is told.
        settings = {"MODULAR_HOME": str(cls.work), "MODULAR_TELEMETRY_ENABLED": "0", "MODULAR_CRASH_REPORTING_ENABLED": "false"}
        os.environ.update(settings)
        cls.addClassCleanup(lambda: [os.environ.pop(name) for name in settings])
        with ThreadPoolExecutor(2) as builders:
            cls.programs = dict(zip(PROGRAMS, builders.map(cls.build, PROGRAMS)))

    @classmethod
    def build(cls, target):
        """The program for a chip: what the compiler says, and where it is. Mojo asks the simulator what to compile for, except for
        gfx90a, of whose name it takes the digits alone."""
        program = cls.work / f"mojo.{target}"
        named = ["--target-accelerator", target] if target == "gfx90a" else []
        source = ["-o", program, HERE / PROGRAMS[target][0]]
        build = [cls.paths[0] / "bin" / "mojo", "build", "--disable-warnings", *named, *source]
        code, text = cls.run_on_simulator(["--target", target], build)
        return program, "" if code == 0 else text

    def program(self, target):
        program, said = self.programs[target]
        self.assertEqual(said, "")
        return program

    def groundswell(self, *arguments):
        done = subprocess.run([GROUNDSWELL, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_check_is_right(self):
        for target, (_, count) in PROGRAMS.items():
            with self.subTest(target=target):
                code, text = self.run_alone(["--target", target], [self.program(target)])
                self.assert_checks(code, text, count)

    def test_check_mode_finds_one_fault_and_no_other(self):
        code, text = self.run_alone(["--check", "--target", "gfx942"], [self.program("gfx942")])
        # The product in several stages, which is for factors that are not transposed, loads the tile that would follow the last
        # one of B, and does not use it. In Mojo's pool of memory the result lies there, which other workgroups store.
        errors = re.findall(r"^error: (.*?) at 0x.*$", text, re.MULTILINE)
        self.assertEqual(errors, ["race on device memory"], text)
        self.assertEqual(set(re.findall(r"kernel `(\w+?)_float32_", text)), {"multistage_gemm_kernel"}, text)
        self.assert_checks(0, text, PROGRAMS["gfx942"][1])

    def test_objects_come_back_from_text(self):
        for target in PROGRAMS:
            program = self.program(target)
            found = json.loads(self.groundswell("disasm", "--json", program))["objects"]
            self.assertGreaterEqual(len(found), 4)
            for listed in found:
                with self.subTest(target=target, kernels=listed["kernels"]):
                    self.assertEqual(listed["target"], target)
                    text, back = self.work / "object.s", self.work / "object.co"
                    self.groundswell("disasm", "--object", listed["object"], "-o", text, program)
                    self.groundswell("asm", "-o", back, text)
                    bytes_of_it = program.read_bytes()[listed["offset"] :][: listed["bytes"]]
                    self.assertEqual(differences(bytes_of_it, back.read_bytes()), [])


if __name__ == "__main__":
    unittest.main()
