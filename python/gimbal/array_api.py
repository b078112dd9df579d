"""gimbal.array_api: the functions of the Python array API standard (2024.12) over gimbal.Tensor, in double and single precision.

docs/quality.md has the judge of it, and the functions that are not here with their reasons. Results lie where their operands do. Functions whose result
has a shape that depends on values (nonzero, unique_values, ...) read their operand on the host.
"""

import builtins
import math

from . import _gimbal
from . import _making
from ._array_elementwise import *  # noqa: F403
from ._array_elementwise import __all__ as _elementwise
from ._array_manipulation import *  # noqa: F403
from ._array_manipulation import __all__ as _manipulation
from ._array_dtypes import (_like, bool, can_cast, finfo, float32, float64, iinfo, int8, int16, int32, int64, isdtype, result_type, uint8, uint16,
                            uint32, uint64)
from ._dtypes import DType, dtype as _dtype_of
from ._queues import queue_of as _queue_of

__array_api_version__ = "2024.12"
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
_NUMBERS = (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64)


# ---- making
def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of nested lists, a number, a buffer or an array with __dlpack__; buffers are shared unless `copy`."""
    return _making.asarray(obj, dtype, device, copy)


def from_dlpack(x, /, *, device=None, copy=None):
    """A tensor over the memory of an array with __dlpack__."""
    return _making.from_dlpack(x, device, copy)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... below stop."""
    return _making.arange(start, stop, step, dtype, device)


def empty(shape, *, dtype=None, device=None):
    """As zeros()."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None):
    """A tensor of zeros."""
    return _making.zeros(shape, dtype or float32, device)


def ones(shape, *, dtype=None, device=None):
    """A tensor of ones."""
    return _making.ones(shape, dtype or float32, device)


def full(shape, fill_value, *, dtype=None, device=None):
    """A tensor with one value; without a dtype of its kind."""
    if dtype is None:
        dtype = bool if fill_value is True or fill_value is False else int64 if isinstance(fill_value, int) else float32
    return _making.full(shape, fill_value, dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """As zeros_like()."""
    return zeros_like(x, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of another tensor's shape."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of another tensor's shape."""
    return full_like(x, 1, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """One value in another tensor's shape."""
    return _making.full(x.shape, fill_value, dtype or x.dtype, device or x.queue)


def _near(k, n_rows, n_cols):
    """A diagonal; those outside of the matrix are next to it, since k may be any number."""
    return builtins.max(-n_rows, builtins.min(k, n_cols))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on a diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    rows, columns = (_making.arange(n, device=device) for n in (n_rows, n_cols))
    return (columns.unsqueeze(0) == rows.unsqueeze(1) + _near(k, n_rows, n_cols)).to(_dtype_of(dtype or float32))


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` numbers in even steps."""
    parts = num - 1 if endpoint else num
    places = _making.arange(0, num, dtype="f64", device=device)
    x = places * ((stop - start) / parts if parts > 0 else 0.0) + float(start)
    if endpoint and num > 1:
        x = _making.cat([x.narrow(0, 0, num - 1), _making.full((1,), float(stop), "f64", device)])
    return x.to(_dtype_of(dtype or float32))


def meshgrid(*arrays, indexing="xy"):
    """Each of several tensors of one dim along a dim of its own."""
    n = len(arrays)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[:2] = [1, 0]
    shape = tuple(arrays[i].shape[0] for i in order)
    return [a.reshape([a.shape[0] if order[k] == i else 1 for k in range(n)]).broadcast_to(shape) for i, a in enumerate(arrays)]


def _band(x, holds):
    rows, columns = (_making.arange(n, device=x.queue) for n in x.shape[-2:])
    mask = holds(columns.unsqueeze(0) - rows.unsqueeze(1))
    return _making.where(mask.broadcast_to(x.shape), x, zeros_like(x))


def tril(x, /, *, k=0):
    """The part at and below a diagonal, else zeros."""
    return _band(x, lambda above: above <= _near(k, *x.shape[-2:]))


def triu(x, /, *, k=0):
    """The part at and above a diagonal, else zeros."""
    return _band(x, lambda above: above >= _near(k, *x.shape[-2:]))


def astype(x, dtype, /, *, copy=True, device=None):
    """Another dtype."""
    if device is not None:
        x = _gimbal.to_queue(x, _queue_of(device))
    return x.copy() if x.dtype is dtype and copy else x.to(dtype)


# ---- inspection
class _Info:
    def capabilities(self):
        """A dict of the standard."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        """Where tensors are made."""
        return _queue_of().location

    def default_dtypes(self, *, device=None):
        """A dict of the standard."""
        return {"real floating": float32, "complex floating": None, "integral": int64, "indexing": int64}

    def devices(self):
        """The devices whose tensors compute."""
        return ["cpu:0"]

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of a kind by their names in the standard."""
        return {_like(t): t for t in _NUMBERS if kind is None or isdtype(t, kind)}


def __array_namespace_info__():
    """What this namespace offers."""
    return _Info()


__all__ = [*_elementwise, *_manipulation, "DType", "__array_api_version__", "__array_namespace_info__", "arange", "asarray", "astype", "bool", "can_cast",
           "e", "empty", "empty_like", "eye", "finfo", "float32", "float64", "from_dlpack", "full", "full_like", "iinfo", "inf", "int16", "int32", "int64",
           "int8", "isdtype", "linspace", "meshgrid", "nan", "newaxis", "ones", "ones_like", "pi", "result_type", "tril", "triu", "uint16", "uint32",
           "uint64", "uint8", "zeros", "zeros_like"]
