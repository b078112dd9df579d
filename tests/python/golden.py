"""Where the reference data of tests lies, and how its tensors are read and judged (../data/README.md)."""

import base64
import json
import math
import os
import struct

import gimbal as gb

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.join(HERE, "..", "..", "..", "shared", "golden")
FOLDER = os.environ.get("GIMBAL_GOLDEN") or (SHARED if os.path.isdir(SHARED) else os.path.join(HERE, "..", "data"))

LETTERS = {"f32": "f", "f64": "d", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "bool": "B",
           "bf16": "H", "f8_e4m3": "B", "f8_e5m2": "B"}
FLOATS = ("f16", "bf16", "f32", "f64")


def cases(family):
    with open(os.path.join(FOLDER, "tensors", family + ".json")) as file:
        return json.load(file)["cases"]


def tensor_of(j):
    return gb.from_bytes(base64.b64decode(j["b64"]), j["dims"], j["dtype"])


def words(dtype, data):
    return struct.unpack("<%d%s" % (len(data) // struct.calcsize(LETTERS[dtype]), LETTERS[dtype]), data)


def numbers(dtype, data):
    """The values of floats as Python's."""
    all = words(dtype, data)
    return [struct.unpack("<f", struct.pack("<I", w << 16))[0] for w in all] if dtype == "bf16" else list(all)


def ulp(v, mantissa, least):
    return math.ldexp(1, max(math.frexp(v)[1] - 1 - mantissa, least))


def bound(want, dtype, exact, got, tolerance):
    b = want["ulps"] * (ulp(exact, 52, -1074) if dtype == "f64" else ulp(exact, 23, -149)) + want.get("abs", 0) + tolerance
    if dtype == "f16":
        b += max(ulp(exact, 10, -24), ulp(got, 10, -24)) / 2
    if dtype == "bf16":
        b += max(ulp(exact, 7, -133), ulp(got, 7, -133)) / 2
    return b


def wrong_exact(want, dtype, got):
    expected = base64.b64decode(want["b64"])
    if got == expected:
        return None
    for i, (a, b) in enumerate(zip(words(dtype, got), words(dtype, expected))):
        if a == b and dtype not in FLOATS:
            continue
        if dtype in FLOATS:
            x, y = numbers(dtype, got)[i], numbers(dtype, expected)[i]
            same_sign = math.copysign(1, x) == math.copysign(1, y) or not want.get("zero_sign", True)
            if (math.isnan(x) and math.isnan(y)) or (x == y and same_sign):
                continue
            return f"value {i} is {x}, expected {y}"
        if dtype == "f8_e4m3" and a & 0x7F == 0x7F == b & 0x7F or dtype == "f8_e5m2" and a & 0x7F > 0x7C < b & 0x7F:
            continue
        return f"value {i} is {a}, expected {b}"
    return None


def wrong(want, x):
    """What is wrong with an output; None: nothing."""
    dtype = x.dtype.name
    if dtype != want["dtype"] or list(x.shape) != want["dims"]:
        return f"is {dtype}{list(x.shape)}, expected {want['dtype']}{want['dims']}"
    got = x.tobytes()
    if want.get("exact"):
        return wrong_exact(want, dtype, got)
    exact = words("f64", base64.b64decode(want["f64"]))
    tolerances = words("f32", base64.b64decode(want["tol"])) if "tol" in want else [0] * len(exact)
    for i, (a, b, t) in enumerate(zip(numbers(dtype, got), exact, tolerances)):
        if a == b or (math.isnan(a) and math.isnan(b)):
            continue
        if math.isinf(a) and math.isfinite(b) and abs(b) >= {"f16": 65520, "f64": math.inf}.get(dtype, 2.0 ** 128 * (1 - 2.0 ** -25)) * (1 - 1e-6):
            continue
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b) or not abs(a - b) <= bound(want, dtype, b, a, t):
            return f"value {i} is {a}, expected {b}"
    return None
