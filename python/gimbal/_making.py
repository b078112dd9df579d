"""Functions that make tensors, and those of several tensors."""

import array

from . import _gimbal
from ._dtypes import BY_NAME, OF_FORMAT, dtype as dtype_of
from ._queues import queue_of


def _dims(dims):
    return (dims,) if isinstance(dims, int) else tuple(dims)


def _flat(data, dims, at, out):
    """Appends the numbers of nested lists to `out`; `dims` says how long each must be."""
    if at == len(dims):
        if isinstance(data, (list, tuple)):
            raise _gimbal.ShapeError("tensor: nested lists of different depths")
        out.append(data)
        return
    if not isinstance(data, (list, tuple)) or len(data) != dims[at]:
        raise _gimbal.ShapeError("tensor: nested lists of different lengths")
    for each in data:
        _flat(each, dims, at + 1, out)


def _of_lists(data, queue):
    dims, inner = [], data
    while isinstance(inner, (list, tuple)):
        dims.append(len(inner))
        if not inner:
            break
        inner = inner[0]
    numbers = []
    _flat(data, dims, 0, numbers)
    if numbers and all(isinstance(n, bool) for n in numbers):
        return _gimbal.from_buffer(bytes(numbers), dims, BY_NAME["bool"].number, queue), BY_NAME["bool"]
    if all(isinstance(n, int) for n in numbers) and numbers:
        return _gimbal.from_buffer(array.array("q", numbers), dims, BY_NAME["i64"].number, queue), BY_NAME["i64"]
    return _gimbal.from_buffer(array.array("d", [float(n) for n in numbers]), dims, BY_NAME["f64"].number, queue), BY_NAME["f32"]


def tensor(data, dtype=None, device=None):
    """A tensor with a copy of `data`: nested lists, a number, or anything with a buffer (NumPy's arrays).

    Without a dtype: that of the buffer; of lists bool, i64 or f32.
    """
    queue = queue_of(device)
    if isinstance(data, _gimbal.Tensor):
        x = _gimbal.copy(_gimbal.to_queue(data, queue))
        return x if dtype is None else _gimbal.cast(x, dtype_of(dtype).number)
    x = _of_array(data, queue, True)
    if x is None:
        if not isinstance(data, (list, tuple, int, float)):
            raise _gimbal.DTypeError(f"tensor: a {type(data).__name__} is neither lists, a number, a buffer nor has __dlpack__")
        x, natural = _of_lists(data, queue)
        return _gimbal.cast(x, (dtype_of(dtype) if dtype is not None else natural).number)
    return x if dtype is None else _gimbal.cast(x, dtype_of(dtype).number)


def _of_array(data, queue, copy):
    """The tensor of a buffer, or of an array of another library; None: it is neither."""
    try:
        view = memoryview(data)
    except TypeError:
        return from_dlpack(data, queue, copy=copy or None) if hasattr(data, "__dlpack__") else None
    letter = view.format.lstrip("@=<|")
    if letter not in OF_FORMAT or view.format.startswith((">", "!")):
        raise _gimbal.DTypeError(f"tensor: a buffer with elements of '{view.format}'")
    number = BY_NAME[OF_FORMAT[letter]].number
    if not copy:
        try:
            return _gimbal.wrap_buffer(view, number, queue)
        except _gimbal.Error:  # not aligned, more than 8 dims, or not a device that reads the host's memory: the copy reports the error
            if copy is False:
                raise
    return _gimbal.from_buffer(view, view.shape, number, queue)


def asarray(data, dtype=None, device=None, copy=None):
    """A tensor over the memory of a NumPy array, a buffer, or an array of another library (DLPack), without a copy where the device can read it.

    It keeps that memory alive and never writes it: fill_() and copy_() refuse. The caller must not write it either. Lists and numbers are copied.
    A Tensor of this dtype and device is returned itself. copy: True for memory of its own, False for an error where only a copy would do.
    """
    if isinstance(data, _gimbal.Tensor):
        x = _gimbal.to_queue(data, queue_of(device)) if device is not None else data
        x = x if dtype is None or x.dtype is dtype_of(dtype) else _gimbal.cast(x, dtype_of(dtype).number)
        if copy is False and x is not data:
            raise _gimbal.UsageError("asarray: another dtype or device needs a copy")
        return _gimbal.copy(x) if copy and x is data else x
    x = _of_array(data, queue_of(device), copy)
    if x is not None and dtype is not None and x.dtype is not dtype_of(dtype):
        if copy is False:
            raise _gimbal.UsageError("asarray: another dtype needs a copy")
        return _gimbal.cast(x, dtype_of(dtype).number)
    if x is None and copy is False:
        raise _gimbal.UsageError("asarray: lists and numbers need a copy")
    return tensor(data, dtype, device) if x is None else x


def from_dlpack(array, device=None, copy=None):
    """A tensor over the memory of an array with __dlpack__ (torch, JAX, CuPy on the host), as asarray(). Raises BufferError for arrays on devices."""
    try:
        capsule = array.__dlpack__(max_version=(1, 1))
    except TypeError:  # of a library before version 1
        capsule = array.__dlpack__()
    x = _gimbal.from_dlpack(capsule, queue_of(device))
    return _gimbal.copy(x) if copy else x


def from_bytes(data, dims, dtype, device=None):
    """A tensor of row-major bytes of this dtype; of quantized formats, of their blocks."""
    return _gimbal.from_buffer(bytes(data), _dims(dims), dtype_of(dtype).number, queue_of(device))


def full(dims, value, dtype="f32", device=None):
    """A tensor with one value."""
    return _gimbal.full(_dims(dims), value, dtype_of(dtype).number, queue_of(device))


def zeros(dims, dtype="f32", device=None):
    """A tensor of zeros."""
    return full(dims, 0, dtype, device)


def ones(dims, dtype="f32", device=None):
    """A tensor of ones."""
    return full(dims, 1, dtype, device)


def arange(begin, end=None, step=1, dtype=None, device=None):
    """begin, begin + step, ... below end; empty where the step leads away. arange(end) begins at 0."""
    if end is None:
        begin, end = 0, begin
    if dtype is None:
        dtype = "i64" if all(isinstance(v, int) for v in (begin, end, step)) else "f32"
    return _gimbal.arange(begin, end, step, dtype_of(dtype).number, queue_of(device))


def eye(n, dtype="f32", device=None):
    """The identity matrix of n rows."""
    return _gimbal.eye(n, dtype_of(dtype).number, queue_of(device))


def cat(tensors, dim=0):
    """Tensors one after the other along a dim."""
    return _gimbal.cat(tensors, dim)


def stack(tensors, dim=0):
    """Tensors of equal dims along a new dim."""
    return _gimbal.stack(tensors, dim)


def where(condition, a, b):
    """a where the condition holds, else b; all three broadcast. Numbers take the other's dtype."""
    queue = condition.queue
    if not isinstance(a, _gimbal.Tensor):
        a = tensor(a, b.dtype if isinstance(b, _gimbal.Tensor) else None, queue)
    if not isinstance(b, _gimbal.Tensor):
        b = tensor(b, a.dtype, queue)
    return _gimbal.where(condition, a, b)


def linear(x, w):
    """x [..., in] by weights w [out, in] of floats or a quantized format: [..., out]."""
    return _gimbal.linear(x, w)


def linear_indexed(x, w, ids):
    """Mixtures of experts: x [rows, in] or [rows, slots, in] by the matrices of w [experts, out, in] that ids [rows, slots] choose: [rows, slots, out]."""
    return _gimbal.linear_indexed(x, w, ids)


def quantize(x, dtype, importance=None):
    """Blocks of a quantized format, as x.to(dtype) makes them; importance, f32: one weight for each of a row."""
    return _gimbal.quantize(x, dtype_of(dtype).number, importance)


def solve_triangular(a, b, upper=False, unit_diagonal=False):
    """x with a x = b, for a [..., n, n] lower or upper and b [..., n, m] or [n]; the other triangle is not read."""
    return _gimbal.solve_triangular(a, b, upper, unit_diagonal)


def cholesky(a, upper=False):
    """l, lower, with l l^T = a, or its transposed; a's lower triangle alone is read. Raises UsageError if a is not positive definite."""
    return _gimbal.cholesky(a, upper)


def qr(a):
    """(q [..., m, k], r [..., k, n]) with q r = a, k the smaller of m and n."""
    return _gimbal.qr(a)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dim."""
    return _gimbal.layer_norm(x, weight, bias, eps)


def rms_norm(x, weight=None, eps=1e-5):
    """x / sqrt(mean of squares + eps) * weight over the last dim."""
    return _gimbal.rms_norm(x, weight, None, eps)


def conv1d(x, w, stride=1, padding=0, dilation=1, groups=1):
    """x [batch, channels, width], w [out, channels / groups, width]."""
    return _gimbal.conv(x, w, stride, padding, dilation, groups, None)


def conv2d(x, w, stride=1, padding=0, dilation=1, groups=1):
    """x [batch, channels, height, width], w [out, channels / groups, height, width]; one number, or [h, w]."""
    return _gimbal.conv(x, w, stride, padding, dilation, groups, None)


def conv_transpose1d(x, w, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
    """x [batch, channels, width], w [channels, out / groups, width]."""
    return _gimbal.conv_transpose(x, w, stride, padding, dilation, groups, output_padding)


def conv_transpose2d(x, w, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
    """x [batch, channels, height, width], w [channels, out / groups, height, width]."""
    return _gimbal.conv_transpose(x, w, stride, padding, dilation, groups, output_padding)


def uniform(dims, dtype="f32", device=None):
    """Random numbers from 0 to below 1, of the device's seed (Queue.set_seed); the same on every device."""
    return _gimbal.draw(queue_of(device), False, _dims(dims), dtype_of(dtype).number)


def normal(dims, dtype="f32", device=None):
    """Random numbers with mean 0 and variance 1, of the device's seed (Queue.set_seed); the same on every device."""
    return _gimbal.draw(queue_of(device), True, _dims(dims), dtype_of(dtype).number)


class Generator:
    """Random numbers that are the same on every device: Threefry-4x32 of a 64-bit seed."""

    def __init__(self, seed, device=None):
        self.seed, self._block, self._queue = int(seed), 0, queue_of(device)

    def _draw(self, normal, dims, dtype):
        x = _gimbal.random(self.seed, self._block, normal, _dims(dims), dtype_of(dtype).number, self._queue)
        self._block += (x.size + 3) // 4
        return x

    def uniform(self, dims, dtype="f32"):
        """From 0 to below 1."""
        return self._draw(False, dims, dtype)

    def normal(self, dims, dtype="f32"):
        """With mean 0 and variance 1."""
        return self._draw(True, dims, dtype)
