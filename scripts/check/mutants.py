#!/usr/bin/env python3
"""Puts one defect at a time into a copy of the source, and looks which test notices it.

Usage: mutants.py --check                       every anchor of tests/mutants.toml is there exactly once, every test exists
       mutants.py --list
       mutants.py [--only NAME]... [-j N] [--minutes N] [--write-docs]

A run works on the last commit, in a worktree of its own (build/mutants/tree), and never changes the checkout. Only the tests that
a mutant names are built and run, first without any mutant: they must pass. The outcomes are "killed by TEST", "SURVIVED" and
errors of the list itself ("does not apply", "does not build"); they are kept in build/mutants/results.json, and --write-docs
puts them into tests/mutants.json and docs/internals/mutants.md. --minutes N: begin no mutant after so many. With --write-docs alone nothing is run.
"""
import argparse
import datetime
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import textwrap
import time
import tomllib

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LIST = os.path.join(ROOT, "tests", "mutants.toml")
WORK = os.path.join(ROOT, "build", "mutants")
TREE = os.path.join(WORK, "tree")
RESULTS = os.path.join(WORK, "results.json")
DOCS = os.path.join(ROOT, "docs", "internals", "mutants.md")
KNOWN = os.path.join(ROOT, "tests", "mutants.json")  # the outcomes that the page shows
LEAST = 40
SECONDS_PER_TEST = 600


def mutants():
    with open(LIST, "rb") as file:
        return tomllib.load(file)["mutant"]


def places(root, mutant):
    """[(path, times)] of files below the mutant's folder, or of the file itself, that hold its old text."""
    below = os.path.join(root, mutant["in"])
    files = [below] if os.path.isfile(below) else sorted(f for f in glob.glob(os.path.join(below, "**"), recursive=True) if os.path.isfile(f))
    found = []
    for path in files:
        with open(path, encoding="utf-8", errors="replace") as file:
            times = file.read().count(mutant["old"])
        if times:
            found.append((path, times))
    return found


def test_of(name):
    return name.split(":")[0]


def executables():
    return {os.path.basename(path)[:-4] for path in glob.glob(os.path.join(ROOT, "tests", "**", "*_test.cpp"), recursive=True)}


def scripted():
    """{test: what it drives} of the tests that are Python programs."""
    with open(os.path.join(ROOT, "tests", "CMakeLists.txt"), encoding="utf-8") as file:
        tests = re.findall(r"add_test\(NAME (\w+) COMMAND Python3::Interpreter([^)]*)\)", file.read())
    return {name: re.findall(r"\$<TARGET_FILE:(\w+)>", arguments) for name, arguments in tests}


def targets_of(tests):
    driven = scripted()
    return sorted({target for test in tests for target in driven.get(test_of(test), [test_of(test)])})


def chosen_by_nothing(test, sources):
    """The filter of a GoogleTest executable if no test of its source has such a name; else empty."""
    name, _, filters = test.partition(":")
    if not filters or name not in sources:
        return ""
    with open(sources[name], encoding="utf-8") as file:
        names = [".".join(pair) for pair in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", file.read(), re.M)]
    wanted = filters.split("-")[0].split(":")
    found = any(fnmatch.fnmatchcase(each, pattern) for pattern in wanted for n in names for each in (n, f"All/{n}/0"))
    return "" if found else filters


def check(all_mutants):
    """What is wrong with the list, a line each."""
    wrong = []
    known = executables() | set(scripted())
    sources = {os.path.basename(path)[:-4]: path for path in glob.glob(os.path.join(ROOT, "tests", "**", "*_test.cpp"), recursive=True)}
    for mutant in all_mutants:
        name = mutant.get("name", "?")
        absent = [key for key in ("name", "layer", "in", "old", "new", "tests", "breaks") if not mutant.get(key) and mutant.get(key) != ""]
        if absent:
            wrong.append(f"{name}: without {', '.join(absent)}")
            continue
        found = places(ROOT, mutant)
        if len(found) != 1 or found[0][1] != 1:
            where = ", ".join(f"{os.path.relpath(path, ROOT)} ({times})" for path, times in found) or "nowhere"
            wrong.append(f"{name}: its old text must be in {mutant['in']} exactly once, and is found: {where}")
        if mutant["old"] == mutant["new"]:
            wrong.append(f"{name}: it changes nothing")
        wrong += [f"{name}: there is no test {test_of(test)}" for test in mutant["tests"] if test_of(test) not in known]
        wrong += [f"{name}: no test of {test_of(test)} is chosen by {nothing}" for test in mutant["tests"] if (nothing := chosen_by_nothing(test, sources))]
    names = [mutant.get("name") for mutant in all_mutants]
    wrong += [f"{name}: named twice" for name in sorted({name for name in names if names.count(name) > 1})]
    if len(all_mutants) < LEAST:
        wrong.append(f"{len(all_mutants)} mutants, at least {LEAST} are asked for")
    return wrong


def prepare():
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not os.path.isdir(TREE):
        os.makedirs(WORK, exist_ok=True)
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", TREE, commit], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", commit], cwd=TREE, check=True)
    subprocess.run(["cmake", "--preset", "release"], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    return commit


def environment(filters=""):
    return {**os.environ, "CCACHE_BASEDIR": TREE, "CCACHE_NOHASHDIR": "1", "GTEST_COLOR": "no", **({"GTEST_FILTER": filters} if filters else {})}


def build(tests, jobs):
    return subprocess.run(["ninja", "-C", os.path.join(TREE, "build", "release"), "-j", str(jobs), *targets_of(tests)],
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def run(test):
    """None when it passes, else what it says of the failure: names of tests, or how it ended."""
    name, _, filters = test.partition(":")
    done = subprocess.run(["ctest", "--test-dir", os.path.join(TREE, "build", "release"), "-R", f"^{name}$", "--output-on-failure",
                           "--no-tests=error", "--timeout", str(SECONDS_PER_TEST)],
                          env=environment(filters), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode == 0:
        return None
    failed = sorted(set(re.findall(r"^\[  FAILED  \] ([A-Za-z_]\w*(?:/\w+)?\.\w+)", done.stdout, re.M)))
    return ", ".join(failed[:2]) + (f" and {len(failed) - 2} more" if len(failed) > 2 else "") if failed else name + (
        " (time-out)" if "Timeout" in done.stdout else " (crash)")


def outcome_of(mutant, jobs):
    found = places(TREE, mutant)
    if len(found) != 1 or found[0][1] != 1:
        return "does not apply"
    path = found[0][0]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(mutant["old"], mutant["new"]))
        built = build(mutant["tests"], jobs)
        if built.returncode != 0:
            print(built.stdout[-3000:], file=sys.stderr)
            return "does not build"
        for test in mutant["tests"]:
            if failure := run(test):
                return f"killed by {failure}"
        return "SURVIVED"
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def read_results():
    """The outcomes of the repository, and those of runs here since."""
    results = {}
    for path in (KNOWN, RESULTS):
        try:
            with open(path, encoding="utf-8") as file:
                results.update(json.load(file))
        except (OSError, json.JSONDecodeError):
            pass
    return results


def page(all_mutants, results):
    counts, layers = {"killed": 0, "SURVIVED": 0, "not run": 0}, {}
    for mutant in all_mutants:
        r = results.get(mutant["name"])
        kind = r["outcome"] if r else "not run"
        kind = "killed" if kind.startswith("killed") else kind
        counts[kind] = counts.get(kind, 0) + 1
        outcome = f"{r['outcome'][:1].upper()}{r['outcome'][1:]} ({r['date']}, {r['commit']})" if r else "Not run"
        layers.setdefault(mutant["layer"], []).append(textwrap.fill(f"- `{mutant['name']}`: {mutant['breaks']}. {outcome}.", 120, subsequent_indent="  ",
                                                                    break_long_words=False, break_on_hyphens=False))
    head = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    text = ["# Mutants", "", "Defects that the tests must notice ([how](../testing.md#mutants)), by layer. Written by `scripts/check/mutants.py --write-docs` from",
            "`tests/mutants.toml` and `tests/mutants.json`.", "", f"{len(all_mutants)} mutants: {head}."]
    for layer, lines in layers.items():
        text += ["", f"## {layer}", "", *lines]
    return "\n".join(text) + "\n"


def write_docs(all_mutants, results):
    known = {mutant["name"]: results[mutant["name"]] for mutant in all_mutants if mutant["name"] in results}
    with open(KNOWN, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(result)}" for name, result in known.items()) + "\n}\n")
    with open(DOCS, "w", encoding="utf-8") as file:
        file.write(page(all_mutants, results))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    all_mutants = mutants()
    if options.list:
        for mutant in all_mutants:
            print(f"{mutant['name']:36} {mutant['layer']:12} {mutant['breaks']}  [{' '.join(mutant['tests'])}]")
        return 0
    wrong = check(all_mutants)
    if wrong:
        print("\n".join(f"mutants: {line}" for line in wrong))
    if options.check or wrong:
        print(f"mutants: {len(all_mutants)} mutants, {len(wrong)} errors in tests/mutants.toml")
        return 1 if wrong else 0
    results = read_results()
    if options.write_docs and not options.only and not options.minutes:
        write_docs(all_mutants, results)
        return 0
    chosen = [m for m in all_mutants if not options.only or m["name"] in options.only]
    if options.only and len(chosen) != len(set(options.only)):
        sys.exit("mutants: --only names a mutant that is not in tests/mutants.toml (see --list)")
    begin = time.monotonic()
    commit = prepare()
    tests = sorted({test for m in chosen for test in m["tests"]})
    built = build(tests, options.jobs)
    if built.returncode != 0:
        sys.exit(built.stdout[-3000:] + "\nmutants: the source does not build as it is")
    survived = 0
    passes = {}
    for mutant in chosen:
        if options.minutes and time.monotonic() - begin > 60 * options.minutes:
            print(f"mutants: {options.minutes:g} minutes are over, {mutant['name']} and those behind it are not run")
            break
        for test in mutant["tests"]:
            if test not in passes:
                build([test], options.jobs)  # the last mutant may still be in it
                passes[test] = run(test)
            if passes[test]:
                sys.exit(f"mutants: {test} fails without a mutant: {passes[test]}")
        outcome = outcome_of(mutant, options.jobs)
        survived += not outcome.startswith("killed")
        results[mutant["name"]] = {"outcome": outcome, "commit": commit, "date": datetime.date.today().isoformat()}
        with open(RESULTS, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
        print(f"{mutant['name']:36} {outcome}", flush=True)
    if options.write_docs:
        write_docs(all_mutants, results)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
