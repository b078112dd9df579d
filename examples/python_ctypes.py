#!/usr/bin/env python3
"""gimbal from Python without a binding: ctypes over the C interface (include/gimbal/gimbal.h).

Usage: python_ctypes.py LIBGIMBAL_SO [MODEL] [PROMPT]
"""
import ctypes
import json
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_size_t, c_uint64, c_void_p

ABI = 1
PROGRESS = ctypes.CFUNCTYPE(c_int32, c_int32, c_char_p, c_char_p, c_uint64, c_uint64, c_void_p)
SINK = ctypes.CFUNCTYPE(c_int32, c_int32, c_char_p, c_size_t, c_void_p)
LOADING = 6  # GIMBAL_EVENT_LOADING


class GimbalError(Exception):
    """code: GIMBAL_ERROR_*; field: the option at fault, or empty."""

    def __init__(self, code, message, remedy, field):
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.code, self.field = code, field


class Gimbal:
    """The functions of the library. Each call raises GimbalError with what the library says."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        if self.lib.gimbal_c_abi() != ABI:
            raise RuntimeError(f"{path} has the C interface {self.lib.gimbal_c_abi()}, not {ABI}")
        for name in ("message", "remedy", "field"):
            getattr(self.lib, f"gimbal_error_{name}").restype = c_char_p
        for name in ("string", "json"):
            getattr(self.lib, f"gimbal_text_{name}").restype = c_char_p

    def call(self, name, *arguments):
        error = c_void_p()
        code = getattr(self.lib, f"gimbal_{name}")(*arguments, byref(error))
        if code:
            said = [getattr(self.lib, f"gimbal_error_{part}")(error).decode() for part in ("message", "remedy", "field")]
            self.lib.gimbal_error_free(error)
            raise GimbalError(code, *said)

    def made(self, name, *arguments):
        """The handle that the function makes, its last argument before the error."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle

    def taken(self, name, *arguments):
        """The text that the function returns, here as parsed JSON."""
        memory = c_char_p()
        self.call(name, *arguments, byref(memory))
        value = json.loads(memory.value)
        self.lib.gimbal_free(memory)
        return value


def options(**values):
    return json.dumps(values).encode()


def main(path, model="default", prompt="Once upon a time"):
    gimbal = Gimbal(path)
    engine = gimbal.made("engine_new", options(strict=True))

    plan = gimbal.taken("plan", engine, model.encode(), None)
    print(f"{plan['name']}: {plan['layers']} layers on {plan['placement'][0]['device']}, fits: {plan['fits']}")

    @PROGRESS
    def progress(kind, what, text, done, total, user):
        if kind == LOADING and done == total:
            print(f"loaded on {what.decode()}")
        return 1

    loaded = gimbal.made("load", engine, model.encode(), options(context=256), progress, None, None)

    tokens, count = POINTER(c_int32)(), c_size_t()
    text = prompt.encode()
    gimbal.call("tokenize", loaded, text, c_size_t(len(text)), None, byref(tokens), byref(count))
    print("tokens:", tokens[:count.value])
    gimbal.lib.gimbal_free(tokens)

    sequence = gimbal.made("sequence_new", loaded)
    pieces = []

    @SINK
    def sink(part, piece, size, user):
        pieces.append(ctypes.string_at(piece, size).decode())
        return 1

    written = gimbal.made("generate", sequence, text, c_size_t(len(text)), options(max_tokens=12, greedy=True), sink, None, None)
    said = json.loads(gimbal.lib.gimbal_text_json(written))
    assert "".join(pieces) == said["text"]
    print("text:", json.dumps(said["text"]), "finish:", said["finish"])
    gimbal.lib.gimbal_text_free(written)
    gimbal.lib.gimbal_sequence_free(sequence)
    gimbal.lib.gimbal_model_free(loaded)

    embedder = gimbal.made("load", engine, model.encode(), options(embed=True), None, None, None)
    texts = (c_char_p * 2)(b"the sun shines", b"it rains")
    vectors, width = POINTER(c_float)(), c_size_t()
    gimbal.call("embed", embedder, texts, c_size_t(2), options(pooling="mean"), byref(vectors), byref(width))
    first, second = vectors[:width.value], vectors[width.value:2 * width.value]
    print(f"embeddings of {width.value} numbers, similarity {sum(a * b for a, b in zip(first, second)):.3f}")
    gimbal.lib.gimbal_free(vectors)
    gimbal.lib.gimbal_model_free(embedder)

    try:
        gimbal.made("load", engine, model.encode(), options(contxt=256), None, None, None)
    except GimbalError as error:
        print("refused:", error)
    gimbal.lib.gimbal_engine_free(engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
