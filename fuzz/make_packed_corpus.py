#!/usr/bin/env python3
"""Writes the seeds in fuzz/corpus/packed: headers of packed weights (src/files/packed_file.h), right and wrong. Their
hashes are 0, because the fuzzer puts the right ones there."""
import pathlib
import struct


def head(weights, size, version=1, magic=b"gimbal-packed\n\0\0"):
    table = b"".join(struct.pack("<QQQQ", *w) for w in weights)
    return struct.pack("<16sII16sQQQqQQ", magic, version, len(weights), b"cpu", size, 1000, 7, 9, 0, 0) + table


two = [(1, 4096, 64), (2, 4160, 100)]
SEEDS = {
    "empty": b"",
    "no-weights": head([], 4096),
    "two": head([(*w, 5) for w in two], 8192),
    "outside": head([(1, 4096, 1 << 60, 5)], 8192),
    "overflow": head([(1, (1 << 64) - 64, 64, 5)], 8192),
    "unaligned": head([(1, 4097, 64, 5)], 8192),
    "unsorted": head([(2, 4096, 64, 5), (1, 4160, 64, 5)], 8192),
    "version": head([], 4096, version=2),
    "foreign": head([], 4096, magic=b"GGUF" + b"\0" * 12),
    "cut": head([(*w, 5) for w in two], 8192)[:100],
}
folder = pathlib.Path(__file__).parent / "corpus" / "packed"
folder.mkdir(exist_ok=True)
for name, data in SEEDS.items():
    (folder / name).write_bytes(data)
