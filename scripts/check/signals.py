#!/usr/bin/env python3
"""Fails where a program or a test signals a number of a process that has not been checked: kill(-1, SIGKILL) ends every process
of the user. src/base/send_signal.h and scripts/send_signal.py check, so they alone may call kill() and its like.

Usage: signals.py             checks src, tests, bench, scripts, fuzz, examples and deploy of this checkout
       signals.py --self-test
Subprocess.send_signal() and .kill() of Python are safe: they hold the number of a child that was started.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from send_signal import send_signal, send_signal_to_group  # noqa: E402

FOLDERS = ["src", "tests", "bench", "scripts", "fuzz", "examples", "deploy"]
CHECKERS = {"src/base/send_signal.h", "scripts/send_signal.py", "scripts/check/signals.py"}
CALLS = {
    (".cpp", ".h", ".mm"): re.compile(r"(?<![\w.>])(?:::)?(?:kill|killpg|tgkill|tkill|sigqueue|pidfd_send_signal)\((?!\))"),
    (".py",): re.compile(r"\bos\.(?:kill|killpg)\("),
    (".sh", ""): re.compile(r"(?:^|[;&|(]|\b(?:then|do|trap))\s*['\"]?(?:kill|pkill|killall)\s"),
}
# A method that is called kill(), its definition and its call with a member; signal 0 only asks.
HARMLESS = re.compile(r"\bkill\(\)|\bkill\((?:[^()]|\(\))*, 0\)")


def findings(root, paths):
    """["FILE:LINE: text"] of calls that nothing has checked."""
    found = []
    for path in paths:
        if path in CHECKERS:
            continue
        call = next((c for endings, c in CALLS.items() if os.path.splitext(path)[1] in endings), None)
        if not call:
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                code = line.split("//")[0] if not path.endswith((".py", ".sh")) else line.split("#")[0]
                if call.search(code) and not HARMLESS.search(code):
                    found.append(f"{path}:{number}: {line.strip()}")
    return found


def self_test():
    bad = {"a.cpp": "  kill(child, SIGKILL), waitpid(child, nullptr, 0);\n  ::kill(-pid_, SIGTERM);\n  killpg(pid, 9);\n", "b.py": "os.kill(pid, signal.SIGKILL)\nos.killpg(pid, 9)\n",
           "c.sh": "#!/bin/sh\nkill $pid\ntrap 'kill $server' EXIT\n"}
    good = {"a.h": "  std::string kill();\n  process.kill();\n  // kill(-1, SIGKILL)\n  send_signal(child, SIGKILL);\n  if (kill(pid, 0) != 0) return true;\n",
            "b.py": "self.process.kill()\nprocess.send_signal(signal.SIGTERM)\nsend_signal(pid, 9)\n", "c.sh": "echo 'kill -9 loses nothing'\n"}
    with tempfile.TemporaryDirectory() as folder:
        for texts in (bad, good):
            for name, text in texts.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            found = findings(folder, texts)
            assert len(found) == (7 if texts is bad else 0), found
    for number in (-1, 0, 1, -17, None, "17"):
        for send in (send_signal, send_signal_to_group):
            try:
                send(number, 0)
            except ValueError:
                continue
            raise AssertionError(f"{send.__name__} accepted {number!r}")
    send_signal(os.getpid(), 0)
    print("check-signals: finds what it should, and the helper refuses what it should")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard", *FOLDERS], stdout=subprocess.PIPE, text=True, check=False)
    paths = [path for path in listed.stdout.split("\0") if path and os.path.isfile(os.path.join(ROOT, path))]
    if listed.returncode or not paths:  # an unpacked archive
        paths = [os.path.relpath(os.path.join(parent, name), ROOT) for folder in FOLDERS for parent, _, names in os.walk(os.path.join(ROOT, folder)) for name in names]
    found = findings(ROOT, paths)
    for line in found:
        print(line)
    if found:
        print(f"check-signals: {len(found)} calls signal a number that nothing has checked: use send_signal() of src/base/send_signal.h or scripts/send_signal.py")
        return 1
    print(f"check-signals: {len(paths)} files signal only checked numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
