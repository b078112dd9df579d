#!/usr/bin/env python3
"""Times the Python package beside NumPy and the program, and counts leaked memory (docs/python.md, "Speed and memory").

    PYTHONPATH=build/release/python bench/python_package.py build/release/gimbal [MODEL]
"""

import gc
import json
import subprocess
import sys
import time
import timeit

import numpy as np

import gimbal as gb

PROGRAM, MODEL = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "default"
REPEATS, CALLS = 60, 4000


def small(name, ours, theirs):
    """The fastest of many short runs in turn: both see the same moments of a busy machine."""
    best = [min(times) for times in zip(*((timeit.timeit(f, number=CALLS) for f in (ours, theirs)) for _ in range(REPEATS)))]
    print(f"{name:28}{best[0] / CALLS * 1e9:7.0f} ns, NumPy {best[1] / CALLS * 1e9:.0f} ns: {best[0] / best[1]:.2f}")


def imported(module):
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(10))


def live_after(n):
    queue = gb.open_queue("cpu")
    x = gb.full((64,), 1, device=queue)
    before = queue.memory()["live"]
    for _ in range(n // 4):
        ((x + 1.0) * x).softmax(0).sum()
    gc.collect()
    return queue.memory()["live"] - before


def generated(model, n):
    """Tokens a second of the package and of the program, the fastest of runs in turn."""
    best = [0.0, 0.0]
    for _ in range(5):
        text = model.generate("Once upon a time", max_tokens=n, greedy=True, ignore_stop_tokens=True)
        for _ in text:
            pass
        best[0] = max(best[0], len(text.tokens) / text.generate_seconds)
        told = subprocess.run([PROGRAM, "run", MODEL, "-p", "Once upon a time", "-n", str(n), "--greedy", "--ignore-eos", "--json", "--quiet"],
                              capture_output=True, text=True, check=True).stdout
        best[1] = max(best[1], json.loads(told)["timing"]["tokens_per_second"])
    return best


if __name__ == "__main__":
    a = np.arange(16, dtype=np.float32)
    x = gb.tensor(a)
    small("16 floats + 16 floats", lambda: x + x, lambda: a + a)
    small("16 floats + 1.5", lambda: x + 1.5, lambda: a + 1.5)
    small("exp of 16 floats", lambda: x.exp(), lambda: np.exp(a))
    print(f"import gimbal               {1000 * imported('gimbal'):7.1f} ms, numpy {1000 * imported('numpy'):.1f} ms")
    print(f"bytes after 10,000 operations {live_after(10000)}")
    big = np.zeros(1 << 28, np.float32)
    begun = time.perf_counter()
    same = np.asarray(gb.asarray(big)).__array_interface__["data"][0] == big.__array_interface__["data"][0]
    print(f"1 GB in and out             {1000 * (time.perf_counter() - begun):7.2f} ms, the same memory: {same}")
    with gb.Model(MODEL, progress=False) as model:
        ours, program = generated(model, 200)
    print(f"generate                    {ours:7.0f} tokens/s, gimbal run {program:.0f}: {ours / program:.3f}")
