"""Functions of each element, of the array API standard."""

import builtins
import math

from . import _gimbal
from ._array_dtypes import bool as bool_, float64, isdtype, result_type
from ._making import full as _full, where as _where

Tensor = _gimbal.Tensor


def _floating(name, x):
    if not isdtype(x.dtype, "real floating"):
        raise _gimbal.DTypeError(f"{name} takes floating-point numbers, found {x.dtype!r}")
    return x


def _unary(name, compute, floats=True):
    def of(x, /):
        return compute(_floating(name, x) if floats else x)

    of.__name__, of.__doc__ = name, f"{name} of the standard."
    globals()[name] = of


def _whole(function):
    """Rounding leaves integers alone."""
    return lambda x: function(x) if isdtype(x.dtype, "real floating") else x.copy()


def _log10(x):
    return (x.to(float64).log() / math.log(10)).to(x.dtype)


for _name, _compute, _floats in (
        ("abs", lambda x: x.abs() if not isdtype(x.dtype, "unsigned integer") else x.copy(), False), ("negative", lambda x: -x, False),
        ("positive", lambda x: x.copy(), False), ("conj", lambda x: x.copy(), False), ("real", lambda x: x.copy(), False),
        ("imag", lambda x: _full(x.shape, 0, x.dtype, x.queue), False),
        ("square", lambda x: x * x, False), ("sign", lambda x: x.sign() + 0 if isdtype(x.dtype, "real floating") else (x > 0).to(x.dtype) - (x < 0).to(x.dtype), False),
        ("ceil", _whole(Tensor.ceil), False), ("floor", _whole(Tensor.floor), False), ("trunc", _whole(Tensor.trunc), False),
        ("round", _whole(Tensor.round), False), ("bitwise_invert", lambda x: ~x, False), ("logical_not", lambda x: ~x, False),
        ("isnan", lambda x: x.is_nan() if isdtype(x.dtype, "real floating") else x != x, False),
        ("isinf", lambda x: x.abs() == math.inf if isdtype(x.dtype, "real floating") else x != x, False),
        ("isfinite", lambda x: x - x == 0 if isdtype(x.dtype, "real floating") else x == x, False),
        ("cos", Tensor.cos, True), ("sin", Tensor.sin, True), ("tan", Tensor.tan, True), ("tanh", Tensor.tanh, True), ("exp", Tensor.exp, True),
        ("expm1", Tensor.expm1, True), ("log", Tensor.log, True), ("log1p", Tensor.log1p, True), ("log2", Tensor.log2, True), ("log10", _log10, True),
        ("sqrt", Tensor.sqrt, True), ("reciprocal", Tensor.recip, True), ("sinh", Tensor.sinh, True), ("cosh", Tensor.cosh, True),
        ("asin", Tensor.asin, True), ("acos", Tensor.acos, True), ("atan", Tensor.atan, True), ("asinh", Tensor.asinh, True),
        ("acosh", Tensor.acosh, True), ("atanh", Tensor.atanh, True),
        ("signbit", lambda x: _full((), 1.0, x.dtype, x.queue).copysign(x) < 0, True)):
    _unary(_name, _compute, _floats)


def _pair(name, a, b):
    """Both as tensors of one dtype: the standard's promotion, in which a number takes the tensor's dtype."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise _gimbal.UsageError(f"{name}: at least one operand must be a tensor")
    t = result_type(a, b)
    return tuple(x.to(t) if isinstance(x, Tensor) else x for x in (a, b))


def _binary(name, compute):
    def of(x1, x2, /):
        return compute(*_pair(name, x1, x2))

    of.__name__, of.__doc__ = name, f"{name} of the standard."
    globals()[name] = of


def _both(function):
    return lambda a, b: function(a, b) if isinstance(a, Tensor) else function(b, a)


def _of_floats(name, compute):
    def of(a, b):
        return compute(*(_floating(name, x) if isinstance(x, Tensor) else x for x in (a, b)))

    return of


def _tensors(a, b):
    one = a if isinstance(a, Tensor) else b
    return tuple(x if isinstance(x, Tensor) else _full((), x, one.dtype, one.queue) for x in (a, b))


def _map(name):
    def of(a, b):
        a, b = _tensors(a, b)
        return _gimbal.map(a, name, b)

    return _of_floats(name, of)


def _logaddexp(a, b):
    high, apart = _both(Tensor.maximum)(a, b), builtins.abs(a - b)
    return _where(a == b, high + math.log(2), high + (-apart).exp().log1p())


def _hypot(a, b):
    a, b = builtins.abs(a), builtins.abs(b)
    high, low = _both(Tensor.maximum)(a, b), _both(Tensor.minimum)(a, b)
    part = low / high
    return _where((high == 0) | (high == math.inf), high, high * (part * part + 1).sqrt())


for _name, _compute in (
        ("add", lambda a, b: a + b), ("subtract", lambda a, b: a - b), ("multiply", lambda a, b: a * b), ("divide", _of_floats("divide", lambda a, b: a / b)),
        ("floor_divide", lambda a, b: a // b), ("remainder", lambda a, b: a % b), ("pow", lambda a, b: a ** b), ("bitwise_and", lambda a, b: a & b),
        ("bitwise_or", lambda a, b: a | b), ("bitwise_xor", lambda a, b: a ^ b), ("bitwise_left_shift", lambda a, b: a << b),
        ("bitwise_right_shift", lambda a, b: a >> b), ("logical_and", lambda a, b: a & b), ("logical_or", lambda a, b: a | b),
        ("logical_xor", lambda a, b: a ^ b), ("equal", lambda a, b: a == b), ("not_equal", lambda a, b: a != b), ("less", lambda a, b: a < b),
        ("less_equal", lambda a, b: a <= b), ("greater", lambda a, b: a > b), ("greater_equal", lambda a, b: a >= b),
        ("maximum", _both(Tensor.maximum)), ("minimum", _both(Tensor.minimum)), ("logaddexp", _logaddexp), ("hypot", _hypot),
        ("atan2", _map("atan2")), ("copysign", _map("copysign"))):
    _binary(_name, _compute)


def clip(x, /, min=None, max=None):
    """Not below min, not above max: numbers or tensors."""
    low = x if min is None else x.maximum(min.to(x.dtype) if isinstance(min, Tensor) else min)
    high = low if max is None else low.minimum(max.to(x.dtype) if isinstance(max, Tensor) else max)
    return high.copy() if high is x else high


def where(condition, x1, x2, /):
    """x1 where the condition holds, else x2."""
    a, b = _pair("where", x1, x2)
    return _where(condition, a, b)


__all__ = [n for n, f in list(globals().items()) if callable(f) and not n.startswith("_") and n not in ("Tensor", "isdtype", "result_type", "bool_", "float64")]
