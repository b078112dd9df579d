#!/usr/bin/env python3
"""A module is taken from the cache by the digest of all files that its kernels include (scripts/build/gpu_modules.py)."""
import glob
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts/build"))
import gpu_modules  # noqa: E402

SRC = os.path.join(ROOT, "src")
LISTS = sorted(glob.glob(os.path.join(SRC, "gpu", "**", "kernels.def"), recursive=True) + glob.glob(os.path.join(ROOT, "tests/gpu/*/kernels.def")))


def included(path, seen):
    """All files that a text includes by name, and those that these include."""
    with open(path, encoding="utf-8") as file:
        for name in re.findall(r'^#\s*include "([^"]+)"', file.read(), re.M):
            for folder in (os.path.dirname(path), SRC, os.path.join(SRC, "gpu", "dialect")):
                found = os.path.normpath(os.path.join(folder, name))
                if os.path.exists(found) and found not in seen:
                    seen.add(found)
                    included(found, seen)
    return seen


class KernelCache(unittest.TestCase):
    def test_every_included_file_counts(self):
        self.assertGreater(len(LISTS), 5)
        files = set()
        for definition in LISTS:
            known = {os.path.normpath(t) for t in gpu_modules.texts_of(definition, SRC)}
            kernels = glob.glob(os.path.join(os.path.dirname(definition), "kernels", "*.k"))
            self.assertTrue(kernels, definition)
            for kernel in kernels:
                self.assertIn(os.path.normpath(kernel), known)
                files |= (found := included(kernel, set()))
                self.assertLessEqual(found, known, f"{kernel}: not part of the digest")
        self.assertIn(os.path.join(SRC, "gpu/tensors/kernels/block_fields.inc"), files)

    def test_a_changed_text_has_another_key(self):
        with tempfile.TemporaryDirectory() as folder:
            definition = os.path.join(folder, "kernels.def")
            os.mkdir(os.path.join(folder, "kernels"))
            keys = set()
            for text in ("one", "two", "one"):
                with open(os.path.join(folder, "kernels", "a.k"), "w", encoding="utf-8") as file:
                    file.write(text)
                keys.add(gpu_modules.key_of("ptx", [["a", "a", ""]], definition, SRC))
            self.assertEqual(len(keys), 2)


if __name__ == "__main__":
    unittest.main()
