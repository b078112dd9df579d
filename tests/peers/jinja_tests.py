#!/usr/bin/env python3
"""The templates of jinja2's own tests: jinja_tests.py GIMBAL [JINJA] [-v]

jinja2's tests are run with a plugin that writes down each template that they render from a text, with its variables; the ones
that JSON can say are rendered again by gimbal and by jinja2 in the setting of transformers, which is the judge. JINJA is a
checkout; needs pytest, trio and jinja2.
"""
import json
import os
import subprocess
import sys
import tempfile

from suites import HERE, ROOT, Tally, source

sys.path.insert(0, os.path.join(ROOT, "tests/template"))
import oracle_test as oracle  # noqa: E402


def harvest(folder):
    """Templates with their variables, each once, in the order of the tests."""
    with tempfile.TemporaryDirectory() as place:
        out = os.path.join(place, "rendered.jsonl")
        environment = dict(os.environ, PEERS_RENDERED=out, PYTHONPATH=os.pathsep.join([HERE, os.path.join(folder, "src")]))
        run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "jinja_tests_plugin", "tests"], cwd=folder, env=environment,
                             capture_output=True, text=True)
        if not os.path.exists(out):
            sys.exit("jinja2's tests rendered nothing:\n" + run.stdout[-2000:] + run.stderr[-2000:])
        print(run.stdout.strip().split("\n")[-1])
        with open(out, encoding="utf-8") as file:
            return [json.loads(line) for line in dict.fromkeys(file)]


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    cases = harvest(source("jinja", words[1] if len(words) > 1 else None))
    env, tally = oracle.environment(), Tally("jinja2-tests", "-v" in sys.argv)
    work = [(case["template"], case["variables"]) for case in cases]
    for (template, variables), (got, error) in zip(work, oracle.by_gimbal(words[0], work)):
        want, raised = oracle.expected(env, template, variables)
        if got == want:
            tally.passed(template)
        else:
            tally.failed(template, f"jinja2: {raised or want!r} | gimbal: {error or got!r} | {json.dumps(variables)[:200]}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
