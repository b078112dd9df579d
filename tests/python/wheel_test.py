#!/usr/bin/env python3
"""The wheel and the source archive, as pip makes and installs them: isolated, offline, with Debian's interpreter.

It builds in build/wheel, with ccache; needs python3-venv.
"""

import glob
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OFFLINE = ("--no-index", "--disable-pip-version-check", "--quiet")
WORK = """
import gimbal as gb, sys
assert gb.__file__.startswith(sys.prefix), gb.__file__
print((gb.tensor([[1.0, 2.0]]) @ gb.tensor([[3.0], [4.0]])).tolist())
"""


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.python = os.path.join(cls.folder.name, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", os.path.join(cls.folder.name, "venv"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def wheel_of(self, source, *settings):
        to = tempfile.mkdtemp(dir=self.folder.name)
        run(self.python, "-m", "pip", "wheel", source, *OFFLINE, "-w", to, *settings)
        (wheel,) = glob.glob(os.path.join(to, "*.whl"))
        return wheel

    def install(self, wheel):
        run(self.python, "-m", "pip", "install", *OFFLINE, "--force-reinstall", wheel)
        self.assertEqual(run(self.python, "-c", WORK, cwd=self.folder.name), "[[11.0]]\n")

    def test_a_checkout_gives_a_wheel_for_every_python(self):
        wheel = self.wheel_of(TOP)
        self.assertRegex(os.path.basename(wheel), r"^gimbal-[0-9.]+-cp311-abi3-linux_\w+\.whl$")
        self.install(wheel)
        gimbal = os.path.join(os.path.dirname(self.python), "gimbal")
        self.assertRegex(run(gimbal, "--version", cwd=self.folder.name), r"^gimbal [0-9.]+")
        self.assertIn('"text": " upon a time"', run(gimbal, "run", "default", "-p", "Once", "-n", "3", "--greedy", "--json", cwd=self.folder.name))
        run(self.python, "-m", "pip", "uninstall", "--yes", "--quiet", "gimbal")
        self.assertFalse(os.path.exists(gimbal))

    def test_its_record_is_complete(self):
        with zipfile.ZipFile(self.wheel_of(TOP)) as wheel:
            (record,) = [n for n in wheel.namelist() if n.endswith("RECORD")]
            listed = [line.split(",")[0] for line in wheel.read(record).decode().splitlines()]
            self.assertEqual(sorted(listed), sorted(wheel.namelist()))
            self.assertIn("gimbal/bin/gimbal", listed)
            self.assertFalse([n for n in listed if "test" in n])

    def test_the_source_archive_gives_the_same_wheel(self):
        make = "import sys; sys.path.insert(0, 'python'); import build_backend; print(build_backend.build_sdist(sys.argv[1]))"
        name = run(sys.executable, "-c", make, self.folder.name, cwd=TOP).strip()
        with tarfile.open(os.path.join(self.folder.name, name)) as archive:
            archive.extractall(self.folder.name)
        sources = os.path.join(self.folder.name, name.removesuffix(".tar.gz"))
        wheel = self.wheel_of(sources)
        self.assertEqual(os.path.basename(wheel), os.path.basename(self.wheel_of(TOP)))
        self.install(wheel)

    def test_options_of_the_build_pass_to_the_wheel(self):
        build = os.path.join(TOP, "build", "wheel-options")  # build/wheel keeps its own options
        settings = [f"--config-settings={s}" for s in ("backends=opencl", "GIMBAL_CPU_VARIANTS=common", f"build-dir={build}")]
        wheel = self.wheel_of(TOP, *settings)
        with zipfile.ZipFile(wheel) as files:
            self.assertEqual([n for n in files.namelist() if "backend" in n], ["gimbal/libgimbal-backend-opencl.so"])
        self.install(wheel)
        plugins = "import gimbal as gb; print(sorted(b['name'] for b in gb.backends() if 'no plugin' not in str(b)))"
        self.assertEqual(run(self.python, "-c", plugins, cwd=self.folder.name), "['cpu', 'opencl']\n")
        kernels = run(os.path.join(os.path.dirname(self.python), "gimbal"), "kernels", "--json", cwd=self.folder.name)
        self.assertIn("avx2", kernels)
        self.assertNotIn("avx512", kernels)
        with self.assertRaisesRegex(AssertionError, "no option GIMBAL_CPU_VARIANT"):
            self.wheel_of(TOP, settings[0], "--config-settings=GIMBAL_CPU_VARIANT=common", settings[2])

    def test_an_unknown_backend_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "there is no backend cudda; there are cuda, rocm"):
            self.wheel_of(TOP, "--config-settings=backends=cudda")


if __name__ == "__main__":
    unittest.main()
