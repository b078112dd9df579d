#!/usr/bin/env python3
"""docs/compatibility.md from the kernels that a program lists: which number format has which kernel on which backend, and what proves it.

Usage: compatibility.py PROGRAM FAKE_DRIVERS WEBGPU_RIG            compares the page with the program's list
       compatibility.py --write PROGRAM FAKE_DRIVERS WEBGPU_RIG    writes it

PROGRAM has all backends. FAKE_DRIVERS stand in for NVIDIA's and AMD's drivers, so that their kernels are listed; WEBGPU_RIG has Dawn.
A Mac lists Metal's kernels, which are those of every other GPU.
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs/compatibility.md")

# The best proof that every kernel of a backend computes the CPU's bits, and the tests or the record that have it.
PROOFS = {
    "cpu": ("hardware", "`kernels_test`, `same_bits_test`; ARM's variants are emulated: `scripts/test-aarch64.sh`"),
    "cuda": ("hardware", "once, by hand: [backends](backends.md); in tests a fake driver and the emulator: `cuda_models_test`"),
    "rocm": ("emulated", "a fake driver and the emulator: `rocm_models_test`; the code objects are built for five GPUs: `rocm_modules_test`"),
    "metal": ("emulated", "a pretended Metal, which runs the kernels' texts as C++: `metal_kernels_test`"),
    "vulkan": ("software device", "lavapipe: `vulkan_kernels_test`; on an H100 58 models had the CPU's bits, and the check of all kernels was not finished"),
    "opencl": ("hardware", "once, by hand: [backends](backends.md); in tests PoCL: `opencl_kernels_test`"),
    "webgpu": ("software device", "Dawn over lavapipe: `webgpu_kernels_test`; on an H100 all kernels were right, but not all had the CPU's bits"),
}
# Kernels that no hardware GPU has run yet, and the best proof of each.
YOUNGER = {("cache_write", f): {"cuda": "emulated", "opencl": "software device"} for f in ("q4_1", "q5_0", "iq4_nl")}
MARKS = {"hardware": "H", "software device": "S", "emulated": "E", "compiled only": "C"}
OPS = ("embed", "mat_mul", "expert_mat_mul")
CACHE_OPS = ("cache_write", "attention")


def backends():
    """name: (display name, tested hardware), in the order of the table."""
    with open(os.path.join(ROOT, "src/device/backends.def"), encoding="utf-8") as file:
        rows = re.findall(r'^GIMBAL_KNOWN_BACKEND\(\w+, *"(\w+)", *"([^"]+)", *"([^"]*)"\)', file.read(), re.M)
    return {name: (shown, hardware) for name, shown, hardware in rows}


def formats():
    """Weight formats, in the order of the tables that define them."""
    with open(os.path.join(ROOT, "src/tensor/formats.def"), encoding="utf-8") as file:
        return re.findall(r"^GIMBAL_FORMAT\(\w+, *(\w+)", file.read(), re.M)


def with_drivers(fakes, rig):
    """The environment in which every backend finds a driver: pretended ones, and software devices. Vulkan's is the one that Dawn needs."""
    return {**os.environ, "LD_LIBRARY_PATH": f"{fakes}/whole:{rig}/dawn", "XDG_RUNTIME_DIR": "/tmp", "VK_DRIVER_FILES": f"{rig}/lavapipe.json"}


def listed(program, fakes, rig):
    done = subprocess.run([program, "kernels", "--json", "--quiet"], env=with_drivers(fakes, rig), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["kernels"]


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)])


def page(kernels):
    known = backends()
    there = {k["device"].split(":")[0] for k in kernels}
    missing = set(known) - there - {"metal"}
    if missing:
        raise SystemExit(f"check-compatibility: the program lists no kernel of {', '.join(sorted(missing))}: are all plugins beside it, and the stand-ins named?")
    for name, (proof, _) in PROOFS.items():
        if proof == "hardware" and not known[name][1]:
            raise SystemExit(f"check-compatibility: src/device/backends.def and PROOFS differ about {name}")
    has = {}  # backend, op, first input: variants
    for k in kernels:
        for taken in k["in0"]:
            has.setdefault((k["device"].split(":")[0], k["op"], taken), set()).add(k["variant"])
        if k["op"] == "cache_write":
            for given in k["out"]:
                has.setdefault((k["device"].split(":")[0], k["op"], given), set()).add(k["variant"])
        if k["op"] == "attention":
            for taken in k["in1"]:
                has.setdefault((k["device"].split(":")[0], k["op"], taken), set()).add(k["variant"])

    def cell(backend, ops, name):
        of = "vulkan" if backend == "metal" else backend
        lacking = [op for op in ops if (of, op, name) not in has]
        if len(lacking) == len(ops):
            return "-"
        proof = next((YOUNGER[op, name][backend] for op in ops if backend in YOUNGER.get((op, name), ())), PROOFS[backend][0])
        return MARKS[proof] + "".join(f", no {op}" for op in lacking)

    names = [name for name in known]
    weights = ["f32", "f16", "bf16", *formats()]
    caches = [f for f in weights if any(("cpu", op, f) in has for op in CACHE_OPS[:1])]
    variants = list(dict.fromkeys(k["variant"] for k in kernels if k["device"].startswith("cpu:")))
    shown = [known[name][0] for name in names]
    out = [
        "# Compatibility",
        "",
        "Which number format has kernels on which backend, and what proves that they compute the CPU's bits. `scripts/check/compatibility.py` writes this page",
        "from what `gimbal kernels --json` lists; the test `check_compatibility` fails when they differ.",
        "",
        "| mark | the best proof |", "|---|---|",
        "| H | ran on hardware |", "| S | ran on a software device alone |", "| E | ran on an emulator or a stand-in alone |", "| C | compiled only |", "",
        table(["backend", "best proof", "where"],
              [[known[n][0], PROOFS[n][0] + (f": {known[n][1]}" if PROOFS[n][0] == "hardware" else ""), PROOFS[n][1]] for n in names]),
        "",
        "## Weights",
        "",
        f"A format has the ops {', '.join(f'`{op}`' for op in OPS)}. Every kernel here gives the same bits as the others of its row.",
        "",
        table(["format", *shown], [[f"`{f}`", *(cell(n, OPS, f) for n in names)] for f in weights]),
        "",
        "## KV caches",
        "",
        table(["format", *shown], [[f"`{f}`", *(cell(n, CACHE_OPS, f) for n in names)] for f in caches]),
        "",
        "## Instruction sets of the CPU",
        "",
        "Where a format has a kernel of its own for products (`mat_mul`). A CPU uses the highest rank that it can run; `baseline` runs on all.",
        "This table is that of x86-64. ARM has `baseline`, `neon`, `neondot` and `i8mm` with the same formats (emulated).",
        "",
        table(["format", *(f"`{v}`" for v in variants)],
              [[f"`{f}`", *("yes" if v in has.get(("cpu", "mat_mul", f), ()) else "" for v in variants)] for f in weights]),
        "",
    ]
    return "\n".join(out)


def main():
    write = sys.argv[1:2] == ["--write"]
    program, fakes, rig = sys.argv[2 if write else 1:]
    if not os.path.isdir(os.path.join(rig, "dawn")):
        print("skipped: Dawn is not there: scripts/setup.sh gpu")
        return 77
    text = page(listed(program, fakes, rig))
    if write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(PAGE, encoding="utf-8") as file:
        if file.read() == text:
            print("check-compatibility: docs/compatibility.md is what the program lists")
            return 0
    print("check-compatibility: docs/compatibility.md is not what the program lists; write it by scripts/check/compatibility.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
