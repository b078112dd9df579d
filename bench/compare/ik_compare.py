#!/usr/bin/env python3
"""gimbal beside ik_llama.cpp, which has no package: from a checkout that was built here, both on the same files in alternation.
Prints a table; changes no page.

  ik_compare.py TREE a.gguf b.gguf [-t THREADS] [--rounds N] [-p N] [-n N] [--gimbal PROGRAM]

TREE was made by
  cmake -S TREE -B TREE/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_IQK_FA_ALL_QUANTS=OFF \\
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_CURL=OFF && ninja -C TREE/build llama
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import measure  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


class IkPeer:
    def __init__(self, program, repack):
        self.name, self.program, self.repack = "ik, repacked" if repack else "ik", program, repack

    def round(self, path, threads, prompt, generate):
        measure.same_start(path)
        out, _ = measure.finish([self.program, path, str(threads), str(prompt), str(generate), str(int(self.repack))], measure.environment())
        return json.loads(out)


def driver(tree, folder):
    libraries = [os.path.join(tree, "build", *place) for place in (("src",), ("ggml", "src"))]
    program = os.path.join(folder, "ik_peer")
    subprocess.run(["g++", "-O2", "-std=c++20", f"-I{tree}/include", f"-I{tree}/ggml/include", os.path.join(HERE, "ik_peer.cpp"), "-o", program,
                    *[f"-L{at}" for at in libraries], "-lllama", "-lggml", *[f"-Wl,-rpath,{at}" for at in libraries]], check=True)
    return program


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tree")
    p.add_argument("files", nargs="+")
    p.add_argument("-t", "--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("-p", "--prompt-tokens", type=int, default=512)
    p.add_argument("-n", "--generate-tokens", type=int, default=128)
    p.add_argument("--gimbal", default=os.path.normpath(os.path.join(HERE, "..", "..", "build", "release", "gimbal")))
    wanted = p.parse_args()
    tree = os.path.abspath(wanted.tree)
    commit = subprocess.run(["git", "-C", tree, "rev-parse", "--short", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        program = driver(tree, folder)
        engines = [measure.Gimbal(wanted.gimbal, None), IkPeer(program, False), IkPeer(program, True)]
        print(f"ik_llama.cpp {commit}; {wanted.threads} threads, prompt of {wanted.prompt_tokens}, {wanted.generate_tokens} generated; "
              f"medians of {wanted.rounds} rounds; prompt / generation, tok/s\n")
        names = [e.name for e in engines]
        print(f"| file | {' | '.join(names)} | gimbal to the faster: prompt | generation |\n|---|{'---|' * (len(names) + 2)}", flush=True)
        for path in wanted.files:
            found = {name: [] for name in names}
            measure.alternate(engines, path, wanted.threads, wanted.rounds, wanted.prompt_tokens, wanted.generate_tokens, 1, 1,
                              lambda name, _, numbers, __: found[name].append(numbers))
            middle = {name: [statistics.median(r[what] for r in found[name]) for what in ("prompt", "generation")] for name in names}
            ratio = [middle["gimbal"][i] / max(middle[name][i] for name in names[1:]) for i in (0, 1)]
            print(f"| {os.path.basename(path).removesuffix('.gguf')} | " + " | ".join(f"{a:.0f} / {b:.1f}" for a, b in middle.values())
                  + f" | {ratio[0]:.2f} | {ratio[1]:.2f} |", flush=True)


main()
