#!/usr/bin/env python3
"""Fails where the same code stands twice in src: WINDOW tokens in a row, a dozen lines, without comments, blanks and preprocessor lines.

Usage: duplicates.py             checks this checkout
       duplicates.py --self-test
"""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
WINDOW = 130
ENDINGS = (".cpp", ".h", ".mm", ".k", ".S")
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\d[\w.']*|[^\s\w]|\n""", re.S)


def tokens(text):
    """[(token, line)]"""
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: "\n" * m.group().count("\n"), text, flags=re.M)
    all_tokens, line = [], 1
    for match in TOKEN.finditer(text):
        word = match.group()
        if not word.startswith(("//", "/*")) and word != "\n":
            all_tokens.append((word, line))
        line += word.count("\n")
    return all_tokens


def copies(texts, window=WINDOW):
    """["FILE:LINE as FILE:LINE"] of {file: text}: each stretch once, by the place of its second copy."""
    first, found = {}, []
    for path, text in sorted(texts.items()):
        of_file = tokens(text)
        words = [word for word, _ in of_file]
        inside = None  # the last place that belongs to a copy
        for at in range(len(words) - window + 1):
            path_before, at_before, line = first.setdefault(tuple(words[at:at + window]), (path, at, of_file[at][1]))
            if path_before == path and at_before + window > at:  # itself, or what repeats in a row
                continue
            if inside != at - 1:
                found.append(f"{path}:{of_file[at][1]} as {path_before}:{line}")
            inside = at
    return found


def self_test():
    body = "".join(f"  int x{i} = f(x{i - 1}) + {i};  // {i}\n" for i in range(1, 15))
    texts = {"a.cpp": f"#include <a>\nvoid a() {{\n{body}}}\n", "b.cpp": f"// of b\n\nvoid b() {{ g();\n{body.replace('  ', '   ').replace('//', '// another ')}}}\n"}
    assert copies(texts, 100) == ["b.cpp:4 as a.cpp:3"], copies(texts, 100)
    assert not copies(texts, 200)
    assert not copies({**texts, "b.cpp": texts["b.cpp"].replace("x7", "y7")}, 100)
    assert copies({"a.cpp": texts["a.cpp"] + texts["b.cpp"]}, 100) == ["a.cpp:21 as a.cpp:3"], copies({"a.cpp": texts["a.cpp"] + texts["b.cpp"]}, 100)
    assert not copies({"a.cpp": "int t[] = {" + "0, " * 80 + "};"}, 100), "a copy does not overlap its original"
    assert tokens("#define A \\\n  b\n'\"' /* \"\n */ c") == [("'\"'", 3), ("c", 4)], tokens("#define A \\\n  b\n'\"' /* \"\n */ c")
    print("check-duplicates: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    texts = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in names:
            if name.endswith(ENDINGS):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, ROOT)] = file.read()
    found = copies(texts)
    for line in found:
        print(f"{line}: the same {WINDOW} tokens: move them into one place")
    print(f"check-duplicates: {len(texts)} files, {len(found)} copies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
