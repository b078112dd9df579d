#!/usr/bin/env python3
"""Compare gimbal's ternary weights with microsoft/BitNet's own code: write tests/data/peer/bitnet/sums.json.

  scripts/oracle/bitnet.py BITNET LLAMA [--update]

BITNET is a checkout of microsoft/BitNet (16da220a), LLAMA one of its llama.cpp (Eddie-Wang1120/llama.cpp, merge-dev, 406a5036), of which
ggml's headers and the rounding of activations are used. Their quantizer and kernels are built for x86-64 (clang-19, AVX2) and for 64-bit
ARM (run by QEMU; without and with the dot product), and multiply: i2_s in the three orders of its codes, TL1
and TL2 with the matrices of tests/data/tl, by kernels that their generator writes for the tiles of each. Every sum is checked against
plain arithmetic here; where theirs differ, the case says why. Without --update it prints whether the stored data are the same.
"""

import argparse
import base64
import importlib.util
import json
import pathlib
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/peer/bitnet/sums.json"
X86 = ["clang++-19", "-mavx2", "-mfma", "-mf16c"]
ARM = ["clang++-19", "--target=aarch64-linux-gnu", "-march=armv8.2-a"]

# Rows, columns, seed and kind of the weights. "large": all weights 1 and activations 127. "damaged": one code 3.
SIZES = [(4, 128, 1, "random"), (8, 256, 2, "random"), (4, 2560, 3, "random"), (4, 4224, 4, "random"), (4, 8192, 5, "large"),
         (4, 256, 6, "damaged")]
TABLES = {"TL1": ["3B-3200x8640-params", "3B-3200x3200-params", "large-1536x4096-params", "small-64", "pattern", "all-minus"],
          "TL2": ["3B-3200x3200-params", "large-1536x1536-params", "llama3-4096x14336-params", "small-32x256", "BK192-remainder",
                  "BK24-remainder-none", "all-minus"]}


def hashed(i, seed):
    """32 bits from the number of an element; tests/backends/cpu/bitnet_sums_test.cpp has the same."""
    h = (i * 2654435761 + seed) & 0xffffffff
    h ^= h >> 15
    h = h * 2246822519 & 0xffffffff
    return h ^ h >> 13


def weights_of(count, seed, kind):
    return [1 if kind == "large" else (hashed(i, seed) >> 8) % 3 - 1 for i in range(count)]


def activations_of(count, seed, kind):
    return [127.0 if kind == "large" else ((hashed(i, seed + 1000) >> 8 & 0xffff) - 32768) / 8192 for i in range(count)]


def b64(data):
    return base64.b64encode(data).decode()


def build(compiler, folder, name, sources, flags):
    program = folder / name
    objects = [str(s) for s in sources]
    subprocess.run(compiler + ["-O1", "-fpermissive", "-w", "-ffunction-sections", "-Wl,--gc-sections", "-o", str(program)] + flags +
                   objects, check=True)
    return program


def product(program, rows, columns, size, number, weights, x):
    data = struct.pack("<4i", rows, columns, size, number) + weights + struct.pack(f"<{columns}f", *x)
    command = ([] if "x86" in program.name else ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]) + [str(program)]
    out = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
    file, codes, rest = out[:size], out[size:size + columns], out[size + columns:]
    numbers = struct.unpack(f"<{1 + rows}f", rest)
    return file, struct.unpack(f"<{columns}b", codes), rest[:4][::-1].hex(), [int(s) for s in numbers[1:]]


def plain(weights, codes):
    columns = len(codes)
    return [sum(w * a for w, a in zip(weights[r:r + columns], codes)) for r in range(0, len(weights), columns)]


def i2_s(programs):
    cases = []
    for rows, columns, seed, kind in SIZES:
        weights, x = weights_of(rows * columns, seed, kind), activations_of(columns, seed, kind)
        scale = 0.0371
        data = struct.pack(f"<{rows * columns}f", *(scale * w for w in weights))
        for order, program in programs:
            damaged = 5 if kind == "damaged" else -1  # its two highest bits: of row 0 column 5
            file, codes, step, sums = product(program, rows, columns, rows * columns // 4 + 4, damaged, data, x)
            told = list(weights)
            if damaged >= 0:
                told[5] = 2
            right = plain(told, codes)
            note = ""
            if sums != right:
                assert all((s - r) % 65536 == 0 for s, r in zip(sums, right)), (order, kind, sums, right)
                note = "their sums of 16 bits wrap around: the right ones are " + str(right[0])
            if kind == "large":
                file = b""
            cases.append({"kernel": order, "by": program.name, "rows": rows, "columns": columns, "seed": seed, "kind": kind, "note": note,
                          "weights_b64": b64(file), "activations_b64": b64(struct.pack(f"<{columns}b", *codes)), "scale_bits": step,
                          "sums": sums})
            print(f"{order:10} {program.name:12} {rows}x{columns} {kind}: {note or 'equal to plain arithmetic'}")
    return cases


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def header(kind, generator, cases):
    """The kernels for the tiles of each case, and the loop over tiles of rows that is in their ggml.c."""
    text = "#include <cstring>\n#include <cstdint>\n#include <cstdlib>\n#include <algorithm>\n#include \"ggml.h\"\n" + generator.gen_ctor_code()
    if kind == "TL1":
        text = text.replace("{{", "{").replace("}}", "}")
    body = ""
    for n, c in enumerate(cases):
        rows, columns, tile, inner, group = c["rows"], c["columns"], c["BM"], c["BK"], c["bm"]
        three = columns // inner * inner
        if kind == "TL1":
            text += generator.gen_tbl_impl(f"C{n}", tile, inner, group, columns)
            body += f"""case {n}: per_tensor_quant({columns}, &scale, x); lut_ctor<{columns}>(tables, x, &scale); scale = 1;
  for (int i = 0; i < {rows // tile}; i++) qgemm_lut_C{n}(file + i * {tile * columns // 4}, tables, &one, &scale, out + i * {tile});
  break;
"""
        else:
            two = columns - three
            text += generator.gen_tbl_impl(f"C{n}", tile, inner, group, (two, three))
            body += f"""case {n}: per_tensor_quant({columns}, &scale, x); three_lut_ctor<{three}>(tables, x, &scale);
  two_lut_ctor<{two}>(tables + {three} / 3 * 32, x + {three}, &scale); scale = 1;
  for (int i = 0; i < {rows // tile}; i++) {{
    three_qgemm_lut_C{n}<1>(file + i * {tile * three // 6}, file + {rows * three // 6} + i * {tile * three // 24}, tables, &one, &scale, out + i * {tile});
    two_qgemm_lut_C{n}<1>(file + {rows * three // 6 + rows * three // 24} + i * {tile * two // 4}, tables + {three} / 3 * 32, &one, &scale, out + i * {tile});
  }}
  break;
"""
    # Unrolling whole tiles changes no sum, and takes a compiler minutes.
    return text.replace("#pragma unroll", "") + f"""
static void product(int number, uint8_t* file, float* x, float* out) {{
  alignas(64) static int8_t tables[1 << 16];
  float scale = 0, one = 1;
  switch (number) {{
{body}  }}
}}
"""


def tables(bitnet, folder, sources, rounding, flags):
    cases = []
    for kind, names in TABLES.items():
        golden = json.loads((ROOT / f"tests/data/tl/{kind}.json").read_text())
        chosen = [c for name in names for c in golden["cases"] if c["name"] == name]
        assert len(chosen) == len(names)
        (folder / "bitnet_tables.h").write_text(header(kind, module(bitnet / f"utils/codegen_{kind.lower()}.py"), chosen))
        compiler, by = (ARM, "arm neon") if kind == "TL1" else (X86, "x86 avx2")
        program = build(compiler, folder, by, [*sources, rounding[compiler[1]]], flags + ["-DTL", f"-I{folder}"])
        for n, c in enumerate(chosen):
            region = base64.b64decode(c["raw_b64"])
            weights = struct.unpack(f"<{c['rows'] * c['columns']}b", base64.b64decode(c["codes_b64"]))
            x = activations_of(c["columns"], n, "random")
            _, codes, step, sums = product(program, c["rows"], c["columns"], len(region), n, region, x)
            assert sums == plain(weights, codes), c["name"]
            cases.append({"kernel": kind, "by": program.name, "case": c["name"], "seed": n,
                          "activations_b64": b64(struct.pack(f"<{c['columns']}b", *codes)), "scale_bits": step, "sums": sums})
            print(f"{kind:10} {program.name:12} {c['rows']}x{c['columns']} {c['name']}: equal to plain arithmetic")
    return cases


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("bitnet", type=pathlib.Path)
    options.add_argument("llama", type=pathlib.Path)
    options.add_argument("--update", action="store_true")
    o = options.parse_args()
    ggml = o.llama / "ggml"
    flags = [f"-I{o.bitnet / 'include'}", f"-I{ggml / 'include'}", f"-I{ggml / 'src'}"]
    ours = ROOT / "scripts/oracle/bitnet_sums.cpp"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rounding = {}
        for compiler in (X86, ARM):
            at = rounding[compiler[1]] = folder / f"rounding{compiler[1]}.o"
            subprocess.run(["clang-19", *compiler[1:], "-O2", "-w", "-ffunction-sections", "-D_GNU_SOURCE", *flags, "-c", "-o", str(at),
                            str(ggml / "src/ggml-quants.c")], check=True)
        kernels = (o.bitnet / "src/ggml-bitnet-mad.cpp").read_text()
        one = folder / "one.cpp"
        one.write_text(kernels)
        four = folder / "four.cpp"  # the other arrangement, which a define of gemm-config.h chooses
        four.write_text(kernels.replace('#include "gemm-config.h"', '#include "gemm-config.h"\n#undef ACT_PARALLEL\n#undef ROW_BLOCK_SIZE\n'
                                        '#undef COL_BLOCK_SIZE\n#undef PARALLEL_SIZE\n#define ROW_BLOCK_SIZE 128\n'
                                        '#define COL_BLOCK_SIZE 32\n#define PARALLEL_SIZE 8\n'))
        dot = [*ARM[:2], ARM[2] + "+dotprod"]
        programs = []
        for order, by, compiler, source in (("i2_s-128", "x86 avx2", X86, one), ("i2_s-4x1", "x86 avx2 4", X86, four),
                                            ("i2_s-64", "arm neon", ARM, one), ("i2_s-64", "arm dotprod", dot, one)):
            programs.append((order, build(compiler, folder, by, [ours, source, rounding[compiler[1]]],
                                          flags + ["-DI2_S", f"-DFOUR_ROWS={int(order == 'i2_s-4x1')}"])))
        cases = i2_s(programs)
        cases += tables(o.bitnet, folder, [ours], rounding, flags)
    text = json.dumps({"origin": "microsoft/BitNet 16da220a and Eddie-Wang1120/llama.cpp 406a5036, by scripts/oracle/bitnet.py",
                       "cases": cases}, indent=0) + "\n"
    if o.update:
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(text)
    print("as stored" if OUT.is_file() and OUT.read_text() == text else "NOT as stored")


if __name__ == "__main__":
    main()
