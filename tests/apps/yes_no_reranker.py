#!/usr/bin/env python3
"""A reranker in the shape of Qwen3's out of the reference data's llama: its last token answers "yes" or "no".

Usage: yes_no_reranker.py LLAMA.gguf FOLDER PROGRAM
Writes FOLDER/yes-no.gguf; prints {"query", "documents", "scores"}: how much more the answer is "yes", computed here
from the hidden states of the same model without its head.
"""
import json
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import gguf_file  # noqa: E402
from gguf_file import ARRAY, STRING, U32  # noqa: E402

source, folder, program = sys.argv[1:]
query = "Who went to the park?"
documents = ["The dog went to the park.", "A cat", "Lily likes to play with her red ball </s> {query}", "park"]
words = "<s>Judge.\nQuery: {query}\nDocument: {document}\nAnswer:"

metadata = {key.replace("llama.", "qwen3."): value for key, value in gguf_file.read_metadata(source).items()}
metadata["general.architecture"] = gguf_file.entry(STRING, "qwen3")
random.seed(7)


def numbers(n, around=0.0):
    raw = struct.pack(f"<{n}f", *(around + random.uniform(-0.3, 0.3) for _ in range(n)))
    return raw, struct.unpack(f"<{n}f", raw)


tensors = [t for t in gguf_file.read_tensors(source) if t[0] not in ("rope_freqs.weight", "output.weight")]
shape = {name: dimensions for name, dimensions, _, _ in tensors}
width = shape["token_embd.weight"][0]
heads = struct.unpack("<I", metadata["qwen3.attention.head_count"][-4:])[0]
head = shape["blk.0.attn_q.weight"][1] // heads
for layer in range(sum(name.endswith("attn_q.weight") for name in shape)):
    for part in "qk":
        tensors.append((f"blk.{layer}.attn_{part}_norm.weight", [head], 0, numbers(head, 1)[0]))
headless = os.path.join(folder, "headless.gguf")
gguf_file.write(headless, metadata, tensors)
answers_raw, answers = numbers(2 * width)
ranks = {"qwen3.pooling_type": gguf_file.entry(U32, 4), "tokenizer.chat_template.rerank": gguf_file.entry(STRING, words),
         "qwen3.classifier.output_labels": gguf_file.entry(ARRAY, (STRING, ["yes", "no"]))}
gguf_file.write(os.path.join(folder, "yes-no.gguf"), dict(metadata, **ranks), tensors + [("cls.output.weight", [width, 2], 0, answers_raw)])


def run(*arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def tokens(text, *more):
    return json.loads(run("tokenize", headless, "--text", text, "--json", *more))["tokens"]


scores = []
for document in documents:
    ids = tokens(words.removeprefix("<s>").replace("{document}", "\0").replace("{query}", query).replace("\0", document), "--no-special")
    state = json.loads(run("embed", headless, "--tokens", ",".join(map(str, ids)), "--pooling", "last", "--no-normalize", "--json", "--quiet"))["embedding"]
    yes, no = (sum(w * x for w, x in zip(answers[row * width:], state)) for row in (0, 1))
    scores.append(yes - no)
print(json.dumps({"query": query, "documents": documents, "scores": scores}))
