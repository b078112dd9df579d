#!/usr/bin/env python3
"""llama.cpp's chat templates beside jinja2: templates.py GIMBAL [LLAMA_CPP] [-v]

Every file of models/templates with synthetic conversations: the same text as jinja2 in the setting of transformers
(tests/template/oracle_test.py), or an error in both. GIMBAL_ORACLE_CONVERSATIONS: how many for each template (20). Needs jinja2.
"""
import glob
import os
import sys

from suites import ROOT, Tally, llama_cpp

sys.path.insert(0, os.path.join(ROOT, "tests/template"))
import oracle_test as oracle  # noqa: E402


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    folder = llama_cpp(*words[1:])
    conversations = list(oracle.conversations(int(os.environ.get("GIMBAL_ORACLE_CONVERSATIONS", "20"))))
    env, tally = oracle.environment(), Tally("chat-templates", "-v" in sys.argv)
    for path in sorted(glob.glob(os.path.join(folder, "models/templates/*.jinja"))):
        with open(path, encoding="utf-8") as file:
            template = file.read()
        work = [(template, variables) for variables in conversations]
        for i, (got, error) in enumerate(oracle.by_gimbal(words[0], work)):
            want, raised = oracle.expected(env, *work[i])
            case = f"{os.path.basename(path)} {i}"
            if got == want:
                tally.passed(case)
            else:
                tally.failed(case, f"jinja2: {(raised or want)[-300:]!r} | gimbal: {(error or got)[-300:]!r}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
