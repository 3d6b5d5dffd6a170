"""Objects that AMD's compilers made for published wheels come back from assembler text: onnxruntime's operators and attention, and
CuPy's generators of random numbers."""

import json
import subprocess
import unittest

from code_objects import differences
from wheels import GROUNDSWELL, WheelTest

# Of so many of them one is tried, and of these only the ones that take a second at most.
ONE_OF, LARGEST = 6, 3 << 20


class ObjectsTest(WheelTest):
    needs = ["onnxruntime-rocm", "cupy-rocm-5-0"]

    def groundswell(self, *arguments):
        done = subprocess.run([GROUNDSWELL, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_objects_come_back_from_text(self):
        libraries = [
            self.paths[0] / "onnxruntime" / "capi" / "libonnxruntime_providers_rocm.so",
            next((self.paths[1] / "cupy" / "random").glob("_generator_api.*.so")),
        ]
        for library, least in zip(libraries, [40, 1]):
            found = json.loads(self.groundswell("disasm", "--json", library))["objects"]
            known = [listed for listed in found if listed["target"] and listed["bytes"] <= LARGEST]
            data, chosen = library.read_bytes(), known[::ONE_OF]
            self.assertGreaterEqual(len(chosen), least)
            for listed in chosen:
                with self.subTest(library=library.name, object=listed["object"]):
                    text, back = self.work / "object.s", self.work / "object.co"
                    self.groundswell("disasm", "--object", listed["object"], "-o", text, library)
                    self.groundswell("asm", "-o", back, text)
                    self.assertEqual(differences(data[listed["offset"] :][: listed["bytes"]], back.read_bytes()), [])


if __name__ == "__main__":
    unittest.main()
