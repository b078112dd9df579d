#!/usr/bin/env python3
"""Tests of the APIs with scripted models, once more: their answers must be as published (tests/data/api).

Usage: tests/server/published_answers_test.py [PROGRAM TEST]...   (a program may hold several tests)
Needs python3-jsonschema (`scripts/setup.sh checks`); without it, exit code 77: skipped.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract_client import Answer  # noqa: E402

try:
    from published import Published
except ImportError:
    print("skipped: python3-jsonschema is not installed: scripts/setup.sh checks")
    sys.exit(77)


def answers(program, test, folder):
    file = os.path.join(folder, test)
    words = [program] if os.path.basename(program) == test else [program, "--file=" + test]
    ran = subprocess.run(words, env=dict(os.environ, GIMBAL_ANSWERS=file), capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{test} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    with open(file, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def main():
    published, failed = Published(), 0
    with tempfile.TemporaryDirectory() as folder:
        for program, test in zip(sys.argv[1::2], sys.argv[2::2]):
            lines = answers(program, test, folder)
            before = failed
            for line in lines:
                faults = published.answer(line["method"], line["path"], Answer(line["status"], line["body"].encode(), [("content-type", line["type"])]))
                if faults:
                    failed += 1
                    print(f"FAILED {test}: {line['method']} {line['path']} {line['status']}", *faults[:4], line["body"][:300], sep="\n  ", flush=True)
            print(f"{test}: {len(lines)} answers, {failed - before} with faults")
    print(f"{sum(published.counts.values())} answers and events against {len(published.counts)} schemas")
    return 1 if failed or len(published.counts) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
