"""Makers of hostile files, one module a kind; scripts/check/hostile_files.py is the command."""
from . import grammars, gguf, gguf_tensors, gguf_values, pictures, schemas, templates, tensor_files, vocabularies

# Kinds, and how many of a hundred files are of it.
KINDS = [(gguf.rule, 34), (vocabularies.rule, 8), (templates.rule, 16), (grammars.rule, 10), (schemas.rule, 14), (tensor_files.safetensors, 8),
         (tensor_files.npy, 2), (tensor_files.npz, 1), (pictures.png, 3), (pictures.jpeg, 2), (pictures.gif, 1), (pictures.webp, 1)]

__all__ = ["KINDS", "gguf_tensors", "gguf_values"]
