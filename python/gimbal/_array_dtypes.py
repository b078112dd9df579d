"""The dtypes of the array API standard, and how they meet."""

from types import SimpleNamespace

from . import _gimbal
from ._dtypes import ALIASES, BY_NAME, DType

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64 = (
    BY_NAME[n] for n in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"))

_SIGNED, _UNSIGNED, _FLOATS = (int8, int16, int32, int64), (uint8, uint16, uint32, uint64), (float32, float64)
_KINDS = {"bool": (bool,), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED, "real floating": _FLOATS,
          "complex floating": (), "numeric": _SIGNED + _UNSIGNED + _FLOATS}
_STANDARD = {ours: theirs for theirs, ours in ALIASES.items() if theirs != "bool_"} | {"bool": "bool"}


def _like(dtype):
    """Its name in the standard."""
    return _STANDARD[dtype.name]


def isdtype(dtype, kind):
    """Whether a dtype is of a kind: a name of the standard, a dtype, or one of a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise _gimbal.UsageError(f"there is no kind '{kind}' of dtypes; there are {', '.join(_KINDS)}")
    return dtype in _KINDS[kind]


def _promoted(a, b):
    if a is b:
        return a
    for family in (_SIGNED, _UNSIGNED, _FLOATS):
        if a in family and b in family:
            return family[max(family.index(a), family.index(b))]
    for signed, unsigned in ((a, b), (b, a)):
        if signed in _SIGNED and unsigned in _UNSIGNED and unsigned is not uint64:
            return _SIGNED[max(_SIGNED.index(signed), _UNSIGNED.index(unsigned) + 1)]
    raise _gimbal.DTypeError(f"{a!r} and {b!r} have no common dtype in the standard")


def result_type(*arrays_and_dtypes):
    """The dtype of an operation on these tensors, dtypes and numbers."""
    result, numbers = None, []
    for one in arrays_and_dtypes:
        if isinstance(one, (int, float)):
            numbers.append(one)
            continue
        dtype = one if isinstance(one, DType) else one.dtype
        result = dtype if result is None else _promoted(result, dtype)
    if result is None:
        raise _gimbal.UsageError("result_type: at least one tensor or dtype")
    for number in numbers:
        kinds = "bool" if number is True or number is False else ("numeric" if isinstance(number, int) else "real floating")
        if kinds != "bool" and not isdtype(result, kinds):
            raise _gimbal.DTypeError(f"{result!r} does not meet the number {number}")
    return result


def can_cast(from_, to, /):
    """Whether every value of a dtype fits another, by the standard's promotion."""
    try:
        return _promoted(from_ if isinstance(from_, DType) else from_.dtype, to) is to
    except _gimbal.DTypeError:
        return False


def iinfo(type, /):
    """bits, min, max and dtype of an integer dtype."""
    dtype = type if isinstance(type, DType) else type.dtype
    if dtype not in _KINDS["integral"]:
        raise _gimbal.DTypeError(f"{dtype!r} has no integers")
    bits = int(dtype.name[1:])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype in _SIGNED else (0, 2 ** bits - 1)
    return SimpleNamespace(bits=bits, min=low, max=high, dtype=dtype)


def finfo(type, /):
    """bits, eps, max, min, smallest_normal and dtype of a floating dtype."""
    dtype = type if isinstance(type, DType) else type.dtype
    if dtype not in _FLOATS:
        raise _gimbal.DTypeError(f"{dtype!r} has no floating-point numbers")
    bits, digits, exponent = (32, 23, 127) if dtype is float32 else (64, 52, 1023)
    high = (2.0 - 2.0 ** -digits) * 2.0 ** exponent
    return SimpleNamespace(bits=bits, eps=2.0 ** -digits, max=high, min=-high, smallest_normal=2.0 ** (1 - exponent), dtype=dtype)
