"""GGUF files for the oracle scripts: metadata read and written again with changes, and files made from nothing."""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
ALIGNMENT = 32


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def packed(kind, value):
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        element, items = value
        body = b"".join(map(text, items)) if element == STRING else struct.pack(f"<{len(items)}{PACK[element]}", *items)
        return struct.pack("<IQ", element, len(items)) + body
    return struct.pack("<" + PACK[kind], value)


def entry(kind, value):
    """The type and value of a key as they stand in a file."""
    return struct.pack("<I", kind) + packed(kind, value)


def read_metadata(path):
    """{key: type and value as they stand in the file}, in the order of the file; tensors are not read."""
    with open(path, "rb") as file:
        return parse_metadata(file.read(), path)[0]


def read_tensors(path):
    """[(name, dimensions in the order of the file, type, bytes)], as write() takes them; the bytes may end with the file's padding."""
    with open(path, "rb") as file:
        data = file.read()
    at = parse_metadata(data, path)[1]
    infos = []
    for _ in range(struct.unpack_from("<Q", data, 8)[0]):
        size, = struct.unpack_from("<Q", data, at)
        name = data[at + 8:at + 8 + size].decode()
        at += 8 + size
        count, = struct.unpack_from("<I", data, at)
        *dimensions, kind, offset = struct.unpack_from(f"<{count}QIQ", data, at + 4)
        at += 16 + 8 * count
        infos.append((name, dimensions, kind, offset))
    start = at + -at % ALIGNMENT
    ends = sorted([offset for *_, offset in infos] + [len(data) - start])
    return [(name, dimensions, kind, data[start + offset:start + next(end for end in ends if end > offset)])
            for name, dimensions, kind, offset in infos]


def parse_metadata(data, path):
    """What read_metadata() gives, and where the metadata ends."""
    magic, version, _, count = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError(f"{path} is no GGUF file of version 2 or 3")
    at = 24
    metadata = {}

    def skip_text(at):
        return at + 8 + struct.unpack_from("<Q", data, at)[0]

    def skip(kind, at):
        if kind == STRING:
            return skip_text(at)
        if kind != ARRAY:
            return at + struct.calcsize(PACK[kind])
        element, items = struct.unpack_from("<IQ", data, at)
        at += 12
        if element != STRING:
            return at + items * struct.calcsize(PACK[element])
        for _ in range(items):
            at = skip_text(at)
        return at

    for _ in range(count):
        end = skip_text(at)
        key = data[at + 8:end].decode()
        begin = end
        end = skip(struct.unpack_from("<I", data, begin)[0], begin + 4)
        metadata[key] = data[begin:end]
        at = end
    return metadata, at


def strings(raw):
    """The texts of an array of strings, given as in read_metadata()."""
    element, count = struct.unpack_from("<IQ", raw, 4)
    assert element == STRING
    out, at = [], 16
    for _ in range(count):
        size, = struct.unpack_from("<Q", raw, at)
        out.append(raw[at + 8:at + 8 + size])
        at += 8 + size
    return out


def write(path, metadata, tensors=()):
    """`metadata` as read_metadata() gives it; `tensors`: (name, dimensions in the order of the file, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + raw for key, raw in metadata.items())
    offset = 0
    for name, dimensions, kind, data in tensors:
        head += text(name) + struct.pack("<I", len(dimensions)) + struct.pack(f"<{len(dimensions)}Q", *dimensions)
        head += struct.pack("<IQ", kind, offset)
        offset += len(data) + -len(data) % ALIGNMENT
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for _, _, _, data in tensors:
            file.write(data + bytes(-len(data) % ALIGNMENT))
