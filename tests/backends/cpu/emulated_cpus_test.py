#!/usr/bin/env python3
"""The whole program on older CPUs than this one, which QEMU emulates: the kernels that each of them has, and the bits of this CPU.

Usage: emulated_cpus_test.py GIMBAL DATA   (the program; tests/data)
"""
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

QEMU = "qemu-x86_64"
# QEMU's name of a CPU, its level above SSE2, and the variants that compute there. No variant is for SSE4.2: the instruction that products of
# integers gain most from (VPMADDUBSW on 256 bits, with FMA and F16C beside it) came with AVX2 in 2013.
CPUS = {
    "core2duo": ("SSSE3", {"baseline"}),
    "Nehalem": ("SSE4.2", {"baseline"}),
    "SandyBridge": ("AVX", {"baseline"}),
    "Haswell": ("AVX2", {"avx2"}),
    "EPYC": ("AVX2", {"avx2"}),
}
TOKENS = "1,403,407,261,378,31"


def main():
    gimbal, data = sys.argv[1], sys.argv[2]
    if platform.machine() != "x86_64":
        print(f"skipped: this CPU is no x86-64, but {platform.machine()}")
        return 77
    if not shutil.which(QEMU):
        print(f"skipped: {QEMU} is absent: apt-get install qemu-user")
        return 77
    faults, models = [], ["default", *(os.path.join(data, "quant", f"q-{f}.gguf") for f in ("f16", "q4_0", "mix-q4km", "iq2_s"))]
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "XDG_CACHE_HOME": home, "HOME": home}

        def program(before, *arguments):
            command = [*before, gimbal, *arguments, "--threads", "1", "--verify", "never"]
            done = subprocess.run(command, capture_output=True, env=environment, check=False)
            if done.returncode:
                faults.append(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.decode()[-500:]}")
            return done.stdout

        def logits(before):
            return {m: program(before, "logits", m, "--tokens", TOKENS, "--positions", "all") for m in models}

        here = logits([])
        for model, bits in here.items():
            if len(bits) < 6 * 512 * 4:
                faults.append(f"{model}: {len(bits)} bytes of logits on this CPU")
        for cpu, (level, expected) in CPUS.items():
            emulated = [QEMU, "-cpu", cpu]
            for model, bits in logits(emulated).items():
                if bits != here[model]:
                    faults.append(f"{cpu} ({level}), {model}: other bits than on this CPU")
            ran = program(emulated, "run", "-p", "Once upon a time", "-n", "4", "--greedy", "--json")
            used = {k["kernel"].split(".")[1] for k in json.loads(ran or '{"kernels": []}')["kernels"] if k["runs"]}
            if used != expected:
                faults.append(f"{cpu} ({level}): kernels of {sorted(used)}; expected {sorted(expected)}")
            # A prompt of several pages: their checksums use instructions of the processor, too.
            program(emulated, "run", "-p", "Once upon a time " * 20, "-n", "1", "--greedy", "--prefix-store", os.path.join(home, cpu))
            print(f"{cpu} ({level}): {', '.join(sorted(used))}; {len(models)} models")
    for f in faults:
        print(f"FAILED: {f}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
