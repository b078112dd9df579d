#!/usr/bin/env python3
"""How far rounding activations to 8 bits moves a ternary model's logits: the figures that golden_logits_test holds
bitnet-b1.58 files to. llama.cpp, whose figures the test takes otherwise, does not know that architecture.

A forward pass in float64, apart from gimbal's code: first plain, which must give the file's logits_ref64; then with the
input of every ternary matrix rounded to largest / 127: of 256 values for TQ2_0, of the row for I2_S and TL1, as BitNet is trained. For quant/q-tq2_0.json the second must come out at
llama.cpp's own figures, which shows that this rounding is all there is. Needs numpy.

Usage: activation-rounding.py COLLECTION   (the folder that has quant/, arch/ and tl/)
"""
import base64
import json
import os
import struct
import sys

import numpy as np

FILES = ["quant/q-tq2_0.json", "arch/bitnet-b158.json", "arch/bitnet-b158-i2s.json", "tl/bitnet-b158-tl1.json"]
F32, F16, TQ2_0, I2_S, TL1 = 0, 1, 35, 36, 38
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_gguf(path, tiles):
    """Metadata, and tensors as (type, matrix of float64)."""
    with open(path, "rb") as file:
        data = file.read()
    at = 4

    def take(form):
        nonlocal at
        value, = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind, n = take("I"), take("Q")
            return [value(kind) for _ in range(n)]
        return take(SCALARS[kind])

    take("I")
    n_tensors, n_keys = take("Q"), take("Q")
    keys = {}
    for _ in range(n_keys):
        name = text()
        keys[name] = value(take("I"))
    entries = []
    for _ in range(n_tensors):
        name = text()
        dims = [take("Q") for _ in range(take("I"))]
        entries.append((name, dims, take("I"), take("Q")))
    start = (at + 31) // 32 * 32
    return keys, {name: (kind, decode(data, start + offset, kind, dims, tiles)) for name, dims, kind, offset in entries}


def decode(data, at, kind, dims, tiles):
    shape, n = dims[::-1], int(np.prod(dims))
    if kind in (F32, F16):
        return np.frombuffer(data, "<f4" if kind == F32 else "<f2", n, at).astype(np.float64).reshape(shape)
    if kind == TQ2_0:  # 256 values: two halves of 32 bytes, two bits each, lowest first; then the scale
        blocks = np.frombuffer(data, np.uint8, n // 256 * 66, at).reshape(-1, 66)
        codes = np.stack([blocks[:, :64].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
        scale = np.ascontiguousarray(blocks[:, 64:]).view("<f2").astype(np.float64)
        return ((codes.reshape(-1, 256).astype(np.float64) - 1) * scale).reshape(shape)
    if kind == I2_S:  # 128 values in 32 bytes, highest bits first; one scale behind them all
        packed = np.frombuffer(data, np.uint8, n // 4, at).reshape(-1, 32)
        codes = np.stack([packed >> shift & 3 for shift in (6, 4, 2, 0)], 1)
        return ((codes.astype(np.float64) - 1) * struct.unpack_from("<f", data, at + n // 4)[0]).reshape(shape)
    if kind == TL1:  # tiles of rows and columns, a byte for four columns of a row
        t, = (t for t in tiles if [t["m"], t["k"]] == shape)
        r, c = np.indices(shape)
        rt, ct, by = r % t["bm"], c % t["bk"], 256 // t["bmm"]
        byte = (r - rt) * shape[1] // 4 + (c - ct) * t["bm"] // 4 + rt // t["bmm"] * (t["bmm"] * t["bk"] // 4) + ct // by * 64
        byte += rt % t["bmm"] // 16 * (4 * by) + ct % by // 4 * 16 + rt % 16
        two = np.frombuffer(data, np.uint8, n // 4, at)[byte] >> np.where(c % 4 < 2, 4, 0) & 15
        return (np.where(c % 2 == 0, two // 3, two % 3).astype(np.float64) - 1) * struct.unpack_from("<f", data, at + n // 4)[0]
    raise SystemExit(f"tensor type {kind} is not read here")


def rounded(x, kind):
    blocks = x.reshape(len(x), -1, 256 if kind == TQ2_0 else x.shape[1])
    step = np.abs(blocks).max(2, keepdims=True) / 127
    return (np.rint(blocks / np.where(step > 0, step, 1)) * step).reshape(x.shape)


def forward(keys, tensors, tokens, eight_bits):
    arch = keys["general.architecture"]

    def key(name, otherwise=None):
        return keys.get(f"{arch}.{name}", otherwise)

    def linear(name, x):
        kind, w = tensors[name]
        return (rounded(x, kind) if eight_bits and kind in (TQ2_0, I2_S, TL1) else x) @ w.T

    def norm(name, x):
        return x / np.sqrt((x * x).mean(1, keepdims=True) + key("attention.layer_norm_rms_epsilon")) * tensors[name][1]

    heads, kv_heads, rotated = key("attention.head_count"), key("attention.head_count_kv"), key("rope.dimension_count")
    n = len(tokens)
    angles = np.arange(n)[:, None] * key("rope.freq_base", 10000.0) ** (-np.arange(0, rotated, 2) / rotated)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def rope(x):
        half = rotated // 2
        first, second = (slice(0, None, 2), slice(1, None, 2)) if arch == "llama" else (slice(0, half), slice(half, None))
        out = np.empty_like(x)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., second] * cos + x[..., first] * sin
        return out

    x = tensors["token_embd.weight"][1][tokens]
    for layer in range(key("block_count")):
        b = f"blk.{layer}."
        h = norm(b + "attn_norm.weight", x)
        q, k, v = (linear(b + f"attn_{m}.weight", h) for m in "qkv")
        q, k, v = rope(q.reshape(n, heads, -1)), rope(k.reshape(n, kv_heads, -1)), v.reshape(n, kv_heads, -1)
        k, v = (np.repeat(m, heads // kv_heads, 1) for m in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[2])
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        h = np.einsum("hij,jhd->ihd", weights / weights.sum(2, keepdims=True), v).reshape(n, -1)
        if b + "attn_sub_norm.weight" in tensors:
            h = norm(b + "attn_sub_norm.weight", h)
        x = x + linear(b + "attn_output.weight", h)
        h = norm(b + "ffn_norm.weight", x)
        gate, up = linear(b + "ffn_gate.weight", h), linear(b + "ffn_up.weight", h)
        h = gate / (1 + np.exp(-gate)) * up if arch == "llama" else np.maximum(gate, 0) ** 2 * up
        if b + "ffn_sub_norm.weight" in tensors:
            h = norm(b + "ffn_sub_norm.weight", h)
        x = x + linear(b + "ffn_down.weight", h)
    return linear("output.weight" if "output.weight" in tensors else "token_embd.weight", norm("output_norm.weight", x))


def distance(got, want):
    logs = [m - m.max(1, keepdims=True) for m in (want, got)]
    logs = [m - np.log(np.exp(m).sum(1, keepdims=True)) for m in logs]
    off = np.abs(got - want)
    return f"max {off.max():.2e}  mean {off.mean():.4e}  KL {(np.exp(logs[0]) * (logs[0] - logs[1])).sum(1).mean():.4e}"


def main(collection):
    for name in FILES:
        path = os.path.join(collection, name)
        with open(path, encoding="utf-8") as file:
            golden = json.load(file)
        keys, tensors = read_gguf(os.path.join(os.path.dirname(path), golden["model"]), golden.get("kernel_config"))
        want, plain, eight = [], [], []
        for case in golden["cases"]:
            ref = np.frombuffer(base64.b64decode(case["logits_ref64"]), "<f4").astype(np.float64)
            want.append(ref.reshape(-1, golden["n_vocab"]))
            for out, bits in ((plain, False), (eight, True)):
                out.append(forward(keys, tensors, case["tokens"], bits)[case["positions"]])
        want, plain, eight = map(np.concatenate, (want, plain, eight))
        print(f"{name}\n  plain      {distance(plain, want)}\n  8 bits     {distance(eight, want)}")
        if peer := golden["measured_vs_ref64"].get("f32kv_batch"):
            print(f"  llama.cpp  max {peer['max_abs']:.2e}  mean {peer['mean_abs']:.4e}  KL {peer['kl_mean']:.4e}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
