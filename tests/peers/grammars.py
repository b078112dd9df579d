#!/usr/bin/env python3
"""The grammars and schemas of llama.cpp's tests, through `gimbal grammar`: grammars.py GIMBAL [LLAMA_CPP] [-v]

test-grammar-integration.cpp: each text of its lists matches, or does not. test-json-schema-to-grammar.cpp: each schema is taken
or refused as there, and each grammar that llama.cpp makes of one can be read.
"""
import os
import re
import subprocess
import sys
import tempfile

from suites import Tally, llama_cpp

# Raw texts, texts, characters, comments, words, and single signs of C++.
TOKEN = re.compile(r'''R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.)*'|//[^\n]*|/\*.*?\*/|(?P<word>\w+)|(?P<sign>\S)''', re.S)
ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
SHORT = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unescaped(text):
    def one(match):
        word = match[1]
        if word[:1] == b"x":
            return bytes([int(word[1:], 16) & 255])
        if word[:1] in b"uU" and len(word) > 1:
            return chr(int(word[1:], 16)).encode()
        if word.isdigit():
            return bytes([int(word, 8) & 255])
        return SHORT.get(word, word)
    return ESCAPE.sub(one, text.encode())


def tokens(path):
    """(kind, value) of everything but comments; texts that stand side by side are one."""
    out = []
    with open(path, encoding="utf-8") as file:
        for match in TOKEN.finditer(file.read()):
            if match["raw"] is not None or match["text"] is not None:
                text = match["raw"].encode() if match["raw"] is not None else unescaped(match["text"])
                if out and out[-1][0] == "text":
                    text = out.pop()[1] + text
                out.append(("text", text))
            elif match["word"]:
                out.append(("word", match["word"]))
            elif match["sign"]:
                out.append(("sign", match["sign"]))
    return out


def arguments(all_tokens, at):
    """The arguments of the call whose parenthesis is at `at`: texts, words, and lists of these. Others are None."""
    stack, at = [[]], at + 1
    while True:
        kind, value = all_tokens[at]
        if value == "{" and kind == "sign":
            stack.append([])
        elif value == "}" and kind == "sign":
            done = stack.pop()
            stack[-1].append(done)
        elif value == ")" and kind == "sign":
            return stack[0]
        elif value == "(" and kind == "sign":
            return None  # a computed argument
        elif kind != "sign":
            stack[-1].append(value)
        at += 1


def calls(path, names):
    all_tokens = tokens(path)
    for i, (kind, value) in enumerate(all_tokens[:-1]):
        if kind == "word" and value in names and all_tokens[i + 1] == ("sign", "(") and all_tokens[i - 1] != ("word", "void"):
            yield value, arguments(all_tokens, i + 1)


class Program:
    def __init__(self, gimbal):
        self.gimbal = gimbal

    def ask(self, kind, form, text):
        """0: matches; 1: does not; others: the form is refused. And what was said."""
        with tempfile.NamedTemporaryFile("wb") as of_form, tempfile.NamedTemporaryFile("wb") as of_text:
            of_form.write(form), of_text.write(text)
            of_form.flush(), of_text.flush()
            done = subprocess.run([self.gimbal, "grammar", kind, of_form.name, "--input", of_text.name], capture_output=True)
        return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace").strip().split("\n")[0]


def integration(program, path, tally):
    for name, found in calls(path, ("test_grammar", "test_schema")):
        if not found or len(found) != 4:
            continue  # the functions themselves
        title, form, passing, failing = found
        for texts, wanted in ((passing, 0), (failing, 1)):
            for text in texts:
                code, said = program.ask("--schema" if name == "test_schema" else "--check", form, text)
                case = f"{title.decode().strip()[:60]!r}: {'matches' if wanted == 0 else 'does not match'} {text.decode('utf-8', 'replace')[:80]!r}"
                if code == wanted or (wanted and "no value satisfies it" in said):
                    tally.passed(case)
                else:
                    tally.failed(case, ("REFUSED " if code > 1 else "WRITES " if wanted else "LEFT OUT ") + said)


def conversions(program, path, tally):
    for _, found in calls(path, ("test",)):
        if not found or not isinstance(found[0], list) or len(found[0]) < 4:
            continue
        status, title, schema, grammar = found[0][:4]
        code, said = program.ask("--schema", schema, b"x")
        case = f"schema {title.decode()!r}"
        if (code <= 1 or "no value satisfies it" in said) == (status == "SUCCESS"):
            tally.passed(case)
        else:
            tally.failed(case, ("REFUSED " if code > 1 else "TAKEN ") + said)
        if grammar.strip():
            code, said = program.ask("--check", grammar, b"x")
            if code <= 1:
                tally.passed(f"grammar {title.decode()!r}")
            else:
                tally.failed(f"grammar {title.decode()!r}", "REFUSED " + said)


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    folder = llama_cpp(*words[1:])
    program, tally = Program(words[0]), Tally("grammars", "-v" in sys.argv)
    integration(program, os.path.join(folder, "tests/test-grammar-integration.cpp"), tally)
    conversions(program, os.path.join(folder, "tests/test-json-schema-to-grammar.cpp"), tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
