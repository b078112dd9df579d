"""The part of a page that a script writes, between two comments."""
import os
import subprocess
import sys

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check", "docs.py")


def write_part(page, marks, text):
    """Puts `text` between the marks of a page, and lays out its paragraphs."""
    with open(page, encoding="utf-8") as file:
        whole = file.read()
    begin, end = whole.index(marks[0]) + len(marks[0]), whole.index(marks[1])
    with open(page, "w", encoding="utf-8") as file:
        file.write(whole[:begin] + "\n" + text + "\n" + whole[end:])
    subprocess.run([sys.executable, CHECK, "--wrap", page], check=True)
