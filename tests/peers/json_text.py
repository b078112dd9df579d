#!/usr/bin/env python3
"""JSONTestSuite by Nicolas Seriot, as bodies of three APIs: json_text.py GIMBAL [JSONTESTSUITE] [-v]

Every file of test_parsing is sent as a body. What must be accepted (y_) may be refused for its content, but not as JSON; what must be
refused (n_) is refused as JSON; the rest (i_) has either answer. No status is 500 or more, and the server lives at the end.
"""
import os
import re
import sys

from client import Server
from suites import Tally, source

PATHS = ("/v1/completions", "/v1/messages", "/api/chat")
NOT_JSON = re.compile("the body (is not valid JSON|is not UTF-8|has a zero byte|has more than 200 levels)")


def files(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            yield name, file.read()


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    cases = files(os.path.join(source("json-text", *words[1:]), "test_parsing"))
    tally = Tally("JSONTestSuite", "-v" in sys.argv)
    with Server(words[0]) as server:
        for name, body in cases:
            for path in PATHS:
                status, text = server.ask(path, body)
                as_json = status == 400 and NOT_JSON.search(text) is not None
                right = {"y": status < 500 and not as_json, "n": as_json, "i": status < 500}[name[0]]
                case = f"{name} {path}"
                if right:
                    tally.passed(case)
                else:
                    tally.failed(case, f"{status} {text}")
        if server.ask("/health/live")[0] != 200:
            tally.failed("the server lives", "it does not answer")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
