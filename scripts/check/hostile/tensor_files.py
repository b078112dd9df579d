"""Hostile safetensors files (https://huggingface.co/docs/safetensors#format) and arrays of NumPy (its documentation of numpy.lib.format)."""
import io
import json
import struct
import zipfile

from .case import ACCEPT, BOUNDED, REFUSE, Rules, flipped

safetensors = Rules("safetensors", ".safetensors", "https://huggingface.co/docs/safetensors#format")
npy = Rules("npy", ".npy", "https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html")
npz = Rules("npz", ".npz", "https://numpy.org/doc/stable/reference/generated/numpy.savez.html")

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1}


def header(entries, data=b"", length=None, spaces=0):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    text += b" " * spaces
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def right(random):
    """Entries that lie one behind the other, and their data."""
    entries, at = {}, 0
    for i in range(random.between(1, 4)):
        dtype = random.pick(list(SIZES))
        shape = [random.between(1, 4) for _ in range(random.below(4))]
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        entries[f"t{i}.{random.word()}"] = entry(dtype, shape, at, at + size)
        at += size
    return entries, bytes(at)


def changed(random, change):
    entries, data = right(random)
    name = random.pick(list(entries))
    change(entries[name])
    return header(entries, data)


@safetensors("plain", ACCEPT, "8 bytes of length, a JSON object, the data")
def _(random):
    entries, data = right(random)
    if random.below(2):
        entries = {"__metadata__": {"format": "pt"}, **entries}
    return header(entries, data, spaces=random.below(9)), {"tensors": len([name for name in entries if name != "__metadata__"])}


@safetensors("scalar-and-empty", ACCEPT, "a scalar has the shape [], and a dimension may be 0")
def _(random):
    return header({"s": entry("F32", [], 0, 4), "e": entry("F32", [0, 3], 4, 4)}, bytes(4)), {"tensors": 2}


@safetensors("header-length", REFUSE, "the length of the header is at most 100 MB, and the header is within the file")
def _(random):
    entries, data = right(random)
    return header(entries, data, length=random.pick([2**20, 100_000_001, 2**32, 2**63, 2**64 - 8, 2**64 - 1]))


@safetensors("cut", REFUSE, "the data of each tensor are within the file")
def _(random):
    entries, data = right(random)
    whole = header(entries, data)
    return whole[:random.below(len(whole))]


@safetensors("not-json", REFUSE, "the header is a JSON object that begins with {")
def _(random):
    return header(random.pick([b"", b"[]", b"{", b'{"a":}', b"nul", b" {}", b"\xff\xfe", b'{"a":1}}']), bytes(8))


@safetensors("duplicate", REFUSE, "duplicate keys are disallowed")
def _(random):
    one = json.dumps(entry("F32", [1], 0, 4))
    return header(f'{{"a":{one},"a":{one}}}'.encode(), bytes(4))


for name_, text_, change_ in [
        ("offsets-past-end", "data_offsets are within the buffer", lambda e: e.update(data_offsets=[e["data_offsets"][0], e["data_offsets"][1] + 10**6])),
        ("offsets-huge", "data_offsets are within the buffer", lambda e: e.update(data_offsets=[2**64 - 8, 2**64 - 4], shape=[1], dtype="F32")),
        ("offsets-backwards", "BEGIN is not behind END", lambda e: e.update(data_offsets=[e["data_offsets"][1], e["data_offsets"][0]], shape=[3, 3])),
        ("shape-and-size", "END - BEGIN is the size of shape and dtype", lambda e: e.update(shape=e["shape"] + [7])),
        ("shape-wraps", "END - BEGIN is the size of shape and dtype", lambda e: e.update(shape=[2**32, 2**32, 4], dtype="F32")),
        ("shape-kind", "shape: a list of integers of 0 and more", lambda e: e.update(shape=[-1, -4])),
        ("shape-fraction", "shape: a list of integers of 0 and more", lambda e: e.update(shape=[1.5])),
        ("dtype", "dtype: one of the known names", lambda e: e.update(dtype="F33")),
        ("missing", "each entry has dtype, shape and data_offsets", lambda e: e.pop("dtype"))]:
    @safetensors(name_, REFUSE, text_)
    def _(random, change_=change_):
        return changed(random, change_)


@safetensors("holes", REFUSE, "the byte buffer is entirely indexed, and has no holes")
def _(random):
    gap = random.between(1, 100)
    return header({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 4 + gap, 8 + gap)}, bytes(8 + gap))


@safetensors("overlap", REFUSE, "tensors do not share bytes")
def _(random):
    return header({"a": entry("U8", [8], 0, 8), "b": entry("U8", [8], random.below(8), 8 + random.below(1))}, bytes(8))


@safetensors("trailing", REFUSE, "the byte buffer is entirely indexed")
def _(random):
    entries, data = right(random)
    return header(entries, data + random.bytes(random.between(1, 50)))


@safetensors("deep", BOUNDED, "JSON that nests deeply")
def _(random):
    depth = random.pick([1000, 100000])
    return header(b'{"a":' + b"[" * depth + b"]" * depth + b"}")


@safetensors("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, header(*right(random)))


def array(descr="'<f4'", shape="(6,)", data=bytes(24), version=b"\1\0", magic=b"\x93NUMPY", order="False", length=None):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    wide = version[0] > 1
    text += b" " * (-(len(magic) + 3 + (4 if wide else 2) + len(text)) % 64) + b"\n"
    return magic + version + struct.pack("<I" if wide else "<H", len(text) if length is None else length) + text + data


@npy("plain", ACCEPT, "magic, version, header, data")
def _(random):
    return random.pick([array(), array(version=b"\2\0"), array(order="True", shape="(2, 3)"), array(shape="()", data=bytes(4)), array(shape="(0,)", data=b"")])


npy.table(REFUSE, [
    ("magic", "the first six bytes are \\x93NUMPY", [array(magic=b"\x93NUMPZ"), b"", b"PK\3\4"]),
    ("version", "versions are 1.0, 2.0 and 3.0", [array(version=b"\x09\0"), array(version=b"\0\0")]),
    ("header-length", "the header is within the file", [array(length=65000), array(version=b"\2\0", length=2**32 - 1)]),
    ("header-code", "the header is a literal: it is never run", [array(descr="__import__('os').system('id')"), array(shape="open('/etc/passwd')")]),
    ("objects", "arrays of objects are pickles, which a reader does not load", [array(descr="'|O'", data=b"\x80\4N."), array(descr="[('a', '|O')]", data=b"\x80\4N.")]),
    ("descr", "descr is a type", [array(descr="'<q9'"), array(descr="7"), array(descr="''")]),
    ("shape", "shape is a tuple of integers of 0 and more", [array(shape="(-6,)"), array(shape="6"), array(shape="(1.5,)"), array(shape="('a',)")]),
    ("shape-wraps", "the data are within the file", [array(shape="(4294967296, 4294967296, 4)"), array(shape="(9223372036854775807,)")]),
    ("cut", "the data are within the file", [array(data=bytes(23)), array()[:40], array()[:9]])])


@npy("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, array())


def archive(name="a.npy", data=None, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr(zipfile.ZipInfo(name), array() if data is None else data, method)
    return out.getvalue()


@npz("plain", ACCEPT, "an archive of .npy files")
def _(random):
    return random.pick([archive(), archive(method=zipfile.ZIP_DEFLATED)])


@npz("name", BOUNDED, "a name that is a path elsewhere: a reader writes no file")
def _(random):
    return archive(random.pick(["../../evil.npy", "/etc/evil.npy", "..\\evil.npy", "a/../../b.npy"]))


@npz("cut", REFUSE, "the directory is at the end of an archive")
def _(random):
    whole = archive()
    return whole[:random.between(1, len(whole) - 23)]


@npz("bomb", BOUNDED, "a small entry may hold large data")
def _(random):
    return archive(data=array(shape=f"({random.pick([6, 10**6])},)", data=bytes(5_000_000)), method=zipfile.ZIP_DEFLATED)


@npz("bits", BOUNDED, "bits flipped")
def _(random):
    return flipped(random, archive())
