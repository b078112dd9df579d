"""Functions of tensors as one program: recorded once for each signature, then run as often as wanted."""

import functools

from . import _gimbal
from ._queues import queue_of
from ._reports import Operations, Receipt, RecordedPlan


class _Traced:
    """The function as the extension calls it: without a reference to its program, which holds it."""

    def __init__(self, function):
        self.function, self.single = function, None

    def __call__(self, *tensors):
        made = self.function(*tensors)
        single = isinstance(made, _gimbal.Tensor)
        results = [made] if single else list(made) if isinstance(made, (tuple, list)) else None
        if results is None or not all(isinstance(t, _gimbal.Tensor) for t in results):
            raise _gimbal.UsageError("a recorded function returns a tensor, or a tuple of tensors")
        if self.single not in (None, single):
            raise _gimbal.UsageError("a recorded function returns one tensor or a tuple, for all its arguments alike")
        self.single = single
        return results


class Recorded:
    """A recorded function: call it with tensors. docs/python.md has the rules."""

    def __init__(self, function, device=None):
        self._traced, self._device = _Traced(function), device
        self._program = _gimbal.new_recorded(self._traced)
        functools.update_wrapper(self, function)

    def _call(self, f, tensors):
        for t in tensors:
            if not isinstance(t, _gimbal.Tensor):
                raise _gimbal.DTypeError(f"a recorded function takes tensors, not a {type(t).__name__}: numbers and settings belong into the function")
        return f(self._program, tensors, queue_of(self._device))

    def __call__(self, *tensors):
        results = self._call(_gimbal.run_recorded, tensors)
        return results[0] if self._traced.single else tuple(results)

    def plan(self, *tensors):
        """Bytes and the number of operations, for tensors like these; nothing is computed."""
        return RecordedPlan(self._call(_gimbal.plan_recorded, tensors))

    def explain(self, *tensors):
        """The operations, each with its kernel, the reason, and the rejected kernels; nothing is computed."""
        return Operations(self._call(_gimbal.explain_recorded, tensors))

    def receipt(self):
        """The kernels that ran, counted by the device."""
        return Receipt(_gimbal.receipt_recorded(self._program))

    def __repr__(self):
        return f"<gimbal.Recorded of {getattr(self._traced.function, '__name__', 'a function')}>"


def record(function, device=None):
    """The function as one program, recorded at its first call with tensors of a form. Also a decorator.

    Reading a value in it is an error; Python's control flow and numbers are those of the first call. Tensors from outside
    are read as they are at each call, and never written.
    """
    return Recorded(function, device)
