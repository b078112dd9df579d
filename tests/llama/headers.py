#!/usr/bin/env python3
"""Prints the rows of kHeaders in llama_generations_test.cpp from llama.cpp's own headers: sizes and places of fields as g++ lays them out.

Usage: headers.py RELEASE=FOLDER...   FOLDER has include/llama.h and ggml/include/ of that release
The npm package node-llama-cpp carries them: `npm pack node-llama-cpp@VERSION`, then clone its llama/gitRelease.bundle with git.
"""
import subprocess
import sys
import tempfile

FIELDS = [("llama_model_params", "n_gpu_layers"), ("llama_model_params", "vocab_only"), ("llama_context_params", "n_threads"),
          ("llama_context_params", "cb_eval"), ("llama_context_params", "type_k"), ("llama_context_params", "embeddings")]


def row(release, folder):
    numbers = ["sizeof(llama_model_params)", "sizeof(llama_context_params)"] + [f"offsetof({s}, {f})" for s, f in FIELDS]
    prints = "".join(f'std::printf(", %zu", {n});' for n in numbers)
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["g++", "-w", "-x", "c++", "-I", f"{folder}/include", "-I", f"{folder}/ggml/include", "-o", f"{work}/print", "-"],
                       input=f"#include <cstddef>\n#include <cstdio>\n#include <llama.h>\nint main() {{ {prints} }}\n".encode(), check=True)
        return f'{{"{release}"{subprocess.run([f"{work}/print"], stdout=subprocess.PIPE, check=True).stdout.decode()}}},'


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(row(*argument.split("=", 1)))
