#!/usr/bin/env python3
"""The examples of Ollama's docs/api.md, executed: ollama_docs.py GIMBAL [OLLAMA] [-v]

Every `curl` of the document is sent as it stands to a server of models with the names that the examples use: copies of the
built-in model, with the tokens for fill-in-the-middle, and of the encoder of the test data. Status 200, and the answer (the last one of a stream)
has each field that the document's answer has.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from client import Server
from suites import ROOT, Tally, source

TEXT_MODELS = ("llama3.2", "llama3", "mistral", "llava", "codellama:code", "llama3.1", "llama3.1:8b", "llama3:13b")
VECTOR_MODELS = ("all-minilm",)


def examples(path):
    """(title, curl's words, the documented answers as texts), in the order of the document."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for section in re.split(r"\n(?=#{2,4} (?!#))", text):
        title = section.split("\n")[0].strip("# ")
        blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.S)
        for i, (kind, block) in enumerate(blocks):
            if kind == "shell" and block.startswith("curl"):
                answers = []
                for later, answer in blocks[i + 1:]:
                    if later == "shell":
                        break
                    if later.startswith("json"):
                        answers.append(answer)
                yield title, shlex.split(block.replace("\\\n", " ")), answers


def request(words):
    """curl's words as method, path, body."""
    method, path, body = None, None, None
    words = iter(words[1:])
    for word in words:
        if word in ("-X", "-H", "-d", "--data", "-T"):
            value = next(words)
            method = value if word == "-X" else method
            if word in ("-d", "--data", "-T"):
                body = re.sub(r"^ *//.*\n", "", value, flags=re.M).encode()  # one example has comments
        elif word.startswith("http"):
            path = re.sub(r"^https?://[^/]*", "", word)
    return method, path, body


def fields(answer):
    """The names of the outermost fields, also of what is only nearly JSON."""
    try:
        return list(json.loads(answer))
    except ValueError:
        return re.findall(r'^  "(\w+)":', answer, re.M)


def models(gimbal, folder):
    stories = os.path.join(folder, TEXT_MODELS[0] + ".gguf")
    words = [word for i, key in enumerate(("pre", "suf", "mid")) for word in ("--set", f"tokenizer.ggml.fim_{key}_token_id={259 + i}")]
    subprocess.run([gimbal, "convert", os.path.join(ROOT, "assets/stories260K.gguf"), stories, "--quiet", *words], check=True,
                   stdout=subprocess.DEVNULL)
    for name in TEXT_MODELS[1:]:
        shutil.copy(stories, os.path.join(folder, name + ".gguf"))
    for name in VECTOR_MODELS:
        shutil.copy(os.path.join(ROOT, "tests/data/more/embed/bert.gguf"), os.path.join(folder, name + ".gguf"))


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    path = os.path.join(source("ollama", words[1] if len(words) > 1 else None), "docs/api.md")
    tally = Tally("ollama-docs", "-v" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        models(words[0], folder)
        environment = {"GIMBAL_MODELS": folder, "HOME": folder, "XDG_CACHE_HOME": os.path.join(folder, "cache"), "OLLAMA_MODELS": folder + "/none"}
        with Server(words[0], "--all-models", environment=environment) as server:
            for title, curl, answers in examples(path):
                method, where, body = request(curl)
                case = f"{title}: {method or ('POST' if body else 'GET')} {where}"
                status, text = server.ask(where, body, method)
                if status != 200:
                    tally.failed(case, f"status {status} {text[:300]}")
                    continue
                last = text.strip().split("\n")[-1]
                got = fields(last if answers and len(answers) > 1 else text) or fields(last)
                # The last block that is an answer; others show what is written in one.
                documented = next((found for found in map(fields, reversed(answers)) if set(found) & set(got)), fields(answers[-1]) if answers else [])
                missing = [name for name in documented if name not in got]
                if missing:
                    tally.failed(case, f"missing: {', '.join(missing)}")
                else:
                    tally.passed(case)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
