#!/usr/bin/env python3
"""A reranker out of the reference data's BERT, and what it must say, computed here from that BERT's hidden states.

Usage: reranker.py BERT.gguf FOLDER PROGRAM
Writes FOLDER/reranker.gguf; prints {"query", "documents", "scores"}: the scores before they are brought to 0...1.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import gguf_file  # noqa: E402
from gguf_file import U32  # noqa: E402

source, folder, program = sys.argv[1:]
query = "Who went to the park?"
documents = ["The dog went to the park.", "A cat", "Lily likes to play with her red ball and her friends", "park"]

metadata = gguf_file.read_metadata(source)
metadata["tokenizer.ggml.token_type_count"] = gguf_file.entry(U32, 1)
tensors = []
for name, dimensions, kind, data in gguf_file.read_tensors(source):
    if name == "token_types.weight":
        dimensions, data = [dimensions[0], 1], data[: 4 * dimensions[0]]
    tensors.append((name, dimensions, kind, data))
width = next(d[0] for name, d, _, _ in tensors if name == "token_embd.weight")
random.seed(5)


def numbers(n):
    raw = struct.pack(f"<{n}f", *(random.uniform(-0.3, 0.3) for _ in range(n)))
    return raw, struct.unpack(f"<{n}f", raw)


(inner_raw, inner), (bias_raw, bias), (outer_raw, outer), (last_raw, last) = (numbers(n) for n in (width * width, width, width, 1))
head = [("cls.weight", [width, width], 0, inner_raw), ("cls.bias", [width], 0, bias_raw),
        ("cls.output.weight", [width, 1], 0, outer_raw), ("cls.output.bias", [1], 0, last_raw)]
headless = os.path.join(folder, "headless.gguf")
gguf_file.write(headless, dict(metadata, **{"bert.pooling_type": gguf_file.entry(U32, 2)}), tensors)
gguf_file.write(os.path.join(folder, "reranker.gguf"), dict(metadata, **{"bert.pooling_type": gguf_file.entry(U32, 4)}), tensors + head)


def run(*arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def tokens(text):
    return json.loads(run("tokenize", headless, "--text", text, "--json"))["tokens"]


scores = []
for document in documents:
    ids = tokens(query) + tokens(document)[1:]  # one token begins them both
    state = json.loads(run("embed", headless, "--tokens", ",".join(map(str, ids)), "--no-normalize", "--json", "--quiet"))["embedding"]
    middle = [math.tanh(sum(w * x for w, x in zip(inner[r * width:], state)) + bias[r]) for r in range(width)]
    scores.append(sum(w * x for w, x in zip(outer, middle)) + last[0])
print(json.dumps({"query": query, "documents": documents, "scores": scores}))
