"""The blocks of code of docs/python.md, one after the other as a reader types them."""

import contextlib
import io
import os
import re
import tempfile
import unittest

import golden

PAGE = os.path.join(golden.HERE, "..", "..", "docs", "python.md")


class Page(unittest.TestCase):
    def test_each_block_runs(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        blocks = [(page[:m.start()].count("\n") + 2, m[1]) for m in re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
        self.assertGreater(len(blocks), 8)
        names, before = {"__name__": "page"}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            for line, block in blocks:
                # Numbers of lines in a traceback are those of the page.
                code = compile("\n" * (line - 1) + block, PAGE, "exec")
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(code, names)
                if "print(" in block:
                    self.assertTrue(out.getvalue().strip(), f"line {line} prints nothing")
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
