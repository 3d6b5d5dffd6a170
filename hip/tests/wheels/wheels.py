"""What the tests of public wheels share: where the wheels are, and how a program of theirs is run.

`GROUNDSWELL_WHEELS` is a directory with each of them installed in a directory of its name; tests of wheels that are not there are
skipped. Debian packages lie there in the same way. `GROUNDSWELL` is the program."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
GROUNDSWELL = os.environ.get("GROUNDSWELL", "target/release/groundswell")
LIBRARIES = "libhipblas.so.2 libhipblas.so.3 libhipblaslt.so.1 librocblas.so.4 librocblas.so.5 librocrand.so.1".split()


class WheelTest(unittest.TestCase):
    """Tests of the wheels in `needs`."""

    needs = []

    @classmethod
    def setUpClass(cls):
        wheels = os.environ.get("GROUNDSWELL_WHEELS")
        cls.paths = [Path(wheels or "") / name for name in cls.needs]
        for path in cls.paths:
            if not wheels or not path.is_dir():
                raise unittest.SkipTest(f"the wheel {path.name} is not there")
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.work = Path(directory.name)
        blas = cls.work / LIBRARIES[0]
        compiler = ["clang-19", "-O2", "-shared", "-fPIC", "-o", blas, HERE / "blas.c"]
        subprocess.run(compiler, check=True)
        for name in LIBRARIES[1:]:
            (cls.work / name).symlink_to(blas)

    @classmethod
    def run_alone(cls, arguments, program):
        """Runs a program under `groundswell hip`; its exit code and what it and the simulator say."""
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(cls.work),
            "PYTHONPATH": ":".join(map(str, [HERE, *cls.paths, *sys.path])),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [GROUNDSWELL, "hip", *arguments, "--", *map(str, program)]
        done = subprocess.run(command, env=environment, cwd=cls.work, capture_output=True, text=True, timeout=900)
        return done.returncode, done.stdout + done.stderr

    @classmethod
    def run_on_simulator(cls, arguments, program):
        """The same of a Python program."""
        return cls.run_alone(arguments, [sys.executable, *program])

    def assert_right(self, arguments, program, count):
        """Runs a Python program that makes so many checks, all of which have to be right."""
        code, text = self.run_on_simulator(arguments, program)
        self.assert_checks(code, text, count)

    def assert_checks(self, code, text, count):
        """A program has ended well, and said of so many checks that they are right."""
        self.assertEqual(code, 0, text)
        lines = [line for line in text.splitlines() if line.startswith(("right", "WRONG"))]
        self.assertEqual([line for line in lines if line.startswith("WRONG")], [])
        self.assertEqual(len(lines), count, text)
