#!/usr/bin/env python3
"""Runs a preset's whole test suite and counts single tests, not executables: the last line is "N passed, N failed".

Usage: run-tests.py PRESET [CTEST ARGUMENTS]
A GoogleTest executable counts as its tests (and as one failure more when it died without reporting one); any other
ctest entry counts as one test. Skipped tests are listed: a skip is never silent.
"""
import json
import os
import platform
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


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    preset, *more = arguments
    build = os.path.join(ROOT, "build", preset)
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
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if status or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
