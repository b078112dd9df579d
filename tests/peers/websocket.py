#!/usr/bin/env python3
"""The Autobahn test suite on GET /ws/generate: websocket.py GIMBAL [AUTOBAHN] [-v]

Sections 1 to 7 and 10: framing, pings, reserved bits, opcodes, fragments, UTF-8, closing. The suite talks to servers that
echo; gimbal answers each text with one error, as it is no request in JSON, and that answer counts as the echo. Not run: the
limits of section 9, whose messages have up to 16 MB, and compression (12, 13), which gimbal does not offer.
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from client import Server
from suites import Tally, source
from websocket_cases import Protocol, classes

RIGHT = ("OK", "NON-STRICT", "INFORMATIONAL")


def run(port, kind):
    protocol = Protocol(port, "/ws/generate")
    case = kind(protocol)
    protocol.run(case)
    return case, protocol


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    folder = os.path.join(source("autobahn", words[1] if len(words) > 1 else None), "autobahntestsuite/autobahntestsuite/case")
    tally = Tally("autobahn", "-v" in sys.argv)
    with Server(words[0]) as server, ThreadPoolExecutor(16) as pool:
        all_cases = classes(folder)
        for number, (case, protocol) in zip(all_cases, pool.map(lambda kind: run(server.port, kind), all_cases.values())):
            if case.behavior in RIGHT and case.behaviorClose in RIGHT:
                tally.passed(number)
            else:
                tally.failed(number, f"{case.behavior}: {case.result} {case.behaviorClose}: {case.resultClose}; close code {protocol.remoteCloseCode} "
                             f"{protocol.remoteCloseReason!r}; received {str(case.received)[:200]}, expected {str(case.expected)[:200]}")
        if server.ask("/health/live")[0] != 200:
            tally.failed("the server lives", "it does not answer")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
