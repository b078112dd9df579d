#!/usr/bin/env python3
"""Speed of tensors beside NumPy, in one process and in turn: rounds of both, the median of the ratios.

    PYTHONPATH=build/release/python python3 bench/tensors/compare.py [--threads N] [--rounds N] [--only TEXT] [--small] [--json]

NumPy's products are those of its BLAS (numpy.show_config() names it). OPENBLAS_CORETYPE pins an older OpenBLAS to another
core: unset it. OPENBLAS_VERBOSE=2 prints the core that it took. A ratio above 1: gimbal is faster. Both use `--threads` threads for
products (OPENBLAS_NUM_THREADS is set before NumPy is loaded); NumPy's other functions use one. With one thread also the share of the
memory's limit: the time of the fastest plain loop that moves as many bytes, compiled by g++, in the same round.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--threads", type=int, default=1)
arguments.add_argument("--rounds", type=int, default=7)
arguments.add_argument("--only", default="", help="the works whose names contain this")
arguments.add_argument("--small", action="store_true", help="small sizes, to try the script")
arguments.add_argument("--json", action="store_true")
options = arguments.parse_args()
os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)

import numpy as np

import gimbal as gb


def seconds(f):
    """Of one call, by as many calls as take 20 ms."""
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            f()
        taken = time.perf_counter() - begin
        if taken > 0.02 or calls > 1e6:
            return taken / calls
        calls *= 4


def compiled(text, flags):
    """A library of C++ functions, by g++."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "f.cpp"), os.path.join(folder, "f.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["g++", *flags, "-shared", "-fPIC", source, "-o", library], check=True)
        return ctypes.CDLL(library)


def standard_sort():
    """Sorts a copy of f32 values by std::sort, compiled by g++ -O2."""
    sort_floats = compiled('#include <algorithm>\nextern "C" void sort_floats(float* p, long n) { std::sort(p, p + n); }\n', ["-O2"]).sort_floats

    def sort(values):
        copy = values.copy()
        sort_floats(copy.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(copy.size))
        return copy

    return sort


# Loops that read one array, copy one, and add two. copy and add exist with stores that bypass the caches, too.
LOOPS = """
typedef float V __attribute__((vector_size(64)));
extern "C" float read_all(const V* a, long n) {
  V s[8] = {};
  for (long i = 0; i < n; i += 8) for (int k = 0; k < 8; k++) s[k] += a[i + k];
  float all = 0;
  for (int k = 0; k < 8; k++) for (int j = 0; j < 16; j++) all += s[k][j];
  return all;
}
extern "C" void copy_all(const V* a, const V*, V* y, long n) { for (long i = 0; i < n; i++) y[i] = a[i]; }
extern "C" void add_all(const V* a, const V* b, V* y, long n) { for (long i = 0; i < n; i++) y[i] = a[i] + b[i]; }
#ifdef __SSE__
#include <immintrin.h>
static inline void past(V* y, V v) { for (int k = 0; k < 4; k++) _mm_stream_ps((float*)y + 4 * k, ((__m128*)&v)[k]); }
extern "C" void copy_past(const V* a, const V*, V* y, long n) { for (long i = 0; i < n; i++) past(y + i, a[i]); _mm_sfence(); }
extern "C" void add_past(const V* a, const V* b, V* y, long n) { for (long i = 0; i < n; i++) past(y + i, a[i] + b[i]); _mm_sfence(); }
#endif
"""


def memory_limits(n):
    """Plain loops of one thread over n values, by how they use memory. The fastest of each list is the limit."""
    loops = compiled(LOOPS, ["-O3", "-march=native", "-Wno-psabi"])
    loops.read_all.restype = ctypes.c_float
    a, b, y = (np.ones(n + 16, "f4") for _ in range(3))  # zeros would be one page
    p, q, r = (ctypes.c_void_p(v.ctypes.data + -v.ctypes.data % 64) for v in (a, b, y))
    lines = ctypes.c_long(n // 16)

    def call(name):
        f = getattr(loops, name)
        return lambda arrays=(a, b, y): f(p, q, r, lines)  # the default keeps the arrays alive

    limits = {"read": [lambda arrays=(a,): loops.read_all(p, lines)]}
    for name in ("copy", "add"):
        limits[name] = [call(f"{name}_{kind}") for kind in ("all", "past") if hasattr(loops, f"{name}_{kind}")]
    return limits


def limit_of(work):
    """The key of memory_limits() for a work; None: memory does not limit it."""
    for begin, moves in (("add, 16 v", None), ("add", "add"), ("sum", "read"), ("exp", "copy"), ("tanh", "copy"), ("transposed", "copy")):
        if work.startswith(begin):
            return moves
    return None


def works(n, side):
    """(name, gimbal's call, the other's call): n values, products of side x side."""
    random = np.random.default_rng(1)
    a, b = (random.normal(size=n).astype("f4") for _ in range(2))
    m, w, row = (random.normal(size=d).astype("f4") for d in ((side, side), (side, side), (1, side)))
    square = a[: (n // 1024) * 1024].reshape(-1, 1024)
    x, y, gm, gw, grow, gs = (gb.asarray(v) for v in (a, b, m, w, row, square))
    few = np.ones(16, "f4")
    g_few = gb.asarray(few)

    def maps(t):
        for _ in range(4):
            t = (t * 0.5 + 1.0).relu()
        return t

    recorded = gb.record(maps)
    yield "add, 16 values", lambda: g_few + g_few, lambda: few + few
    yield f"matmul, {side} x {side}", lambda: gm @ gw, lambda: m @ w
    yield f"matmul, 1 x {side}", lambda: grow @ gw, lambda: row @ w
    yield f"add, {n}", lambda: x + y, lambda: a + b
    yield f"where, {n}", lambda: gb.where(x < y, x, y), lambda: np.where(a < b, a, b)
    yield f"exp, {n}", lambda: x.exp(), lambda: np.exp(a)
    yield f"tanh, {n}", lambda: x.tanh(), lambda: np.tanh(a)
    yield f"sum, {n}", lambda: x.sum(), lambda: a.sum()
    yield f"sum of rows of 1024, {n}", lambda: gs.sum(1), lambda: square.sum(1)
    yield f"sum of columns, {n}", lambda: gs.sum(0), lambda: square.sum(0)
    yield f"transposed copy, {n}", lambda: gs.t().contiguous(), lambda: np.ascontiguousarray(square.T)
    yield f"sort, {n}", lambda: x.sort(), lambda: np.sort(a)
    name = f"sort beside std::sort, {n}"
    if options.only in name:  # it needs g++
        sort = standard_sort()
        assert (np.asarray(x.sort()) == sort(a)).all()
        yield name, lambda: x.sort(), lambda: sort(a)
    yield f"argsort, {n}", lambda: x.argsort(), lambda: np.argsort(a, kind="stable")
    yield f"12 maps recorded beside call by call, {n}", lambda: recorded(x), lambda: maps(x)


def main():
    results = []
    n, side = (1 << 14, 128) if options.small else (1 << 24, 1024)
    limits = memory_limits(n)
    queue = gb.open_queue("cpu", threads=options.threads)
    with gb.device(queue):
        for name, ours, theirs in works(n, side):
            if options.only not in name:
                continue
            least = limits[limit_of(name)] if limit_of(name) and options.threads == 1 else []
            rounds = [(seconds(ours), seconds(theirs), min(map(seconds, least), default=0)) for _ in range(options.rounds)]
            results.append({"work": name, "seconds": statistics.median(r[0] for r in rounds), "other_seconds": statistics.median(r[1] for r in rounds),
                            "ratio": statistics.median(r[1] / r[0] for r in rounds)})
            if least:
                results[-1]["of_memory"] = statistics.median(r[2] / r[0] for r in rounds)
            if not options.json:
                print(f"{name:48} {results[-1]['seconds'] * 1e6:12.1f} us {results[-1]['other_seconds'] * 1e6:12.1f} us   ratio {results[-1]['ratio']:.2f}"
                      + (f"   {results[-1]['of_memory']:.0%} of the memory's limit" if least else ""), flush=True)
    about = {"numpy": np.__version__, "threads": options.threads, "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE", "")}
    if options.json:
        json.dump({"about": about, "results": results}, sys.stdout, indent=1)
    else:
        print(about)


if __name__ == "__main__":
    main()
