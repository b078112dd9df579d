"""Number formats: gimbal.f32, gimbal.q4_k and so on."""

from . import _gimbal


class DType:
    """A number format. `name` is what users type: "f32". Compare with `is` or ==."""

    __slots__ = ("name", "number")

    def __init__(self, name, number):
        self.name, self.number = name, number

    def __repr__(self):
        return "gimbal." + self.name

    def __reduce__(self):
        return dtype, (self.name,)


PLAIN = ("f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "f8_e4m3", "f8_e5m2")
QUANTIZED = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s",
             "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "iq1_m", "tq1_0", "tq2_0", "mxfp4", "nvfp4", "q1_0", "q2_0")
BY_NAME = {name: DType(name, _gimbal.dtype_named(name)) for name in PLAIN + QUANTIZED}
BY_NUMBER = {t.number: t for t in BY_NAME.values()}

# NumPy's names.
ALIASES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
           "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool_": "bool"}

# The letters of Python's struct module, as buffers name their elements.
OF_FORMAT = {"f": "f32", "d": "f64", "e": "f16", "?": "bool", "b": "i8", "B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32",
             "q": "i64", "Q": "u64", "l": "i64", "L": "u64"}


def dtype(which):
    """The DType of a name, or of itself. Raises DTypeError for others."""
    if isinstance(which, DType):
        return which
    if which is float:
        return BY_NAME["f32"]
    if which is int:
        return BY_NAME["i64"]
    if which is bool:
        return BY_NAME["bool"]
    name = which if isinstance(which, str) else getattr(which, "name", None) or getattr(which, "__name__", str(which))
    name = ALIASES.get(name, name)
    if name in BY_NAME:
        return BY_NAME[name]
    return BY_NUMBER[_gimbal.dtype_named(name)]
