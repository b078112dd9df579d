#!/usr/bin/env python3
"""Logits of llama.cpp for tests/data/peer/logits.json, which peer_logits_test computes again: for an architecture a model of a few
kilobytes, described by its keys and by the shapes of its tensors. Their numbers follow from a counter, so the file holds none of them.

  scripts/oracle/recorded_logits.py phi2 olmo     records these (scripts/oracle/architectures.py describes them) beside what is there
"""
import argparse
import base64
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import architectures
import logits

sys.path[:0] = [os.path.join(logits.ROOT, "scripts"), os.path.join(logits.ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import install  # noqa: E402

FILE = os.path.join(logits.ROOT, "tests", "data", "peer", "logits.json")
SIZES = dict(d=16, l=3, h=2, kv=1, f=24, v=40, e=4, eu=2, fe=8, fs=12)
CONTEXT, TOKENS, POSITIONS = 256, 20, (0, 4, 11, 19)
VOCABULARY = ["<unk>", "<s>", "</s>"] + [chr(ord("A") + i) for i in range(37)]


def mixed(n):
    """The finalizer of SplitMix64."""
    n = (n + 0x9e3779b97f4a7c15) % 2**64
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    n = (n ^ n >> 27) * 0x94d049bb133111eb % 2**64
    return n ^ n >> 31


def numbers(tensor, index):
    """Of the index-th tensor: centre + u * 2^exponent, u in [-1, 1) with 23 bits; all exact in f64, then rounded to f32."""
    count, scale = math.prod(tensor["dims"]), 2.0**tensor["exponent"]
    return struct.pack(f"<{count}f", *(tensor["centre"] + ((mixed(index << 32 | i) >> 40) / 2**23 - 1) * scale for i in range(count)))


def tensor_of(name, dims):
    """With numbers of a size that keeps every layer's output alive."""
    if name.startswith(("rope_freqs", "rope_factors")):
        return {"name": name, "dims": dims, "centre": 2.5, "exponent": 0}
    if name.endswith("bias"):
        return {"name": name, "dims": dims, "centre": 0, "exponent": -2}
    if "norm" in name:
        return {"name": name, "dims": dims, "centre": 1, "exponent": -2}
    inputs = 1 if name.startswith(("token_embd", "position_embd")) else dims[0]
    return {"name": name, "dims": dims, "centre": 0, "exponent": round(math.log2(2.6 / math.sqrt(inputs)))}


def described(name):
    """[metadata as (key, value)], [tensors]: of the small model."""
    description, arch = architectures.ARCHS[name], name.split(":")[0]
    architectures.SIZES.append(SIZES)
    sizes = logits.sizes_of(description, len(architectures.SIZES) - 1)
    architectures.SIZES.pop()
    return {"general.architecture": arch, **logits.keys_of(arch, description, sizes)}, [tensor_of(n, d) for n, d in logits.tensors_of_model(description, sizes)]


def recorded(peer, name):
    keys, tensors = described(name)
    metadata = {key: logits.entry_of(value) for key, value in keys.items()}
    metadata["tokenizer.ggml.model"] = gguf_file.entry(gguf_file.STRING, "llama")
    metadata["tokenizer.ggml.tokens"] = gguf_file.entry(gguf_file.ARRAY, (gguf_file.STRING, VOCABULARY))
    metadata["tokenizer.ggml.scores"] = gguf_file.entry(gguf_file.ARRAY, (gguf_file.F32, [0.0] * len(VOCABULARY)))
    metadata["tokenizer.ggml.token_type"] = gguf_file.entry(gguf_file.ARRAY, (gguf_file.I32, [2, 3, 3] + [1] * (len(VOCABULARY) - 3)))
    rng = random.Random(name)
    tokens = [1] + [rng.randrange(3, len(VOCABULARY)) for _ in range(TOKENS - 1)]
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        gguf_file.write(file.name, metadata, [(t["name"], t["dims"], 0, numbers(t, i)) for i, t in enumerate(tensors)])
        done = subprocess.run(
            [install.program(peer, os.path.join(logits.HERE, "peer.cpp")), peer.all_libraries, "logits", file.name, str(CONTEXT), "0"],
            input=struct.pack(f"<{TOKENS + 1}i", TOKENS, *tokens), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries})
    if done.returncode != 0:
        raise install.Problem(f"{name}: {done.stderr.decode(errors='replace').strip()}")
    row = 4 * len(VOCABULARY)
    if len(done.stdout) != 4 + TOKENS * row:
        raise install.Problem(f"{name}: {len(done.stdout)} bytes of logits")
    wanted = b"".join(done.stdout[4 + p * row:4 + (p + 1) * row] for p in POSITIONS)
    return {"name": name, "gelu_by_table": bool(architectures.ARCHS[name].get("gelu")), "metadata": keys, "tensors": tensors, "tokens": tokens,
            "positions": POSITIONS, "logits_llamacpp": base64.b64encode(wanted).decode()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archs", nargs="+")
    parser.add_argument("--work", default=os.path.join(logits.ROOT, "build", "compare"), help="where the peer is installed")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.archs if name not in architectures.ARCHS]
    if unknown:
        raise install.Problem(f"{unknown[0]} is not described; there are {', '.join(architectures.ARCHS)}")
    peer = install.install(arguments.work, print)
    cases = {}
    if os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            cases = {case["name"]: case for case in json.load(file)["cases"]}
    cases.update((name, recorded(peer, name)) for name in arguments.archs)
    lines = ",\n".join(json.dumps(cases[name], separators=(",", ":")) for name in sorted(cases))
    header = json.dumps({"n_ctx": CONTEXT, "vocabulary": VOCABULARY})[:-1]
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{header}, "cases": [\n{lines}\n]}}\n')
    print(f"{FILE}: {len(cases)} models, {os.path.getsize(FILE)} bytes")


if __name__ == "__main__":
    try:
        main()
    except install.Problem as problem:
        sys.exit(f"oracle: {problem}")
