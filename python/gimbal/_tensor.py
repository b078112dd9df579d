"""The methods of Tensor. The functions are C++'s, by position; here they get names, defaults and documentation."""

from . import _gimbal
from ._dtypes import ALIASES, BY_NAME, BY_NUMBER, dtype as dtype_of
from ._queues import queue_of

Tensor = _gimbal.Tensor


def _method(f):
    setattr(Tensor, f.__name__, f)
    return f


def _of_function(name, doc):
    def one(self):
        return _gimbal.map(self, name)

    one.__name__, one.__doc__ = name, doc
    setattr(Tensor, name, one)


for _name, _doc in {
    "exp": "e to the power of each.", "expm1": "exp(x) - 1, exact near 0.", "log": "The natural logarithm.", "log1p": "log(1 + x), exact near 0.",
    "log2": "The logarithm to base 2.", "sin": "Sine of radians.", "cos": "Cosine of radians.", "tan": "Tangent of radians.",
    "asin": "The angle in radians with this sine.", "acos": "The angle in radians with this cosine.", "atan": "The angle in radians with this tangent.",
    "sinh": "Hyperbolic sine.", "cosh": "Hyperbolic cosine.", "asinh": "The inverse of sinh.", "acosh": "The inverse of cosh.",
    "atanh": "The inverse of tanh.", "tanh": "Hyperbolic tangent.", "sigmoid": "1 / (1 + exp(-x)).", "abs": "Without the sign.", "neg": "With the other sign.",
    "recip": "1 / x.", "sqr": "x * x.", "sqrt": "The square root.", "rsqrt": "1 / sqrt(x).", "gelu": "GELU by its tanh form.",
    "gelu_erf": "GELU by erf.", "erf": "The error function.", "relu": "max(x, 0); a NaN stays.", "silu": "x * sigmoid(x).",
    "floor": "The next whole number below.", "ceil": "The next whole number above.", "trunc": "The whole number towards 0.",
    "round": "The nearest whole number, halves to even.", "sign": "-1, 0 or 1.", "is_nan": "Whether it is no number: bool.",
}.items():
    _of_function(_name, _doc)


@_method
def maximum(self, other):
    """The larger of two; a NaN wins."""
    return _gimbal.map(self, "maximum", other)


@_method
def minimum(self, other):
    """The smaller of two; a NaN wins."""
    return _gimbal.map(self, "minimum", other)


@_method
def atan2(self, x):
    """The angle in radians of the point (x, y), where y is this tensor: -pi to pi."""
    return _gimbal.map(self, "atan2", x)


@_method
def copysign(self, sign):
    """The size of each with the sign of another."""
    return _gimbal.map(self, "copysign", sign)


@_method
def affine(self, mul, add):
    """x * mul + add, rounded twice."""
    return _gimbal.affine(self, mul, add)


@_method
def elu(self, alpha=1.0):
    """x above 0, else alpha * expm1(x)."""
    return _gimbal.elu(self, alpha)


Tensor.dtype = property(lambda self: BY_NUMBER[self._dtype], doc="The number format.")
Tensor.device = property(lambda self: self.queue.location, doc='Where it lies: "cpu:0".')
Tensor.read_only = property(_gimbal.is_read_only, doc="Whether its memory is that of another array: asarray().")
Tensor.T = property(lambda self: _gimbal.permute(self, tuple(range(self.ndim - 1, -1, -1))), doc="All dims in the other order: a view.")


@_method
def to(self, where):
    """Another dtype (each number rounded once), or another device by name or Queue."""
    if isinstance(where, _gimbal.Queue) or (isinstance(where, str) and where not in BY_NAME and where not in ALIASES):
        return _gimbal.to_queue(self, queue_of(where))
    return _gimbal.cast(self, dtype_of(where).number)


def _numbers(first, rest):
    """f(2, 3) and f([2, 3]) alike."""
    return (first, *rest) if rest else (first,) if isinstance(first, int) else tuple(first)


@_method
def reshape(self, dims, *more):
    """Other dims of the same elements; one may be -1. A view where strides can express it."""
    return _gimbal.reshape(self, _numbers(dims, more))


@_method
def permute(self, dims, *more):
    """The dims in another order: a view."""
    return _gimbal.permute(self, _numbers(dims, more))


@_method
def t(self):
    """The last two dims exchanged: a view."""
    return _gimbal.t(self)


@_method
def narrow(self, dim, begin, size, step=1):
    """`size` elements of a dim from `begin` on: a view. A negative step goes backwards."""
    return _gimbal.narrow(self, dim, begin, size, step)


@_method
def select(self, dim, at):
    """One index of a dim, which is gone then: a view."""
    return _gimbal.select(self, dim, at)


@_method
def broadcast_to(self, dims, *more):
    """Dims of 1, and missing ones in front, repeated: a view."""
    return _gimbal.broadcast_to(self, _numbers(dims, more))


@_method
def flip(self, dim):
    """A dim in the other order: a view."""
    return _gimbal.flip(self, dim)


@_method
def unfold(self, dim, size, step):
    """The windows of a dim; a new last dim lies within them: a view."""
    return _gimbal.unfold(self, dim, size, step)


@_method
def squeeze(self, dim):
    """Without a dim of 1: a view."""
    return _gimbal.squeeze(self, dim)


@_method
def unsqueeze(self, dim):
    """With a new dim of 1: a view."""
    return _gimbal.unsqueeze(self, dim)


@_method
def contiguous(self):
    """Row-major without gaps: itself, or a copy."""
    return _gimbal.contiguous(self)


@_method
def is_contiguous(self):
    """Whether it is row-major without gaps."""
    return _gimbal.is_contiguous(self)


@_method
def copy(self):
    """The same values in memory of their own."""
    return _gimbal.copy(self)


@_method
def pad(self, pads, value=0):
    """[[before, after], ...] elements of a value around each dim."""
    pads = [tuple(p) for p in pads]
    if len(pads) != self.ndim:
        raise _gimbal.ShapeError(f"pad: {self.ndim} dimensions, found {len(pads)} pairs")
    return _gimbal.pad(self, [p[0] for p in pads], [p[1] for p in pads], value)


@_method
def roll(self, shift, dim):
    """The elements of a dim moved by `shift`; those that leave come in at the other end."""
    return _gimbal.roll(self, shift, dim)


@_method
def repeat(self, times, *more):
    """The whole tensor repeated along each dim."""
    return _gimbal.repeat(self, _numbers(times, more))


def _by_ids(name, doc):
    def two(self, ids, dim):
        return getattr(_gimbal, name)(self, ids, dim)

    two.__name__, two.__doc__ = name, doc
    setattr(Tensor, name, two)


def _to_ids(name, doc):
    def three(self, ids, src, dim):
        return getattr(_gimbal, name)(self, ids, src, dim)

    three.__name__, three.__doc__ = name, doc
    setattr(Tensor, name, three)


_by_ids("gather", "Elements by ids along a dim; ids have the dims of x but for it. Raises IndexError for ids out of range.")
_by_ids("index_select", "Slices by ids of one dim. Raises IndexError for ids out of range.")
_to_ids("scatter", "A copy in which the elements at ids are those of src; of one place the last wins.")
_to_ids("scatter_add", "A copy to whose elements at ids those of src are added, in rising order.")
_to_ids("index_add", "A copy to whose slices at ids of one dim those of src are added, in rising order.")


@_method
def fill_(self, value):
    """Writes a value through this view into the tensor that it is a view of."""
    _gimbal.fill_(self, value)
    return self


@_method
def copy_(self, other):
    """Writes another tensor's values through this view."""
    _gimbal.copy_(self, other)
    return self


def _reduction(name, doc):
    def over(self, axes=None, keep=False):
        return getattr(_gimbal, name)(self, axes, keep)

    over.__name__, over.__doc__ = name, doc + " Over one dim, several, or all; keep: as dims of 1."
    setattr(Tensor, name, over)


for _name, _doc in {
    "sum": "The sum, in a fixed order; of integers i64.", "mean": "The mean.", "var": "The variance, divided by n.",
    "prod": "The product; of integers i64.", "min": "The smallest; the first NaN wins.", "max": "The largest; the first NaN wins.",
    "argmin": "The place of the smallest, row-major in the dims: i32.", "argmax": "The place of the largest, row-major in the dims: i32.",
    "any": "Whether any is not 0: bool.", "all": "Whether none is 0: bool.",
}.items():
    _reduction(_name, _doc)


@_method
def softmax(self, dim=-1):
    """exp(x - max) / their sum along a dim; a row of -infinity gives zeros."""
    return _gimbal.softmax(self, dim)


@_method
def log_softmax(self, dim=-1):
    """The logarithm of softmax()."""
    return _gimbal.log_softmax(self, dim)


@_method
def cumsum(self, dim):
    """The sums up to each element along a dim."""
    return _gimbal.cumsum(self, dim)


@_method
def sort(self, dim=-1, falling=False):
    """In order along a dim, stable; NaNs are above infinity."""
    return _gimbal.sort(self, dim, falling)


@_method
def argsort(self, dim=-1, falling=False):
    """The places of the elements in order: i32."""
    return _gimbal.argsort(self, dim, falling)


@_method
def top_k(self, k, dim=-1):
    """The k largest along a dim in falling order, and their places: (values, i32)."""
    return _gimbal.top_k(self, k, dim)


@_method
def avg_pool2d(self, kernel, stride=None):
    """The mean of each window of the last two dims."""
    return _gimbal.avg_pool2d(self, kernel, kernel if stride is None else stride)


@_method
def max_pool2d(self, kernel, stride=None):
    """The largest of each window of the last two dims."""
    return _gimbal.max_pool2d(self, kernel, kernel if stride is None else stride)


@_method
def upsample_nearest1d(self, width):
    """Another width by the nearest elements."""
    return _gimbal.upsample_nearest1d(self, width)


@_method
def upsample_nearest2d(self, height, width):
    """Another height and width by the nearest elements."""
    return _gimbal.upsample_nearest2d(self, height, width)


@_method
def upsample_bilinear2d(self, height, width, align_corners=False):
    """Another height and width by straight lines between the elements."""
    return _gimbal.upsample_bilinear2d(self, height, width, align_corners)


# ---- reading
@_method
def numpy(self):
    """A NumPy array over the same memory, read-only."""
    import numpy

    return numpy.asarray(self)


@_method
def __array__(self, dtype=None, copy=None):
    # NumPy calls this only where the buffer fails, whose error says why.
    import numpy

    return numpy.array(memoryview(self), dtype)


@_method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A capsule of DLPack: of version 1, read-only, if max_version allows it, else of the first form, whose consumer must not write."""
    if stream is not None or dl_device not in (None, (1, 0)):
        raise BufferError("a tensor of the CPU has no stream, and is exported to the CPU (1, 0)")
    x = _gimbal.copy(self) if copy else self
    return _gimbal.to_dlpack(x, max_version is not None and max_version[0] >= 1)


@_method
def __dlpack_device__(self):
    """(1, 0): the CPU. Tensors of other devices are not exported."""
    if self.queue.location.startswith("cpu:"):
        return 1, 0
    raise BufferError(f'the tensor is on {self.queue.location}, not in the host\'s memory; copy it with .to("cpu")')


@_method
def tobytes(self):
    """The elements, row-major; of quantized formats, the blocks."""
    return _gimbal.tobytes(self)


def on_host(x):
    """The tensor, or its copy in the host's memory."""
    return x if x.queue.location.startswith("cpu:") else x.to("cpu")


@_method
def tolist(self):
    """Nested lists of Python's numbers, copied from the device."""
    x = on_host(self)
    plain = x if x.dtype.name in ("f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool") else x.to("f64")
    plain = plain.contiguous()
    try:
        return memoryview(plain).tolist()
    except BufferError:  # without the reason and the remedy, which this error has
        plain.tobytes()
        raise


@_method
def item(self):
    """The number of a tensor of one element."""
    if self.size != 1:
        raise _gimbal.ShapeError(f"item: {self.size} elements, expected 1")
    return self.reshape(()).tolist()


@_method
def __float__(self):
    return float(self.item())


@_method
def __int__(self):
    return int(self.item())


@_method
def __bool__(self):
    return bool(self.item())


@_method
def __len__(self):
    if self.ndim == 0:
        raise TypeError("a tensor of no dims has no length")
    return self.shape[0]


@_method
def __iter__(self):
    return (self.select(0, i) for i in range(len(self)))


@_method
def __index__(self):
    if self.dtype.name[0] not in "iu":
        raise TypeError(f"a tensor of {self.dtype!r} is no index")
    return int(self.item())


@_method
def __complex__(self):
    return complex(self.item())


# ---- the array API standard
@_method
def __array_namespace__(self, *, api_version=None):
    """gimbal.array_api"""
    from . import array_api

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise _gimbal.UsageError(f"there is no version {api_version} of the standard here; there is {array_api.__array_api_version__}")
    return array_api


@_method
def to_device(self, device, /, *, stream=None):
    """A copy on another device; itself if it is there."""
    if stream is not None:
        raise _gimbal.UsageError("a device here has no stream")
    return _gimbal.to_queue(self, queue_of(device)) if device != self.device else self


Tensor.mT = property(_gimbal.t, doc="The last two dims exchanged: a view.")


# ---- indexing
@_method
def __getitem__(self, index):
    return _indexing.get(self, index)


@_method
def __setitem__(self, index, value):
    _indexing.put(self, index, value)


def _remade(data, dims, name):
    return _making.from_bytes(data, dims, name)


@_method
def __reduce__(self):
    return _remade, (self.tobytes(), self.shape, self.dtype.name)


from . import _indexing, _making  # noqa: E402  the functions above need it when they run
