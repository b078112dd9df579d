"""Weights that a test in C++ can make again, so that a golden file holds no weights (tests/support/plain_weights.h).

A value is middle + spread * u. u in [-1, 1) has 24 bits, and comes from SplitMix64 (Steele et al., "Fast Splittable
Pseudorandom Number Generators", 2014), which begins at the FNV-1a hash of the tensor's name. Middle and spread are
multiples of 1/1024, so that no step in double precision rounds, and every compiler gets the same number.
"""
import array
import math

MASK = (1 << 64) - 1


def rounded(x):
    return max(1, round(x * 1024)) / 1024


def range_of(name, dimensions):
    """(middle, spread) that keep every layer's output alive."""
    base = ".".join(name.split(".")[-2:])
    if base.endswith("ssm_a"):
        return -1.5, 1.25
    if base.endswith("ssm_d"):
        return 1, 0.5
    if base.startswith(("rope_freqs", "rope_factors")):
        return 2.5, 1.5
    if base in ("time_mix_w0.weight", "time_mix_decay.weight"):
        return -2.25, 2.75
    if "_lerp_" in base or base.endswith(("time_mix_first.weight", "k_k.weight", "k_a.weight", "r_k.weight")):
        return 0.5, 0.5
    if base.endswith(".bias"):
        return 0, 0.375
    if "norm" in base or base == "time_mix_ln.weight":
        return 1, 0.375
    if base in ("token_embd.weight", "position_embd.weight", "attn_sinks.weight"):
        return 0, 1.75
    return 0, rounded(2.6 / math.sqrt(dimensions[0]))


def values(name, dimensions, middle, spread):
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = (start ^ byte) * 0x100000001B3 & MASK
    numbers = array.array("f")
    for _ in range(math.prod(dimensions)):
        start = start + 0x9E3779B97F4A7C15 & MASK
        z = start
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        numbers.append(middle + spread * ((z >> 40) / (1 << 23) - 1))
    return numbers.tobytes()
