#!/usr/bin/env python3
"""Makes one source file of several tests, for tests/merged.cmake: each in a namespace of its own name where it has an unnamed one.

Usage: merge-tests.py OUT TEST.cpp...
"""
import os
import sys


def merged(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    unnamed = "\nnamespace {\n"
    if text.count(unnamed) != 1:
        sys.exit(f"merge-tests: {path} has {text.count(unnamed)} lines 'namespace {{', and a test to be merged has one")
    name = os.path.splitext(os.path.basename(path))[0]
    return f'#line 1 "{path}"\n' + text.replace(unnamed, f"\nnamespace {name} {{\n")


def main(out, paths):
    with open(out, "w", encoding="utf-8") as file:
        file.write("".join(map(merged, paths)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
