#!/usr/bin/env python3
"""Counts the riddles of docs/english.md in the comments of headers, and lets their number only fall.

Usage: prose.py              fail when src/ or include/ have more of them than scripts/check/prose.txt allows, or fewer
       prose.py --list       each place that counts
       prose.py --record     write the number of today into scripts/check/prose.txt; refused when it rose
       prose.py --self-test  check the checker

A lower number must be recorded, so that it cannot rise again unseen. The command of the survey gives the same number:
  grep -rhoE '//.*\\b([Ww]hat (is|was|has|they|it|a|the)|[Ww]hoever|[Nn]obody)\\b' src include --include=*.h | wc -l
"""
import os
import re
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RECORD = os.path.join("scripts", "check", "prose.txt")
RIDDLE = re.compile(r"//.*\b([Ww]hat (is|was|has|they|it|a|the)|[Ww]hoever|[Nn]obody)\b")


def riddles(root):
    """(path, line number, line) of each comment that counts, once a line."""
    for folder in ("src", "include"):
        for parent, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(".h"):
                    path = os.path.join(parent, name)
                    with open(path, encoding="utf-8") as file:
                        for number, line in enumerate(file, 1):
                            if RIDDLE.search(line):
                                yield os.path.relpath(path, root), number, line.strip()


def allowed(root):
    with open(os.path.join(root, RECORD), encoding="utf-8") as file:
        return int(next(line for line in file if not line.startswith("#")))


def check(root):
    """What is wrong, or None."""
    count, most = len(list(riddles(root))), allowed(root)
    if count > most:
        return f"{count} comments of headers have riddles, {most} are allowed ({RECORD}): reword those that you wrote (--list, docs/english.md)"
    if count < most:
        return f"{count} comments of headers have riddles, {most} are recorded: record the better number with scripts/check/prose.py --record"
    return None


def record(root):
    count, most = len(list(riddles(root))), allowed(root)
    if count > most:
        return f"the number rose from {most} to {count} and is not recorded"
    path = os.path.join(root, RECORD)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?m)^\d+$", str(count), text))
    return None


def self_test():
    wrong = []

    def expect(name, files, number, said):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**files, RECORD: f"# allowed\n{number}\n"}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = check(root)
            if (said is None) != (found is None) or said and said not in found:
                wrong.append(f"{name}: expected {said!r}, found {found!r}")
            refused = record(root)
            if (refused is not None) != (said is not None and "allowed" in said) or (refused is None and check(root)):
                wrong.append(f"{name}: --record gave {refused!r}")

    bad = {"src/a/x.h": "int a;  // what is left\n// Nobody reads it. What they do.\n", "include/b.h": "// whoever calls this\n"}
    good = {"src/a/x.h": "// The rest.\nconst char* what_is;  // whatever; somewhat\n", "src/a/y.cpp": "// what is counted in headers alone\n"}
    expect("as many as allowed", bad, 3, None)
    expect("one more than allowed", bad, 2, "2 are allowed")
    expect("fewer than recorded", bad, 4, "record the better number")
    expect("none", good, 0, None)
    print("\n".join(wrong) or "check-prose: 4 trees judged as they should be")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments == ["--list"]:
        for path, number, line in riddles(ROOT):
            print(f"{path}:{number}: {line}")
        return 0
    if arguments not in ([], ["--record"]):
        print(__doc__, file=sys.stderr)
        return 2
    fault = check(ROOT) if not arguments else record(ROOT)
    print(f"check-prose: {fault or f'{len(list(riddles(ROOT)))} comments of headers have riddles, as recorded'}")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
