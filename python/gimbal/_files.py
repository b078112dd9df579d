"""Tensors from files and to files."""

import os

from . import _gimbal
from ._queues import queue_of


def load(path, device=None, *, mapped=False):
    """The tensors of a .gguf, .safetensors or .npz file by name, or the tensor of an .npy file.

    mapped=True: on the CPU, tensors share the pages of their file and are read-only; nothing is copied. Those that do
    not lie in the file as they are used are copied. If the file becomes shorter, reading values raises Error.
    Raises Error for a file that is missing, breaks its format, or has numbers that are not known here.
    """
    all = _gimbal.load(os.fspath(path), queue_of(device), mapped)
    return all[0][1] if len(all) == 1 and all[0][0] == "" else dict(all)


def save(path, tensors):
    """Writes {name: tensor} as a .safetensors file, or a tensor as an .npy file, whole or not at all."""
    if isinstance(tensors, _gimbal.Tensor):
        tensors = {"": tensors}
    _gimbal.save(os.fspath(path), list(tensors), list(tensors.values()))
