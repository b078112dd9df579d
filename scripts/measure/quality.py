#!/usr/bin/env python3
"""What weight formats and cache formats cost: the Kullback-Leibler divergence from the same model in F32, by `gimbal perplexity
--save-logits` and `--against`. Writes the tables of docs/quality.md.

  scripts/measure/quality.py --write     measure, and write the page
  scripts/measure/quality.py q4_0 q8_0   only these formats, printed

Weights are encoded by llama.cpp's library (bench/compare/install.py), since gimbal reads formats and writes none. Needs the reference
collection beside the checkout, ../shared/golden, or --golden FOLDER.
"""
import argparse
import array
import ctypes
import datetime
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the checkout

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import real_models  # noqa: E402
from page_part import write_part  # noqa: E402
import install  # noqa: E402
from install import Problem  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "quality.md")
MARKS = ("<!-- formats: written by scripts/measure/quality.py -->", "<!-- formats: end -->")
F32, F16, I2_S = 0, 1, 36
# ggml's numbers of the formats, from the most bits to the fewest.
FORMATS = {"bf16": 30, "f16": 1, "q8_0": 8, "q6_k": 14, "q5_1": 7, "q5_0": 6, "q5_k": 13, "q4_1": 3, "q4_0": 2, "q4_k": 12, "iq4_nl": 20,
           "nvfp4": 40, "iq4_xs": 23, "mxfp4": 39, "q3_k": 11, "iq3_s": 21, "iq3_xxs": 18, "q2_k": 10, "iq2_s": 22, "iq2_xs": 17,
           "q2_0": 42, "iq2_xxs": 16, "tq2_0": 35, "iq1_m": 29, "tq1_0": 34, "iq1_s": 19, "q1_0": 41}
CACHES = ["f16", "bf16"] + [name + how for name in ("q8_0", "q5_0", "q4_1", "q4_0", "iq4_nl") for how in ("", ", rotated")]
WINDOW, TEXTS, TEXT_TOKENS = 512, 18, 480


class Gimbal:
    def __init__(self, program):
        self.program = program

    def call(self, *command, data=None):
        done = subprocess.run([self.program, *command], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Problem(f"gimbal {' '.join(command)}: " + done.stderr.decode(errors="replace").strip())
        return done.stdout

    def perplexity(self, model, text, kv="f32", save=None, against=None):
        """`kv`: as `gimbal plan` names the cache."""
        kv, _, rotated = kv.partition(", ")
        options = ["--save-logits", save] if save else ["--against", against]
        options += ["--kv-rotation", "on" if rotated else "off"]
        return json.loads(self.call("perplexity", model, "-f", text, "--ctx", str(WINDOW), "--backend", "cpu", "--kv-type", kv, "--json",
                                    "--quiet", *options))


class Encoder:
    """ggml_quantize_chunk() of the packaged library."""

    def __init__(self, peer):
        self.library = ctypes.CDLL(os.path.join(peer.all_libraries, "libggml-base.so"))
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
        self.library.ggml_blck_size.restype = ctypes.c_int64
        self.library.ggml_row_size.restype = ctypes.c_size_t
        self.library.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]

    def block(self, kind):
        return self.library.ggml_blck_size(kind)

    def bits(self, kind):
        return 8 * self.library.ggml_row_size(kind, 256) / 256

    def encode(self, kind, values, columns):
        """Every column counts the same where a format asks how much each does."""
        rows = len(values) // columns
        out = ctypes.create_string_buffer(rows * self.library.ggml_row_size(kind, columns))
        source = (ctypes.c_float * len(values)).from_buffer(values)
        alike = (ctypes.c_float * columns)(*[1.0] * columns)
        size = self.library.ggml_quantize_chunk(kind, source, out, 0, rows, columns, alike)
        if size != len(out):
            raise Problem(f"ggml encoded {size} bytes in format {kind}, {len(out)} were expected")
        return out.raw


def is_matrix(dimensions):
    return len(dimensions) == 2


def plain_ternary(data, count):
    """A tensor in i2_s as F32: 128 values in 32 bytes, the highest bits first; one scale behind them all."""
    scale, = struct.unpack_from("<f", data, count // 4)
    levels = (-scale, 0.0, scale, 0.0)
    return array.array("f", [levels[byte >> shift & 3] for at in range(0, count // 4, 32) for shift in (6, 4, 2, 0)
                             for byte in data[at:at + 32]]).tobytes()


def expanded(gimbal, path, encoder, out):
    """The same model with every tensor in F32, written to `out`."""
    names = {number: name for name, number in FORMATS.items()}
    tensors = []
    for name, dimensions, kind, data in gguf_file.read_tensors(path):
        if kind == I2_S:
            data = plain_ternary(data, math.prod(dimensions))
        elif kind != F32:
            data = data[:encoder.library.ggml_row_size(kind, dimensions[0]) * math.prod(dimensions[1:])]
            data = gimbal.call("dequantize", "--type", names[kind].upper(), "--input", "-", "--output", "-", data=data)
        tensors.append((name, dimensions, F32, data[:4 * math.prod(dimensions)]))
    gguf_file.write(out, gguf_file.read_metadata(path), tensors)
    return out


def encoded(path, encoder, kind, out):
    """The F32 file `path` with its matrices in a format, and the number of those whose rows are no multiple of its block, which become F16;
    None where the embedding is one of them."""
    tensors, others = [], 0
    for name, dimensions, _, data in gguf_file.read_tensors(path):
        used = F32
        if is_matrix(dimensions):
            used = kind if dimensions[0] % encoder.block(kind) == 0 else F16
            if used != kind and name == "token_embd.weight":
                return None
            others += used != kind
            data = encoder.encode(used, array.array("f", data), dimensions[0])
        tensors.append((name, dimensions, used, data))
    gguf_file.write(out, gguf_file.read_metadata(path), tensors)
    return others


def write_text(gimbal, model, path, texts, start="Once upon a time"):
    """What the model itself says, so that the text is of its kind."""
    with open(path, "wb") as file:
        for seed in range(1, texts + 1):
            file.write(start.encode() + gimbal.call("run", model, "--seed", str(seed), "-p", start, "-n", str(TEXT_TOKENS), "--temp", "1",
                                                    "--top-k", "0", "--top-p", "1", "--min-p", "0", "--backend", "cpu", "--ctx", "512",
                                                    "--ignore-eos", "--quiet") + b"\n")
    return path


def shown(found):
    against = found["against"]
    return f"{against['divergence']:.1e} ± {against['divergence_standard_error']:.0e}, {100 * against['top_1_agreement']:.1f} %"


def measure_weights(gimbal, encoder, formats, golden, models, text, folder):
    rows = ["| weights | bits per weight | " + " | ".join(title for title, _, _ in models) + " | computing alone |", "|---|---|" + "---|" * (len(models) + 1)]
    for name in formats:
        cells = []
        for _, path, saved in models:
            out = os.path.join(folder, "encoded.gguf")
            if (others := encoded(path, encoder, FORMATS[name], out)) is None:
                cells.append("rows too short")
                continue
            cells.append(shown(gimbal.perplexity(out, text, against=saved)) + ("*" if others else ""))
        file = os.path.join(golden, "quant", f"q-{name}.gguf")
        if os.path.exists(file):
            plain, saved = os.path.join(folder, "plain.gguf"), os.path.join(folder, "plain.logits")
            gimbal.perplexity(expanded(gimbal, file, encoder, plain), text, save=saved)
            cells.append(shown(gimbal.perplexity(file, text, against=saved)))
        else:
            cells.append("no golden file")
        rows.append(f"| {name} | {encoder.bits(FORMATS[name]):.2f} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return rows


def measure_caches(gimbal, models):
    """models: (title, file, text, logits with the cache in F32)."""
    rows = ["| cache | " + " | ".join(title for title, *_ in models) + " |", "|---|" + "---|" * len(models)]
    for kind in CACHES:
        cells = []
        for _, path, text, saved in models:
            try:
                cells.append(shown(gimbal.perplexity(path, text, kv=kind, against=saved)))
            except Problem as problem:
                if "no whole number of blocks" not in str(problem):
                    raise
                cells.append("heads too short")
        rows.append(f"| {kind} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="weight formats; all when none is given")
    parser.add_argument("--write", action="store_true", help="write docs/quality.md")
    parser.add_argument("--golden", default=os.path.join(ROOT, "..", "shared", "golden"), help="the reference collection")
    parser.add_argument("--gimbal", default=os.path.join(ROOT, "build", "release", "gimbal"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), help="where the peer is installed")
    wanted = parser.parse_args()
    if unknown := [name for name in wanted.formats if name not in FORMATS]:
        raise Problem(f"{unknown[0]} is not a format; there are {', '.join(FORMATS)}")
    if wanted.write and wanted.formats:
        raise Problem("--write measures every format")
    if not os.path.isdir(wanted.golden):
        raise Problem(f"the reference collection is not at {wanted.golden}")
    gimbal, peer = Gimbal(wanted.gimbal), install.install(wanted.work, print)
    encoder = Encoder(peer)
    with tempfile.TemporaryDirectory(dir=wanted.work) as folder:
        def base(title, path, text):
            saved = os.path.join(folder, title.replace("/", "-") + ".logits")
            return title, path, text, saved, gimbal.perplexity(path, text, save=saved)

        embedded = os.path.join(wanted.golden, "stories", "stories260K-f32.gguf")
        text = write_text(gimbal, embedded, os.path.join(folder, "text"), TEXTS)
        larger = expanded(gimbal, os.path.join(wanted.golden, "quant", "q-f16.gguf"), encoder, os.path.join(folder, "larger.gguf"))
        bases = [base("stories260K", embedded, text), base("quant/q-f16", larger, text)]
        scored = bases[0][4]["tokens_scored"]
        weights = measure_weights(gimbal, encoder, wanted.formats or FORMATS, wanted.golden, [(b[0], b[1], b[3]) for b in bases], text, folder)
        i2s = os.path.join(wanted.golden, "arch", "bitnet-b158-i2s.gguf")
        if not wanted.formats:
            same = base("i2_s", expanded(gimbal, i2s, encoder, os.path.join(folder, "plain.gguf")), text)
            weights.append(f"| i2_s | 2.00 | trained so | trained so | {shown(gimbal.perplexity(i2s, text, against=same[3]))} |")
        trained = next(model for model in real_models.MODELS if model["name"].startswith("smollm2"))
        if os.path.exists(real_models.path_of(trained)):
            its = write_text(gimbal, real_models.path_of(trained), os.path.join(folder, "its-text"), TEXTS // 3)  # its saved logits take room
            plain = expanded(gimbal, real_models.path_of(trained), encoder, os.path.join(folder, "trained.gguf"))
            bases.append(base(trained["name"] + ", its weights in F32", plain, its))
        caches = measure_caches(gimbal, [b[:4] for b in bases])
    release = peer.description()
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            check=False).stdout.decode().strip()
    page = "\n".join([
        f"`scripts/measure/quality.py --write`, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, gimbal {commit}; weights encoded by "
        f"{release['engine']}.", "", *weights, "", *caches, "",
        f"{scored} tokens scored ({bases[-1][4]['tokens_scored']} of {bases[-1][0]})."])
    if wanted.write:
        write_part(PAGE, MARKS, page)
    else:
        print(page)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, OSError) as problem:
        sys.exit(f"quality: {problem}")
