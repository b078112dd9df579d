#!/usr/bin/env python3
"""Runs the commands that README.md (or another page) shows, and compares what they print with what the page says they print.

Usage: check-readme.py [--already COMMAND]... [--program FILE] [--path FOLDER] [--own-network] [README]

  --already COMMAND   has just run here: named, not run again
  --program FILE      what `gimbal` means on the page (default: build/release/gimbal)
  --path FOLDER       where the page's other programs are looked for first
  --own-network       in a network of its own, where every port is free (where the system allows it)

Every line "$ COMMAND" of a ```console block is run, in order, from the root of the checkout with a home folder of its own.
What stands below it is what it prints, stdout and stderr together: a line "..." stands for any lines, "..." inside a line for any
text. A command with nothing below it must only succeed. What differs from machine to machine (the CPU's name, free memory, times)
is in MACHINE below. A command that ends with "&" goes on: it must print what stands below it, and is ended (SIGTERM, exit code 0) behind
the last command. "; echo $?" shows an exit code; any other failure is an error.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# A reader of this checkout has cloned it and stands in it already.
NOT_HERE = ("git clone ", "cd gimbal", "sudo apt-get install ", "pip install ")

# Parts of a line that belong to the machine: the same on the page and in what is printed, when each is replaced by its name.
MACHINE = [(r"cpu:0, [^:]+: ", "cpu:0, NAME: "), (r"[\d.]+ [kMG]?B free", "N free"), (r"free of [\d.]+ [kMG]?B", "free of N"),
           (r"[\d.]+ [kMG]?B would stay free", "N would stay free"), (r"[\d.]+ ms\b", "N ms"), (r"[\d.]+ tokens/s", "N tokens/s")]


def blocks(text):
    """The lines of each ```console block, with the number of its first line."""
    held, first = None, 0
    for number, line in enumerate(text.split("\n"), 1):
        if held is None and re.fullmatch(r"```console\s*", line):
            held, first = [], number + 1
        elif held is not None and line.startswith("```"):
            yield first, held
            held = None
        elif held is not None:
            held.append(line)


def commands(text):
    """(line, command, expected lines) of everything that the page runs."""
    for first, lines in blocks(text):
        at = 0
        while at < len(lines):
            line = first + at
            if not lines[at].startswith("$ "):
                raise SystemExit(f"check-readme: line {line}: a block must begin with a command, found {lines[at]!r}")
            command = lines[at][2:]
            at += 1
            while command.endswith("\\"):
                command, at = command[:-1] + lines[at].lstrip("> "), at + 1
            expected = []
            while at < len(lines) and not lines[at].startswith("$ "):
                expected.append(lines[at])
                at += 1
            yield line, command, expected


def neutral(line):
    for pattern, name in MACHINE:
        line = re.sub(pattern, name, line)
    return line.rstrip()


def matches(expected, found):
    """Whether the lines found are those expected; "..." alone stands for any lines, inside a line for any text."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in neutral(line).split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(neutral(line) + "\n" for line in found)) is not None


class Background:
    """A command that goes on. Ends with the page, at the latest with this program."""

    def __init__(self, command, environment):
        self.command = command
        self.out = tempfile.NamedTemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out, env=environment)

    def printed(self):
        with open(self.out.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def prints(self, expected, seconds=120):
        """Whether it prints these lines while it runs."""
        for _ in range(seconds * 20):
            if matches(expected, self.printed().rstrip("\n").split("\n")):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.05)
        return False

    def end(self):
        """Its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def in_own_network():
    """Starts this program again where every port is free; goes on here where that is refused."""
    if os.environ.get("CHECK_README_NETWORK"):
        return
    for way in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run(way + ["ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0:
            os.environ["CHECK_README_NETWORK"] = "own"
            os.execvp(way[0], way + ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable] + sys.argv)
    print("check-readme: no network of its own is to be had: the page's ports must be free here")


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--already", action="append", default=[])
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/gimbal"))
    parser.add_argument("--path", default="")
    parser.add_argument("--own-network", action="store_true")
    parser.add_argument("readme", nargs="?", default=os.path.join(ROOT, "README.md"))
    options = parser.parse_args(arguments)
    if options.own_network:
        in_own_network()
    with open(options.readme, encoding="utf-8") as file:
        steps = list(commands(file.read()))
    compared, ran, wrong, going_on = 0, 0, 0, []
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(os.path.join(home, "bin"))
        os.symlink(os.path.abspath(options.program), os.path.join(home, "bin", "gimbal"))
        environment = dict(os.environ, PATH=":".join(filter(None, (os.path.join(home, "bin"), options.path and os.path.abspath(options.path), os.environ["PATH"]))))
        program_environment = dict(environment, HOME=home, XDG_CACHE_HOME="")
        try:
            for line, command, expected in steps:
                if command in options.already or command.startswith(NOT_HERE):
                    print(f"check-readme: not run again: {command}")
                    continue
                print(f"check-readme: $ {command}", flush=True)
                mine = program_environment if command.startswith(("gimbal ", "./build/")) else environment
                ran += 1
                if command.endswith(" &"):
                    going_on.append(Background(command[:-2], mine))
                    compared += bool(expected)
                    if expected and not going_on[-1].prints(expected):
                        wrong += 1
                        print(f"check-readme: {options.readme}:{line}: `{command}` does not print what the page says; it prints:\n{going_on[-1].printed()}")
                    continue
                shell = command if "echo $?" in command else f"set -euo pipefail; {command}"
                done = subprocess.run(["bash", "-c", shell], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=mine, timeout=3000, text=True, errors="replace", check=False)
                if done.returncode != 0 and "echo $?" not in command:
                    print(done.stdout)
                    print(f"check-readme: {options.readme}:{line}: exit code {done.returncode} from: {command}")
                    wrong += 1
                    break
                if not expected:
                    continue
                compared += 1
                if not matches(expected, done.stdout.rstrip("\n").split("\n")):
                    wrong += 1
                    print(f"check-readme: {options.readme}:{line}: `{command}` does not print what the page says; it prints:\n{done.stdout}")
        finally:
            for background in reversed(going_on):
                if code := background.end():
                    wrong += 1
                    print(f"check-readme: {options.readme}: `{background.command}` ended with {code}, having printed:\n{background.printed()}")
    if not compared:
        print("check-readme: the page shows no output")
        return 1
    print(f"check-readme: {ran} commands ran, {compared} outputs compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
