#!/usr/bin/env python3
"""libgimbal.so as other languages see it: its symbols are the header's, and the examples in C and Python write what the program writes.

Usage: c_library_test.py LIBGIMBAL_SO EXAMPLE_C_CHAT GIMBAL
"""
import json
import os
import re
import subprocess
import sys
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROMPT = "Once upon a time"


def output(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **more).stdout


class CLibrary(unittest.TestCase):
    def test_the_symbols_are_those_of_the_header(self):
        with open(os.path.join(TOP, "include", "gimbal", "gimbal.h"), encoding="utf-8") as file:
            declared = set(re.findall(r"^GIMBAL_C_API [^(]*?\b(gimbal_\w+)\(", file.read(), re.MULTILINE))
        self.assertGreater(len(declared), 30)
        exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
        self.assertEqual(exported, declared)

    def test_it_needs_the_c_library_alone(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library))
        self.assertTrue(needed)
        self.assertFalse([n for n in needed if not re.match(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so", n)], needed)

    def test_python_writes_what_the_program_writes(self):
        told = output(sys.executable, os.path.join(TOP, "examples", "python_ctypes.py"), library, "default", PROMPT)
        text = json.loads(re.search(r'^text: (".*") finish: length$', told, re.MULTILINE)[1])
        same = output(gimbal, "run", "default", "-p", PROMPT, "-n", "12", "--greedy", "--json")
        self.assertEqual(text, json.loads(same)["text"])
        tokens = output(gimbal, "tokenize", "default", "--text", PROMPT, "--json")
        self.assertEqual(json.loads(re.search(r"^tokens: (.*)$", told, re.MULTILINE)[1]), json.loads(tokens)["tokens"])
        self.assertRegex(told, r"(?m)^loaded on [a-z]+:0$")
        self.assertRegex(told, r"embeddings of 64 numbers, similarity 0\.\d+")
        self.assertIn("refused: there is no option 'contxt' here: did you mean 'context'?", told)

    def test_c_chats(self):
        told = output(chat, input="Once upon a time\nAnd then?\n")
        self.assertRegex(told, r"[a-z]+ [a-z]+ [a-z]+.*\n(.*\n)*.*[a-z]+ [a-z]+")


if __name__ == "__main__":
    library, chat, gimbal = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
