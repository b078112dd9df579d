#!/usr/bin/env python3
"""Runs a preset's whole test suite and counts single tests, not executables: the last line is "N passed, N failed".

Usage: run-tests.py PRESET [--build] [--left-out-before] [--not-as-in OTHER] [CTEST ARGUMENTS]
       run-tests.py --slowest COUNT PRESET...     prints what took the longest when these presets ran last
       run-tests.py --failures PRESET...          prints the tests that failed in the last runs of these presets, with their messages
       run-tests.py --self-test
  --build            first builds what the chosen tests run, and nothing else
  --left-out-before  only those that the last run of this preset skipped, but for the skips that tests/allowed-skips.txt names: what a
                     machine without their tools left out. Their results take the place of the skips
  --not-as-in OTHER  leaves out what is the same in the preset OTHER and passed there: a test's command, environment and program,
                     byte by byte. Tests that drive another program, `gimbal` say, are never the same: plugins may lie beside it.
A GoogleTest executable counts as its tests (and as one failure more when it died without reporting one); any other
ctest entry counts as one test. Skipped tests are listed with their reasons, those of backends that are not part of the build
as one line with their number: a skip is never silent. Where the variable CI is set, a skip that tests/allowed-skips.txt does not name is a failure: what is skipped there is not tested at all.
"""
import fnmatch
import filecmp
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ALLOWED_SKIPS = os.path.join(ROOT, "tests", "allowed-skips.txt")


def launcher(preset):
    """ThreadSanitizer wants addresses that the kernel randomizes by 28 bits at most."""
    without_randomization = ["setarch", platform.machine(), "-R"]
    if preset != "tsan" or subprocess.run([*without_randomization, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return []
    return without_randomization


def gtest_counts(path):
    """(passed, failed, ["Suite.Test: reason"] of skipped tests) from one GoogleTest report; None when there is no whole report."""
    try:
        tests = ElementTree.parse(path).getroot().findall("testsuite/testcase")
    except (OSError, ElementTree.ParseError):
        return None
    passed, failed, skipped = 0, 0, []
    for test in tests:
        skip = test.find("skipped")
        if test.find("failure") is not None:
            failed += 1
        elif skip is not None or test.get("status") == "notrun":
            why = " ".join(((skip.get("message") or skip.text or "") if skip is not None else "disabled").split())
            why = re.sub(r"^\S+\.\w+:\d+ ", "", why)  # GoogleTest begins with the line of the source
            skipped.append(f"{test.get('classname')}.{test.get('name')}: {why}")
        else:
            passed += 1
    return passed, failed, skipped


def results(reports):
    """(passed, failed, ["ENTRY: reason" or "ENTRY: Suite.Test: reason"] of skipped tests) of a run; None when ctest has left no report."""
    try:
        entries = ElementTree.parse(os.path.join(reports, "ctest.xml")).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError):
        return None
    passed, failed, skipped = 0, 0, []
    for entry in entries:
        name, good = entry.get("name"), entry.get("status") == "run"
        skip = entry.find("skipped")  # also there when there is no executable, which is a failure
        if entry.get("status") == "disabled" or (skip is not None and "SKIP_RETURN_CODE" in skip.get("message", "")):
            why = [line for line in entry.findtext("system-out", "").splitlines() if line.startswith("skipped: ")]
            skipped.append(f"{name}: {why[0].removeprefix('skipped: ') if why else entry.get('status')}")
            continue
        counts = gtest_counts(os.path.join(reports, f"{name}.xml"))
        if counts is None:
            passed, failed = passed + good, failed + (not good)
            continue
        passed += counts[0]
        failed += counts[1] + (not good and counts[1] == 0)
        skipped += [f"{name}: {test}" for test in counts[2]]
    return passed, failed, skipped


def left_out(reports, preset, rules):
    """The entries of a run that were skipped, or tests of theirs, without a rule that allows it."""
    counted = results(reports)
    if counted is None:
        sys.exit(f"run-tests: there is no report of a run in {reports}")
    return list(dict.fromkeys(skip.split(": ")[0] for skip in not_allowed(preset, counted[2], rules)))


def merge_reports(before, reports):
    """Puts the reports of a run before under those of the tests that ran again."""
    old, new = (ElementTree.parse(os.path.join(folder, "ctest.xml")) for folder in (before, reports))
    ran_again = {entry.get("name") for entry in new.getroot().findall("testcase")}
    for entry in old.getroot().findall("testcase"):
        if entry.get("name") not in ran_again:
            new.getroot().append(entry)
    for name in os.listdir(before):
        if not os.path.exists(os.path.join(reports, name)):
            shutil.move(os.path.join(before, name), reports)
    new.write(os.path.join(reports, "ctest.xml"))
    shutil.rmtree(before)


def allowed_skips(text):
    """[(presets, pattern)] from the text of tests/allowed-skips.txt."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 3 or not all(fields):
            sys.exit(f"tests/allowed-skips.txt:{number}: expected 'PRESETS | SKIP | REASON', found '{line}'")
        rules.append((fields[0].split(), fields[1]))
    return rules


def not_allowed(preset, skipped, rules):
    """Those of the skips that no rule names."""
    return [skip for skip in skipped
            if not any((preset in presets or "*" in presets) and fnmatch.fnmatchcase(skip, pattern) for presets, pattern in rules)]


NOT_BUILT = re.compile(r"([a-z]+) backend is not part of this build$")


def skip_lines(skipped):
    """What is printed about skips: a line each, but one line for all tests of backends that this build leaves out."""
    lines, of_backend = [], {}
    for skip in skipped:
        if absent := NOT_BUILT.search(skip):
            of_backend[absent[1]] = of_backend.get(absent[1], 0) + 1
        else:
            lines.append(f"skipped: {skip}")
    if of_backend:
        parts = ", ".join(f"{name} {count}" for name, count in sorted(of_backend.items()))
        lines.append(f"skipped: {sum(of_backend.values())} tests of backends that are not part of this build ({parts}): `make test-gpu` runs them")
    return lines


def slowest(count, presets):
    """[(seconds, preset, entry)] of the last runs."""
    all_entries = []
    for preset in presets:
        try:
            entries = ElementTree.parse(os.path.join(build_of(preset), "test-reports", "ctest.xml")).getroot().findall("testcase")
        except (OSError, ElementTree.ParseError):
            continue
        all_entries += [(float(entry.get("time") or 0), preset, entry.get("name")) for entry in entries]
    return sorted(all_entries, reverse=True)[:count]


MESSAGE_LINES, MESSAGE_WIDTH = 12, 300


def failures(reports):
    """The messages of the tests that failed: what a reader of a long log looks for first. [(test, lines)]"""
    try:
        entries = ElementTree.parse(os.path.join(reports, "ctest.xml")).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError):
        return []

    def shortened(lines):
        return [line[:MESSAGE_WIDTH] for line in lines]

    found = []
    for entry in entries:
        if entry.get("status") != "fail":
            continue
        name, singles = entry.get("name"), []
        try:
            for test in ElementTree.parse(os.path.join(reports, f"{name}.xml")).getroot().iter("testcase"):
                messages = [failure.get("message") or failure.text or "" for failure in test.findall("failure")]
                if messages:
                    lines = "\n".join(messages).splitlines()[:MESSAGE_LINES]
                    singles.append((f"{name}: {test.get('classname')}.{test.get('name')}", shortened(lines)))
        except (OSError, ElementTree.ParseError):
            pass  # a script, or a program that died before its report
        output = entry.findtext("system-out", "").splitlines()
        found += singles or [(name, shortened(output[-MESSAGE_LINES:]))]
    return found


def self_test():
    rules = allowed_skips("# a comment\n\nrelease asan | vulkan_*: the vulkan backend is not part of this build | it runs elsewhere\n* | a_test: A.B: * | why\n")
    wanted = {("release", "vulkan_x_test: the vulkan backend is not part of this build"): True,
              ("gpu", "vulkan_x_test: the vulkan backend is not part of this build"): False,
              ("release", "vulkan_x_test: no device found"): False,
              ("gpu", "a_test: A.B: anything"): True,
              ("gpu", "a_test: A.C: anything"): False}
    for (preset, skip), allowed in wanted.items():
        assert (not_allowed(preset, [skip], rules) == []) == allowed, (preset, skip)
    with open(ALLOWED_SKIPS, encoding="utf-8") as file:
        assert allowed_skips(file.read())
    lines = skip_lines([f"vulkan_{n}_test: the vulkan backend is not part of this build" for n in range(3)] +
                       ["metal_x_test: the metal backend is not part of this build", "a_test: A.B: no tool"])
    assert lines == ["skipped: a_test: A.B: no tool",
                     "skipped: 4 tests of backends that are not part of this build (metal 1, vulkan 3): `make test-gpu` runs them"], lines
    with tempfile.TemporaryDirectory() as reports:
        with open(os.path.join(reports, "a_test.xml"), "w", encoding="utf-8") as file:
            file.write('<testsuites><testsuite><testcase name="B" classname="A" status="run"><skipped message="no tool"/></testcase></testsuite></testsuites>')
        skip = '<skipped message="SKIP_RETURN_CODE=77"/>'
        with open(os.path.join(reports, "ctest.xml"), "w", encoding="utf-8") as file:
            file.write(f'<testsuite><testcase name="a_test" status="run"/><testcase name="b" status="notrun">{skip}<system-out>skipped: no tool</system-out></testcase>'
                       f'<testcase name="c" status="notrun">{skip}<system-out>skipped: allowed</system-out></testcase><testcase name="d" status="run"/></testsuite>')
        assert results(reports)[2] == ["a_test: A.B: no tool", "b: no tool", "c: allowed"], results(reports)
        assert left_out(reports, "release", [(["*"], "c: *")]) == ["a_test", "b"]
        with open(os.path.join(reports, "a_test.xml"), "w", encoding="utf-8") as file:
            file.write('<testsuites><testsuite><testcase name="B" classname="A" status="run"><failure message="x.cpp:3&#x0A;1 is not 2"/></testcase>'
                       '<testcase name="C" classname="A" status="run"/></testsuite></testsuites>')
        with open(os.path.join(reports, "ctest.xml"), "w", encoding="utf-8") as file:
            file.write('<testsuite><testcase name="a_test" status="fail"/><testcase name="good" status="run"/>'
                       '<testcase name="script" status="fail"><system-out>why</system-out></testcase></testsuite>')
        assert failures(reports) == [("a_test: A.B", ["x.cpp:3", "1 is not 2"]), ("script", ["why"])], failures(reports)
    print("run-tests: the rules for skips work")


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
    """The executables of tests are targets of the same names; whatever else a test needs is a dependency of these, or gimbal, by its path."""
    listed = subprocess.run(["ninja", "-C", build_of(preset), "-t", "targets", "all"], stdout=subprocess.PIPE, text=True, check=True).stdout
    targets = {line.split(":")[0] for line in listed.splitlines()}
    tests = chosen_tests(preset, more)
    wanted = [name for name in tests if name in targets]
    program = os.path.join(build_of(preset), "gimbal")
    if any(program in text for test in tests.values() for text in test.get("command", []) + environment_of(test)):
        wanted.append("gimbal")
    if not wanted:  # scripts over the sources
        return 0
    return subprocess.run(["cmake", "--build", "--preset", preset, "--target", *wanted], cwd=ROOT).returncode


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
    if arguments == ["--self-test"]:
        return self_test()
    if arguments[:1] == ["--slowest"]:
        for seconds, preset, name in slowest(int(arguments[1]), arguments[2:]):
            print(f"{seconds:6.0f} s  {preset}: {name}")
        return 0
    if arguments[:1] == ["--failures"]:
        for preset in arguments[1:]:
            for test, lines in failures(os.path.join(build_of(preset), "test-reports")):
                print(f"failed in {preset}: {test}", *(f"  {line}" for line in lines), sep="\n")
        return 0
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    preset, *more = arguments
    if more[:1] == ["--build"]:
        more = more[1:]
        if build_tests(preset, more):
            print("0 passed, 1 failed")
            return 1
    again, same, other = False, [], ""
    build = build_of(preset)
    reports, before = os.path.join(build, "test-reports"), os.path.join(build, "test-reports-before")
    if more[:1] == ["--left-out-before"]:
        again = True
        with open(ALLOWED_SKIPS, encoding="utf-8") as file:
            names = left_out(reports, preset, allowed_skips(file.read()))
        if not names:
            print("no test was left out by the last run")
            return 0
        print("left out before: " + " ".join(names), flush=True)
        more = ["-R", "^(" + "|".join(map(re.escape, names)) + ")$", *more[1:]]
        if build_tests(preset, more[:2]):
            print("0 passed, 1 failed")
            return 1
        shutil.rmtree(before, ignore_errors=True)
        os.rename(reports, before)
    if more[:1] == ["--not-as-in"]:
        other, more = more[1], more[2:]
        same = same_as_in(other, preset, more)
        if same:
            patterns = ["^(" + "|".join(map(re.escape, same)) + ")$"]
            if "-E" in more:  # of two, ctest takes the last
                at = more.index("-E")
                patterns.append(more[at + 1])
                del more[at:at + 2]
            more += ["-E", "|".join(patterns)]
    shutil.rmtree(reports, ignore_errors=True)
    os.makedirs(reports)
    summary = os.path.join(reports, "ctest.xml")
    environment = {**os.environ, "GTEST_OUTPUT": f"xml:{reports}/", "GTEST_COLOR": "no"}
    status = subprocess.run(
        [*launcher(preset), "ctest", "--preset", preset, "--no-tests=error", "--parallel", str(len(os.sched_getaffinity(0)) + 1),  # some wait
         "--output-junit", summary, *more],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode

    counted = results(reports)
    if counted is None:
        print("0 passed, 1 failed")
        return 1
    passed, failed, skipped = counted
    if again:
        ran = {entry.get("name") for entry in ElementTree.parse(summary).getroot().findall("testcase")}
        for name in sorted(set(names) - ran):
            print(f"failed: {name} was left out before, and is no test any more")
            failed += 1
        merge_reports(before, reports)

    print()
    for line in reference_data(os.path.join(build, "Testing", "Temporary", "LastTest.log")):
        print(line)
    for line in skip_lines(skipped):
        print(line)
    if same:
        print(f"left out: {len(same)} tests that are the same commands and the same bytes as in build/{other}, where they passed: {' '.join(same)}")
    if os.environ.get("CI"):
        with open(ALLOWED_SKIPS, encoding="utf-8") as file:
            wrong = not_allowed(preset, skipped, allowed_skips(file.read()))
        for test in wrong:
            print(f"failed: skipped, and tests/allowed-skips.txt has no reason for it: {test}")
        failed += len(wrong)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if status or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
