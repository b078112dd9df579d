"""`gimbal crossval` with packaged releases of libllama: each is recognised, computes our reference models as we do, and writes a text by `gimbal run`.

Usage: releases.py PROGRAM FOLDER_OF_PACKAGES   (run.sh installs them)
"""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
# Models that all of these releases know, and those that only later ones do.
ALL = ["stories/stories260K-f32", "stories/stories260K-f16", "stories/stories260K-q8_0", "stories/stories260K-q4_0", "quant/q-q6_k",
       "quant/q-bf16", "arch/llama-gqa", "arch/qwen2", "arch/starcoder2"]
NEWER = {"b3889": [], "b4753": [], "b6673": ["arch/gemma3"], "v0.5.0": ["arch/gemma3", "arch/gpt-oss"]}


def library(folder, release):
    found = sorted(glob.glob(os.path.join(folder, f"libllama-{release}", "bins", "linux-x64", "libllama*.so")))
    found = [path for path in found if "common" not in os.path.basename(path)]
    if not found:
        sys.exit(f"libllama-{release}: the package has no libllama")
    return found[0]


def compare(program, path, model):
    done = subprocess.run([program, "crossval", os.path.join(DATA, model + ".gguf"), "--library", path, "--threads", "1", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=300)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{model}: no JSON (exit code {done.returncode}): {done.stdout.decode()} {done.stderr.decode()}")


def text(program, *arguments):
    done = subprocess.run([program, "run", os.path.join(DATA, ALL[0] + ".gguf"), "-p", "Once upon a time, there was", "--greedy", "-n", "40",
                           "--threads", "1", "--quiet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=300, text=True)
    return done.stdout if done.returncode == 0 else f"{done.stdout}{done.stderr}"


def problem(code, answer, release):
    if code != 0 or answer["verdict"] not in ("same", "within rounding"):
        return f"{answer['verdict']}: {answer['reason']}"
    if answer["library"]["release"] != release:
        return f"taken for {answer['library']['release']}"
    if len(answer["layers"]) != answer["model"]["layers"]:
        return f"{len(answer['layers'])} of {answer['model']['layers']} layers compared: {answer['no_layers']}"
    if not answer["reference_tokens"] or answer["logits"]["share"] is None:
        return f"no reference: {answer['no_reference']}"
    return ""


def main():
    program, folder = sys.argv[1:]
    failures = 0
    ours = text(program)
    for release, more in NEWER.items():
        path = library(folder, release)
        for model in ALL + more:
            code, answer = compare(program, path, model)
            wrong = problem(code, answer, release)
            failures += bool(wrong)
            share = (answer.get("logits") or {}).get("share")
            print(f"{release:7} {model:25} {'FAILED ' + wrong if wrong else f'{share:.2f} of what rounding explains'}", flush=True)
        theirs = text(program, "--library", path)
        failures += theirs != ours
        print(f"{release:7} {'run --library':25} {'the same text' if theirs == ours else f'FAILED {theirs!r}, not {ours!r}'}", flush=True)
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
