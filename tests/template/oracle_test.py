#!/usr/bin/env python3
"""Compares gimbal's templates with Python's jinja2, set up as transformers does: the same text, or an error in both.

Usage: oracle_test.py GIMBAL [FOLDER]     FOLDER: chat goldens, or *.jinja; these run over synthetic conversations
       oracle_test.py --lines PROGRAM     over a program that answers JSON lines (for work on the interpreter)
       oracle_test.py --record FILE       writes what jinja2 renders of the snippets, for template_test.cpp
Needs jinja2 (Debian: python3-jinja2, in `scripts/setup.sh checks`); without it, exit code 77: skipped.
"""
import datetime
import glob
import itertools
import json
import os
import random
import subprocess
import sys

from oracle_snippets import LAYOUTS, SNIPPETS

try:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("skipped: python3-jinja2 is not installed: scripts/setup.sh checks")
    sys.exit(77)

NOW = datetime.datetime(2024, 7, 26, 12, 0, 0)

# Addresses of objects, chance, and what versions of jinja2 disagree in (l.pop() is refused from 3.1.3 on).
NOT_COMPARED = ("random", "l.pop()", "{{ s.__class__ }}", "{{ loop }}", "self is defined", "previtem }}/{{ loop.nextitem }}", "range is callable")


class Generation(Extension):
    """{% generation %}: which text an assistant wrote; the text is the same."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("same"), [], [], body).set_lineno(line)

    def same(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def expected(env, template, variables):
    """(text, None) or (None, error)"""
    try:
        return env.from_string(template).render(**variables), None
    except Exception as e:  # whatever Python's types raise is an error of the template
        return None, f"{type(e).__name__}: {e}"


def variables():
    return {
        "s": "Hello wOrld, lolo!", "u": "Grüße 你好 😀 ÀÉß ñandú Жук", "l": ["a", "b", "c"],
        "d": {"a": 1, "b": [1, 2.5, True, None], "c": {"x": "é<&>\"'"}}, "x": 1,
        "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4}]}]}, {"v": 5}],
        "m": conversation(random.Random(3), 6),
    }


WORDS = ["Hello", "what is 2+2?", "  padded ", "Grüße", "你好", "<think>\nso\n</think>\n\nyes", "a\nb", "{{x}}", "\"q\"", "it's", "<|im_end|>", "",
         "1", "😀", "\ttab", "<b>&amp;</b>", "end\n\n", "[INST]", "日本語のテキスト"]


def text(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4)))


def tool(rng):
    kinds = ["string", "number", "integer", "boolean", "array", "object"]
    properties = {}
    for i in range(rng.randint(0, 3)):
        p = {"type": rng.choice(kinds), "description": text(rng)}
        if rng.random() < 0.3:
            p["enum"] = ["a", "b"]
        if p["type"] == "array":
            p["items"] = {"type": rng.choice(kinds[:4])}
        if p["type"] == "object":
            p["additionalProperties"] = {"type": "string"}
        properties[f"p{i}"] = p
    return {"type": "function", "function": {"name": f"f{rng.randint(0, 9)}", "description": text(rng) or "d",
                                             "parameters": {"type": "object", "properties": properties,
                                                            "required": [k for k in properties if rng.random() < 0.5]}}}


def conversation(rng, turns):
    out = [{"role": "system", "content": text(rng)}] if rng.random() < 0.5 else []
    for i in range(turns):
        role = "assistant" if i % 2 else "user"
        if rng.random() < 0.05:
            role = rng.choice(["user", "assistant", "system", "tool"])
        message = {"role": role, "content": text(rng)}
        if role == "assistant" and rng.random() < 0.3:
            message["tool_calls"] = [{"id": "abcdef12" + str(j), "type": "function",
                                      "function": {"name": "f1", "arguments": {"p": rng.choice([1, 2.5, "é", None, [1], {"k": True}])}}}
                                     for j in range(rng.randint(1, 2))]
            out.append(message)
            message = {"role": "tool", "name": "f1", "tool_call_id": "abcdef120", "content": text(rng)}
        if role == "assistant" and rng.random() < 0.2:
            message["reasoning_content"] = text(rng)
        out.append(message)
    return out


def conversations(count):
    for seed in range(count):
        rng = random.Random(seed)
        v = {"messages": conversation(rng, rng.randint(1, 7)), "add_generation_prompt": rng.random() < 0.7,
             "bos_token": "<s>", "eos_token": "</s>"}
        if rng.random() < 0.4:
            v["tools"] = [tool(rng) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.2:
            v["enable_thinking"] = rng.random() < 0.5
        yield v


def cases(folder):
    for snippet in itertools.chain(SNIPPETS, LAYOUTS):
        if not any(part in snippet for part in NOT_COMPARED):
            yield snippet, variables()
    for path in sorted(glob.glob(os.path.join(folder, "*.j*"))) if folder else []:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        template = json.loads(text).get("template") if path.endswith(".json") else text
        if template:
            for v in conversations(int(os.environ.get("GIMBAL_ORACLE_CONVERSATIONS", "20"))):
                yield template, v


def by_lines(program, work):
    lines = "".join(json.dumps({"template": t, "variables": v}) + "\n" for t, v in work)
    out = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout
    for answer in map(json.loads, out.split("\n")[:-1]):
        yield answer.get("text"), answer.get("error") or answer.get("syntax")


def by_gimbal(program, work):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        template, given = os.path.join(folder, "t.jinja"), os.path.join(folder, "v.json")
        for t, v in work:
            with open(template, "w", encoding="utf-8", newline="") as file:
                file.write(t)
            with open(given, "w", encoding="utf-8") as file:
                json.dump(v, file)
            ran = subprocess.run([program, "render-template", "--template", template, "--input", given, "--now", NOW.isoformat()],
                                 capture_output=True)
            if ran.returncode not in (0, 1, 3):
                sys.exit(f"exit code {ran.returncode} for {t!r}: {ran.stderr.decode()}")
            ok = ran.returncode == 0
            yield (ran.stdout.decode() if ok else None), (None if ok else ran.stderr.decode())


def record(path):
    env, given = environment(), variables()
    renderings = [{"source": s, "text": expected(env, s, given)[0]} for s, _ in cases(None)]  # null: an error
    with open(path, "w", encoding="utf-8") as file:
        rows = ",\n".join(json.dumps(r) for r in renderings)
        file.write(f'{{"jinja2": "{jinja2.__version__}", "now": "{NOW.isoformat()}", "variables": {json.dumps(given)},\n"renderings": [\n{rows}\n]}}\n')
    return 0


def main(arguments):
    if arguments[0] == "--record":
        return record(arguments[1])
    lines = arguments[0] == "--lines"
    program, folder = arguments[1 if lines else 0], arguments[-1]
    work = list(cases(folder if os.path.isdir(folder) else None))
    env, wrong, errors = environment(), 0, 0
    for (template, given), (got, error) in zip(work, (by_lines if lines else by_gimbal)(program, work)):
        want, raised = expected(env, template, given)
        errors += want is None
        if got == want:
            continue
        wrong += 1
        if wrong <= 20:
            print(f"--- {template[:300]!r}\n  jinja2: {want if raised is None else raised!r}\n  gimbal: {got if error is None else error!r}")
    print(f"{len(work)} renderings, {errors} of them errors in both; {wrong} differ from jinja2 {jinja2.__version__}")
    return 1 if wrong or not work else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
