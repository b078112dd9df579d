"""Operations of Python's own: a function over NumPy arrays becomes a row of the device's kernel table."""

import weakref

from . import _gimbal
from ._dtypes import BY_NUMBER, dtype as dtype_of
from ._queues import queue_of

_NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "?"}


def _array(operand):
    """An array over the memory of an operand."""
    import numpy

    memory, number, dims, strides, first = operand
    name = BY_NUMBER[number].name
    if name not in _NUMPY:
        raise _gimbal.DTypeError(f"{name} has no form in NumPy; convert it first, with to(gimbal.f32)")
    kind = numpy.dtype(_NUMPY[name])
    return numpy.ndarray(dims, kind, memory, first * kind.itemsize, tuple(s * kind.itemsize for s in strides))


def _over_arrays(function):
    def compute(operands, target):
        arrays = [_array(o) for o in operands] + [_array(target)]
        seen = [weakref.ref(a) for a in arrays]
        function(*arrays)
        arrays.clear()
        if any(a() is not None for a in seen):  # it, or a view of it
            raise RuntimeError("the function kept one of its arrays, whose memory ends with the call; keep a copy")

    return compute


def _doubles(function):
    def exact(operands):
        import numpy

        made = numpy.asarray(function(*(numpy.frombuffer(values).reshape(dims) for dims, values in operands)), "f8")
        return made.shape, made.tobytes()

    return exact


class CustomOp:
    """An operation of Python's own: call it with tensors."""

    def __init__(self, name, inputs, op):
        self.name, self._inputs, self._op = name, inputs, op

    def __call__(self, *tensors):
        if len(tensors) != self._inputs:
            raise _gimbal.ShapeError(f"custom op '{self.name}': expected {self._inputs} operands, found {len(tensors)}")
        return _gimbal.call_custom(self._op, tensors)

    def verify(self, device=None, cases=()):
        """Compares with the reference on random operands: {"cases", "largest_error"}, the error in units of the tolerance.

        cases: [[(dtype, dims), ...], ...], the operands of each; without it f32 operands of one shape. Raises Error with the first wrong value.
        """
        forms = [[(dtype_of(t).number, tuple(dims)) for t, dims in case] for case in cases]
        return dict(zip(("cases", "largest_error"), _gimbal.verify_custom(self._op, queue_of(device), forms)))

    def __repr__(self):
        return f"<gimbal.CustomOp {self.name}>"


def custom_op(name, inputs=1, cpu=None, *, in_place=False, output=None, reference=None, tolerance=1e-6, fallback="", kernel=None):
    """An operation by a function over NumPy arrays of the operands and of the result: cpu=lambda x, y: np.exp(x, out=y).

    The arrays share memory with the tensors and end with the call. in_place: the last array is the first operand, which
    is also the result. output: from the operands' (dtype, shape) to that of the result; without it, as the first operand.
    kernel: for GPUs, a text in the kernel dialect that computes element `at` of the result:
    "STORE(y, at, EXP(LOAD(x, at)));". Its operands are x (or x0), x1 and x2, of f32, f16 or bf16; the device compiles it
    at the first use. reference: the result in double precision, for verify(). fallback="cpu": tensors of devices
    without an implementation are copied.
    """
    if cpu is None and kernel is None:
        raise _gimbal.UsageError("a custom op needs a function (cpu=) or a kernel text (kernel=)")

    def form(specs):
        dtype, dims = output(*((BY_NUMBER[number], dims) for number, dims in specs))
        return dtype_of(dtype).number, tuple(dims)

    made = _gimbal.new_custom(name, inputs, in_place, _over_arrays(cpu) if cpu else None, form if output else None, _doubles(reference) if reference else None, tolerance,
                              fallback, kernel or "")
    return CustomOp(name, inputs, made)
