#!/usr/bin/env python3
"""Compares `gimbal quantize` with llama.cpp's quantizer: formats of tensors, bytes, and speed.

Usage: compare.py formats [--gimbal PROGRAM] [--record FILE]
                                                 every mixture, on four small models: the format of each tensor, and equal bytes
                                                 of the legacy formats, which leave nothing to a search;
                                                 with FILE, llama.cpp's formats for tests/quantize
       compare.py speed [MIXTURE...] [--gimbal PROGRAM] [--megabytes N] [--threads N]

The peer is the one that bench/compare/install.py puts on this machine from npm. Models have random weights.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench", "compare"), os.path.join(ROOT, "scripts")]
import gguf_file  # noqa: E402
import install  # noqa: E402

STORY = os.path.join(ROOT, "tests/data/stories/stories260K-f32.gguf")
F16 = 1
# Formats whose bytes follow from the values; without importance only.
EXACT = {0, 1, 2, 3, 6, 7, 8, 30, 34, 35, 39, 41, 42}
# High bytes of halves between 2^-9 and 2^-5 in size.
HIGH = bytes((b & 0x80) | 0x18 + (b & 0x0f) for b in range(256))


def halves(count, source):
    data = bytearray(source.randbytes(2 * count))
    data[1::2] = data[1::2].translate(HIGH)
    return bytes(data)


def model(path, source, layers, width, wide, heads, shared, experts=0, tied=False, rows=0):
    """A llama with random weights in f16, the vocabulary of the stories, vectors in f32. `rows`: of each matrix, in place of those that
    the shape gives: quantizers look at names and at the length of rows only."""
    arch = "llama"
    metadata = {key: value for key, value in gguf_file.read_metadata(STORY).items() if not key.startswith("llama.")}
    metadata["general.architecture"] = gguf_file.entry(gguf_file.STRING, arch)
    numbers = {"block_count": layers, "embedding_length": width, "feed_forward_length": wide, "context_length": 512,
               "attention.head_count": heads, "attention.head_count_kv": shared, "rope.dimension_count": width // heads}
    if experts:
        numbers.update({"expert_count": experts, "expert_used_count": 2})
    for key, value in numbers.items():
        metadata[f"{arch}.{key}"] = gguf_file.entry(gguf_file.U32, value)
    metadata[f"{arch}.attention.layer_norm_rms_epsilon"] = gguf_file.entry(gguf_file.F32, 1e-5)
    tensors, weights = [], {}

    def matrix(name, *dims):
        if rows:
            dims = (dims[0], rows, *dims[2:])
        count = 1
        for d in dims:
            count *= d
        tensors.append((name, list(dims), F16, halves(count, source)))
        weights[name] = dims[0] * (dims[2] if len(dims) > 2 else 1)

    def vector(name):
        tensors.append((name, [width], 0, struct.pack("<f", 1.0) * width))

    matrix("token_embd.weight", width, 512)
    vector("output_norm.weight")
    if not tied:
        matrix("output.weight", width, 512)
    kv = width // heads * shared
    for i in range(layers):
        b = f"blk.{i}."
        vector(b + "attn_norm.weight")
        vector(b + "ffn_norm.weight")
        matrix(b + "attn_q.weight", width, width)
        matrix(b + "attn_k.weight", width, kv)
        matrix(b + "attn_v.weight", width, kv)
        matrix(b + "attn_output.weight", width, width)
        if experts:
            matrix(b + "ffn_gate_inp.weight", width, experts)
            for kind, dims in (("gate", (width, wide, experts)), ("up", (width, wide, experts)), ("down", (wide, width, experts))):
                matrix(b + f"ffn_{kind}_exps.weight", *dims)
        else:
            matrix(b + "ffn_up.weight", width, wide)
            matrix(b + "ffn_down.weight", wide, width)
            matrix(b + "ffn_gate.weight", width, wide)
    gguf_file.write(path, metadata, tensors)
    return weights


def importance(path, rows, source):
    with open(path, "wb") as file:
        file.write(struct.pack("<i", len(rows)))
        for name, count in rows.items():
            file.write(struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 2, count))
            file.write(struct.pack(f"<{count}f", *(0.1 + source.random() for _ in range(count))))


def mixtures():
    """{name: number} of src/quantize/mixtures.def."""
    found = {}
    with open(os.path.join(ROOT, "src/quantize/mixtures.def"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("GIMBAL_MIXTURE("):
                name, number, _ = line[len("GIMBAL_MIXTURE("):].split(",")
                found[name] = int(number)
    return found


class Tools:
    def __init__(self, gimbal, work):
        self.gimbal, self.work = gimbal, work
        self.peer = install.install(work, print)
        self.driver = install.program(self.peer, os.path.join(HERE, "peer.cpp"))

    def theirs(self, path, out, number, threads, matrix=None):
        done = subprocess.run([self.driver, path, out, str(number), str(threads)] + ([matrix] if matrix else []),
                              env={**os.environ, "LD_LIBRARY_PATH": self.peer.all_libraries}, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        return json.loads(lines[-1])["seconds"] if done.returncode == 0 and lines else done.stderr.strip()[-300:] or "failed"

    def ours(self, path, out, name, threads, matrix=None):
        begin = time.monotonic()
        done = subprocess.run([self.gimbal, "quantize", path, out, name, "--force", "--quiet", "--threads", str(threads)]
                              + (["--imatrix", matrix] if matrix else []), capture_output=True, text=True, check=False)
        return time.monotonic() - begin if done.returncode == 0 else done.stderr.strip()[-300:] or "failed"


def letters(file, order):
    """The formats of a file's tensors, a letter for each."""
    kinds = {t[0]: t[2] for t in gguf_file.read_tensors(file)}
    return "".join(chr(ord("A") + kinds[name]) for name in order)


def formats(tools, record):
    recorded = {}
    source = random.Random(32)
    shapes = {"shared": dict(layers=24, width=256, wide=512, heads=8, shared=2),
              "tied": dict(layers=17, width=256, wide=768, heads=4, shared=4, tied=True),
              "experts": dict(layers=16, width=256, wide=256, heads=4, shared=2, experts=8),
              "odd": dict(layers=9, width=192, wide=320, heads=4, shared=4)}
    wrong = compared = equal = 0
    for shape, numbers in shapes.items():
        path = os.path.join(tools.work, f"{shape}.gguf")
        matrix = os.path.join(tools.work, f"{shape}.dat")
        importance(matrix, model(path, source, rows=8, **numbers), source)
        tensors = [[name, dims, kind] for name, dims, kind, _ in gguf_file.read_tensors(path)]
        recorded[shape] = {"layers": numbers["layers"], "heads": numbers["heads"], "shared": numbers["shared"],
                           "experts": numbers.get("experts", 0), "tensors": tensors, "formats": {}}
        for name, number in mixtures().items():
            for with_matrix in (None, matrix):
                theirs, ours = (os.path.join(tools.work, f"{who}.gguf") for who in ("theirs", "ours"))
                a = tools.theirs(path, theirs, number, 1, with_matrix)
                b = tools.ours(path, ours, name, 1, with_matrix)
                found = None if isinstance(a, str) else letters(theirs, [t[0] for t in tensors])
                recorded[shape]["formats"].setdefault(name, []).append(found)
                if isinstance(a, str) or isinstance(b, str):
                    # Of Q1_0, llama.cpp has no substitute for rows that are no multiple of 128; gimbal takes F16.
                    if not (isinstance(a, str) and isinstance(b, str)) and (shape, name) != ("odd", "Q1_0"):
                        wrong += 1
                        print(f"{shape} {name} {'with' if with_matrix else 'without'} importance: llama.cpp: {a}; gimbal: {b}")
                    continue
                there = {t[0]: t for t in gguf_file.read_tensors(theirs)}
                here = {t[0]: t for t in gguf_file.read_tensors(ours)}
                for tensor, (_, _, kind, data) in here.items():
                    compared += 1
                    if there[tensor][2] != kind:
                        wrong += 1
                        print(f"{shape} {name} {tensor}: format {kind}, llama.cpp has {there[tensor][2]}")
                    elif kind in EXACT and not (with_matrix and kind in (2, 3, 6, 7)):
                        size = min(len(data), len(there[tensor][3]))
                        same = data[:size] == there[tensor][3][:size]
                        equal += same
                        if not same:
                            wrong += 1
                            print(f"{shape} {name} {tensor}: other bytes in format {kind}")
    if record:
        with open(record, "w", encoding="utf-8") as file:
            print(json.dumps(recorded, separators=(",", ":")).replace('},"', '},\n"'), file=file)
    print(f"{compared} tensors compared, {equal} with equal bytes of formats without a search, {wrong} differences")
    return 1 if wrong else 0


def speed(tools, names, megabytes, threads):
    source = random.Random(33)
    path = os.path.join(tools.work, f"speed-{megabytes}.gguf")
    if not os.path.exists(path):
        width, wide = 1024, 2816
        layer = 2 * (2 * width * width + 2 * width * width // 4 + 3 * width * wide)
        model(path, source, layers=max(1, megabytes * 1000000 // layer), width=width, wide=wide, heads=16, shared=4)
    for name in names or ["Q8_0", "Q4_0", "Q4_K_M", "Q6_K"]:
        ours, theirs = [], []
        for _ in range(3):
            theirs.append(tools.theirs(path, os.path.join(tools.work, "theirs.gguf"), mixtures()[name], threads))
            ours.append(tools.ours(path, os.path.join(tools.work, "ours.gguf"), name, threads))
        print(f"{name}: llama.cpp {min(theirs):.2f} s, gimbal {min(ours):.2f} s, {min(theirs) / min(ours):.2f} times as fast "
              f"({os.path.getsize(path) / 1e6:.0f} MB of f16, {threads} threads, best of 3)", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["formats", "speed"])
    parser.add_argument("mixtures", nargs="*")
    parser.add_argument("--gimbal", default=os.path.join(ROOT, "build/release/gimbal"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build/compare"))
    parser.add_argument("--record")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    os.makedirs(given.work, exist_ok=True)
    tools = Tools(os.path.abspath(given.gimbal), given.work)
    return formats(tools, given.record) if given.what == "formats" else speed(tools, given.mixtures, given.megabytes, given.threads)


if __name__ == "__main__":
    sys.exit(main())
