#!/usr/bin/env python3
"""array-api-tests, the array API standard's own suite, over gimbal.array_api: array_api.py FOLDER [SUITE [STANDARD]] [-v]

FOLDER has the Python package, as build/release/python; SUITE and STANDARD are checkouts of array-api-tests and of array-api, whose stubs
it reads. Needs pytest, pytest-json-report, hypothesis, ndindex and NumPy. ARRAY_API_EXAMPLES examples are drawn for each test (100).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from suites import Tally, source

# Lines of the suite that assume a complex dtype: (file, line, its replacement).
LINES = (("array_api_tests/dtype_helpers.py", "for dt in complex_dtypes], key=lambda x: x[1]\n", "for dt in complex_dtypes], key=lambda x: x[1], default=(None,)\n"),
         ("array_api_tests/test_signatures.py", "cmplx_name = dh.dtype_to_name[dh.widest_complex_dtype]\n", 'cmplx_name = "complex128"\n'))
# Tensors have no complex dtypes. They store and convert the three integer dtypes, but do not compute with them.
NO_ARITHMETIC = "complex64,complex128,int8,uint16,uint64"


def results(package, suite, standard):
    """(id, outcome, message) of every test."""
    with tempfile.TemporaryDirectory() as place:
        work = os.path.join(place, "suite")
        shutil.copytree(suite, work)
        shutil.copytree(standard, os.path.join(work, "array-api"), dirs_exist_ok=True)
        for name, line, instead in LINES:
            path = os.path.join(work, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if line not in text:
                sys.exit(f"{name} of another version of the suite: it has no '{line.strip()}'")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(line, instead))
        environment = dict(os.environ, PYTHONPATH=os.path.abspath(package), ARRAY_API_TESTS_MODULE="gimbal.array_api", ARRAY_API_TESTS_SKIP_DTYPES=NO_ARITHMETIC)
        report = os.path.join(place, "report.json")
        run = subprocess.run([sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--disable-deadline",
                              "--max-examples", os.environ.get("ARRAY_API_EXAMPLES", "100"), "--tb=short", "--json-report",
                              "--json-report-file", report], cwd=work, env=environment, capture_output=True, text=True)
        if not os.path.exists(report):
            sys.exit("the suite did not run:\n" + run.stdout[-2000:] + run.stderr[-2000:])
        with open(report, encoding="utf-8") as file:
            for test in json.load(file)["tests"]:
                parts = [test[part] for part in ("setup", "call", "teardown") if part in test]
                yield test["nodeid"], test["outcome"], "\n".join(str(part.get("longrepr", "")) for part in parts)


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 3:
        sys.exit(__doc__)
    suite, standard = (source(name, words[i] if len(words) > i else None) for i, name in ((1, "array-api-tests"), (2, "array-api")))
    tally = Tally("array-api-tests", "-v" in sys.argv)
    for case, outcome, message in results(words[0], suite, standard):
        if outcome in ("passed", "xpassed"):
            tally.passed(case)
        else:
            tally.failed(case, f"{outcome}: {message}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
