#!/usr/bin/env python3
"""Writes the seeds in fuzz/corpus/tokenizer: a tiny vocabulary of each kind, with the keys that it reads and, in a key that
gimbal ignores, text that it knows. The output is the same every time."""
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
import gguf_file as g  # noqa: E402

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
TEXT = "a ab abc <s> [SEP] [u]\u2581\u00e9\u4e16 12345 \n\n ABC \u00a0"


def array(kind, items):
    return g.entry(g.ARRAY, (kind, items))


def seed(model, tokens, more=()):
    keys = {"model": g.entry(g.STRING, model), "tokens": array(g.STRING, [t for t, _ in tokens]),
            "token_type": array(g.I32, [kind for _, kind in tokens]),
            "scores": array(g.F32, [-float(i) for i in range(len(tokens))]), **dict(more)}
    metadata = {"tokenizer.ggml." + key: raw for key, raw in keys.items()}
    metadata["text"] = g.entry(g.STRING, TEXT)
    return metadata


SPECIALS = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("[u]", USER)]
PIECES = [(t, NORMAL) for t in ("\u2581", "a", "b", "c", "ab", "bc", "\u2581a", "\u2581ab", "\u4e16", "1", "23")]
BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in (0x0a, 0xc3, 0xa9, 0xe4)]
units = [0] * 256
units[0], units[0xc1], units[0xc0] = 0x80 << 10, 1 << 10 | 1 << 8 | 0x41, 3
CHARSMAP = struct.pack("<I", 1024) + struct.pack("<256I", *units) + b"xx\0b\0"
TRUE = g.entry(g.BOOL, True)
SEEDS = {
    "llama": seed("llama", SPECIALS + PIECES + BYTES),
    "bert": seed("bert", [("[UNK]", UNKNOWN), ("[CLS]", CONTROL), ("[SEP]", CONTROL)] + PIECES),
    "t5": seed("t5", SPECIALS + PIECES, {"precompiled_charsmap": array(g.U8, CHARSMAP), "add_space_prefix": TRUE,
                                         "remove_extra_whitespaces": TRUE}.items()),
    "rwkv": seed("rwkv", SPECIALS + [("a", NORMAL), ("\\x41\\n", NORMAL), ("\\\\", NORMAL)]),
    "gemma4": seed("gemma4", SPECIALS + PIECES + BYTES + [("\n\n", NORMAL)],
                   {"merges": array(g.STRING, ["a b", "b c", "\u2581 a"])}.items()),
}
for name in ("gpt-2", "llama-bpe", "tekken", "deepseek-v3", "kimi-k2", "tiny_aya", "superbpe", "afmoe", "whitespace"):
    SEEDS["gpt2-" + name] = seed("gpt2", SPECIALS + PIECES, {
        "merges": array(g.STRING, ["a b", "b c"]), "pre": g.entry(g.STRING, name)}.items())

folder = pathlib.Path(__file__).parent / "corpus" / "tokenizer"
folder.mkdir(parents=True, exist_ok=True)
for name, metadata in SEEDS.items():
    g.write(folder / (name + ".gguf"), metadata)
print(f"{len(SEEDS)} seeds in {folder}")
