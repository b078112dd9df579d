"""Indexing as NumPy's. Numbers, slices, None and ... give views. Tensors and lists of ids or bools choose elements: a copy, or those that an
assignment writes. Several of them broadcast, and choose element by element."""

import math

from . import _gimbal, _making

Tensor = _gimbal.Tensor
_WHOLE = slice(None)


def _part(queue, i):
    """One part of an index: None, ..., a slice, a number, or a tensor of ids or bools."""
    if i is None or i is Ellipsis or isinstance(i, (slice, Tensor)):
        return i
    if isinstance(i, bool):
        return _making.tensor(i, "bool", queue)
    if hasattr(i, "__index__") and getattr(i, "ndim", 0) == 0:  # arrays of NumPy have it, too
        return i.__index__()
    if isinstance(i, list) and not i:
        return _making.zeros((0,), "i64", queue)
    return _making.asarray(i, device=queue)


def _is_mask(p):
    return isinstance(p, Tensor) and p.dtype.name == "bool"


def _covered(p):
    """How many dims a part takes."""
    return p.ndim if _is_mask(p) else int(p is not None and p is not Ellipsis)


def _parts(x, index):
    """An index with a part for every dim."""
    parts = [_part(x.queue, i) for i in (index if isinstance(index, tuple) else (index,))]
    taken = sum(map(_covered, parts))
    if taken > x.ndim:
        raise _gimbal.IndexError(f"{taken} indices for {x.ndim} dimensions")
    places = [k for k, p in enumerate(parts) if p is Ellipsis]
    if len(places) > 1:
        raise _gimbal.IndexError("an index has one ... at most")
    at = places[0] if places else len(parts)
    return parts[:at] + [_WHOLE] * (x.ndim - taken) + parts[at + 1:]


def _slice(x, dim, part):
    begin, end, step = part.indices(x.shape[dim])
    size = len(range(begin, end, step))
    if (begin, size, step) == (0, x.shape[dim], 1):
        return x  # blocks of quantized formats have no other
    return _gimbal.narrow(x, dim, begin if size else 0, size, step if size else 1)


def places_of(mask):
    """The ids of the elements that are not 0, one tensor for each dim. Reads the tensor on the host."""
    flat = [i for i, holds in enumerate(mask.reshape((-1,)).tolist()) if holds]
    places = _making.tensor(flat, "i64", mask.queue) if flat else _making.zeros((0,), "i64", mask.queue)
    ids = []
    for n in reversed(mask.shape):
        ids.append(places % n if flat else places)
        places = places // n if flat else places
    return ids[::-1]


def _of_number(x, dim, i):
    n = x.shape[dim]
    if not -n <= i < n:
        raise _gimbal.IndexError(f"the index {i} is not in dimension {dim}, which has {n}")
    return i % n


def _views(x, parts):
    """The view that the parts without ids give, the ids with the dims of the view that they choose from, and whether they stand side by side."""
    with_ids = any(isinstance(p, Tensor) for p in parts)
    ids, at, stands, dim = [], [], [], 0
    for k, p in enumerate(parts):
        if p is None:
            x, dim = _gimbal.unsqueeze(x, dim), dim + 1
        elif isinstance(p, slice):
            x, dim = _slice(x, dim, p), dim + 1
        elif not isinstance(p, Tensor) and not with_ids:
            x = _gimbal.select(x, dim, _of_number(x, dim, p))
        else:
            if _is_mask(p) and p.ndim == 0:
                x = _gimbal.unsqueeze(x, dim)
                chosen = [_making.zeros((int(bool(p)),), "i64", x.queue)]
            elif _is_mask(p):
                if any(m not in (0, n) for m, n in zip(p.shape, x.shape[dim:])):  # a mask without elements holds nowhere
                    raise _gimbal.IndexError(f"an index of bools has {p.shape}, expected {x.shape[dim:dim + p.ndim]}")
                chosen = places_of(p)
            elif isinstance(p, Tensor):
                if not p.dtype.name[0] in "iu":
                    raise _gimbal.DTypeError(f"an index is a tensor of integers or bools, found {p.dtype!r}")
                chosen = [p.to("i64")]
            else:
                chosen = [_making.tensor(_of_number(x, dim, p), "i64", x.queue)]
            for one in chosen:
                ids.append(one)
                at.append(dim)
                dim += 1
            stands.append(k)
    return x, ids, at, not stands or stands[-1] - stands[0] + 1 == len(stands)


def _shape(shapes):
    """What shapes broadcast to."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    shape = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*wide))
    if any(n not in (1, m) for s in wide for n, m in zip(s, shape)):
        raise _gimbal.IndexError(f"indices of the shapes {', '.join(map(str, shapes))} neither agree nor repeat")
    return shape


def _chosen(x, ids, at, side_by_side):
    """The elements by ids of the dims `at`. The dims of the ids stand in the first one's place, or in front where the ids stood apart."""
    shape = _shape([i.shape for i in ids])
    others = [d for d in range(x.ndim) if d not in at]
    sizes, rest = [x.shape[d] for d in at], tuple(x.shape[d] for d in others)
    flat, wrong = None, None
    for one, n in zip(ids, sizes):
        outside = (one < -n) | (one >= n)
        one = _making.where(one < 0, one + n, one)
        flat, wrong = (one, outside) if flat is None else (flat * n + one, wrong | outside)
    # An id outside of its dim must not choose from another row: it becomes one that is outside of all.
    flat = _making.where(wrong, math.prod(sizes), flat).broadcast_to(shape).reshape((-1,))
    rows = _gimbal.permute(x, [*at, *others]).reshape((math.prod(sizes), *rest))
    try:
        result = _gimbal.index_select(rows, flat, 0).reshape((*shape, *rest))
    except _gimbal.IndexError:
        for one, n, d in zip(ids, sizes, at):
            for i in one.reshape((-1,)).tolist():
                if not -n <= i < n:
                    raise _gimbal.IndexError(f"the id {i} is not in dimension {d}, which has {n}") from None
        raise
    if side_by_side and at[0]:
        front, n = len(shape), at[0]
        result = _gimbal.permute(result, [*range(front, front + n), *range(front), *range(front + n, result.ndim)])
    return result


def get(x, index):
    """x[index]"""
    view, ids, at, side_by_side = _views(x, _parts(x, index))
    return _chosen(view, ids, at, side_by_side) if ids else view


def put(x, index, value):
    """x[index] = value, a tensor that broadcasts or a number. Of several values for one element, the last stays."""
    if _is_mask(index) and index.shape == x.shape and not isinstance(value, Tensor):
        x.copy_(_making.where(index, _making.full((), value, x.dtype, x.queue), x))
        return
    view, ids, at, side_by_side = _views(x, _parts(x, index))
    if not ids:
        view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)
        return
    places = _chosen(_making.arange(view.size, device=x.queue).reshape(view.shape), ids, at, side_by_side)
    value = value.to(x.dtype) if isinstance(value, Tensor) else _making.full((), value, x.dtype, x.queue)
    value = value.broadcast_to(places.shape)
    if places.size:
        changed = view.reshape((-1,)).scatter(places.reshape((-1,)), value.reshape((-1,)), 0)
        view.copy_(changed.reshape(view.shape))
