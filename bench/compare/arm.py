#!/usr/bin/env python3
"""Instructions that gimbal and llama.cpp execute for a token on 64-bit ARM, counted under QEMU, because no ARM machine is at hand.

  bench/compare/arm.py a.gguf [--variants neondot,i8mm]     after: scripts/setup.sh arm compare; cmake --build build/aarch64 --target gimbal

Both run with one thread. llama.cpp is compiled from the sources of its package for the same instruction set, as its own packages
are: -O3, with its repacked weights. Differences of two runs count a prompt's tokens and a written token alone, without loading.
An instruction is not a cycle: the counts tell how much a CPU has to do, not how fast it is.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import install

ARCHITECTURE = {"neondot": "armv8.2-a+dotprod+fp16", "i8mm": "armv8.2-a+dotprod+fp16+i8mm"}
SHORT, LONG, WRITTEN = 32, 64, 8


def say(text):
    print(f"arm: {text}", file=sys.stderr, flush=True)


def plugin(folder):
    path = os.path.join(folder, "instructions.so")
    source = os.path.join(install.HERE, "instructions.c")
    install.run(["gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", path, source], "compiling QEMU's plugin")
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
    order = ["libllama.a", "libggml.a", "libggml-cpu.a", "libggml-base.a"]
    libraries.sort(key=lambda path: order.index(os.path.basename(path)) if os.path.basename(path) in order else len(order))
    install.run(["aarch64-linux-gnu-g++", "-std=c++17", "-O2", "-o", target, os.path.join(install.HERE, "peer.cpp"),
                 "-I", os.path.join(sources, "include"), "-I", os.path.join(sources, "ggml", "include"),
                 "-Wl,--start-group", *libraries, "-Wl,--end-group", "-pthread", "-ldl"], "linking the peer")
    return target


def counted(counter, program, *words):
    done = subprocess.run(["qemu-aarch64", "-cpu", "max", "-plugin", counter, program, *map(str, words)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"^instructions: (\d+)$", done.stderr, re.M)
    if done.returncode or not found:
        raise install.Problem(f"{program} failed under QEMU:\n{done.stderr[-2000:]}")
    return int(found[1])


def gimbal_counts(counter, program, model, variant):
    def run(tokens, written):
        ids = ",".join(str(300 + i * 7 % 1000) for i in range(tokens))
        return counted(counter, program, "run", model, "--tokens", ids, "-n", written, "--greedy", "--ignore-eos", "--quiet", "-t", 1,
                       "--ctx", 256, "--cpu-variant", variant, "--draft", "off")
    run(SHORT, 1)  # checks the kernels once, and keeps the verdict
    short = run(SHORT, 1)
    return (run(LONG, 1) - short) / (LONG - SHORT), (run(SHORT, 1 + WRITTEN) - short) / WRITTEN


def peer_counts(counter, program, model):
    def run(tokens, written):  # each twice: a warm-up, and one repetition
        return counted(counter, program, os.path.dirname(program), model, 1, tokens, written, 1)
    short = run(SHORT, 0)
    return (run(LONG, 0) - short) / (2 * (LONG - SHORT)), (run(SHORT, 2 * WRITTEN) - run(SHORT, WRITTEN)) / (2 * WRITTEN)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--variants", default="neondot,i8mm")
    parser.add_argument("--gimbal", default="build/aarch64/gimbal")
    parser.add_argument("--work", default="build/compare")
    a = parser.parse_args()
    peer = install.install(a.work, say)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        counter = plugin(folder)
        for variant in a.variants.split(","):
            for model in a.models:
                prompt, written = gimbal_counts(counter, a.gimbal, model, variant)
                its_prompt, its_written = peer_counts(counter, peer_program(peer, variant), model)
                print(json.dumps({"model": os.path.basename(model), "variant": variant,
                                  "millions_of_instructions": {"prompt": round(prompt / 1e6, 2), "prompt_peer": round(its_prompt / 1e6, 2),
                                                               "written": round(written / 1e6, 2), "written_peer": round(its_written / 1e6, 2)},
                                  "prompt_ratio": round(its_prompt / prompt, 2), "written_ratio": round(its_written / written, 2)}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except install.Problem as problem:
        sys.exit(f"arm: {problem}")
