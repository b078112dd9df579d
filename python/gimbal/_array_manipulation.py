"""Functions of whole tensors, of the array API standard: shapes, sums, order, products."""

import builtins
import math
from collections import namedtuple

from . import _gimbal, _making
from ._indexing import places_of
from ._array_dtypes import _promoted, bool as bool_, int64, isdtype, uint64

Tensor = _gimbal.Tensor


def _dims(x, axis):
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _at(x, axis):
    if not -x.ndim <= axis < x.ndim:
        raise _gimbal.IndexError(f"there is no axis {axis} of {x.ndim} dimensions")
    return axis % x.ndim


# ---- shapes
def broadcast_to(x, /, shape):
    """Dims of 1, and missing ones in front, repeated: a view."""
    return x.broadcast_to(tuple(shape))


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    result = [1] * builtins.max((len(s) for s in shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(reversed(shape), 1):
            if n != 1 and result[-i] not in (1, n):
                raise _gimbal.ShapeError(f"the shapes {', '.join(map(str, shapes))} neither agree nor repeat")
            result[-i] = n if n != 1 else result[-i]
    return tuple(result)


def broadcast_arrays(*arrays):
    """Each in the shape that all broadcast to."""
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [a.broadcast_to(shape) for a in arrays]


def _one_dtype(arrays):
    dtype = arrays[0].dtype
    for a in arrays[1:]:
        dtype = _promoted(dtype, a.dtype)
    return [a.to(dtype) for a in arrays]


def concat(arrays, /, *, axis=0):
    """Tensors one after the other along an axis; None: flat."""
    arrays = _one_dtype(list(arrays))
    return _making.cat([a.reshape((-1,)) for a in arrays], 0) if axis is None else _making.cat(arrays, axis)


def stack(arrays, /, *, axis=0):
    """Tensors of one shape along a new axis."""
    return _making.stack(_one_dtype(list(arrays)), axis)


def unstack(x, /, *, axis=0):
    """The slices along an axis."""
    return tuple(x.select(axis, i) for i in range(x.shape[_at(x, axis)]))


def expand_dims(x, /, axis):
    """With new axes of one element."""
    new = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(new)
    for a in new:
        if not -rank <= a < rank:
            raise _gimbal.IndexError(f"there is no axis {a} of {rank} dimensions")
    for a in sorted(a % rank for a in new):
        x = x.unsqueeze(a)
    return x


def squeeze(x, /, axis):
    """Without axes of one element."""
    for a in sorted((_at(x, a) for a in _dims(x, axis)), reverse=True):
        if x.shape[a] != 1:
            raise _gimbal.ShapeError(f"squeeze: axis {a} has {x.shape[a]} elements")
        x = x.squeeze(a)
    return x


def flip(x, /, *, axis=None):
    """Axes in the other order: a view."""
    for a in _dims(x, axis):
        x = x.flip(a)
    return x


def permute_dims(x, /, axes):
    """The axes in another order: a view."""
    return x.permute(tuple(axes)) if x.ndim else x


def moveaxis(x, source, destination, /):
    """Axes at other places: a view."""
    source, destination = ([_at(x, a) for a in _dims(x, axes)] for axes in (source, destination))
    order = [a for a in range(x.ndim) if a not in source]
    for to, of in sorted(zip(destination, source)):
        order.insert(to, of)
    return permute_dims(x, order)


def matrix_transpose(x, /):
    """The last two axes exchanged: a view."""
    return x.t()


def reshape(x, /, shape, *, copy=None):
    """Another shape of the same elements."""
    y = x.reshape(tuple(shape))
    return y.copy() if copy else y


def roll(x, /, shift, *, axis=None):
    """Elements moved along axes; those that leave come in at the other end."""
    if axis is None:
        return x.reshape((-1,)).roll(shift, 0).reshape(x.shape)
    axes = _dims(x, axis)
    for s, a in zip((shift,) * len(axes) if isinstance(shift, int) else shift, axes):
        x = x.roll(s, a)
    return x


def repeat(x, repeats, /, *, axis=None):
    """Each element several times in place."""
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    axis = _at(x, axis)
    if isinstance(repeats, Tensor) and repeats.size != 1:
        return x.index_select(_making.tensor([i for i, n in enumerate(repeats.tolist()) for _ in range(n)], "i64", x.queue), axis)
    n = int(repeats)
    shape = (*x.shape[:axis], x.shape[axis] * n, *x.shape[axis + 1:])
    wide = x.unsqueeze(axis + 1)
    return wide.broadcast_to((*wide.shape[:axis + 1], n, *wide.shape[axis + 2:])).reshape(shape)


def tile(x, repetitions, /):
    """The whole tensor several times along each axis."""
    n = builtins.max(x.ndim, len(repetitions))
    return x.reshape((1,) * (n - x.ndim) + x.shape).repeat((1,) * (n - len(repetitions)) + tuple(repetitions))


# ---- sums and the like
def _wide(x, dtype):
    """What sums are computed in, and the dtype of their result: integers have 64 bits, as those of unsigned ones wrap alike."""
    result = dtype or (x.dtype if isdtype(x.dtype, "real floating") else uint64 if isdtype(x.dtype, "unsigned integer") else int64)
    return x.to(result if isdtype(result, "real floating") else int64), result


def _over(x, axis, method, keepdims):
    """A reduction over axes; over none, each element is alone."""
    axes = _dims(x, axis)
    return method(x, axes, keepdims) if axes else method(x.unsqueeze(x.ndim), (-1,), False)


def _summed(x, dtype, reduce):
    if dtype is not None and isdtype(dtype, "real floating"):
        return reduce(x.to(dtype))
    result = reduce(x)  # i64 for integers and bools
    return result.to(dtype or (uint64 if isdtype(x.dtype, "unsigned integer") else result.dtype))


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over axes."""
    return _summed(x, dtype, lambda y: _over(y, axis, Tensor.sum, keepdims))


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over axes."""
    return _summed(x, dtype, lambda y: _over(y, axis, Tensor.prod, keepdims))


def _reduction(name, method, floats):
    def over(x, /, *, axis=None, keepdims=False):
        if floats and not isdtype(x.dtype, "real floating"):
            raise _gimbal.DTypeError(f"{name} takes floating-point numbers, found {x.dtype!r}")
        return _over(x, axis, method, keepdims)

    over.__name__, over.__doc__ = name, f"{name} over axes."
    globals()[name] = over


for _name, _floats in (("mean", True), ("max", False), ("min", False), ("any", False), ("all", False)):
    _reduction(_name, getattr(Tensor, _name), _floats)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance over axes, divided by n - correction."""
    n = math.prod(x.shape[a] for a in _dims(x, axis))
    v = _over(x, axis, Tensor.var, keepdims)
    return v * (n / (n - correction)) if n - correction > 0 else v * math.nan


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The square root of var()."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums up to each element."""
    if axis is None:
        if x.ndim > 1:
            raise _gimbal.UsageError("cumulative_sum: name the axis of a tensor of several")
        axis = 0
    y, result = _wide(x, dtype)
    y = y.cumsum(axis)
    return (_making.cat([_first(y, axis, 0), y], axis) if include_initial else y).to(result)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products up to each element, one after the other."""
    axis = 0 if axis is None else _at(x, axis)
    (y, result), total, all = _wide(x, dtype), None, []
    for i in range(y.shape[axis]):
        part = y.narrow(axis, i, 1)
        total = part if total is None else total * part
        all.append(total)
    parts = ([_first(y, axis, 1)] if include_initial else []) + all
    return (_making.cat(parts, axis) if parts else y).to(result)


def _first(y, axis, value):
    shape = list(y.shape)
    shape[axis] = 1
    return _making.full(shape, value, y.dtype, y.queue)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours, n times."""
    axis = _at(x, axis)
    parts = [p for p in (prepend, x, append) if p is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        x = x.narrow(axis, 1, size - 1) - x.narrow(axis, 0, size - 1) if size > 1 else x.narrow(axis, 0, 0)
    return x


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not 0."""
    return _over(x if x.dtype is bool_ else x != 0, axis, Tensor.sum, keepdims)


# ---- order
def argmax(x, /, *, axis=None, keepdims=False):
    """The place of the largest: of the flat tensor without an axis."""
    return x.argmax(_dims(x, axis), keepdims).to(int64)


def argmin(x, /, *, axis=None, keepdims=False):
    """The place of the smallest."""
    return x.argmin(_dims(x, axis), keepdims).to(int64)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """In order along an axis; always stable."""
    return x.sort(axis, descending)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The places of the elements in order."""
    return x.argsort(axis, descending).to(int64)


def nonzero(x, /):
    """The places of the elements that are not 0, one tensor for each axis."""
    if x.ndim == 0:
        raise _gimbal.UsageError("nonzero: a tensor of no axes")
    return tuple(places_of(x))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where x2's elements would go into the sorted x1."""
    x1 = x1 if sorter is None else x1.index_select(sorter, 0)
    wide = x2.unsqueeze(-1)
    return (x1 < wide if side == "left" else x1 <= wide).sum((-1,)).to(int64)


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is one of x2."""
    x1, x2 = (_making.asarray(x) for x in (x1, x2))
    found = (x1.unsqueeze(-1) == x2.reshape((-1,))).any((-1,))
    return ~found if invert else found


def _uniques(x):
    flat = x.reshape((-1,))
    order = flat.argsort(0).tolist()
    values, seen = flat.tolist(), []
    groups = []  # of places with one value; each NaN is alone
    for place in order:
        if not seen or values[place] != seen[-1]:
            seen.append(values[place])
            groups.append([])
        groups[-1].append(place)
    return flat, groups


def _ids(x, numbers, shape=None):
    return (_making.tensor(numbers, "i64", x.queue) if numbers else _making.zeros((0,), "i64", x.queue)).reshape((len(numbers),) if shape is None else shape)


def unique_values(x, /):
    """The different elements, in order."""
    flat, groups = _uniques(x)
    return flat.index_select(_ids(x, [builtins.min(g) for g in groups]), 0)


def unique_counts(x, /):
    """(values, counts)"""
    return UniqueCounts(unique_values(x), _ids(x, [len(g) for g in _uniques(x)[1]]))


def unique_inverse(x, /):
    """(values, inverse_indices)"""
    groups = _uniques(x)[1]
    inverse = [0] * x.size
    for i, group in enumerate(groups):
        for place in group:
            inverse[place] = i
    return UniqueInverse(unique_values(x), _ids(x, inverse, x.shape))


def unique_all(x, /):
    """(values, indices, inverse_indices, counts)"""
    groups = _uniques(x)[1]
    values, inverse = unique_inverse(x)
    return UniqueAll(values, _ids(x, [builtins.min(g) for g in groups]), inverse, _ids(x, [len(g) for g in groups]))


# ---- indexing and products
def take(x, indices, /, *, axis=None):
    """Slices by ids of one axis."""
    return x.index_select(_positive(indices, x.shape[axis or 0]), 0 if axis is None else axis)


def take_along_axis(x, indices, /, *, axis=-1):
    """Elements by ids along an axis; the other axes broadcast."""
    axis = _at(x, axis)
    others = broadcast_shapes(*(t.shape[:axis] + (1,) + t.shape[axis + 1:] for t in (x, indices)))
    fitted = [t.broadcast_to(others[:axis] + (t.shape[axis],) + others[axis + 1:]) for t in (x, _positive(indices, x.shape[axis]))]
    return fitted[0].gather(fitted[1].contiguous(), axis)


def _positive(ids, n):
    return _making.where(ids < 0, ids + n, ids)


def _product(a, b):
    """Products of matrices; those of integers by their elements, since kernels of products have floats."""
    if isdtype(a.dtype, "real floating"):
        return a @ b
    if a.shape[-1] != b.shape[-2]:
        raise _gimbal.ShapeError(f"matmul: {a.shape} with {b.shape}: the inner dimensions differ")
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum((-2,)).to(a.dtype)


def matmul(x1, x2, /):
    """Products of matrices; a tensor of one axis is a row on the left, a column on the right."""
    a, b = _one_dtype([x1, x2])
    if a.ndim == 0 or b.ndim == 0:
        raise _gimbal.ShapeError("matmul: a tensor of no axes")
    rows, columns = a.ndim > 1, b.ndim > 1
    product = _product(a if rows else a.unsqueeze(0), b if columns else b.unsqueeze(1))
    product = product if columns else product.squeeze(-1)
    return product if rows else product.squeeze(-1 if not columns else -2)


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of products along an axis."""
    a, b = _one_dtype([x1, x2])
    if a.shape[axis] != b.shape[axis]:
        raise _gimbal.ShapeError(f"vecdot: {a.shape[axis]} elements with {b.shape[axis]} along axis {axis}")
    return (a * b).sum((axis,)).to(a.dtype)


def tensordot(x1, x2, /, *, axes=2):
    """Products summed over several axes."""
    a, b = _one_dtype([x1, x2])
    first, second = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))) if isinstance(axes, int) else ([_at(a, i) for i in axes[0]], [_at(b, i) for i in axes[1]])
    left, right = [i for i in range(a.ndim) if i not in first], [i for i in range(b.ndim) if i not in second]
    inner = math.prod(a.shape[i] for i in first)
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise _gimbal.ShapeError(f"tensordot: {a.shape} with {b.shape}: the summed dimensions differ")
    rows, columns = tuple(a.shape[i] for i in left), tuple(b.shape[i] for i in right)
    matrices = permute_dims(a, [*left, *first]).reshape((math.prod(rows), inner)), permute_dims(b, [*second, *right]).reshape((inner, math.prod(columns)))
    return _product(*matrices).reshape(rows + columns)


UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")

__all__ = ["all", "any", "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "count_nonzero", "cumulative_prod",
           "cumulative_sum", "diff", "expand_dims", "flip", "isin", "matmul", "matrix_transpose", "max", "mean", "min", "moveaxis", "nonzero", "permute_dims", "prod",
           "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "std", "sum", "take", "take_along_axis", "tensordot", "tile",
           "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot"]
