#!/usr/bin/env python3
"""Measures the start of a packed model (`gimbal pack`) with one token, with and without weights that are brought into memory ahead.

Usage: bench/start.py MODEL [--program build/release/gimbal] [--runs 5] [--threads 2] [--cold]
  --cold   empties the system's page cache before each run (root); otherwise the files are in it
Prints for each way milliseconds from the start of the process to its end: median (lowest to highest), and the time that reading the packed file
alone takes, with two threads. "without": a seccomp filter answers MADV_POPULATE_READ as a system before Linux 5.14 does. The ways take turns.
"""
import argparse
import concurrent.futures
import ctypes
import os
import platform
import statistics
import struct
import subprocess
import time

POPULATE_READ, EINVAL = 22, 22
MADVISE = {"x86_64": 28, "aarch64": 233}
PIECE = 8 << 20

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("model")
parser.add_argument("--program", default="build/release/gimbal")
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--cold", action="store_true")
o = parser.parse_args()


def without_call():
    """For this process and its children: a filter of seccomp (BPF: code, jumps if true and if false, value)."""
    load, equal, give = 0x20, 0x15, 0x06
    steps = [(load, 0, 0, 0), (equal, 0, 3, MADVISE[platform.machine()]), (load, 0, 0, 16 + 2 * 8), (equal, 0, 1, POPULATE_READ),
             (give, 0, 0, 0x00050000 | EINVAL), (give, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def read_alone():
    def part(first):
        with open(o.model + ".packed", "rb", buffering=0) as file:
            piece = bytearray(PIECE)
            for at in range(first * PIECE, size, 2 * PIECE):
                file.seek(at)
                file.readinto(piece)
    size = os.path.getsize(o.model + ".packed")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(part, range(2)))


def start(prepare):
    subprocess.run([o.program, "logits", o.model, "--tokens", "1", "-o", "/dev/null", "--quiet", "--ctx", "512", "-t", str(o.threads), "--backend", "cpu",
                    "--packed", "on", "--strict"], check=True, preexec_fn=prepare)


ways = {"ahead": lambda: start(None), "without": lambda: start(without_call), "read alone": read_alone}
times = {name: [] for name in ways}
for way in ways.values():  # once: verifies the kernels, fills the page cache
    way()
for _ in range(o.runs):
    for name, way in ways.items():
        if o.cold:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
                file.write("3")
        begin = time.perf_counter()
        way()
        times[name].append(1e3 * (time.perf_counter() - begin))
for name, each in times.items():
    print(f"{name:10}  {statistics.median(each):.0f} ({min(each):.0f} to {max(each):.0f}) ms")
