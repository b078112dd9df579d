"""The examples of tensors: each gives the text of its twin in C++ (examples/tensors/expected)."""

import os
import subprocess
import sys
import unittest

import golden

FOLDER = os.path.join(golden.HERE, "..", "..", "examples", "tensors")


class Examples(unittest.TestCase):
    def test_each_gives_the_text_of_its_twin(self):
        names = sorted(f[:-3] for f in os.listdir(FOLDER) if f.endswith(".py"))
        self.assertEqual(names, sorted(f[:-4] for f in os.listdir(FOLDER) if f.endswith(".cpp")))
        for name in names:
            with self.subTest(name=name):
                done = subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py")], capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(FOLDER, "expected", name + ".txt"), encoding="utf-8") as file:
                    self.assertEqual(done.stdout, file.read())


if __name__ == "__main__":
    unittest.main()
