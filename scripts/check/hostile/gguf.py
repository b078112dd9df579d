"""Hostile GGUF files. The rules are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""
import struct

from gguf_file import ARRAY, BOOL, F32, F64, I8, I16, I32, I64, PACK, STRING, U8, U16, U32, U64, text  # noqa: F401

from .case import ACCEPT, BOUNDED, REFUSE, Rules, flipped

rule = Rules("gguf", ".gguf", "https://github.com/ggml-org/ggml/blob/master/docs/gguf.md")

FORMATS = {**PACK, BOOL: "B"}  # a bool may be any byte here
# Type id: values and bytes of a block, as ggml defines them.
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
         12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
         21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56),
         30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17)}
HUGE = [2**31, 2**32, 2**40, 2**61, 2**63, 2**64 - 32, 2**64 - 1]


def value(kind, data):
    if kind == STRING:
        return text(data)
    if kind == ARRAY:
        element, items = data
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, item) for item in items)
    return struct.pack("<" + FORMATS[kind], data)


class Tensor:
    def __init__(self, name, dims, kind, data=None, offset=0):
        self.name, self.dims, self.kind, self.offset = name, dims, kind, offset
        self.data = b"\0" * self.size() if data is None else data

    def size(self):
        block, size = TYPES[self.kind]
        count = 1
        for dim in self.dims:
            count *= dim
        return count // block * size

    def info(self):
        return (text(self.name) + struct.pack("<I", len(self.dims)) + struct.pack(f"<{len(self.dims)}Q", *self.dims)
                + struct.pack("<IQ", self.kind, self.offset))


class File:
    """A GGUF file in parts, of which a rule breaks one before build() joins them."""

    def __init__(self, entries=(), tensors=(), alignment=32, version=3):
        self.magic, self.version, self.alignment, self.padding = b"GGUF", version, alignment, b"\0"
        self.entries = [text(key) + struct.pack("<I", kind) + value(kind, data) for key, kind, data in entries]
        if alignment != 32:
            self.entry("general.alignment", U32, alignment)
        self.tensors, self.tensor_count, self.entry_count = list(tensors), None, None
        offset = 0
        for tensor in self.tensors:
            tensor.offset = offset
            offset += len(tensor.data) + -len(tensor.data) % alignment

    def entry(self, key, kind, data):
        self.entries.append(text(key) + struct.pack("<I", kind) + value(kind, data))

    def raw(self, key, kind, payload):
        self.entries.append(text(key) + struct.pack("<I", kind) + payload)

    def head(self):
        counts = (len(self.tensors) if self.tensor_count is None else self.tensor_count,
                  len(self.entries) if self.entry_count is None else self.entry_count)
        return (self.magic + struct.pack("<IQQ", self.version, *counts) + b"".join(self.entries)
                + b"".join(tensor.info() for tensor in self.tensors))

    def build(self):
        out = bytearray(self.head())
        out += self.padding * (-len(out) % self.alignment)
        for tensor in self.tensors:
            out += tensor.data + self.padding * (-len(tensor.data) % self.alignment)
        return bytes(out)

    def facts(self):
        return {"tensors": len(self.tensors), "entries": len(self.entries)}


def scalar(random, kind):
    if kind in (F32, F64):
        return random.pick([0.0, -0.0, 1e-40, 1.5, float("inf"), float("-inf"), float("nan")])
    if kind == BOOL:
        return random.below(2)
    if kind == STRING:
        return random.pick(["", "a", "Grüße 你好", "nul \0 inside", random.word() * random.between(1, 20)])
    bits = struct.calcsize(FORMATS[kind]) * 8
    low = 0 if kind in (U8, U16, U32, U64) else -2**(bits - 1)
    return random.pick([low, low + 1, low + 2**bits - 1, low + random.below(2**bits)])


def any_file(random, tensors=None, **more):
    """A right file with random entries and tensors (`tensors`: at least so many)."""
    entries = [("general.architecture", STRING, "llama"), ("general.quantization_version", U32, 2)]
    for i in range(random.below(6)):
        kind = random.below(13)
        if kind == ARRAY:
            element = random.pick([U8, I16, U32, I32, F32, BOOL, STRING, I64, F64])
            data = (element, [scalar(random, element) for _ in range(random.below(9))])
        else:
            data = scalar(random, kind)
        entries.append((f"{random.word()}.{random.word()}_{i}", kind, data))
    count = random.between(tensors or 0, (tensors or 0) + 3)
    made = []
    for i in range(count):
        kind = random.pick(list(TYPES))
        dims = [TYPES[kind][0] * random.between(1, 3)] + [random.between(1, 3) for _ in range(random.below(4))]
        made.append(Tensor(f"blk.{i}.{random.word()}.weight", dims, kind))
        made[-1].data = random.bytes(made[-1].size())
    return File(entries, made, **more)


def built(file, facts=True):
    return file.build(), file.facts() if facts else {}


def last(random):
    """A right file and its last tensor."""
    file = any_file(random, tensors=1)
    return file, file.tensors[-1]


@rule("plain", ACCEPT, "a file as the document describes it")
def _(random):
    return built(any_file(random))


@rule("magic", REFUSE, "header.magic must be `GGUF` at the byte level")
def _(random):
    file = any_file(random)
    file.magic = random.pick([b"FUGG", b"GGML", b"GGJT", b"gguf", b"\0\0\0\0", b"GGUG", b"PK\3\4", b"<htm"])
    return built(file, False)


@rule("version-unknown", REFUSE, "header.version must be 3 for this document")
def _(random):
    return built(any_file(random, version=random.pick([0, 1, 4, 5, 100, 2**31, 2**32 - 1])), False)


@rule("version-2", BOUNDED, "version 2 has the same layout; the document describes version 3 only")
def _(random):
    return built(any_file(random, version=2), False)


@rule("big-endian", REFUSE, "on a little-endian machine the version of a big-endian file reads as 0x03000000")
def _(random):
    entries = b"".join(struct.pack(">Q", 3) + b"a.b" + struct.pack(">II", U32, i) for i in range(random.between(1, 3)))
    return b"GGUF" + struct.pack(">IQQ", 3, 0, entries.count(b"a.b")) + entries


@rule("cut-in-header", REFUSE, "header and tensor infos are stored whole")
def _(random):
    file = any_file(random, tensors=1)
    return file.build()[:random.below(len(file.head()))]


@rule("cut-in-data", REFUSE, "each tensor's data must be stored within tensor_data")
def _(random):
    file, tensor = last(random)
    data = file.build()
    end = len(data) - -len(tensor.data) % file.alignment
    return data[:end - random.between(1, len(tensor.data))]


@rule("count-of-tensors", REFUSE, "header.tensor_count is the number of tensors in the file")
def _(random):
    file = any_file(random)
    file.tensor_count = random.pick(HUGE)
    return built(file, False)


@rule("count-of-entries", REFUSE, "header.metadata_kv_count is the number of pairs in the file")
def _(random):
    file = any_file(random)
    file.entry_count = random.pick(HUGE)
    return built(file, False)


@rule("count-off-by-one", BOUNDED, "as above; what follows may happen to read as one more")
def _(random):
    file = any_file(random, tensors=1)
    if random.below(2):
        file.tensor_count = len(file.tensors) + random.pick([-1, 1])
    else:
        file.entry_count = len(file.entries) + random.pick([-1, 1])
    return built(file, False)


@rule("bits", BOUNDED, "bits of a right file flipped")
def _(random):
    return flipped(random, any_file(random, tensors=1).build())


@rule("bits-in-header", BOUNDED, "bits of the header flipped")
def _(random):
    file = any_file(random, tensors=1)
    head = file.head()
    return flipped(random, head) + file.build()[len(head):]


@rule("random-body", BOUNDED, "random bytes behind a right beginning")
def _(random):
    body = bytes(random.below(14) * random.below(2) if random.below(3) else random.below(256) for _ in range(random.below(400)))
    return b"GGUF" + struct.pack("<IQQ", 3, random.below(4), random.below(4)) + body


@rule("empty-file", REFUSE, "a file has a header of 24 bytes")
def _(random):
    return random.pick([b"", b"G", b"GGUF", b"GGUF\3\0\0\0", b"\0" * 24, b"\n", random.bytes(24)])
