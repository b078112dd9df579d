#!/usr/bin/env python3
"""Runs a preset's whole test suite and counts single tests, not executables: the last line is "N passed, N failed".

Usage: run-tests.py PRESET [--build] [--not-as-in OTHER] [CTEST ARGUMENTS]
  --build            first builds what the chosen tests run, and nothing else
  --not-as-in OTHER  leaves out what is the same in the preset OTHER and passed there: a test's command, environment and program,
                     byte by byte. Tests that drive another program, `gimbal` say, are never the same: plugins may lie beside it.
A GoogleTest executable counts as its tests (and as one failure more when it died without reporting one); any other
ctest entry counts as one test. Skipped tests are listed: a skip is never silent.
"""
import filecmp
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def launcher(preset):
    """ThreadSanitizer of GCC 12 cannot start where the kernel randomizes addresses by more than 28 bits."""
    without_randomization = ["setarch", platform.machine(), "-R"]
    if preset != "tsan" or subprocess.run([*without_randomization, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return []
    return without_randomization


def gtest_counts(path):
    """(passed, failed, names of skipped tests) from one GoogleTest report; None when there is no whole report."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            report = json.load(file)
    except (OSError, json.JSONDecodeError):
        return None
    passed, failed, skipped = 0, 0, []
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("failures"):
                failed += 1
            elif test.get("result") == "SKIPPED" or test.get("status") == "NOTRUN":
                skipped.append(f"{suite['name']}.{test['name']}")
            else:
                passed += 1
    return passed, failed, skipped


def reference_data(log):
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            return sorted({line.rstrip() for line in file if line.startswith("reference data:")})
    except OSError:
        return []


def build_of(preset):
    return os.path.join(ROOT, "build", preset)


def chosen_tests(preset, more):
    """{name: what `ctest --show-only=json-v1` tells of it}"""
    told = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1", *more], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    return {test["name"]: test for test in json.loads(told)["tests"]}


def build_tests(preset, more):
    """The executables of tests are targets of the same names; whatever else a test needs is a dependency of these, or gimbal."""
    listed = subprocess.run(["ninja", "-C", build_of(preset), "-t", "targets", "all"], stdout=subprocess.PIPE, text=True, check=True).stdout
    targets = {line.split(":")[0] for line in listed.splitlines()}
    wanted = [name for name in chosen_tests(preset, more) if name in targets]
    return subprocess.run(["cmake", "--build", "--preset", preset, "--target", "gimbal", *wanted], cwd=ROOT).returncode


def environment_of(test):
    return sorted(value for p in test.get("properties", []) if p["name"] == "ENVIRONMENT" for value in p["value"])


def passed_in(preset):
    entries = ElementTree.parse(os.path.join(build_of(preset), "test-reports", "ctest.xml")).getroot().findall("testcase")
    return {entry.get("name") for entry in entries if entry.get("status") == "run" and entry.find("skipped") is None}


def same_as_in(other, preset, more):
    """The names of the chosen tests that are the same in both presets, and passed in the other one."""
    there, good = chosen_tests(other, more), passed_in(other)

    def same(test):
        twin = there.get(test["name"])
        if not twin or "command" not in twin or test["name"] not in good or environment_of(test) != environment_of(twin):
            return False
        (program, *arguments), (its_program, *its_arguments) = test["command"], twin["command"]
        return arguments == its_arguments and (program == its_program or filecmp.cmp(program, its_program, shallow=False))

    return [name for name, test in chosen_tests(preset, more).items() if "command" in test and same(test)]


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    preset, *more = arguments
    if more[:1] == ["--build"]:
        more = more[1:]
        if build_tests(preset, more):
            print("0 passed, 1 failed")
            return 1
    left_out, other = [], ""
    if more[:1] == ["--not-as-in"]:
        other, more = more[1], more[2:]
        left_out = same_as_in(other, preset, more)
        if left_out:
            more += ["-E", "^(" + "|".join(map(re.escape, left_out)) + ")$"]
    build = build_of(preset)
    reports = os.path.join(build, "test-reports")
    shutil.rmtree(reports, ignore_errors=True)
    os.makedirs(reports)
    summary = os.path.join(reports, "ctest.xml")
    environment = {**os.environ, "GTEST_OUTPUT": f"json:{reports}/", "GTEST_COLOR": "no"}
    status = subprocess.run(
        [*launcher(preset), "ctest", "--preset", preset, "--no-tests=error", "--parallel", str(len(os.sched_getaffinity(0))),
         "--output-junit", summary, *more],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode

    try:
        entries = ElementTree.parse(summary).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError):
        print("0 passed, 1 failed")
        return 1
    passed, failed, skipped = 0, 0, []
    for entry in entries:
        name, good = entry.get("name"), entry.get("status") == "run"
        skip = entry.find("skipped")  # also there when there is no executable, which is a failure
        if entry.get("status") == "disabled" or (skip is not None and "SKIP_RETURN_CODE" in skip.get("message", "")):
            why = [line for line in entry.findtext("system-out", "").splitlines() if line.startswith("skipped: ")]
            skipped.append(f"{name}{': ' + why[0].removeprefix('skipped: ') if why else ''}")
            continue
        counts = gtest_counts(os.path.join(reports, f"{name}.json"))
        if counts is None:
            passed, failed = passed + good, failed + (not good)
            continue
        passed += counts[0]
        failed += counts[1] + (not good and counts[1] == 0)
        skipped += [f"{name}: {test}" for test in counts[2]]

    print()
    for line in reference_data(os.path.join(build, "Testing", "Temporary", "LastTest.log")):
        print(line)
    for test in skipped:
        print(f"skipped: {test}")
    if left_out:
        print(f"left out: {len(left_out)} tests that are the same commands and the same bytes as in build/{other}, where they passed: {' '.join(left_out)}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if status or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
