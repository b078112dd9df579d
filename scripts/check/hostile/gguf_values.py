"""Hostile keys and values in GGUF files; more rules of gguf.py."""
import struct

from .case import ACCEPT, BOUNDED, REFUSE
from .gguf import ARRAY, BOOL, F32, F64, FORMATS, HUGE, I16, STRING, U8, U32, any_file, built, rule, scalar, text

KEYS = [("key-empty", "a key is hierarchical: segments of lower_snake_case", lambda r: b""),
        ("key-capitals", "segments of a key are lower_snake_case", lambda r: f"General.{r.word().upper()}"),
        ("key-not-ascii", "a key must be a valid ASCII string", lambda r: f"general.{r.word()}é"),
        ("key-not-utf8", "a key must be a valid ASCII string", lambda r: b"general.\xff\xfe" + r.word().encode()),
        ("key-too-long", "a key is at most 65535 bytes long", lambda r: "a" * r.pick([65536, 65537, 70000, 200000]))]
for name_, text_, key_ in KEYS:
    @rule(name_, REFUSE, text_)
    def _(random, key_=key_):
        file = any_file(random)
        file.entry(key_(random), random.pick([U8, U32, F64]), 1)
        return built(file, False)


@rule("key-longest", ACCEPT, "a key is at most 65535 bytes long")
def _(random):
    file = any_file(random)
    file.entry("a" * 65535, U32, 1)
    return built(file)


@rule("key-twice", BOUNDED, "the document does not say what a second pair with the same key means")
def _(random):
    file = any_file(random)
    for _ in range(2):
        file.entry("twice.a", U32, random.below(9))
    return built(file, False)


@rule("string-past-end", REFUSE, "a string has `len` bytes")
def _(random):
    file = any_file(random)
    payload = struct.pack("<Q", random.pick(HUGE)) + b"text"
    file.raw("a.text", *random.pick([(STRING, payload), (ARRAY, struct.pack("<IQ", STRING, 1) + payload)]))
    return built(file, False)


@rule("string-not-utf8", REFUSE, "a string is UTF-8")
def _(random):
    file = any_file(random)
    file.raw("a.text", STRING, text(random.pick([b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"])))
    return built(file, False)


@rule("value-type", REFUSE, "value_type must be one of the 13 types")
def _(random):
    file = any_file(random)
    file.raw("a.value", random.pick([13, 14, 255, 2**31, 2**32 - 1]), random.bytes(64))
    return built(file, False)


@rule("bool", REFUSE, "a bool is 0 or 1; anything else is invalid")
def _(random):
    file, byte = any_file(random), bytes([random.between(2, 255)])
    file.raw("a.bool", *random.pick([(BOOL, byte), (ARRAY, struct.pack("<IQ", BOOL, 2) + b"\1" + byte)]))
    return built(file, False)


@rule("array-past-end", REFUSE, "an array has `len` elements")
def _(random):
    file = any_file(random)
    kind = random.pick([U8, I16, U32, F32, F64, STRING])
    file.raw("a.list", ARRAY, struct.pack("<IQ", kind, random.pick(HUGE + [2**62 + 1, 2**61 + 1])) + random.bytes(32))
    return built(file, False)


@rule("array-element-type", REFUSE, "the type of an array's elements is one of the 13 types")
def _(random):
    file = any_file(random)
    file.raw("a.list", ARRAY, struct.pack("<IQ", random.pick([13, 99, 2**32 - 1]), random.below(3)) + random.bytes(32))
    return built(file, False)


@rule("array-nested", ACCEPT, "any type of element is valid, arrays included")
def _(random):
    file = any_file(random)
    file.entry("a.list", ARRAY, (ARRAY, [(U32, [1, 2]), (STRING, ["x"])]))
    return built(file)


@rule("array-nested-deep", BOUNDED, "arrays can be nested; how deeply is not said")
def _(random):
    depth = random.pick([100, 1000, 100000])
    file = any_file(random)
    file.raw("a.list", ARRAY, struct.pack("<IQ", ARRAY, 1) * depth + struct.pack("<IQ", U8, 0))
    return built(file, False)


@rule("odd-values", ACCEPT, "NaN, infinities, extremes, empty strings and empty arrays are values")
def _(random):
    file = any_file(random)
    for kind in FORMATS:
        file.entry(f"odd.value_{kind}", kind, scalar(random, kind))
    file.entry("odd.empty", STRING, "")
    file.entry("odd.none", ARRAY, (random.pick([U8, STRING, F64]), []))
    file.entry("odd.texts", ARRAY, (STRING, ["", "\0", "a" * 1000]))
    return built(file)
