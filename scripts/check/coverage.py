#!/usr/bin/env python3
"""Fails when the tests reach too few lines or branches of discovery, selection, planning, placing, first use and recovery.

Usage: coverage.py [--least PERCENT] [--each PERCENT] [--branches PERCENT] [--missed] [--no-build]

  --least PERCENT     of all lines together (default: 95)
  --each PERCENT      of the lines of every single file (default: 95)
  --branches PERCENT  of all branches together, but for those that only an exception takes (default: 85)
  --missed            list the lines that no test reaches, or whose branches they do not all take

Builds the TESTS in build/coverage with g++'s --coverage, runs them and reads what gcov makes of it (part of g++; no other package). Only the
SOURCES are instrumented: see cmake/coverage.cmake.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, "build", "coverage")


SOURCES = ["src/device/*.cpp", "src/discovery/*.cpp", "src/program/memory.cpp", "src/program/place.cpp", "src/program/partition.cpp",
           *(f"src/engine/{name}.cpp" for name in ("open_device", "placement", "verification", "device_record", "loader", "engine", "reload"))]
TESTS = ["tests/device/*_test.cpp", "tests/discovery/*_test.cpp", "tests/program/*_test.cpp", "tests/engine/*_test.cpp", "tests/library/*_test.cpp",
         "tests/conformance/verification_test.cpp", "tests/backends/emulator/emulated_fit_test.cpp", "tests/backends/emulator/emulated_engine_test.cpp",
         "tests/apps/doubtful_device_test.cpp", "tests/apps/first_use_test.cpp", "tests/apps/device_fails_test.cpp", "tests/apps/split_test.cpp"]


def found(patterns):
    return sorted(os.path.relpath(path, ROOT) for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern)))


def test_names():
    return [os.path.splitext(os.path.basename(path))[0] for path in found(TESTS)]


def build():
    together = "ON" if os.environ.get("CI") else "OFF"  # as CI has compiled them before
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DGIMBAL_COVERAGE={';'.join(found(SOURCES))}",
                    f"-DGIMBAL_MERGE_TESTS={together}"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target"] + test_names(), check=True, stdout=subprocess.DEVNULL)


def run_tests():
    for old in glob.glob(os.path.join(BUILD, "**", "*.gcda"), recursive=True):
        os.remove(old)
    pattern = "^(" + "|".join(test_names()) + ")$"
    done = subprocess.run(["ctest", "--test-dir", BUILD, "--output-on-failure", "--parallel", str(os.cpu_count()), "-R", pattern], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + "coverage: a test failed")


def lines_of(source):
    """{line: (times it was run, times that each branch was taken)} for one source file; all 0 when no test links it. Without lines that are
    only a closing brace: what g++ puts there is what an exception passing by would undo, and no statement. A line of a template has the
    branches of each instance together."""
    layer = os.path.basename(os.path.dirname(source))
    base = os.path.join(BUILD, "CMakeFiles", f"gimbal_{layer}.dir", source)
    note = base + ".gcno"
    if not os.path.exists(note):
        sys.exit(f"coverage: {note} is missing: was {source} compiled with --coverage?")
    out = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", base + ".gcda" if os.path.exists(base + ".gcda") else note],
                         cwd=BUILD, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        braces = {n for n, text in enumerate(file, 1) if text.strip() in ("}", "};")}
    counts = {}
    for text in out.splitlines():
        for entry in json.loads(text)["files"]:
            if os.path.realpath(os.path.join(BUILD, entry["file"])) != os.path.realpath(os.path.join(ROOT, source)):
                continue
            for line in entry["lines"]:
                n = line["line_number"]
                if n in braces:
                    continue
                times, branches = counts.get(n, (0, []))
                taken = [b["count"] for b in line["branches"] if not b["throw"]]
                if len(taken) == len(branches):
                    taken = [max(both) for both in zip(taken, branches)]
                counts[n] = max(times, line["count"]), max(taken, branches, key=len)
    return counts


def spans(numbers):
    text, begin = [], None
    for n in numbers + [None]:
        if begin is not None and n != last + 1:
            text.append(str(begin) if begin == last else f"{begin}-{last}")
            begin = None
        if begin is None:
            begin = n
        last = n
    return ", ".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=float, default=95)
    parser.add_argument("--each", type=float, default=95)
    parser.add_argument("--branches", type=float, default=85)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    options = parser.parse_args()
    if not options.no_build:
        build()
    run_tests()
    reached = lines = taken = branches = 0
    low = []
    for source in found(SOURCES):
        counts = lines_of(source)
        missed = sorted(n for n, (times, _) in counts.items() if times == 0)
        ways = [times for _, of_line in counts.values() for times in of_line]
        part = sorted(n for n, (times, of_line) in counts.items() if times and 0 in of_line)
        reached += len(counts) - len(missed)
        lines += len(counts)
        taken += sum(times > 0 for times in ways)
        branches += len(ways)
        share = 100 * (len(counts) - len(missed)) / len(counts) if counts else 100
        if share < options.each:
            low.append(source)
        of_branches = 100 * sum(times > 0 for times in ways) / len(ways) if ways else 100
        print(f"{share:6.1f} % of {len(counts):4d} lines, {of_branches:6.1f} % of {len(ways):4d} branches  {source}"
              + (f"   not reached: {spans(missed)}" if options.missed and missed else "")
              + (f"   in part: {spans(part)}" if options.missed and part else ""))
    share, of_branches = 100 * reached / lines, 100 * taken / branches
    print(f"{share:6.1f} % of {lines:4d} lines, {of_branches:6.1f} % of {branches:4d} branches  in all; at least {options.least:g} % of the lines "
          f"({options.each:g} % of each file's) and {options.branches:g} % of the branches are asked for")
    if low:
        sys.exit(f"coverage: below {options.each:g} %: {', '.join(low)}; --missed lists the lines")
    if share < options.least:
        sys.exit("coverage: too few lines are reached by tests; --missed lists the others")
    if of_branches < options.branches:
        sys.exit("coverage: tests take too few branches; --missed lists the lines")


if __name__ == "__main__":
    main()
