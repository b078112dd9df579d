#!/usr/bin/env python3
"""A new op is one text and one line: added to a copy of the engine's kernels it becomes a module of every target, which the
target's own tools accept, and the argument struct of the host. (check_toy() runs it where it can run.)"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.join(ROOT, "src")
sys.path.insert(0, os.path.join(ROOT, "scripts/build"))
import gpu_text  # noqa: E402
GENERATOR = os.path.join(ROOT, "scripts/build/gpu_kernels.py")
ENGINE = os.path.join(SOURCE, "gpu")
TOY = "below_largest"

# Of each language: what its module must have, and the tools that made it.
LANGUAGES = {
    "spirv": (b"\x03\x02\x23\x07", ("glslc", "spirv-opt", "spirv-val")),
    "msl": (b"kernel void main0(", ("glslc", "spirv-opt", "spirv-val", "spirv-cross")),
    "wgsl": (b"fn main(", ()),
    "opencl": (f"void {TOY}(".encode(), ()),
    "ptx": (f".visible .entry {TOY}(".encode(), ("clang-19",)),
    **{f"amdgcn-{a}": (f"{TOY}.kd".encode(), ("clang-19", "ld.lld-19")) for a in ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")},
}


class AddedOp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        shutil.copytree(os.path.join(ENGINE, "kernels"), os.path.join(cls.folder, "kernels"))
        shutil.copy(os.path.join(HERE, "toy", "kernels", TOY + ".k"), os.path.join(cls.folder, "kernels"))
        with open(os.path.join(ENGINE, "kernels.def"), encoding="utf-8") as f:
            rows = f.read()
        with open(os.path.join(HERE, "toy", "kernels.def"), encoding="utf-8") as f:
            rows += "\n" + f.read()
        cls.definition = os.path.join(cls.folder, "kernels.def")
        with open(cls.definition, "w", encoding="utf-8") as f:
            f.write(rows)
        cls.rows = len(gpu_text.rows_of(cls.definition))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_tool(self, *command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def at(self, name):
        return os.path.join(self.folder, name)

    def test_lint_accepts_it(self):
        only = os.path.join(HERE, "toy", "kernels.def")
        self.run_tool(sys.executable, os.path.join(ROOT, "scripts/build/lint_kernels.py"), only)

    def test_the_host_gets_its_struct_and_every_table_its_row(self):
        self.run_tool(sys.executable, GENERATOR, "facts", self.definition, SOURCE, self.at("gpu_kernels.h"), self.at("facts.json"))
        with open(self.at("gpu_kernels.h"), encoding="utf-8") as f:
            self.assertIn(f"struct {TOY}_params {{\n  uint32_t width = 0;\n}};", f.read())
        with open(self.at("facts.json"), encoding="utf-8") as f:
            facts = json.load(f)
        self.assertEqual(len(facts), self.rows)
        self.assertEqual(facts[-1]["name"], TOY)
        for language in ("emulator", *LANGUAGES):
            out = self.at(f"{language}_table.cpp")
            self.run_tool(sys.executable, GENERATOR, "table", language, self.at("facts.json"), self.at(language), "all_modules", out)
            with open(out, encoding="utf-8") as f:
                self.assertEqual(len(re.findall(rf'^    {{"{TOY}", .*, 64, 2, 0x2, 4}},$', f.read(), re.M)), 1, language)

    def test_it_becomes_a_module_of_every_target(self):
        made = []
        for language, (content, tools) in LANGUAGES.items():
            if any(shutil.which(tool) is None for tool in tools):
                continue
            self.run_tool(sys.executable, GENERATOR, "module", language, TOY, self.definition, SOURCE, self.at(language))
            with open(self.at(language), "rb") as f:
                self.assertIn(content, f.read(), language)
            made.append(language)
        if shutil.which("clang-19"):  # what drivers compile: clang reads it as OpenCL C 1.2
            os.mkdir(self.at("texts"))
            shutil.copy(self.at("opencl"), self.at("texts"))
            self.run_tool(os.path.join(HERE, "opencl_syntax.sh"), self.at("texts"))
        print("made and checked:", ", ".join(made))
        absent = [language for language in LANGUAGES if language not in made]
        if absent:
            self.skipTest("no tools for the kernels' languages " + ", ".join(absent) + ": scripts/setup.sh gpu")


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    for _, why in done.skipped:
        print("skipped: " + why)
    sys.exit(1 if not done.wasSuccessful() else 77 if done.skipped else 0)
