#!/usr/bin/env python3
"""llama.cpp's tests of its server, run against `gimbal serve`: llama_server.py GIMBAL [LLAMA_CPP] [-k WORDS] [--slow] [-v]

LLAMA_CPP is a checkout; without it the source package of llama-cpp-python is fetched. Needs pytest, pytest-timeout, requests,
openai, anthropic, aiohttp, wget, filelock, prometheus-client and numpy. `llama_server` stands for the program of that name. The suite
is run twice: as it is, and without the single lines that [[llama-server-line]] of deviations.toml names, so that a test
that stops at one of these is tested to its end.
"""
import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as XML

from suites import HERE, ROOT, Tally, llama_cpp


def without_lines(folder):
    """Leaves out the named lines. Returns how often each was found."""
    with open(os.path.join(HERE, "deviations.toml"), "rb") as file:
        lines = tomllib.load(file)["llama-server-line"]
    found = {line["line"]: 0 for line in lines}
    for root, _, files in os.walk(folder):
        for name in (f for f in files if f.endswith(".py")):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                text = file.read()
            for line in lines:
                expression = re.compile(r"^( *)" + line["line"] + r"[^\n]*$", re.M)
                text, n = expression.subn(lambda m, to=line.get("instead", "pass"): m[1] + to, text)
                found[line["line"]] += n
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
    for line in lines:
        if not found[line["line"]]:
            sys.exit(f"deviations.toml: the suite has no line '{line['line']}'")
    print(f"left out: {sum(found.values())} lines of {len(lines)} kinds")


def prepare(gimbal, suite, folder):
    """A copy of the tests, with the models that can be made here in the places where the tests download them to."""
    tests = os.path.join(folder, "tools/server/tests")
    shutil.copytree(os.path.join(suite, "tools/server/tests"), tests)
    shutil.copytree(os.path.join(suite, "models/templates"), os.path.join(folder, "models/templates"))
    os.mkdir(os.path.join(tests, "tmp"))
    stories = os.path.join(ROOT, "assets/stories260K.gguf")
    infill = os.path.join(folder, "stories260K-infill.gguf")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([gimbal, "convert", stories, infill, "--quiet", *[word for i, key in enumerate(("pre", "suf", "mid"))
                    for word in ("--set", f"tokenizer.ggml.fim_{key}_token_id={259 + i}")]], **quiet)
    subprocess.run([gimbal, "quantize", stories, os.path.join(tests, "tmp/stories15M-q4_0.gguf"), "q4_0", "--quiet"], **quiet)
    return tests, infill


def run(gimbal, tests, infill, arguments):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    report = os.path.join(tests, "report.xml")
    environment = dict(os.environ, GIMBAL=gimbal, PORT=str(port), LLAMA_SERVER_BIN_PATH=os.path.join(HERE, "llama_server"),
                       PEERS_INFILL_MODEL=infill, PYTHONPATH=os.pathsep.join([HERE, tests]))
    words = [sys.executable, "-m", "pytest", "-p", "llama_server_plugin", "unit", "-q", "--timeout", "120", "--junitxml", report,
             "-o", "junit_logging=all"]
    if arguments.k:
        words += ["-k", arguments.k]
    if not arguments.slow:
        words += ["-m", "not slow"]
    with open(os.path.join(tests, "log"), "w") as log:
        subprocess.run(words, cwd=tests, env=environment, stdout=log, stderr=log, check=False)
    if not os.path.exists(report):
        with open(os.path.join(tests, "log")) as log:
            sys.exit("pytest wrote no report:\n" + log.read()[-2000:])
    return XML.parse(report)


def judge(tree, tally):
    for case in tree.iter("testcase"):
        name = f"{case.get('classname').split('.')[-1]}::{case.get('name')}"
        skipped, fault = case.find("skipped"), case.find("failure")
        if fault is None:
            fault = case.find("error")
        if skipped is not None:
            tally.set_aside(name, "not judged", "the suite leaves it out itself: " + re.sub(r"\S+/", "", skipped.get("message") or ""))
        elif fault is None:
            tally.passed(name)
        else:
            said = "".join(out.text or "" for out in case.iter("system-out"))
            why = re.search(r"llama_server: (.*)", said)
            if "return code 77" in said + fault.text:
                tally.set_aside(name, "not judged", "no model: none of its size or kind can be had without a network")
            elif "return code 78" in said + fault.text:
                tally.set_aside(name, "not offered", why[1].strip() if why else "an option")
            else:
                errors = " | ".join(re.findall(r"^E +(.*)", fault.text, re.M)[:4])
                answers = re.findall(r'"message": (".*?"),?\n', said)
                tally.failed(name, errors + "".join(f" | {a}" for a in answers[-2:]) + "".join(f" | {e}" for e in re.findall(r"^error: .*", said, re.M)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gimbal")
    parser.add_argument("suite", nargs="?")
    parser.add_argument("-k", help="only the tests of these words, as of pytest")
    parser.add_argument("--slow", action="store_true", help="also the tests that the suite marks as slow")
    parser.add_argument("-v", action="store_true", help="print every case")
    arguments = parser.parse_args()
    suite = llama_cpp(arguments.suite)
    gimbal, code = os.path.abspath(arguments.gimbal), 0
    for name in ("llama-server", "llama-server-without-lines"):
        with tempfile.TemporaryDirectory() as folder:
            tests, infill = prepare(gimbal, suite, folder)
            if name != "llama-server":
                without_lines(tests)
            tally = Tally(name, arguments.v, "llama-server")
            judge(run(gimbal, tests, infill, arguments), tally)
            code |= tally.end()
    return code


if __name__ == "__main__":
    sys.exit(main())
