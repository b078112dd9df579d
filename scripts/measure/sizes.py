#!/usr/bin/env python3
"""Builds every shape of gimbal from clean and says how large it is and how long that took.

Usage: sizes.py [--shape NAME]... [--folder FOLDER] [--write FILE] [--jobs N] [--sizes-of BUILD_FOLDER]

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
import resource
import shutil
import subprocess
import sys
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from shape_sizes import COLUMNS, NAMES, cells, line, megabytes, order_broken, sizes_in, table, together  # noqa: E402

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def options_of(shape):
    on = {"all-backends": NAMES, "gpu-backends": NAMES[1:]}.get(shape, [shape])
    return [f"-DGIMBAL_BACKEND_{name.upper()}={'ON' if name in on else 'OFF'}" for name in NAMES]


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


def details(sizes):
    _, plugins, workers = sizes
    rows = [[name, megabytes(plugins.get(name, 0)), megabytes(workers.get(name, 0))] for name in NAMES if name in plugins or name in workers]
    return table(["backend", "plugin, MB", "worker, MB"], rows)


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
        text = f"`gimbal` {megabytes(sizes[0])} MB, with its plugins {megabytes(together(sizes))} MB\n\n{details(sizes)}"
    else:
        rows, sizes, shape_bytes = [], None, {}
        for shape in wanted.shape or shapes:
            folder = os.path.join(wanted.folder, shape)
            times = build(shape, folder, wanted.jobs)
            sizes = sizes_in(folder)
            shape_bytes[shape] = together(sizes)
            rows.append([*cells(shape, sizes), *(f"{seconds:.0f}" for seconds in times)])
            print(line(rows[-1]), flush=True)
            shutil.rmtree(folder)
        text = table([*COLUMNS, "clean build, s", "processor time, s"], rows) + (f"\n\nOf the last one, each file:\n\n{details(sizes)}" if len(rows) > 1 else "")
    print(text)
    if wanted.write:
        write(wanted.write, text)
    if not wanted.sizes_of and (broken := order_broken(shape_bytes)):
        print("\n".join(broken), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
