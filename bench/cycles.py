#!/usr/bin/env python3
"""Cycles that this core takes for loops of a few instructions: what else it does beside 32 products of vectors for nothing.

  bench/cycles.py        x86 with AVX-512 and VNNI, or with AVX2; needs gcc

With AVX2 it measures the ways to multiply 32 bytes by 32 and to add the products. bench/results/cycles.json has results with
AVX-512. The length of a cycle is measured by a chain of additions, and each time is the least of 40: run it while nothing else runs.
"""
import os
import subprocess
import sys
import tempfile

PRODUCTS = 32
DATA, ROWS = "%1", "%2"  # registers: two places in memory, of which the kernels' weights and rows are like


def product(to, code, row):
    return f"vpdpbusd %%zmm{row},%%zmm{code},%%zmm{to}"


def fma(to, code, row):
    return f"vfmadd231ps %%zmm{row},%%zmm{code},%%zmm{to}"


# The work beside products, as a function of a running number.
BESIDE = {
    "multiplication": lambda i: f"vmulps %%zmm29,%%zmm28,%%zmm{20 + i % 4}",
    "addition": lambda i: f"vaddps %%zmm29,%%zmm28,%%zmm{20 + i % 4}",
    "shift": lambda i: f"vpsrlw $3,%%zmm28,%%zmm{20 + i % 4}",
    "mask": lambda i: f"vpandd %%zmm29,%%zmm28,%%zmm{20 + i % 4}",
    "table lookup": lambda i: f"vpshufb %%zmm29,%%zmm28,%%zmm{20 + i % 4}",
    "conversion of int32": lambda i: f"vcvtdq2ps %%zmm28,%%zmm{20 + i % 4}",
    "widening of 16 bits": lambda i: f"vpmovzxwd %%ymm28,%%zmm{20 + i % 4}",
    "load of a vector": lambda i: f"vmovdqu64 {2048 + 64 * i}({DATA}),%%zmm{20 + i % 4}",
    "store of a vector": lambda i: f"vmovdqu64 %%zmm28,{2048 + 64 * i}({DATA})",
}


def loop(step, broadcast, name="", times=0):
    """32 products, for each a number of a row is broadcast, and something else `times` times, evenly between them."""
    lines, done = [], 0
    for i in range(PRODUCTS):
        lines += [f"{broadcast} {4 * (i % 16)}({ROWS}),%%zmm{16 + i % 4}", step(i % 8, 31, 16 + i % 4)]
        while done * PRODUCTS < times * (i + 1):
            lines.append(BESIDE[name](done))
            done += 1
    return lines


def cases():
    for name in BESIDE:
        for times in (8, 16):
            yield f"vpdpbusd, vpbroadcastd, and {times} times: {name}", loop(product, "vpbroadcastd", name, times)
    for broadcast in ("vpbroadcastd", "vbroadcastss"):
        for times in (0, 8, 16):
            yield f"vfmadd231ps, {broadcast}, and {times} times: widening of 16 bits", loop(fma, broadcast, "widening of 16 bits", times)


# 32 products of bytes and their sum, with AVX2. {t}: a register of its own; {s}: that of a sum.
BYTES = {
    "8-bit codes, by magnitude and sign": [
        "vpsignb %%ymm8,%%ymm9,%%ymm{t}", "vpmaddubsw %%ymm{t},%%ymm10,%%ymm{t}", "vpmaddwd %%ymm{t},%%ymm11,%%ymm{t}",
        "vpaddd %%ymm{t},%%ymm{s},%%ymm{s}"],
    "8-bit codes, as pairs of 16 bits": 2 * ["vpmaddwd %%ymm8,%%ymm9,%%ymm{t}", "vpaddd %%ymm{t},%%ymm{s},%%ymm{s}"],
    "codes of up to 5 bits, sums of 16 bits": ["vpmaddubsw %%ymm8,%%ymm9,%%ymm{t}", "vpaddw %%ymm{t},%%ymm{s},%%ymm{s}"],
}


def avx2_cases():
    for name, steps in BYTES.items():
        yield name, [step.format(t=i % 4, s=4 + i % 4) for i in range(PRODUCTS) for step in steps]


FRAME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void chain(long n) { asm volatile("1:\n" CHAIN "dec %%0\njnz 1b" : "+r"(n) : : "rax"); }
LOOPS
int main(void) {
  char* memory = aligned_alloc(4096, 1 << 20);
  for (int i = 0; i < 1 << 20; i++) memory[i] = 0;
  void (*loops[])(long, char*) = {NAMES};
  for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++) {
    double cycle = 1, best = 1;
    for (int r = 0; r < 40; r++) {
      double a = now(); chain(5000);
      double t = (now() - a) / 5000 / 20; if (t < cycle) cycle = t;
      a = now(); loops[i](5000, memory);
      t = (now() - a) / 5000; if (t < best) best = t;
    }
    printf("%.1f\n", best / cycle);
  }
}
"""


def measure(bodies, flags, registers):
    loops = ""
    for i, body in enumerate(bodies):
        text = "".join(line + r"\n" for line in body)
        loops += f'static void loop{i}(long n, char* p) {{ asm volatile("1:\\n{text}dec %0\\njnz 1b" : "+r"(n) : "r"(p), "r"(p + 65536) : "memory"'
        loops += "".join(f', "xmm{r}"' for r in range(registers)) + "); }\n"
    source = FRAME.replace("CHAIN", '"' + r"add $1,%%rax\n" * 20 + '"').replace("%%0", "%0").replace("LOOPS", loops)
    source = source.replace("NAMES", ", ".join(f"loop{i}" for i in range(len(bodies))))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cycles")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["gcc", "-O1", *flags, "-o", path, path + ".c"], check=True)
        return subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = file.read()
    if "avx512_vnni" in cpu:
        found, flags, registers = list(cases()), ["-mavx512f", "-mavx512bw", "-mavx512vnni"], 32
    elif "avx2" in cpu:
        found, flags, registers = list(avx2_cases()), ["-mavx2"], 16
    else:
        sys.exit("cycles.py: this CPU has neither AVX-512 with VNNI nor AVX2")
    for (name, _), cycles in zip(found, measure([body for _, body in found], flags, registers)):
        print(f"{cycles:>6} cycles: {PRODUCTS} times {name}")


if __name__ == "__main__":
    main()
