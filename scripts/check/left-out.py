#!/usr/bin/env python3
"""The tests that CI leaves out of a stage (tests/left-out.txt): checks that each is a test, and that docs/testing.md has its reason.

Usage: left-out.py --check         fails where a test is named that does not exist, or docs/testing.md has another table
       left-out.py --write-docs    writes the table
       left-out.py --self-test
"""
import fnmatch
import os
import re
import sys
import textwrap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LIST, PAGE = "tests/left-out.txt", "docs/testing.md"
BEGIN, END = "<!-- left-out.py writes from here -->", "<!-- left-out.py writes to here -->"
STAGES = {"gpu": "GPU backends", "asan": "asan", "tsan": "tsan"}


def rules(text):
    """[(stage, [test patterns], reason)]"""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(" | ")
        if len(fields) != 3 or fields[0] not in STAGES or not fields[1].split() or not fields[2].strip():
            sys.exit(f"{LIST}:{number}: expected 'STAGE | TESTS | REASON' with a stage of {', '.join(STAGES)}, found '{line}'")
        found.append((fields[0], fields[1].split(), fields[2]))
    return found


def tests():
    """The names of all tests: one for each *_test.cpp, and those that CMake files add by name. ${...} of a name stands for anything."""
    names = set()
    for parent, _, files in os.walk(os.path.join(ROOT, "tests")):
        for file in files:
            if file.endswith("_test.cpp"):
                names.add(file.removesuffix(".cpp"))
            elif file.endswith(".cmake") or file == "CMakeLists.txt":
                with open(os.path.join(parent, file), encoding="utf-8") as opened:
                    text = opened.read()
                again = [f"{test}_{how}" for test, how in re.findall(r"_again\((\w+_test) (\S+)", text)]  # the same test under other settings
                names |= {re.sub(r"\$\{\w+\}", "*", name) for name in re.findall(r"add_test\(NAME (\S+)", text) + again}
    return names


def unknown(all_rules, names):
    """The patterns that no test has."""
    def known(pattern):
        numbered = re.sub(r"\d+$", "*", pattern)
        return any(fnmatch.fnmatchcase(name, pattern) or ("*" in name and fnmatch.fnmatchcase(name, numbered)) for name in names)
    return [pattern for _, patterns, _ in all_rules for pattern in patterns if not known(pattern)]


def table(all_rules):
    """A list: stages, and in each the tests with the reason."""
    lines, before = [], ""
    for stage, patterns, reason in all_rules:
        if stage != before:
            lines.append(f"- **{STAGES[stage]}**")
        lines.append(textwrap.fill(f"{', '.join(f'`{p}`' for p in patterns)}: {reason}", 120, initial_indent="  - ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False))
        before = stage
    return "\n".join(lines)


def with_table(page, wanted):
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{wanted}\n\n{END}{rest.split(END)[1]}"


def self_test():
    some = rules("# a comment\ngpu | a_test *_wide | why\n")
    assert some == [("gpu", ["a_test", "*_wide"], "why")]
    assert unknown(some, {"a_test", "*_wide"}) == []
    assert unknown(some, {"b_test"}) == ["a_test", "*_wide"]
    assert "- **GPU backends**\n  - `a_test`, `*_wide`: why\n" in with_table(f"x\n{BEGIN}\nold\n{END}\ny", table(some))
    print("left-out: finds names that no test has")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments not in (["--check"], ["--write-docs"]):
        print(__doc__, file=sys.stderr)
        return 2
    with open(os.path.join(ROOT, LIST), encoding="utf-8") as file:
        all_rules = rules(file.read())
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as file:
        page = file.read()
    if wrong := unknown(all_rules, tests()):
        print(f"{LIST}: there are no tests of these names: {' '.join(wrong)}")
        return 1
    wanted = with_table(page, table(all_rules))
    if arguments == ["--write-docs"]:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(wanted)
    elif wanted != page:
        print(f"{PAGE} has another table than {LIST}: run scripts/check/left-out.py --write-docs")
        return 1
    print(f"left-out: {len(all_rules)} reasons for {sum(len(patterns) for _, patterns, _ in all_rules)} tests")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
