"""Where tensors lie: open devices by name, and the one that functions use when none is named."""

import contextlib
import contextvars
import threading

from . import _gimbal
from ._dtypes import dtype as dtype_of

_open: dict = {}
_lock = threading.Lock()
_current = contextvars.ContextVar("gimbal.device", default="cpu")


def open_queue(where="auto", *, strict=False, allow_software=False, threads=0, cpu_variant="", memory_limit=0, verify=True):
    """Opens a device of its own: "cpu", "cuda:1", or "auto". memory_limit is in bytes; 0: no limit.

    verify: kernels of a GPU are compared with the CPU at their first use on this machine; verified() lists them.

    The CPU computes operations for which the device has no kernel, with a RuntimeWarning; strict=True: an error.
    Raises DeviceError with every reason where there is none.
    """
    return _gimbal.open_queue(where, strict, allow_software, threads, cpu_variant, memory_limit, verify)


def queue_of(device=None):
    """The queue of a device: a Queue, a name, or None for the current one. Opened at its first use."""
    if isinstance(device, _gimbal.Queue):
        return device
    name = device or _current.get()
    if isinstance(name, _gimbal.Queue):
        return name
    with _lock:
        if name not in _open:
            _open[name] = open_queue(name)
        return _open[name]


@contextlib.contextmanager
def device(where):
    """Within a with-statement, tensors are made on this device: a name or a Queue."""
    token = _current.set(where)
    try:
        yield queue_of(where)
    finally:
        _current.reset(token)


# ---- methods of Queue; the functions are C++'s
def _method(f):
    setattr(_gimbal.Queue, f.__name__, f)


@_method
def wait(self):
    """Waits until everything is computed. Raises the device's errors, and the first error of tensors that were dropped unread."""
    _gimbal.wait(self)


@_method
def memory(self):
    """Bytes: {"live": in tensors, "cached": kept for later ones, "peak": the largest sum of both}."""
    return dict(zip(("live", "cached", "peak"), _gimbal.memory(self)))


@_method
def set_seed(self, seed):
    """Begins the numbers of gimbal.uniform() and gimbal.normal() on this device anew, with a 64-bit seed."""
    _gimbal.set_seed(self, int(seed))


@_method
def seed(self):
    """The seed of gimbal.uniform() and gimbal.normal() on this device; 299792458 at first."""
    return _gimbal.seed(self)


@_method
def trim(self):
    """Gives back memory that is kept for later tensors."""
    _gimbal.trim(self)


@_method
def receipt(self):
    """The kernels that ran, each with the number of its operations."""
    return _gimbal.receipt(self)


@_method
def fallbacks(self):
    """Operations that ran on the CPU for lack of a kernel on the device: dicts with what, instead and why."""
    return _gimbal.fallbacks(self)


@_method
def verified(self):
    """The kernels of a GPU that were compared with the CPU: dicts with name, right, and whether an earlier start did it (before)."""
    return _gimbal.verified(self)


@_method
def supports(self, dtype):
    """Whether the device has arithmetic for a dtype."""
    return _gimbal.supports(self, dtype_of(dtype).number)
