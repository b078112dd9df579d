#!/usr/bin/env python3
"""Two suites of HTTP/1.1, both named h1spec: http_text.py GIMBAL [UNETWORKING DROPSEED] [-v]

uNetworking/h1spec: its list of requests. Its servers answer every path with what they get; where it wants 2xx, any status counts
here but 400, 501 and 505, because the requests name paths and methods that gimbal does not have. dropseed/h1spec: as it is, --strict.
"""
import os
import re
import socket
import sys

from client import Server
from suites import Tally, source

BROKEN = (0, 400, 501, 505)


def cases(path):
    """(description, request, [ranges of statuses], whether the server waits)."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("const testCases"):text.index("\n];")]
    for block in re.findall(r"\{\s*request:.*?\n    \}", text, re.S):
        request, description = (re.search(key + r': "((?:[^"\\]|\\.)*)"', block)[1] for key in ("request", "description"))
        ranges = [tuple(map(int, pair)) for pair in re.findall(r"\[(-?\d+), (-?\d+)\]", block)]
        yield description, request.encode().decode("unicode_escape").encode("latin-1"), ranges, "expectedTimeout: true" in block


def status_of(port, request, seconds):
    """The status of the answer; -1: none within this time; 0: the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", port), seconds) as s:
        s.sendall(request)
        try:
            found = re.match(rb"HTTP/1\.\d (\d{3})", s.recv(1024))
            return int(found[1]) if found else 0
        except TimeoutError:
            return -1


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if len(words) not in (1, 3):
        sys.exit(__doc__)
    verbose = "-v" in sys.argv
    first, second = (source(name, words[i + 1] if len(words) == 3 else None) for i, name in enumerate(("h1spec", "h1spec-strict")))
    code = 0
    with Server(words[0], "--allow-host", "*", "--header-timeout", "4", "--body-timeout", "4") as server:
        tally = Tally("h1spec", verbose)
        for description, request, ranges, waits in cases(os.path.join(first, "http_test.ts")):
            status = status_of(server.port, request, 0.5 if waits else 10)
            if any(low <= status <= high or (low == 200 and status > 0 and status not in BROKEN) for low, high in ranges):
                tally.passed(description)
            else:
                tally.failed(description, f"status {status}, expected {ranges}")
        code |= tally.end()
        sys.path.insert(0, second)
        from h1spec.runner import run_test
        from h1spec.tests import SECTIONS
        tally = Tally("h1spec-strict", verbose)
        for section in SECTIONS:
            for case in section.tests:
                result = run_test(case.name, case.fn, ("127.0.0.1", server.port))
                if result.passed:
                    tally.passed(case.name)
                else:
                    tally.failed(case.name, result.detail)
        code |= tally.end()
    return code


if __name__ == "__main__":
    sys.exit(main())
