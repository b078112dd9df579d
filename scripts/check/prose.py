#!/usr/bin/env python3
"""Refuses comments that docs/english.md calls riddles: "what is", "whoever", "nobody" and their kin in place of a noun.

Usage: prose.py              fail on each of them, with its place
       prose.py --self-test  check the checker

Reads the product's sources. Comments of tests are not read yet.
"""
import os
import re
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDERS = ("src", "include", "python", "examples", "bench", "fuzz", os.path.join("web", "src"))
COMMENT = {**dict.fromkeys((".h", ".cpp", ".c", ".inc", ".k", ".def", ".ts"), "//"), ".py": "#"}
RIDDLE = re.compile(r"\b([Ww]hat (is|was|has|they|it|a|the)|[Ww]hoever|[Nn]obody|goes on|is told)\b")


def sources(root):
    for folder in FOLDERS:
        for parent, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(names):
                if os.path.splitext(name)[1] in COMMENT:
                    yield os.path.join(parent, name)


def riddles(root):
    """"path:line: text" of each line whose comment has one."""
    for path in sources(root):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                _, mark, comment = line.partition(COMMENT[os.path.splitext(path)[1]])
                if mark and RIDDLE.search(comment):
                    yield f"{os.path.relpath(path, root)}:{number}: {line.strip()}"


def self_test():
    bad = {"src/a/x.h": "int a;  // what is left\n// Nobody reads it. What they do.\n", "include/b.h": "// whoever calls this\n",
           "src/a/y.cpp": "// it goes on\n", "python/z.py": "x = 1  # what the caller wants\n"}
    good = {"src/a/x.h": "// The rest.\nconst char* what_is;  // whatever; somewhat\n", "src/a/y.cpp": 'say("what is this");\n', "src/a/z.md": "// nobody\n"}
    with tempfile.TemporaryDirectory() as root:
        for part, files in (("bad", bad), ("good", good)):
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, part, path)), exist_ok=True)
                with open(os.path.join(root, part, path), "w", encoding="utf-8") as file:
                    file.write(text)
        found = [len(list(riddles(os.path.join(root, part)))) for part in ("bad", "good")]
    if found != [5, 0]:
        print(f"check-prose: expected 5 riddles in the bad files and none in the good ones, found {found}")
        return 1
    print("check-prose: the checker finds riddles, and nothing else")
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    found = list(riddles(ROOT))
    print("\n".join(found + [f"check-prose: {len(found)} comments have riddles; docs/english.md has plain forms"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
