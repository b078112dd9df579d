"""gimbal: language models, and tensors with the same bits everywhere.

    import gimbal as gb
    for piece in gb.Model("default").generate("Once upon a time"):
        print(piece, end="")

    x = gb.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = (x @ x.t() * 0.5).gelu().softmax(-1)

docs/python.md has the rest.
"""

from . import _dtypes
from ._dtypes import DType, dtype
from ._files import load, save
from ._gimbal import DeviceError, DTypeError, Error, FileError, IndexError, NotFound, OutOfMemory, Queue, ShapeError, Tensor, UsageError
from ._making import (Generator, arange, asarray, cat, cholesky, conv1d, conv2d, conv_transpose1d, conv_transpose2d, eye, from_bytes, from_dlpack, full, layer_norm, linear,
                      linear_indexed, normal, ones, qr, quantize, rms_norm, solve_triangular, stack, tensor, uniform, where, zeros)
from ._custom import CustomOp, custom_op
from ._queues import device, open_queue, queue_of
from ._recorded import Recorded, record
from . import _tensor
from ._generation import Generation, Reply
from ._model import Model, backends, explain, models, plan, pull
from ._server import Server, serve
from ._reports import Explanation, Operations, Plan, Receipt, RecordedPlan
from ._tokenizer import Tokenizer

for _name, _dtype in _dtypes.BY_NAME.items():
    globals()[_name] = _dtype
bool_ = _dtypes.BY_NAME["bool"]
for _name in [CustomOp, DType, Generation, Generator, Model, Plan, Explanation, Operations, Receipt, Recorded, RecordedPlan, Reply, Server, Tokenizer]:
    _name.__module__ = "gimbal"
del _name, _dtype


def __getattr__(name):
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("gimbal")
        except metadata.PackageNotFoundError:
            return "0 (not installed)"
    if name == "array_api":
        import importlib

        return importlib.import_module(".array_api", __name__)
    raise AttributeError(f"module 'gimbal' has no attribute '{name}'")
