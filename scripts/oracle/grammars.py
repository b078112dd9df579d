#!/usr/bin/env python3
"""Which texts a JSON schema admits, in the eyes of xgrammar, llguidance and jsonschema: writes tests/data/grammar/admits.json,
which the test `json_schema_test` compares gimbal with. The schemas and texts are those of grammar_cases.py.

  python3 -m venv DIR && DIR/bin/pip install xgrammar==0.2.8 llguidance==1.9.1 jsonschema==4.26.0    (5 GB, with PyTorch)
  DIR/bin/python scripts/oracle/grammars.py            writes the file
  DIR/bin/python scripts/oracle/grammars.py --check    compares it with what they say today
"""
import datetime
import importlib.metadata
import json
import os
import re
import sys

import jsonschema
import llguidance
import xgrammar
import xgrammar.testing

from grammar_cases import CASES

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FILE = os.path.join(ROOT, "tests", "data", "grammar", "admits.json")
TOKENIZER = llguidance.LLTokenizer("byte")


def by_xgrammar(schema, texts):
    """A list of booleans; None where the schema is refused."""
    try:
        grammar = xgrammar.Grammar.from_json_schema(json.dumps(schema))
    except Exception:
        return None
    return [bool(xgrammar.testing._is_grammar_accept_string(grammar, text)) for text in texts]


def by_llguidance(schema, texts):
    def admits(text):
        matcher = llguidance.LLMatcher(TOKENIZER, grammar)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        tokens = TOKENIZER.tokenize_str(text)
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    try:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        return [admits(text) for text in texts]
    except Exception:
        return None


def by_jsonschema(schema, texts):
    checker = jsonschema.FormatChecker(formats=["date", "uuid", "ipv4"])

    @checker.checks("date-time", ValueError)
    def is_date_time(text):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text):
            return False
        return bool(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")))

    @checker.checks("time", ValueError)
    def is_time(text):
        return is_date_time("2000-01-01T" + text)

    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)

    def no_number(name):  # Python reads NaN and the like
        raise ValueError(name)

    def admits(text):
        try:
            return validator.is_valid(json.loads(text, parse_constant=no_number))
        except ValueError:
            return False

    return [admits(text) for text in texts]


def main(arguments):
    cases = []
    for schema, texts in CASES:
        names = list(texts)
        answers = [by(schema, names) or [None] * len(names) for by in (by_jsonschema, by_xgrammar, by_llguidance)]
        cases.append({"schema": schema, "texts": [dict(zip(("text", "jsonschema", "xgrammar", "llguidance"), row))
                                                  for row in zip(names, *answers)]})
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jsonschema", "xgrammar", "llguidance"))
    out = {"origin": f"scripts/oracle/grammars.py: {versions}; null: refuses the schema", "cases": cases}
    text = json.dumps(out, ensure_ascii=False, indent=0) + "\n"
    if arguments == ["--check"]:
        with open(FILE, encoding="utf-8") as file:
            same = json.load(file)["cases"] == cases
        print("the same" if same else "different")
        return 0 if same else 1
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{len(cases)} schemas, {sum(len(c['texts']) for c in cases)} texts")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
