#!/usr/bin/env python3
"""Compiles all of gimbal with clang++ and -Werror: every C++ source that a build folder compiles with g++, but for its tests.

Usage: clang.py [--not-as-in OTHER_FOLDER] [BUILD_FOLDER]      (default: build/gpu, which has all backends)
  --not-as-in   leaves out what clang++ compiles in another build folder, such as build/asan

Nothing is written: clang++ stops behind its warnings (-fsyntax-only). `make asan` builds and runs the rest with clang++: tests, fuzzers and the
emulator. Generated sources must be there, so build the folder first.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
COMPILERS = ("clang++-19", "clang++")
# Options that clang++ does not have.
ONLY_GCC = re.compile(r"^(-fpch-preprocess|-Wno-subobject-linkage|-Wno-maybe-uninitialized|-fno-gnu-unique|-fno-tree-loop-distribute-patterns)$")


def objects(folder):
    """{object: its entry} of a build folder's compile commands."""
    listing = os.path.join(folder, "compile_commands.json")
    if not os.path.exists(listing):
        sys.exit(f"check-clang: {listing} is missing: build {folder} first")
    with open(listing, encoding="utf-8") as file:
        return {re.search(r" -o (\S+)", e["command"])[1]: e for e in json.load(file)}


def is_checked(target, entry):
    """Whatever goes into programs and plugins. Tests, fuzzers and the emulator, which is their device, are built by `make asan`."""
    return entry["file"].endswith((".cpp", ".cxx")) and not target.startswith(("tests/", "fuzz/", "src/backends/emulator/"))


def command_of(entry, compiler):
    words = shlex.split(entry["command"])
    while not re.search(r"(\+\+|cc|gcc|clang)(-\d+)?$", os.path.basename(words[0])) or os.path.basename(words[0]) == "ccache":
        words.pop(0)
    kept, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word != "-c" and not ONLY_GCC.match(word):
            kept.append(word)
    return [compiler, "-fsyntax-only", "-Werror", *kept, "-Wno-deprecated-declarations"]  # as cmake/options.cmake has it for clang


def main(folder, other):
    compiler = next((c for c in COMPILERS if shutil.which(c)), None)
    if not compiler:
        sys.exit("check-clang: no clang++ is installed; scripts/setup.sh checks installs it")
    known = {target for target, entry in objects(other).items() if "clang" in entry["command"]} if other else set()
    entries = [e for target, e in objects(folder).items() if is_checked(target, e) and target not in known]
    if not entries:
        sys.exit(f"check-clang: no source of {folder} is left to check")

    def check(entry):
        done = subprocess.run(command_of(entry, compiler), cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return entry["file"], done.returncode, done.stdout

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, output in pool.map(check, entries):
            if code:
                failed += 1
                print(f"{path}:\n{output}", file=sys.stderr)
    print(f"check-clang: {len(entries)} sources compiled by {compiler}, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--not-as-in", dest="other")
    parser.add_argument("folder", nargs="?", default=os.path.join(ROOT, "build", "gpu"))
    options = parser.parse_args()
    sys.exit(main(os.path.abspath(options.folder), options.other))
