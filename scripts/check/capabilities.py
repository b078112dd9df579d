#!/usr/bin/env python3
"""Keeps docs/capabilities.md true: every row of the requirements documents stands there once, with a state and, where
something is claimed, the tests that show it; those tests exist; the summary counts what the tables say.

Usage: capabilities.py [ROOT]       check the checkout at ROOT (default: the one this script is in)
       capabilities.py --update     write the summary anew from the tables
       capabilities.py --self-test  check the checker, on small bad pages
"""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PAGE = os.path.join("docs", "capabilities.md")

ROWS = {0: 22, 1: 50, 2: 66, 3: 74, 4: 31}  # document: number of its last row; numbers start at 1
BEGIN, END = "<!-- counts: scripts/check/capabilities.py --update -->", "<!-- end of counts -->"

ROW = re.compile(r"^\| *(\d+-\d+) *\|(.*)\|\s*$")
CONTINUED = re.compile(r"^\| *\|(.*)\|\s*$")  # the row below one that is too long for a line
STATE = re.compile(r"done|partly|later")
NAMED = re.compile(r"`([^`]+)`")


def parse(text):
    """Rows as (line number, id, capability, state, shown by); a row with another number of cells has None for all three."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := ROW.match(line):
            rows.append((number, match.group(1), [cell.strip() for cell in match.group(2).split("|")]))
        elif rows and (match := CONTINUED.match(line)):
            more = [cell.strip() for cell in match.group(1).split("|")]
            if len(more) == len(rows[-1][2]):
                rows[-1][2][:] = [f"{cell} {rest}".strip() for cell, rest in zip(rows[-1][2], more)]
    for number, row_id, cells in rows:
        yield (number, row_id, *(cells if len(cells) == 3 else [None] * 3))


def summary(rows):
    """The lines between the marks: a table of states by document."""
    documents = [f"{document}-" for document in ROWS] + [""]

    def line(name, of):
        return f"| {name} | " + " | ".join(str(sum(1 for row in of if row[1].startswith(document))) for document in documents) + " |"

    order = ["done", "partly", "later"]
    return ["| state | document 0 | 1 | 2 | 3 | 4 | all |", "|---|--:|--:|--:|--:|--:|--:|",
            *(line(state, of) for state in order if (of := [row for row in rows if row[3] == state])), line("**all**", rows)]


def tests_of(root):
    """Names that ctest knows: one per *_test.cpp, and those that CMake files add by name (a ${part} matches any word)."""
    names = set()
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        names |= {file[:-4] for file in files if file.endswith("_test.cpp")}
    patterns = [re.escape(name) for name in names]
    for folder in ("tests", "src", "scripts"):
        for parent, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                if name != "CMakeLists.txt" and not name.endswith(".cmake"):
                    continue
                with open(os.path.join(parent, name), encoding="utf-8") as file:
                    for test in re.findall(r"add_test\(\s*NAME\s+(\S+)", file.read()):
                        if not re.fullmatch(r"\$\{\w+\}", test):  # a loop's or a function's
                            patterns.append(r"\w+".join(map(re.escape, re.split(r"\$\{\w+\}", test))))
    return re.compile("|".join(patterns) or "(?!)")


def check_row(number, row_id, capability, state, shown, known, exists):
    if capability is None:
        return [f"{number}: row {row_id} has not four cells"]
    found = []
    if not STATE.fullmatch(state):
        found.append(f"{number}: row {row_id}: '{state}' is no state")
    if not capability:
        found.append(f"{number}: row {row_id} names no capability")
    evidence = NAMED.findall(shown.split("missing:")[0])
    for name in evidence:
        if not known.fullmatch(name) and not ("/" in name and exists(name)):
            found.append(f"{number}: row {row_id}: there is no test or script '{name}'")
    if state in ("done", "partly") and not evidence:
        found.append(f"{number}: row {row_id} is {state}, but names no test that shows it")
    if (state == "partly") != ("missing:" in shown):
        found.append(f"{number}: row {row_id}: 'missing: ...' belongs to rows that are partly done, and only to them")
    return found


def check(text, known, exists):
    rows = list(parse(text))
    found, seen = [], {}
    valid = {f"{document}-{n}" for document, last in ROWS.items() for n in range(1, last + 1)}
    for row in rows:
        if row[1] not in valid:
            found.append(f"{row[0]}: row {row[1]} is none of the requirements documents'")
        if row[1] in seen:
            found.append(f"{row[0]}: row {row[1]} stood in line {seen[row[1]]} already")
        seen[row[1]] = row[0]
        found += check_row(*row, known, exists)
    found += [f"1: row {row_id} is missing" for row_id in sorted(valid - set(seen), key=lambda i: tuple(map(int, i.split("-"))))]
    between = text.partition(BEGIN)[2].partition(END)[0].strip().split("\n")
    if BEGIN not in text or END not in text:
        found.append(f"1: the marks '{BEGIN}' and '{END}' are missing")
    elif between != summary(rows):
        found.append("1: the summary does not count what the tables say; run scripts/check/capabilities.py --update")
    return found, len(rows)


def update(text):
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return head + BEGIN + "\n" + "\n".join(summary(list(parse(text)))) + "\n" + END + tail


def self_test():
    known, exists = re.compile(r"good_test|cpu_\w+_symbols"), {"scripts/good.sh"}.__contains__
    lines = [f"| {document}-{n} | something | later | |" for document, last in ROWS.items() for n in range(1, last + 1)]
    lines[0] = "| 0-1 | something | done | `good_test`, `scripts/good.sh` |"
    lines[1] = "| 0-2 | something | partly | `cpu_avx2_symbols`; missing: the `rest` |"

    def page(changed):
        return update(f"{BEGIN}\n{END}\n" + "\n".join(line for line in changed if line is not None))

    def with_line(index, line):
        return page([*lines[:index], line, *lines[index + 1:]])

    cases = [
        ("a missing row", with_line(5, None), "row 0-6 is missing"),
        ("a row twice", with_line(5, lines[4] + "\n" + lines[5]), "row 0-5 stood in line"),
        ("an unknown row", with_line(5, lines[5] + "\n| 5-1 | x | later | |"), "row 5-1 is none"),
        ("an unknown state", with_line(5, "| 0-6 | x | almost | |"), "'almost' is no state"),
        ("a state with more behind it", with_line(5, "| 0-6 | x | later issue 77 | |"), "is no state"),
        ("no name", with_line(5, "| 0-6 | | later | |"), "names no capability"),
        ("a cell too many", with_line(5, "| 0-6 | x | y | later | |"), "has not four cells"),
        ("done without a test", with_line(5, "| 0-6 | x | done | by reading it |"), "names no test"),
        ("done by a test that is not there", with_line(5, "| 0-6 | x | done | `bad_test` |"), "no test or script 'bad_test'"),
        ("done by a script that is not there", with_line(5, "| 0-6 | x | done | `scripts/bad.sh` |"), "no test or script"),
        ("partly without what is missing", with_line(5, "| 0-6 | x | partly | `good_test` |"), "'missing: ...' belongs"),
        ("done with something missing", with_line(5, "| 0-6 | x | done | `good_test`; missing: y |"), "'missing: ...' belongs"),
        ("a wrong count", page(lines).replace("| done | 1 |", "| done | 2 |"), "the summary does not count"),
        ("a continued row without its test", with_line(5, "| 0-6 | x | done | by |\n| | | | `bad_test` |"), "no test or script 'bad_test'"),
        ("no marks", page(lines).replace(END, ""), "are missing"),
    ]
    wrong = [f"the good page: {v}" for v in check(page(lines), known, exists)[0]]
    for name, text, said in cases:
        found = check(text, known, exists)[0]
        if not any(said in violation for violation in found):
            wrong.append(f"{name}: expected '{said}', found {found}")
    print("\n".join(wrong) or f"check-capabilities: {len(cases)} bad pages refused, the good one accepted")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = ROOT if not arguments or arguments == ["--update"] else arguments[0]
    if len(arguments) > 1 or (arguments and arguments != ["--update"] and root.startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if arguments == ["--update"]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(update(text))
        return 0
    found, count = check(text, tests_of(root), lambda name: os.path.exists(os.path.join(root, name)))
    for violation in found:
        print(f"{PAGE}:{violation}")
    print(f"check-capabilities: {count} rows, {len(found)} mistakes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
