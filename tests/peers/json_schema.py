#!/usr/bin/env python3
"""JSON-Schema-Test-Suite, draft 2020-12, through `gimbal grammar --schema`: json_schema.py GIMBAL [SUITE] [-v]

The grammar of each schema must match no text of a value that the schema forbids, and some text of each value that it allows: keys
in any order (200 orders are tried), whole numbers without a fraction. A schema that is refused by name is "not offered".
`format` is taken at its word, so the suite's file "format", which takes formats for notes, is left out; optional/format is run.
"""
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile

from suites import Tally, source

MOST_SPELLINGS = 200


def spellings(value):
    """The value with its keys in other orders, and with whole numbers that have no fraction."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            for values in itertools.product(*(list(itertools.islice(spellings(value[k]), 8)) for k in keys)):
                yield dict(zip(keys, values))
    elif isinstance(value, list):
        for values in itertools.product(*(list(itertools.islice(spellings(v), 8)) for v in value)):
            yield list(values)
    else:
        yield int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
        if isinstance(value, float):
            yield value


class Grammar:
    def __init__(self, program, schema):
        self.program = program
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(schema, self.file)
        self.file.flush()

    def ask(self, text):
        """The exit code (0 matches, 1 does not, others: refused) and the message."""
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            done = subprocess.run([self.program, "grammar", "--schema", self.file.name, "--input", file.name], capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).strip().split("\n")[0]

    def matches(self, value, every_spelling):
        for one in itertools.islice(spellings(value), MOST_SPELLINGS if every_spelling else 1):
            for separators in ((",", ":"), (", ", ": ")):
                code, said = self.ask(json.dumps(one, ensure_ascii=False, separators=separators))
                if code != 1:
                    return code, said
        return code, said


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    folder = os.path.join(source("json-schema", words[1] if len(words) > 1 else None), "tests/draft2020-12")
    tally = Tally("JSON-Schema-Test-Suite", "-v" in sys.argv)
    for path in sorted(glob.glob(folder + "/**/*.json", recursive=True)):
        name = os.path.relpath(path, folder).removesuffix(".json")
        if name == "format":
            continue
        with open(path, encoding="utf-8") as file:
            groups = json.load(file)
        for group in groups:
            grammar = Grammar(words[0], group["schema"])
            for test in group["tests"]:
                case = f"{name}: {group['description']}: {test['description']}"
                code, said = grammar.matches(test["data"], test["valid"])
                nothing = "no value satisfies it" in said
                found = f"{said} | {'allowed' if test['valid'] else 'forbidden'} {json.dumps(test['data'])[:200]} | {json.dumps(group['schema'])[:300]}"
                if code == 2 and not nothing:
                    tally.failed(case, "REFUSED " + found)
                elif (code == 0) == test["valid"]:
                    tally.passed(case)
                elif test["valid"]:
                    tally.failed(case, "LEFT OUT " + found)
                else:
                    tally.failed(case, "WRITES " + found)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
