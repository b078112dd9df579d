#!/usr/bin/env python3
"""Writes tests/data/linear_algebra.json: random matrices with NumPy's (LAPACK's) factors and solutions, in double precision.

    scripts/oracle/linear_algebra.py > tests/data/linear_algebra.json
"""
import json
import sys

import numpy as np

random = np.random.default_rng(20261126)


def case(n, m, columns):
    a = random.normal(size=(m, n))
    q, r = np.linalg.qr(a)
    square = random.normal(size=(n, n))
    spd = square @ square.T + n * np.eye(n)
    b = random.normal(size=(n, columns))
    lower = np.linalg.cholesky(spd)
    return {"m": m, "n": n, "columns": columns, "a": a.ravel().tolist(), "q": q.ravel().tolist(), "r": r.ravel().tolist(), "spd": spd.ravel().tolist(),
            "lower": lower.ravel().tolist(), "b": b.ravel().tolist(), "x": np.linalg.solve(lower, b).ravel().tolist(),
            "x_upper": np.linalg.solve(lower.T, b).ravel().tolist()}


json.dump({"reference": f"numpy.linalg of NumPy {np.__version__}, float64", "cases": [case(n, m, c) for n, m, c in ((1, 1, 1), (3, 5, 2), (6, 4, 5), (17, 17, 3))]},
          sys.stdout)
print()
