#!/usr/bin/env python3
"""Makes one source file of several tests, for tests/merged.cmake: each in a namespace of its own name where it has an unnamed one.

Usage: merge-tests.py OUT TEST.cpp...
"""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
KINDS = {}  # of suites: GoogleTest wants one for each name in a program


def merged(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    unnamed = "\nnamespace {\n"
    if text.count(unnamed) != 1:
        sys.exit(f"merge-tests: {path} has {text.count(unnamed)} lines 'namespace {{', and a test to be merged has one")
    for kind, suite in re.findall(r"^(TEST|TEST_F)\((\w+),", text, re.M):
        if KINDS.setdefault(suite, kind) != kind:
            sys.exit(f"merge-tests: {path}: the suite {suite} is of {KINDS[suite]} in a test before, and {kind} here; rename one of them")
    name = os.path.splitext(os.path.basename(path))[0]
    # Relative, so that ccache knows the file in another checkout, too.
    return f'#line 1 "{os.path.relpath(path, ROOT)}"\n' + text.replace(unnamed, f"\nnamespace {name} {{\n")


def main(out, paths):
    with open(out, "w", encoding="utf-8") as file:
        file.write("".join(map(merged, paths)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
