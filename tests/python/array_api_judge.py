#!/usr/bin/env python3
"""gimbal.array_api beside array-api-strict, an implementation of the standard by its authors: names, signatures, dtypes, shapes and values.

tests/python/array_api/ has the standard's own suite, which is not on PyPI. Usage: array_api_judge.py (with gimbal, numpy and array-api-strict importable). Prints the
figures of docs/quality.md; exits with 1 for a difference that SKIPPED does not name.
"""

import inspect
import itertools
import sys

import array_api_strict as strict
import numpy as np

import gimbal as gb

xp = gb.zeros(1).__array_namespace__()
strict.set_array_api_strict_flags(api_version=xp.__array_api_version__)

# Functions of the standard that are not there, with the reason.
SKIPPED = {
    **dict.fromkeys(("complex64", "complex128"), "no complex numbers"),
    "nextafter": "arithmetic of halves is in f32, whose steps they lose",
    **dict.fromkeys(("linalg", "fft"), "extensions of the standard, which are optional"),
}
# Dtypes that tensors store, convert and move, but do not compute with: of these, functions of elements are not compared.
STORED = {"int8", "uint16", "uint64"}
DTYPES = ("bool", "int16", "int32", "int64", "uint8", "uint32", "float32", "float64")
SHAPES = ((), (1,), (7,), (3, 4), (2, 1, 5), (0, 3))


def values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        x = rng.normal(0, 3, shape).astype(dtype)
        if x.size > 5:
            x.flat[:5] = (0.0, -0.0, np.inf, -np.inf, np.nan)
        return x
    return rng.integers(1 if dtype.startswith("u") else -9, 10, shape).astype(dtype)


def public(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return [n for n in names if not n.startswith("_") and not n.startswith(("set_array", "get_array", "reset_array", "ArrayAPI")) and n != "Device"]


def signature_faults(name):
    ours, theirs = getattr(xp, name), getattr(strict, name)
    if not inspect.isfunction(theirs):
        return []
    a, b = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    positional = [p.kind for p in b.values()].count(inspect.Parameter.POSITIONAL_ONLY)
    named = {n for n, p in b.items() if p.kind == inspect.Parameter.KEYWORD_ONLY} - {"device"}
    faults = [f"{name}: no parameter {n}" for n in sorted(named - set(a))]
    return faults + ([f"{name}: {len(a)} parameters, expected {positional} in place"] if len(a) < positional else [])


class Judge:
    def __init__(self):
        self.cases, self.faults, self.refused = 0, [], 0

    def compare(self, what, ours, theirs, rtol=1e-5):
        """Runs both; ours may refuse only where theirs does."""
        try:
            want = theirs()
        except Exception:
            return  # outside of the standard
        self.cases += 1
        try:
            got = ours()
        except Exception as error:
            self.faults.append(f"{what}: {type(error).__name__}: {error}")
            return
        got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
        if len(got) != len(want):
            self.faults.append(f"{what}: {len(got)} results, expected {len(want)}")
        for g, w in zip(got, want):
            self.same(what, g, w, rtol)

    def same(self, what, got, want, rtol):
        if not isinstance(got, gb.Tensor):
            if got != want:
                self.faults.append(f"{what}: {got}, expected {want}")
            return
        name = str(want.dtype).removeprefix("array_api_strict.")
        default = "linspace arange zeros ones full eye empty broadcast_arrays".split()  # float32 here, which the standard allows
        if name == "float64" and got.dtype is xp.float32 and what.split(" ")[0] in default:
            name = "float32"
        if got.dtype is not getattr(xp, name):
            self.faults.append(f"{what}: {got.dtype!r}, expected {name}")
        elif got.shape != want.shape:
            self.faults.append(f"{what}: shape {got.shape}, expected {want.shape}")
        elif not what.startswith("empty"):
            g, w = np.asarray(got), np.asarray(want._array)
            tolerance = rtol * (1e-6 if name == "float64" else 1)
            if not np.allclose(g, w, rtol=max(tolerance, 1e-13), atol=max(tolerance, 1e-13), equal_nan=g.dtype.kind == "f"):
                self.faults.append(f"{what}: {g.reshape(-1)[:4]}, expected {w.reshape(-1)[:4]}")


UNARY = ("abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 logical_not negative positive "
         "reciprocal round sign signbit sin sinh sqrt square tan tanh trunc").split()
BINARY = ("add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less "
          "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply not_equal pow remainder subtract").split()
# name, arguments after the tensor
WHOLE = [("sum", {}), ("prod", {}), ("mean", {}), ("max", {}), ("min", {}), ("any", {}), ("all", {}), ("var", {"correction": 1.0}), ("std", {}),
         ("sum", {"axis": -1}), ("mean", {"axis": 0, "keepdims": True}), ("max", {"axis": (0, 1)}), ("argmax", {}), ("argmin", {"axis": -1}),
         ("sum", {"dtype": "float64"}), ("sort", {}), ("sort", {"descending": True}), ("argsort", {}), ("flip", {}), ("flip", {"axis": 0}), ("roll", {"shift": 2}),
         ("roll", {"shift": (1, 2), "axis": (0, 1)}), ("cumulative_sum", {"axis": -1}), ("cumulative_sum", {"axis": 0, "include_initial": True}),
         ("cumulative_prod", {"axis": -1}), ("diff", {}), ("count_nonzero", {}), ("count_nonzero", {"axis": 0}), ("expand_dims", {"axis": (0, -1)}),
         ("squeeze", {"axis": 1}), ("matrix_transpose", {}), ("permute_dims", {"axes": (1, 0)}), ("moveaxis", {"source": 0, "destination": -1}),
         ("reshape", {"shape": (-1,)}), ("repeat", {"repeats": 3}), ("repeat", {"repeats": 2, "axis": 0}), ("tile", {"repetitions": (2, 1, 3)}), ("tril", {}),
         ("triu", {"k": 1}), ("unstack", {}), ("nonzero", {}), ("unique_values", {}), ("unique_counts", {}), ("unique_inverse", {}), ("unique_all", {}),
         ("zeros_like", {}), ("ones_like", {}), ("empty_like", {"dtype": "int32"}), ("full_like", {"fill_value": 2}), ("clip", {"min": 1, "max": 3}),
         ("broadcast_to", {"shape": (2, 3, 4)})]
MADE = [("arange", (5,), {}), ("arange", (1, 8, 3), {}), ("arange", (0.0, 1.0, 0.25), {}), ("zeros", ((2, 3),), {}), ("ones", (4,), {"dtype": "int64"}),
        ("full", ((2,), 7), {}), ("full", ((2,), True), {}), ("full", ((2,), 1.5), {}), ("eye", (3,), {}), ("eye", (2, 4), {"k": 1, "dtype": "int32"}),
        ("linspace", (0.0, 3.0, 7), {}), ("linspace", (0, 10, 5), {"endpoint": False}), ("linspace", (1.0, 2.0, 1), {}), ("empty", ((0, 2),), {})]


# Positional in the standard.
IN_PLACE = ("axes", "shape", "repeats", "repetitions", "shift", "source", "destination", "fill_value", "min", "max")


def called(module, name, arguments, options):
    options = {n: getattr(module, v) if n == "dtype" else v for n, v in options.items()}
    if name == "squeeze":
        return getattr(module, name)(*arguments, options["axis"])
    if name in ("roll", "repeat", "tile", "permute_dims", "moveaxis", "reshape", "full_like", "clip", "broadcast_to"):
        place = [options.pop(n) for n in IN_PLACE if n in options]
        return getattr(module, name)(*arguments, *place, **options)
    return getattr(module, name)(*arguments, **options)


def both(judge, what, name, arrays, options=None, rtol=1e-5):
    judge.compare(what, lambda: called(xp, name, [xp.asarray(a, copy=True) if isinstance(a, np.ndarray) else a for a in arrays], options or {}),
                  lambda: called(strict, name, [strict.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays], options or {}), rtol)


def elements(judge):
    for name, dtype, shape in itertools.product(UNARY, DTYPES, SHAPES):
        x = values(dtype, shape, 1)
        if name in ("acosh", "log", "log2", "log10", "sqrt"):
            x = np.abs(x) + (1 if name == "acosh" else 0) if dtype.startswith("float") else x
        if name in ("acos", "asin", "atanh") and dtype.startswith("float"):
            x = np.tanh(x)
        both(judge, f"{name} {dtype}{list(shape)}", name, [x.astype(dtype)], rtol=1e-4 if name in ("atanh", "acosh") else 1e-5)
    for name, dtype, shape in itertools.product(BINARY, DTYPES, SHAPES):
        x, y = values(dtype, shape, 2), values(dtype, shape, 3)
        if "shift" in name:
            y = np.abs(y) % 7
        if name == "pow":
            x, y = np.abs(x) % 4, np.abs(y) % 3
        if name in ("floor_divide", "remainder"):
            x, y = (v if not dtype.startswith("float") else np.where(np.isfinite(v), v, 1) for v in (x, y))
            y = np.where(y == 0, 2, y)
        x, y = x.astype(dtype), y.astype(dtype)
        both(judge, f"{name} {dtype}{list(shape)}", name, [x, y])
        if len(shape) == 2 and shape[0]:
            both(judge, f"{name} {dtype} of a row", name, [x, y[0]])
    for a, b in itertools.product(DTYPES, DTYPES):
        both(judge, f"add {a} {b}", "add", [values(a, (3,), 4), values(b, (3,), 5)])
        judge.compare(f"result_type {a} {b}", lambda: str(xp.result_type(getattr(xp, a), getattr(xp, b)) is getattr(xp, str(strict.result_type(
            getattr(strict, a), getattr(strict, b))).removeprefix("array_api_strict."))), lambda: (strict.result_type(getattr(strict, a), getattr(strict, b)), "True")[1])
        both(judge, f"where {a} {b}", "where", [np.array([True, False, True]), values(a, (3,), 4), values(b, (3,), 5)])
        judge.compare(f"can_cast {a} {b}", lambda: xp.can_cast(getattr(xp, a), getattr(xp, b)), lambda: strict.can_cast(getattr(strict, a), getattr(strict, b)))


def wholes(judge):
    for (name, options), dtype, shape in itertools.product(WHOLE, DTYPES, SHAPES):
        x = values(dtype, shape, 6)
        if not shape and ("axis" in options or name in ("sort", "argsort", "diff")):
            continue  # there is no such axis: NumPy takes it all the same
        if dtype.startswith("float"):  # order of additions and NaNs are not the standard's matter
            x = (np.where(np.isfinite(x), x, 2) + 0.0).astype(dtype)  # and here -0 is below 0
        both(judge, f"{name} {options} {dtype}{list(shape)}", name, [x], options)
    for name, arguments, options in MADE:
        both(judge, f"{name} {arguments} {options}", name, arguments, options)
    for dtype in ("float32", "float64"):
        a, b, v = (np.nan_to_num(values(dtype, s, 7), posinf=1, neginf=2) for s in ((2, 3, 4), (4, 5), (4,)))
        for left, right in ((a, b), (a, v), (v, b), (v, v), (b[0], b[0])):
            both(judge, f"matmul {dtype}", "matmul", [left, right])
        both(judge, f"vecdot {dtype}", "vecdot", [a, v])
        both(judge, f"tensordot {dtype}", "tensordot", [a, b], {"axes": 1})
        both(judge, f"tensordot {dtype} of pairs", "tensordot", [a, b], {"axes": ((2,), (0,))})
    x, ids = values("int32", (5, 3), 8), np.array([0, 4, -1, 2])
    both(judge, "take", "take", [x, ids], {"axis": 0})
    both(judge, "take_along_axis", "take_along_axis", [x, np.array([[0, 2, 1]])], {"axis": 0})
    for side in ("left", "right"):
        both(judge, f"searchsorted {side}", "searchsorted", [np.array([1.0, 2, 2, 5]), np.array([0.0, 2, 3, 9])], {"side": side})
    for name, options in (("concat", {}), ("concat", {"axis": None}), ("stack", {"axis": 1})):
        judge.compare(f"{name} {options}", lambda: getattr(xp, name)([xp.asarray(x), xp.asarray(x)], **options),
                      lambda: getattr(strict, name)([strict.asarray(x), strict.asarray(x)], **options))
    judge.compare("meshgrid", lambda: tuple(xp.meshgrid(xp.arange(3), xp.arange(2))), lambda: tuple(strict.meshgrid(strict.arange(3), strict.arange(2))))
    judge.compare("broadcast_arrays", lambda: tuple(xp.broadcast_arrays(xp.ones((3, 1)), xp.ones(2))), lambda: tuple(strict.broadcast_arrays(strict.ones((3, 1)), strict.ones(2))))
    judge.compare("astype", lambda: xp.astype(xp.asarray([1.7, -1.7]), xp.int32), lambda: strict.astype(strict.asarray([1.7, -1.7]), strict.int32))
    for t in ("int8", "uint16", "int64", "uint8"):
        for fact in ("bits", "min", "max"):
            judge.compare(f"iinfo {t}", lambda: getattr(xp.iinfo(getattr(xp, t)), fact), lambda: getattr(strict.iinfo(getattr(strict, t)), fact))
    for t, fact in itertools.product(("float32", "float64"), ("bits", "eps", "max", "min", "smallest_normal")):
        judge.compare(f"finfo {t}", lambda: getattr(xp.finfo(getattr(xp, t)), fact), lambda: float(getattr(strict.finfo(getattr(strict, t)), fact)))


def main():
    names = public(strict)
    absent = [n for n in names if not hasattr(xp, n) and n not in SKIPPED]
    needless = [n for n in SKIPPED if hasattr(xp, n)]
    judge = Judge()
    judge.faults += [f"{n}: absent" for n in absent] + [f"{n}: is there, and named as skipped" for n in needless]
    present = [n for n in names if hasattr(xp, n)]
    for name in present:
        judge.faults += signature_faults(name)
    with np.errstate(all="ignore"):
        elements(judge)
        wholes(judge)
    for fault in judge.faults[:200]:
        print(fault)
    print(f"array-api-strict {strict.__version__}, standard {xp.__array_api_version__}: {len(present)} of {len(names)} names, {len(SKIPPED)} skipped, "
          f"{judge.cases} cases, {len(judge.faults)} differences")
    return int(bool(judge.faults))


if __name__ == "__main__":
    sys.exit(main())
