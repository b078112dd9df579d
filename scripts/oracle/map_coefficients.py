#!/usr/bin/env python3
"""Makes the coefficients and constants of src/ops/formulas and src/backends/cpu/maps_wide.cpp.

Method: Remez's exchange on a grid, in mpmath (60 digits). A coefficient is rounded to the target's precision, beginning with the one that
counts most, and the others are fitted again, so that the rounding of one is made good by the next.

Usage: map_coefficients.py            prints one line per polynomial: name, largest weighted error, coefficients from x^0 upwards
       map_coefficients.py --check    fails if a coefficient is in none of those files
"""
import os
import struct
import sys

import mpmath as mp

mp.mp.dps = 60
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def to_f32(v):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(v)))[0])  # twice rounded: off by half a unit in 2^-29 of cases


def to_f64(v):
    return mp.mpf(float(v))


def remez(f, w, a, b, n, fixed=()):
    """c[len(fixed):n] of the polynomial with the smallest max of w |f - p| on [a, b]; its lowest coefficients are `fixed`."""
    k = len(fixed)
    grid = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (40 * n)) for i in range(40 * n + 1)]
    rest = [f(x) - sum(c * x**i for i, c in enumerate(fixed)) for x in grid]
    weight = [w(x) for x in grid]
    m = n - k
    at = [round(i * (len(grid) - 1) / m) for i in range(m + 1)]
    best = None
    for _ in range(30):
        # A zero weight (or a fixed lowest power at 0) makes a row singular: keep away from it.
        rows, right = mp.matrix(m + 1), mp.matrix(m + 1, 1)
        for r, i in enumerate(at):
            for j in range(m):
                rows[r, j] = grid[i] ** (k + j) * weight[i]
            rows[r, m] = (-1) ** r
            right[r] = rest[i] * weight[i]
        c = mp.lu_solve(rows, right)
        error = [(rest[i] - sum(c[j] * grid[i] ** (k + j) for j in range(m))) * weight[i] for i in range(len(grid))]
        largest = max(abs(e) for e in error)
        if best is None or largest < best[0]:
            best = (largest, [c[j] for j in range(m)])
        runs, begin = [], 0  # the largest error of each run of one sign
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (error[i] > 0) != (error[begin] > 0):
                runs.append(max(range(begin, i), key=lambda q: abs(error[q])))
                begin = i
        while len(runs) > m + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < m + 1 or runs == at:
            break
        at = runs
    return best


def fit(f, w, a, b, n, to, fixed=()):
    fixed = [mp.mpf(c) for c in fixed]
    a, b = mp.mpf(a), mp.mpf(b)
    while len(fixed) < n:
        error, c = remez(f, w, a, b, n, fixed)
        fixed.append(to(c[0]))
    grid = [a + (b - a) * i / 997 for i in range(1, 998)]
    error = max(abs(w(x) * (f(x) - sum(c * x**i for i, c in enumerate(fixed)))) for x in grid)
    return fixed, error


def away(f, at0):
    """f, and its limit at 0."""
    return lambda x: at0 if abs(x) < mp.mpf("1e-18") else f(x)


def tail_of_log(x):
    return away(lambda v: (mp.log1p(v) - v + v * v / 2) / v**3, mp.mpf(1) / 3)(x)


def odd(f, c1, c3):
    """(f(x) / x - c1) / x^2 as a function of z = x^2."""
    def g(z):
        x = mp.sqrt(z)
        return (f(x) / x - c1) / z
    return away(g, c3)


def of_asin(n, to):
    return fit(odd(mp.asin, 1, mp.mpf(1) / 6), lambda z: z, 0, mp.mpf("0.25"), n, to)


def of_atan(n, to):  # up to the square of tan(pi / 8)
    return fit(odd(mp.atan, 1, -mp.mpf(1) / 3), lambda z: z, 0, mp.mpf("0.1716"), n, to)


def of_sinh(n, to):
    return fit(odd(mp.sinh, 1, mp.mpf(1) / 6), away(lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)), 0), 0, 1, n, to)


ROOT2 = mp.sqrt(2)
LN2 = mp.log(2)
F32 = {
    # log(1 + f) = f + f^2 (-1/2 + f P(f)); the weight is what P contributes, relative to the logarithm
    "log": lambda: fit(tail_of_log, lambda x: abs(x**3 / mp.log1p(x)) if x else mp.mpf(0), 1 / ROOT2 - 1, ROOT2 - 1, 9, to_f32),
    # sin r = r + r^3 P(r^2), cos r = 1 - r^2 / 2 + r^4 P(r^2)
    "sin": lambda: fit(odd(mp.sin, 1, -mp.mpf(1) / 6), lambda z: z, 0, mp.mpf("0.64"), 4, to_f32),
    "cos": lambda: fit(away(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24), lambda z: z * z, 0, mp.mpf("0.64"), 4, to_f32),
    # tanh x = x + x^3 P(x^2)
    "tanh": lambda: fit(odd(mp.tanh, 1, -mp.mpf(1) / 3), lambda z: z, 0, mp.mpf("0.4356"), 6, to_f32),
    # erf x = x + x P(x^2)
    "erf": lambda: fit(away(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1), lambda z: mp.mpf(1), 0, 1, 8, to_f32),
    # erf x = 1 - e^-P(x - 1); erfc x is the weight, since an error of P counts that much
    "erf_tail": lambda: fit(lambda t: -mp.log(mp.erfc(t + 1)), lambda t: mp.erfc(t + 1), 0, 3, 10, to_f32),
    # asin x = x + x^3 P(x^2), and the same of atan and sinh
    "asin": lambda: of_asin(5, to_f32),
    "atan": lambda: of_atan(5, to_f32),
    "sinh": lambda: of_sinh(4, to_f32),
    # log2 m = s (2 / ln 2 + s^2 P(s^2)), s = (m - 1) / (m + 1)
    "log2_pow": lambda: fit(odd(lambda s: mp.log((1 + s) / (1 - s)) / LN2, 2 / LN2, 2 / (3 * LN2)), lambda z: z, 0, mp.mpf("0.0295"), 4, to_f32),
    # 2^r = 1 + r ln 2 + r^2 P(r)
    "exp2_pow": lambda: fit(away(lambda r: (mp.mpf(2) ** r - 1 - r * LN2) / r**2, LN2**2 / 2), lambda r: r * r / mp.mpf(2) ** r, -0.5, 0.5, 6, to_f32),
}
F64 = {
    "asin_f64": lambda: of_asin(12, to_f64),
    "atan_f64": lambda: of_atan(10, to_f64),
    "sinh_f64": lambda: of_sinh(7, to_f64),
    # erf x = x + x P(x^2); erf x = 1 - e^-P(x - 1) on [1, 3] and 1 - e^-P(x - 3) on [3, 6]
    "erf_f64": lambda: fit(away(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1), lambda z: mp.mpf(1), 0, 1, 14, to_f64),
    "erf_tail_f64": lambda: fit(lambda t: -mp.log(mp.erfc(t + 1)), lambda t: mp.erfc(t + 1), 0, 2, 20, to_f64),
    "erf_end_f64": lambda: fit(lambda t: -mp.log(mp.erfc(t + 3)), lambda t: mp.erfc(t + 3), 0, 3, 14, to_f64),
}
CONSTANTS = {  # split so that the sum of the parts has 48 or 72 bits
    "half_pi": (mp.pi / 2, 3),
    "quarter_pi": (mp.pi / 4, 2),
    "three_quarters_pi": (3 * mp.pi / 4, 2),
    "pi": (mp.pi, 2),
    "two_over_pi": (2 / mp.pi, 1),
    "one_over_ln2": (1 / LN2, 2),
    "two_over_ln2": (2 / LN2, 2),
    "ln2": (LN2, 2),
}


def literal(v):
    text = f"{float(v):.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def literal64(v):
    """As C++ writes it, without zeros at the end."""
    head, power = float(v).hex().split("p")
    return (head.rstrip("0").rstrip(".") if "." in head else head) + "p" + power


def main():
    rows = []
    for name, make in F32.items():
        c, error = make()
        rows.append((name, mp.nstr(error, 3), [literal(v) for v in c]))
    for name, (value, parts) in CONSTANTS.items():
        out, rest = [], value
        for _ in range(parts):
            out.append(to_f32(rest))
            rest -= out[-1]
        rows.append((name, mp.nstr(abs(rest), 3), [literal(v) for v in out]))
    for name, make in F64.items():
        c, error = make()
        rows.append((name, mp.nstr(error, 3), [literal64(v) for v in c]))
    # 2 / pi, from 2^-1 on, in words
    with mp.workdps(500):
        whole = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1280))
    rows.append(("two_over_pi", "-", [f"0x{whole >> (1248 - 32 * i) & 0xffffffff:08x}u" for i in range(7)]))
    rows.append(("two_over_pi_f64", "-", [f"0x{whole >> (1216 - 64 * i) & (2**64 - 1):016x}" for i in range(20)]))
    if sys.argv[1:] != ["--check"]:
        for name, error, c in rows:
            print(f"{name:18} {error:10} {', '.join(c)}")
        return 0
    texts = [os.path.join(ROOT, "src/backends/cpu/maps_wide.cpp")]
    for folder, _, files in os.walk(os.path.join(ROOT, "src/ops/formulas")):
        texts += [os.path.join(folder, file) for file in files]
    text = ""
    for path in texts:
        with open(path, encoding="utf-8") as file:
            text += file.read()
    missing = [f"{name}: {v}" for name, _, c in rows for v in c if v.lstrip("-") not in text]
    print("\n".join(missing) or "map_coefficients: all are there")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
