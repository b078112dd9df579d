#!/usr/bin/env python3
"""Runs the commands that README.md (or another page) shows, and compares what they print with what the page says they print.

Usage: readme.py [--already COMMAND]... [--instead COMMAND OTHER]... [--program FILE] [--root SUITE [--own-build]] [--own-network] [README]

  --already COMMAND   has just run here: named, not run again
  --instead COMMAND OTHER   runs OTHER in place of this command of the page, which would cost more or change this system
  --program FILE      what `gimbal` means on the page (default: build/release/gimbal; "installed": what the page installs)
  --root SUITE        in the bare Debian of scripts/rig/bare-root.sh, as root: what the page installs is installed there
  --own-build         with --root: in a build folder of its own
  --own-network       in a network of its own, where every port is free, all commands but those that install something; as root

Every line "$ COMMAND" of a ```console block is run, in order, from the root of the checkout with a home folder of its own.
What stands below it is what it prints, stdout and stderr together: a line "..." stands for any lines, "..." inside a line for any
text. A command with nothing below it must only succeed. The commands of a block below a line "<!-- not run: REASON -->" are only named. What differs from machine to machine (the CPU's name, free memory, times)
is in MACHINE below. A command that ends with "&" runs in the background: it must print the lines below it, and is ended (SIGTERM, exit code 0) behind
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

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

# A reader of this checkout has cloned it and stands in it already. Outside a root of its own, no page changes this system.
NOT_RUN = ("git clone ", "cd gimbal")
CHANGES_THE_SYSTEM = ("sudo ",)
FETCHES = re.compile(r"sudo |make |\S*\bpip install ")  # from the network

# Parts of a line that belong to the machine: the same on the page and in what is printed, when each is replaced by its name.
MACHINE = [(r"cpu:0, [^:]+: ", "cpu:0, NAME: "), (r"[\d.]+ [kMG]?B free", "N free"), (r"free of [\d.]+ [kMG]?B", "free of N"),
           (r"[\d.]+ [kMG]?B would stay free", "N would stay free"), (r"[\d.]+ ms\b", "N ms"), (r"[\d.]+ tokens/s", "N tokens/s")]


def blocks(text):
    """The lines of each ```console block, with the number of its first line, and the reason why it is not run or ""."""
    held, first, why, above = None, 0, "", ""
    for number, line in enumerate(text.split("\n"), 1):
        if held is None and re.fullmatch(r"```console\s*", line):
            held, first = [], number + 1
            marked = re.fullmatch(r"<!-- not run: (.+) -->", above)
            why = marked.group(1) if marked else ""
        elif held is not None and line.startswith("```"):
            yield first, held, why
            held = None
        elif held is not None:
            held.append(line)
        above = line


def commands(text):
    """(line, command, expected lines, why it is not run or "") of everything that the page shows."""
    for first, lines, why in blocks(text):
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
            yield line, command, expected, why


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
    """A background command. It ends with the page, at the latest with this program."""

    def __init__(self, command, words, environment):
        self.command = command
        self.out = tempfile.NamedTemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out, env=environment)

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


class Network:
    """A network of its own that commands can be run in, and others beside it not."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "up\n":
            raise SystemExit("check-readme: no network of its own is to be had (it takes root and iproute2)")
        self.enter = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]

    def end(self):
        self.process.kill()
        self.process.wait()


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--already", action="append", default=[])
    parser.add_argument("--instead", action="append", nargs=2, default=[])
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/gimbal"))
    parser.add_argument("--root", default="")
    parser.add_argument("--own-build", action="store_true")
    parser.add_argument("--own-network", action="store_true")
    parser.add_argument("readme", nargs="?", default=os.path.join(ROOT, "README.md"))
    options = parser.parse_args(arguments)
    inside = os.path.join(ROOT, "build/bare-root", options.root)
    if options.root and not os.path.exists(os.path.join(inside, "etc/debian_version")):
        raise SystemExit(f"check-readme: there is no {options.root} yet: scripts/rig/bare-root.sh new {options.root}")
    with open(options.readme, encoding="utf-8") as file:
        steps = list(commands(file.read()))
    instead = dict(options.instead)
    if unknown := [command for command in [*options.already, *instead] if command not in {step[1] for step in steps}]:
        raise SystemExit(f"check-readme: {options.readme} has no command {unknown[0]!r}")
    compared, ran, wrong, going_on = 0, 0, 0, []
    network = Network() if options.own_network else None
    with tempfile.TemporaryDirectory(dir=os.path.join(inside, "tmp") if options.root else None) as home:
        os.makedirs(os.path.join(home, "bin"))
        if options.program != "installed":
            os.symlink(os.path.abspath(options.program), os.path.join(home, "bin", "gimbal"))
        environment = dict(os.environ, PATH=f"{home}/bin:{os.environ['PATH']}")
        program_environment = dict(environment, HOME=home, XDG_CACHE_HOME="")

        def words(command, shell, of_program, signalled=False):
            """The command that runs these words of a shell, here or in the root, where neither PATH nor HOME of this environment are."""
            enter = network.enter if network and not FETCHES.match(command) else []
            if not options.root:
                return [*enter, "bash", "-c", shell]
            there = os.path.join("/tmp", os.path.basename(home))
            return [*enter, os.path.join(ROOT, "scripts/rig/bare-root.sh"), "run", *["--own-build"] * options.own_build, *["--exec"] * signalled, options.root,
                    "env", *[f"HOME={there}"] * of_program, "bash", "-c", 'PATH="$0/bin:$PATH"; ' + re.sub(r"\bsudo ", "", shell), there]

        try:
            for line, command, expected, why in steps:
                if why:
                    print(f"check-readme: not run, {why}: {command}")
                    continue
                if command in options.already or command.startswith(NOT_RUN if options.root else NOT_RUN + CHANGES_THE_SYSTEM):
                    print(f"check-readme: not run here: {command}")
                    continue
                if command in instead:
                    print(f"check-readme: in place of: {command}")
                    command = instead[command]
                print(f"check-readme: $ {command}", flush=True)
                of_program = command.startswith(("gimbal ", "./build/"))
                mine = None if options.root else program_environment if of_program else environment
                ran += 1
                if command.endswith(" &"):
                    going_on.append(Background(command[:-2], words(command, "exec " + command[:-2], of_program, signalled=True), mine))
                    compared += bool(expected)
                    if expected and not going_on[-1].prints(expected):
                        wrong += 1
                        print(f"check-readme: {options.readme}:{line}: `{command}` does not print what the page says; it prints:\n{going_on[-1].printed()}")
                    continue
                shell = command if "echo $?" in command else f"set -euo pipefail; {command}"
                told = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if expected else {}  # with nothing to compare it is shown
                done = subprocess.run(words(command, shell, of_program), cwd=ROOT, stdin=subprocess.DEVNULL, **told, env=mine, timeout=3000,
                                      text=True, errors="replace", check=False)
                if done.returncode != 0 and "echo $?" not in command:
                    print(done.stdout or "", f"check-readme: {options.readme}:{line}: exit code {done.returncode} from: {command}", sep="\n")
                    wrong += 1
                    break
                if not expected:
                    continue
                compared += 1
                if not matches(expected, done.stdout.rstrip("\n").split("\n")):
                    wrong += 1
                    print(f"check-readme: {options.readme}:{line}: `{command}` does not print what the page says; it prints:\n{done.stdout}")
        finally:
            if network:
                network.end()
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
