#!/usr/bin/env python3
"""Write tests/data/peer/bitnet/model.gguf and model.json: a tiny BitNet model, packed and run by microsoft/BitNet's program.

  scripts/oracle/bitnet_model.py LLAMA BUILD

BUILD is a build of microsoft/BitNet whose submodule is LLAMA (Eddie-Wang1120/llama.cpp, merge-dev, 406a5036; BitNet 46459609), without
shared libraries. The weights are random and ternary, in f32; its llama-quantize makes i2_s of them, and its library gives greedy tokens and
logits, with its default cache in f16.
"""

import argparse
import base64
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/peer/bitnet"
sys.path.insert(0, str(ROOT / "scripts"))
import gguf_file  # noqa: E402

EMBEDDING, FORWARD, HEADS, KEYS, LAYERS, VOCABULARY = 128, 256, 4, 2, 2, 512
PROMPTS = [[1], [1, 403, 407, 261, 378], [1, 7, 60, 110, 33, 260, 471, 12, 88, 402, 17, 9, 305, 344, 29]]
NEW = 24


def floats(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def make(path):
    rng = random.Random(28)
    metadata = gguf_file.read_metadata(ROOT / "tests/data/arch/bitnet.gguf")
    for key, value in {"embedding_length": EMBEDDING, "feed_forward_length": FORWARD, "attention.head_count": HEADS,
                       "attention.head_count_kv": KEYS, "rope.dimension_count": EMBEDDING // HEADS}.items():
        metadata[f"bitnet.{key}"] = gguf_file.entry(gguf_file.U32, value)
    metadata["general.name"] = gguf_file.entry(gguf_file.STRING, "ternary-bitnet")
    tensors = [("token_embd.weight", [EMBEDDING, VOCABULARY], 0, floats([rng.gauss(0, 0.12) for _ in range(EMBEDDING * VOCABULARY)]))]

    def norm(name, width, middle=1.0):
        tensors.append((name, [width], 0, floats([middle + rng.gauss(0, 0.2) for _ in range(width)])))

    def ternary(name, columns, rows):
        scale = struct.unpack("<f", struct.pack("<f", 3 / columns ** 0.5))[0]
        tensors.append((name, [columns, rows], 0, floats([scale * rng.choice((-1, 0, 1)) for _ in range(rows * columns)])))

    norm("output_norm.weight", EMBEDDING, 2.0)
    for i in range(LAYERS):
        block = f"blk.{i}."
        for name, width in (("attn_norm", EMBEDDING), ("attn_sub_norm", EMBEDDING), ("ffn_norm", EMBEDDING), ("ffn_sub_norm", FORWARD)):
            norm(f"{block}{name}.weight", width)
        keys = EMBEDDING // HEADS * KEYS
        for name, columns, rows in (("attn_q", EMBEDDING, EMBEDDING), ("attn_k", EMBEDDING, keys), ("attn_v", EMBEDDING, keys),
                                    ("attn_output", EMBEDDING, EMBEDDING), ("ffn_gate", EMBEDDING, FORWARD), ("ffn_up", EMBEDDING, FORWARD),
                                    ("ffn_down", FORWARD, EMBEDDING)):
            ternary(f"{block}{name}.weight", columns, rows)
    gguf_file.write(path, metadata, tensors)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("llama", type=pathlib.Path)
    options.add_argument("build", type=pathlib.Path)
    o = options.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    model = OUT / "model.gguf"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder / "f32.gguf")
        subprocess.run([o.build / "bin/llama-quantize", "--token-embedding-type", "f16", folder / "f32.gguf", model, "I2_S", "1"], check=True)
        libraries = [*o.build.rglob("libllama.a"), *o.build.rglob("libggml.a")]
        subprocess.run(["clang++-19", "-O2", f"-I{o.llama / 'include'}", f"-I{o.llama / 'ggml/include'}", "-o", folder / "tokens",
                        ROOT / "scripts/oracle/bitnet_tokens.cpp", *libraries, "-lpthread", "-ldl", "-lm"], check=True)
        cases = []
        for prompt in PROMPTS:
            out = subprocess.run([folder / "tokens", model, str(len(prompt)), str(NEW)], input=struct.pack(f"<{len(prompt)}i", *prompt),
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
            tokens = list(struct.unpack(f"<{NEW}i", out[:4 * NEW]))
            both = [struct.unpack_from(f"<{VOCABULARY}f", out, 4 * (NEW + i * VOCABULARY)) for i in range(2 * NEW)]
            rows, batch = both[:NEW], both[NEW:]
            off = [abs(x - y) for r, b in zip(rows, batch) for x, y in zip(r, b)]
            own = {"mean": sum(off) / len(off), "most": max(off), "tokens": sum(max(b) != b[t] for b, t in zip(batch, tokens))}
            best = [[[t, round(r[t], 4)] for t in sorted(range(VOCABULARY), key=lambda t: -r[t])[:4]] for r in rows]
            print(prompt, tokens, f"in one batch instead: {own}")
            # All logits of the first and last token; of the others the four best. How far the program is from itself when it computes the same
            # tokens in one batch: its sums have another order there, and codes of activations flip.
            cases.append({"prompt": prompt, "greedy": tokens, "best": best, "difference_in_one_batch": own,
                          "first_logits": base64.b64encode(out[4 * NEW:4 * (NEW + VOCABULARY)]).decode(),
                          "last_logits": base64.b64encode(out[4 * (NEW + (NEW - 1) * VOCABULARY):][:4 * VOCABULARY]).decode()})
    (OUT / "model.json").write_text(json.dumps({
        "origin": "microsoft/BitNet 46459609 with Eddie-Wang1120/llama.cpp 406a5036 (x86-64, AVX2), by scripts/oracle/bitnet_model.py",
        "vocabulary": VOCABULARY, "cases": cases}, indent=0) + "\n")


if __name__ == "__main__":
    main()
