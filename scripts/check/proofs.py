#!/usr/bin/env python3
"""Proves the arithmetic of proofs/ with ESBMC, a bounded model checker, and shows that each proof can fail.

Usage: proofs.py [--only WORD] [--no-defects] [--jobs N]

  --only WORD     proofs and defects whose names contain this word
  --no-defects    do not try the defects of proofs/defects.toml
  --jobs N        checkers at a time (default: the number of processors)

A proof is a function of proofs/*.cpp without arguments. ESBMC comes from scripts/setup.sh prove.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROOFS = os.path.join(ROOT, "proofs")
CHECKER = os.path.join(ROOT, "build", "prove-rig", "esbmc")
LIMIT = 600  # seconds of processor time for one run

# Limits that the proofs assume, in sources that the checker cannot read. A changed limit needs a changed proof.
ASSUMED = [
    ("src/ops/op.h", "inline constexpr int kPagePositions = 64;"),
    ("src/ops/op.h", "inline constexpr int kChunk = 256;"),
    ("src/ops/op_def.h", "kCacheTypes = set_of(DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q5_0,"),
    ("src/ops/op_def.h", "DType::Q4_1, DType::Q4_0, DType::IQ4_NL);"),
    ("src/tensor/formats.def", "f32,     .number = Single)"),
    ("src/tensor/formats.def", "f16,     .number = Half)"),
    ("src/tensor/formats.def", "bf16,    .number = Brain)"),
    ("src/tensor/formats.def", "q8_0,    .x = A8_32,  .group = 32,  .bytes = true, .zero"),
    ("src/tensor/formats.def", "q4_0,    .x = A8_32,  .group = 32,  .nibbles = true, .zero = 8, .most = 15, .scales = Halves)"),
    ("src/tensor/formats.def", "q4_1,    .x = A8_32,  .group = 32,  .nibbles = true, .zero = 0, .most = 15, "
                               ".scales = Halves, .minimums = true)"),
    ("src/tensor/formats.def", "q5_0,    .x = A8_32,  .group = 32,  .nibbles = true, .bits = true, .zero"),
    ("src/tensor/formats.def", "iq4_nl,  .x = A8_32,  .group = 32,  .nibbles = true, .levels"),
    ("src/runtime/model_plan.cpp", "constexpr int kMaxContext = 1 << 24;"),
    ("src/runtime/model_plan.cpp", "constexpr int kMaxPages = 1 << 22;"),
    ("src/runtime/model_plan.cpp", "if (o.batch < 1 || o.batch > 65536)"),
    ("src/runtime/model_plan.cpp", "if (o.sequences < 1 || o.sequences > 65536)"),
    ("src/model/config.cpp", "kMaxFileHeadDim = 1 << 16;"),
    ("src/model/hyperparameters.h", "constexpr int kMaxCount = 1 << 24;"),
    ("src/program/program.h", "inline constexpr uint64_t kAlignment = 64;"),
    ("src/files/gguf_parser.cpp", "kMinEntry = 8 + 1 + 4 + 1;"),
    ("src/files/gguf_parser.cpp", "kMinTensor = 8 + 1 + 4 + 8 + 4 + 8;"),
    ("src/files/gguf_parser.cpp", "kMaxDim = std::numeric_limits<int32_t>::max();"),
]


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def all_proofs():
    found = []
    for path in sorted(glob.glob(os.path.join(PROOFS, "*.cpp"))):
        name = os.path.splitext(os.path.basename(path))[0]
        found += [f"{name}:{f}" for f in re.findall(r'^extern "C" void (\w+)\(\)', text_of(path), re.M)]
    return found


def check(proof, before=()):
    """(verdict, seconds, output). `before`: folders of headers that replace those of src/."""
    file, function = proof.split(":")
    command = [CHECKER, os.path.join(PROOFS, file + ".cpp"), "--function", function, "--std", "c++20", "--unwind", "9",
               "--overflow-check", "--unsigned-overflow-check"]
    for folder in [os.path.join(PROOFS, "model"), *before, os.path.join(ROOT, "src")]:
        command += ["-I", folder]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    verdicts = re.findall(r"^VERIFICATION (\w+)$", done.stdout, re.M)
    verdict = verdicts[-1] if verdicts else f"NO VERDICT, status {done.returncode}"
    return verdict, time.monotonic() - began, done.stdout


def check_defect(defect):
    path = os.path.join(ROOT, "src", defect["in"])
    source = text_of(path)
    if source.count(defect["old"]) != 1:
        return f"its text is {source.count(defect['old'])} times in src/{defect['in']}", 0, ""
    with tempfile.TemporaryDirectory() as folder:
        changed = os.path.join(folder, defect["in"])
        os.makedirs(os.path.dirname(changed))
        with open(changed, "w", encoding="utf-8") as file:
            file.write(source.replace(defect["old"], defect["new"]))
        return check(defect["proof"], [folder])


def violated(output):
    found = re.search(r"Violated property:\n.*?\n  (.*?)\n", output)
    return found.group(1) if found else ""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="")
    options.add_argument("--no-defects", action="store_true")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    given = options.parse_args()
    failed = []
    for path, text in ASSUMED:
        if text not in text_of(os.path.join(ROOT, path)):
            failed.append(f"{path} no longer has '{text}', which proofs/ assumes")
    proofs = [p for p in all_proofs() if given.only in p]
    with open(os.path.join(PROOFS, "defects.toml"), "rb") as file:
        defects = tomllib.load(file)["defect"]
    for name in set(all_proofs()) - {d["proof"] for d in defects}:
        failed.append(f"{name} has no defect in proofs/defects.toml that makes it fail")
    defects = [] if given.no_defects else [d for d in defects if given.only in d["name"] or given.only in d["proof"]]
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for proof, (verdict, seconds, output) in zip(proofs, pool.map(check, proofs)):
            print(f"{seconds:6.1f} s  {proof}: {verdict.lower()}", flush=True)
            if verdict != "SUCCESSFUL":
                failed.append(f"{proof}: {verdict}\n" + "\n".join(output.splitlines()[-30:]))
        for defect, (verdict, seconds, output) in zip(defects, pool.map(check_defect, defects)):
            print(f"{seconds:6.1f} s  {defect['name']}: {defect['proof']} {verdict.lower()}: {violated(output)}", flush=True)
            if verdict != "FAILED":
                failed.append(f"the defect {defect['name']} does not make {defect['proof']} fail: {verdict}")
    for problem in failed:
        print("proofs:", problem, file=sys.stderr)
    if failed:
        print(f"proofs: {len(failed)} problems")
    else:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"proofs: {len(proofs)} proved, {len(defects)} defects found, in {time.monotonic() - began:.0f} s, "
              f"{spent.ru_utime + spent.ru_stime:.0f} s of processor")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
