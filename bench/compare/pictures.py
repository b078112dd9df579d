#!/usr/bin/env python3
"""Encoders of pictures and sounds: gimbal beside llama.cpp's mtmd, in alternation, as compare.py does with texts.

  pictures.py [--threads 1,2] [--rounds 3] [--cpu-variant avx2 --peer-variant haswell]

The encoders have the sizes of published ones, but fewer blocks, and random weights. A run encodes one picture of noise three times in
one process; loading and decoding do not count. Both engines get pictures of the same size. Writes bench/results/pictures.json.

Needs what compare.py needs, and NumPy (`scripts/setup.sh build compare models`).
"""
import argparse
import datetime
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import wave
import zlib

import compare
import install
import measure
import peer_mtmd
import report

sys.path[:0] = [os.path.join(compare.ROOT, "scripts"), os.path.join(compare.ROOT, "scripts", "oracle")]
import gguf_file  # noqa: E402
import projector_files  # noqa: E402

DATA = os.path.join(compare.ROOT, "tests", "data", "vision")
RESULTS = os.path.join(compare.ROOT, "bench", "results", "pictures.json")
TIMES = 3
F32, F16, Q8_0 = 0, 1, 8

HEAD = projector_files.KERNEL + "v.position_embd w patches; " + projector_files.POST

# name, text model, picture (or seconds of sound), keys, sizes (w width, f feed-forward, l blocks, t the text's width), head, block
ENCODERS = [
    ("gemma3: SigLIP so400m, 2 of 27 blocks", "gemma3", (896, 896),
     {"image_size": 896, "patch_size": 14, "attention.head_count": 16, "projector.scale_factor": 4, "use_gelu": True},
     dict(w=1152, f=4304, l=2, p=14, t=48, patches=4096), HEAD + "mm.soft_emb_norm w; mm.input_projection t w", projector_files.SIGLIP),
    ("idefics3: SigLIP base, 12 blocks", "llama", (512, 512),
     {"image_size": 512, "patch_size": 16, "attention.head_count": 12, "projector.scale_factor": 4, "preproc_image_size": 512, "use_gelu": True},
     dict(w=768, f=3072, l=12, p=16, t=48, patches=1024), HEAD + "mm.model.fc 16*w t", projector_files.SIGLIP),
    ("qwen2.5vl_merger: 8 of 32 blocks", "qwen2vl", (644, 476),
     {"image_size": 560, "patch_size": 14, "attention.head_count": 16, "n_wa_pattern": 8, "use_silu": True},
     dict(w=1280, f=3420, l=8, p=14, t=64),
     "v.patch_embd p p 3 w; v.patch_embd.weight.1! p p 3 w; v.post_ln w; mm.0 4*w 4*w; mm.0: 4*w; mm.2 4*w t; mm.2: t",
     projector_files.RMS + projector_files.QKV + projector_files.QKV_BIAS + projector_files.GLU + "; ffn_gate: f; ffn_up: f; ffn_down: w"),
    ("ultravox: Whisper large, 4 of 32 blocks", "llama", 29,
     {"num_mel_bins": 128, "attention.head_count": 20, "projector.stack_factor": 10},
     dict(w=1280, f=5120, l=4, t=48, mel=128),
     projector_files.WHISPER + "mm.a.norm_pre 10*w; mm.a.mlp.1 10*w 4096; mm.a.norm_mid 2048; mm.a.mlp.2 2048 t",
     projector_files.SIGLIP.replace("attn_k: w; ", "")),
]


def say(text):
    print(f"pictures: {text}", file=sys.stderr, flush=True)


def q8_0(values):
    """Blocks of 32 values: the unit as F16, and whole numbers."""
    import numpy
    blocks = values.reshape(-1, 32)
    units = numpy.maximum(abs(blocks).max(axis=1, keepdims=True) / 127, 1e-8)
    out = numpy.zeros(len(blocks), dtype=[("unit", "<f2"), ("values", "i1", 32)])
    out["unit"], out["values"] = units[:, 0], numpy.rint(blocks / units)
    return out.tobytes()


def make_file(encoder, kind, path):
    import numpy
    name, _, picture, keys, sizes, head, block = encoder
    medium = "audio" if isinstance(picture, int) else "vision"
    numbers = numpy.random.default_rng(1)
    keys = {"embedding_length": sizes["w"], "feed_forward_length": sizes["f"], "block_count": sizes["l"], "projection_dim": sizes["t"],
            "attention.layer_norm_epsilon": 1e-6, **keys}
    if medium == "vision":
        keys.update({"image_mean": [0.5] * 3, "image_std": [0.5] * 3})
    metadata = {"general.architecture": "clip", "general.type": "mmproj", f"clip.has_{medium}_encoder": True,
                "clip.projector_type": name.split(":")[0],
                **{("clip." if key.startswith("use_") else f"clip.{medium}.") + key: value for key, value in keys.items()}}
    kinds = {bool: gguf_file.BOOL, int: gguf_file.U32, float: gguf_file.F32, str: gguf_file.STRING}
    entries = {key: gguf_file.entry(gguf_file.ARRAY, (gguf_file.F32, value)) if isinstance(value, list) else gguf_file.entry(kinds[type(value)], value)
               for key, value in metadata.items()}
    shapes = list(projector_files.tensors_of(head, "", sizes))
    for i in range(sizes["l"]):
        shapes += projector_files.tensors_of(block, f"{medium[0]}.blk.{i}.", sizes)
    stored = []
    for tensor, shape in shapes:
        matrix = len(shape) > 1 and shape[0] > 1 and "position" not in tensor
        values = numbers.standard_normal(math.prod(shape), dtype=numpy.float32)
        values = values / math.sqrt(math.prod(shape[:-1])) if matrix else values * 0.1 + ("norm" in tensor or "ln" in tensor)
        if matrix and kind == "q8_0" and ".blk." in tensor and shape[0] % 32 == 0:
            stored.append((tensor, shape, Q8_0, q8_0(values)))
        elif matrix:
            stored.append((tensor, shape, F16, values.astype("<f2").tobytes()))
        else:
            stored.append((tensor, shape, F32, values.astype("<f4").tobytes()))
    gguf_file.write(path, entries, stored)


def make_medium(picture, folder):
    """A file of noise for gimbal; the peer's driver makes its own."""
    if isinstance(picture, int):
        path = os.path.join(folder, "noise.wav")
        with wave.open(path, "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
            file.writeframes(os.urandom(2 * 16000 * picture))
        return path
    width, height = picture
    path = os.path.join(folder, f"noise-{width}-{height}.png")
    rows = b"".join(b"\0" + os.urandom(3 * width) for _ in range(height))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
    return path


def answer(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=measure.environment(**more))
    if done.returncode:
        raise install.Problem(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu-variant")
    parser.add_argument("--peer-variant")
    parser.add_argument("--gimbal", default=os.path.join(compare.ROOT, "build", "release", "gimbal"))
    parser.add_argument("--work", default=os.path.join(compare.ROOT, "build", "compare"))
    a = parser.parse_args()
    peer = install.install(a.work, say)
    theirs = peer_mtmd.program(peer, os.path.join(install.HERE, "pictures_peer.cpp"), say)
    libraries = peer.libraries(a.peer_variant)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for encoder in ENCODERS:
            name, text, picture, _, sizes, *_ = encoder
            text, sound = os.path.join(DATA, f"text-{text}.gguf"), isinstance(picture, int)
            medium = make_medium(picture, folder)
            for kind in ("f16",) if sizes["f"] % 32 else ("f16", "q8_0"):
                file = os.path.join(folder, "mmproj.gguf")
                make_file(encoder, kind, file)
                for threads in a.threads.split(","):
                    ours, its = [], []
                    for _ in range(a.rounds):
                        command = [a.gimbal, "embed-image", "--mmproj", file, *(["--audio" if sound else "--image", medium] * TIMES), "-o", os.devnull,
                                   "--json", "--quiet", "--backend", "cpu", "--strict", "-t", threads]
                        one = answer(command + (["--cpu-variant", a.cpu_variant] if a.cpu_variant else []))
                        other = answer([theirs, libraries, file, text, threads, str(TIMES),
                                        *(["sound", str(16000 * picture)] if sound else ["picture", *map(str, picture)])], LD_LIBRARY_PATH=libraries)
                        counted = sum(piece["rows"] for piece in one["pieces"]) // TIMES
                        if counted != other["rows"]:
                            raise install.Problem(f"{name}: gimbal has {counted} rows, llama.cpp {other['rows']}")
                        ours.append(one["seconds"] / TIMES), its.append(other["seconds"] / TIMES)
                    mine, others = statistics.median(ours), statistics.median(its)
                    rows.append([name, kind, threads, str(counted), report.spread(ours), report.spread(its), f"**{others / mine:.2f}**"])
                    say(" | ".join(rows[-1]))
    results = {"title": "Seconds for a picture", "machine": report.machine_text(compare.machine()), "date": datetime.date.today().isoformat(),
               "commands": ["bench/compare/pictures.py" + "".join(f" --{option} {value}" for option, value in
                            (("threads", a.threads), ("rounds", a.rounds), ("cpu-variant", a.cpu_variant), ("peer-variant", a.peer_variant)) if value)],
               "notes": [f"gimbal {compare.commit()}, {peer.description()['engine']}; medians of {a.rounds} runs in turn, least and most."],
               "columns": ["encoder", "weights", "threads", "rows", "gimbal", "llama.cpp", "ratio"]}
    text = json.dumps(results, indent=1)[:-2] + ',\n "rows": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]\n}\n"
    with open(RESULTS, "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    try:
        if (python := compare.python_with_numpy()) != sys.executable:
            os.execv(python, [python, *sys.argv])
        main()
    except install.Problem as problem:
        sys.exit(f"pictures: {problem}")
