#!/usr/bin/env python3
"""Packs modules of kernels for the tables in programs, which src/gpu/unpack.h reads: 8 bytes "gimbal.z", the size as 32 bits, low byte
first, and a zlib stream. Most are texts, and take a quarter so. An empty file stays empty.

Usage: pack_modules.py FROM_FOLDER TO_FOLDER STAMP NAME...      a file NAME, and NAME.subgroups where there is one
"""
import os
import struct
import sys
import zlib

MAGIC = b"gimbal.z"


def packed(module):
    return MAGIC + struct.pack("<I", len(module)) + zlib.compress(module, 9) if module else b""


def unpacked_in(content):
    """The modules packed in a file's bytes."""
    at = content.find(MAGIC)
    while at >= 0:
        try:
            module = zlib.decompressobj().decompress(content[at + len(MAGIC) + 4:])
            if len(module) == struct.unpack_from("<I", content, at + len(MAGIC))[0]:
                yield module
        except (zlib.error, struct.error):
            pass  # the word alone, where it is looked for
        at = content.find(MAGIC, at + 1)


def main(source, to, stamp, *names):
    os.makedirs(to, exist_ok=True)
    for name in names:
        for file in (name, name + ".subgroups"):
            if os.path.exists(os.path.join(source, file)):
                with open(os.path.join(source, file), "rb") as f:
                    module = f.read()
                with open(os.path.join(to, file), "wb") as f:
                    f.write(packed(module))
    with open(stamp, "w", encoding="utf-8"):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
