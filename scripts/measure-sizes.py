#!/usr/bin/env python3
"""Builds every shape of gimbal from clean and says how large it is and how long that took.

Usage: measure-sizes.py [--shape NAME]... [--folder FOLDER] [--write FILE] [--jobs N] [--sizes-of BUILD_FOLDER]

  --shape NAME      only this one (repeatable): cpu, cuda, ..., gpu-backends, all-backends; see --list
  --folder FOLDER   where to build (default: build/sizes); each shape's folder is removed when it was measured
  --write FILE      put the table between the marks of this document (default: only print it)
  --jobs N          compilers at a time (default: 2)
  --sizes-of FOLDER build nothing: the sizes of what lies in this build folder, no times

Sizes are of stripped files. The time is that of `ninja` on all targets of the shape, from an empty folder, without ccache and
without tests. Beside the wall clock stands the processor time: where it is far less than jobs x wall clock, something else was
running, and the wall clock says little.
"""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
NAMES = ["cpu", "cuda", "rocm", "metal", "vulkan", "opencl", "webgpu"]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def options_of(shape):
    on = {"all-backends": NAMES, "gpu-backends": NAMES[1:]}.get(shape, [shape])
    return [f"-DGIMBAL_BACKEND_{name.upper()}={'ON' if name in on else 'OFF'}" for name in NAMES]


def stripped_size(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "-o", out.name, path], check=True)
        return os.path.getsize(out.name)


def sizes_in(folder):
    """(of gimbal, of plugins by name, of workers by name)"""
    plugins, workers, program = {}, {}, None
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "gimbal":
            program = stripped_size(path)
        elif match := re.fullmatch(r"libgimbal-backend-(\w+)\.so", name):
            plugins[match.group(1)] = stripped_size(path)
        elif match := re.fullmatch(r"gimbal-worker-(\w+)", name):
            workers[match.group(1)] = stripped_size(path)
    return program, plugins, workers


def build(shape, folder, jobs):
    """(wall seconds, processor seconds)"""
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DGIMBAL_WORKERS=ON",
                    "-DGIMBAL_BACKEND_LINKAGE=plugin", *options_of(shape)], check=True, stdout=subprocess.DEVNULL)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["ninja", "-C", folder, f"-j{jobs}"], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def megabytes(n):
    return f"{n / 1e6:.2f}" if n else ""


def row(shape, sizes, times):
    program, plugins, workers = sizes
    return (f"| `{shape}` | {megabytes(program)} | {megabytes(sum(plugins.values()))} | {megabytes(program + sum(plugins.values()))} "
            f"| {megabytes(workers.get(shape, 0))} | {f'{times[0]:.0f}' if times else ''} | {f'{times[1]:.0f}' if times else ''} |")


def table(rows):
    return "\n".join(["| shape | `gimbal`, MB | plugins, MB | together, MB | its worker, MB | clean build, s | processor time, s |",
                      "|---|---|---|---|---|---|---|", *rows])


def details(sizes):
    program, plugins, workers = sizes
    lines = ["| backend | plugin, MB | worker, MB |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {megabytes(plugins.get(name, 0))} | {megabytes(workers.get(name, 0))} |" for name in NAMES if name in plugins or name in workers])


def order_broken(together):
    """Where cpu < each other single shape < the sets of several does not hold. Metal has no kernels to carry where there is no Metal."""
    singles = [name for name in NAMES[1:] if name in together and (name != "metal" or sys.platform == "darwin")]
    sets = [name for name in together if name not in NAMES]
    pairs = [("cpu", name) for name in singles if "cpu" in together] + [(name, one) for name in singles for one in sets]
    return [f"{small} ({megabytes(together[small])} MB) is not smaller than {large} ({megabytes(together[large])} MB)"
            for small, large in pairs if not together[small] < together[large]]


def write(path, text):
    with open(path, encoding="utf-8") as file:
        document = file.read()
    head, rest = document.split(BEGIN)
    tail = rest.split(END)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{BEGIN}\n{text}\n{END}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "sizes"))
    parser.add_argument("--write")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes-of")
    parser.add_argument("--list", action="store_true")
    wanted = parser.parse_args()
    shapes = NAMES + ["gpu-backends", "all-backends"]
    if wanted.list:
        print("\n".join(shapes))
        return 0
    if wanted.sizes_of:
        sizes = sizes_in(wanted.sizes_of)
        program, plugins, _ = sizes
        text = f"`gimbal` {megabytes(program)} MB, with its plugins {megabytes(program + sum(plugins.values()))} MB\n\n{details(sizes)}"
    else:
        rows, sizes, together = [], None, {}
        for shape in wanted.shape or shapes:
            folder = os.path.join(wanted.folder, shape)
            times = build(shape, folder, wanted.jobs)
            sizes = sizes_in(folder)
            together[shape] = sizes[0] + sum(sizes[1].values())
            rows.append(row(shape, sizes, times))
            print(rows[-1], flush=True)
            shutil.rmtree(folder)
        text = table(rows) + (f"\n\nOf the last one, each file:\n\n{details(sizes)}" if len(rows) > 1 else "")
    print(text)
    if wanted.write:
        write(wanted.write, text)
    if not wanted.sizes_of and (broken := order_broken(together)):
        print("\n".join(broken), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
