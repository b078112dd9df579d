#!/usr/bin/env python3
"""Writes the seeds in fuzz/corpus/gguf: tiny GGUF files, right and wrong, that between them reach every branch of the
reader. Run it again after a change to the format's coverage; the output is the same every time."""
import pathlib
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
# Values per block and bytes per block by tensor type id, from ggml's type table.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
          12: (256, 144), 14: (256, 210), 24: (1, 1), 28: (1, 8), 30: (1, 2), 36: (128, 32), 39: (32, 17)}


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(type_, v):
    if type_ == STRING:
        return text(v)
    if type_ == ARRAY:
        element, items = v
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, i) for i in items)
    return struct.pack("<" + PACK[type_], v)


def gguf(entries=(), tensors=(), version=3, alignment=32, order="<"):
    head = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), len(entries))
    for key, type_, v in entries:
        head += text(key) + struct.pack("<I", type_) + value(type_, v)
    data = b""
    for name, dims, type_ in tensors:
        values, size = BLOCKS.get(type_, (1, 1))
        count = 1
        for d in dims:
            count *= d
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        head += struct.pack("<IQ", type_, len(data))
        data += bytes(i % 251 for i in range(count // values * size + (32 if type_ == 36 else 0)))
        data += bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment if data else 0) + data


SCALARS = [(f"scalar.{t}", t, 1) for t in PACK] + [("scalar.text", STRING, "llama")]
ARRAYS = [(f"array.{t}", ARRAY, (t, [1, 0, 1])) for t in PACK] + [
    ("array.text", ARRAY, (STRING, ["<s>", "", "\u2581the"])), ("array.none", ARRAY, (U8, []))]
PAIR = [("a", (4, 2), 0), ("b", (8,), 1)]

whole = gguf(SCALARS + ARRAYS, PAIR)
SEEDS = {
    "empty": b"",
    "header": gguf(),
    "scalars": gguf(SCALARS),
    "arrays": gguf(ARRAYS),
    "whole": whole,
    "version2": gguf([("n", U32, 1)], PAIR, version=2),
    "version1": gguf(version=1),
    "big_endian": gguf(order=">"),
    "truncated": whole[: len(whole) * 2 // 3],
    "aligned8": gguf([("general.alignment", U32, 8)], PAIR, alignment=8),
    "aligned24": gguf([("general.alignment", U32, 24)], PAIR, alignment=24),
    "nested": gguf([("k", ARRAY, (ARRAY, [(U8, [1])]))]),
    "bad_bool": gguf([("k", BOOL, 2)]),
    "twice": gguf([("k", U8, 1), ("k", U8, 2)]),
    "tensor_twice": gguf((), PAIR + PAIR),
    "not_utf8": gguf([(b"k\xff", U8, 1)]),
    "unknown_type": gguf((), [("t", (32,), 99)]),
    "ragged_row": gguf((), [("t", (33,), 8)]),
    "split": gguf([("split.no", U16, 0), ("split.count", U16, 2), ("split.tensors.count", I32, 2)], PAIR),
    "overlap": gguf((), PAIR).replace(struct.pack("<IQ", 1, 32), struct.pack("<IQ", 1, 0)),
    "tiny_llama": gguf(
        [("general.architecture", STRING, "llama"), ("llama.block_count", U32, 1),
         ("llama.embedding_length", U32, 32), ("tokenizer.ggml.tokens", ARRAY, (STRING, ["<unk>", "<s>", "a"])),
         ("tokenizer.ggml.scores", ARRAY, (F32, [0, 0, -1.5]))],
        [("token_embd.weight", (32, 3), 8), ("output_norm.weight", (32,), 0)]),
}
for type_, (block, _) in BLOCKS.items():
    SEEDS[f"type_{type_}"] = gguf((), [("t", (block, 1, 2), type_)])

folder = pathlib.Path(__file__).parent / "corpus" / "gguf"
folder.mkdir(parents=True, exist_ok=True)
for name, data in SEEDS.items():
    (folder / f"{name}.gguf").write_bytes(data)
print(f"{len(SEEDS)} files, {sum(map(len, SEEDS.values()))} bytes in {folder}")
