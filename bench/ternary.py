#!/usr/bin/env python3
"""Writes a GGUF file with TQ2_0 weights once more with I2_S weights, for measuring: the files of known shapes that this project can make
have no I2_S.

Usage: ternary.py IN.gguf OUT.gguf

The weights keep their signs (-1, 0, 1); the scales of blocks of 256 become one of 1 for the tensor, so the file says nothing sensible.
Formats: the GGUF document of ggml; TQ2_0 and I2_S as src/tensor/quant/ has them. Needs numpy.
"""
import struct
import sys

import numpy as np

TQ2_0, I2_S = 35, 36
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's plain values
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value[0]

    def text(self):
        size = self.take("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            of, count = self.take("I"), self.take("Q")
            if of in SIZES:
                self.at += SIZES[of] * count
            else:
                for _ in range(count):
                    self.skip(of)
        else:
            self.at += SIZES[kind]


def reversed_pairs():
    """Each byte with its four pairs of bits in the other order: I2_S has the first 32 values of 128 in the highest bits, TQ2_0 in the lowest."""
    b = np.arange(256, dtype=np.uint8)
    return (b & 3) << 6 | (b >> 2 & 3) << 4 | (b >> 4 & 3) << 2 | b >> 6


def as_i2_s(blocks):
    codes = blocks.reshape(-1, 66)[:, :64]  # a block's f16 scale is behind its 64 bytes of codes
    tail = np.zeros(32, np.uint8)
    tail[:4] = np.frombuffer(struct.pack("<f", 1), np.uint8)
    return np.concatenate([reversed_pairs()[codes].reshape(-1), tail])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    data = np.memmap(sys.argv[1], np.uint8, "r")
    r = Reader(data)
    if bytes(data[:4]) != b"GGUF":
        sys.exit(f"{sys.argv[1]}: not a GGUF file")
    r.at = 4
    version, tensors, pairs = r.take("I"), r.take("Q"), r.take("Q")
    alignment = 32
    begin = r.at
    for _ in range(pairs):
        key, kind = r.text(), r.take("I")
        if key == b"general.alignment":
            alignment = struct.unpack_from("<I", data, r.at)[0]
        r.skip(kind)
    metadata = bytes(data[begin:r.at])
    found = []
    for _ in range(tensors):
        name, dims = r.text(), []
        for _ in range(r.take("I")):
            dims.append(r.take("Q"))
        found.append((name, dims, r.take("I"), r.take("Q")))
    base = -(-r.at // alignment) * alignment
    ends = sorted([offset for _, _, _, offset in found] + [len(data) - base])

    header, offset, contents = b"", 0, []
    for name, dims, kind, start in found:
        size = int(np.prod(dims)) // 256 * 66 if kind == TQ2_0 else ends[ends.index(start) + 1] - start
        part = data[base + start:base + start + size]
        contents.append(as_i2_s(part) if kind == TQ2_0 else part)
        header += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        header += struct.pack("<IQ", I2_S if kind == TQ2_0 else kind, offset)
        offset += -(-len(contents[-1]) // alignment) * alignment
    with open(sys.argv[2], "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", version, tensors, pairs) + metadata + header)
        for part in contents:
            out.write(b"\0" * (-out.tell() % alignment))
            part.tofile(out)


main()
