#!/usr/bin/env python3
"""Test data of encoders of pictures and sounds: tiny projector files with random weights (projector_files.py), the pieces of
pictures by Pillow 11.3 (picture_pieces.py), rows in double precision (projector_reference.py); and what llama.cpp's mtmd, compiled
from the sources that node-llama-cpp carries, makes of the same: pixels, rows, tokens. Says how far it is away.

  scripts/oracle/projectors.py [NAME ...]          compare
  scripts/oracle/projectors.py --update [NAME ...] and write mmproj-NAME.gguf, NAME.json to tests/data/peer/vision

Needs NumPy and Pillow 11.3 (pip install numpy pillow==11.3.0).
"""
import argparse
import base64
import json
import math
import os
import random
import struct
import subprocess
import sys
import wave
import zlib

import numpy as np
from PIL import Image, ImageDraw

import picture_pieces
import projector_files
import projector_reference

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import architectures  # noqa: E402
import install  # noqa: E402
import logits  # noqa: E402
import peer_mtmd  # noqa: E402

F32, F16 = 0, 1
GOLDEN, OWN = (os.path.join(ROOT, "tests", "data", *path) for path in (("vision",), ("peer", "vision")))
ENGINE = f"llama.cpp (tools/mtmd of node-llama-cpp {install.VERSION})"


# ---- files

def numbers(name, shape, rng):
    size = math.prod(shape)
    base = name.split(".", 1)[1] if "." in name else name
    if name.endswith(("_min", "_max")):  # one product without limits, the others with limits that are not alike
        open_ended = "attn_out" in name
        return np.full(1, (-1 if name.endswith("_min") else 1) * (np.inf if open_ended else rng.uniform(0.6, 2.0)))
    values = np.array([rng.gauss(0, 1) for _ in range(size)]).reshape(shape[::-1])
    if name.endswith("bias") or base in ("std_bias", "class_embd"):
        return 0.2 * values
    if any(part in base for part in ("norm", "ln", "out_scale", "std_scale")):
        return 1 + 0.2 * values
    if any(part in base for part in ("position_embd", "query")):
        return 0.7 * values
    fan = math.prod(shape[:-1])
    return 1.5 / math.sqrt(fan) * values


def entry(value):
    if isinstance(value, list):
        kind = gguf_file.F32 if isinstance(value[0], float) else gguf_file.I32
        return gguf_file.entry(gguf_file.ARRAY, (kind, value))
    kind = {bool: gguf_file.BOOL, int: gguf_file.U32, float: gguf_file.F32, str: gguf_file.STRING}[type(value)]
    return gguf_file.entry(kind, value)


def sizes_of(family):
    sizes = {**projector_files.SIZES, **family.get("sizes", {}), "queries": family.get("queries", 0)}
    sizes["stack"] = family["keys"].get("projector.stack_factor", 1)
    sizes["merger_behind"] = family["keys"].get("wa_layer_indexes", [0])[0]
    return sizes


def make_projector(name, path):
    """Writes the file; returns its tensors in double precision, dimensions in PyTorch's order."""
    family = projector_files.FAMILIES[name]
    sizes, rng = sizes_of(family), random.Random(family.get("file", name))
    kind = "audio" if family.get("sound") else "vision"
    keys = {"embedding_length": sizes["w"], "feed_forward_length": sizes["f"], "block_count": sizes["l"],
            "attention.head_count": sizes["h"], "projection_dim": sizes["t"], "attention.layer_norm_epsilon": 1e-6}
    if kind == "vision":
        keys |= {"image_size": 24, "patch_size": sizes["p"], "image_mean": family.get("mean", [0.5, 0.4, 0.3]),
                 "image_std": family.get("std", [0.5, 0.25, 0.3])}
    metadata = {"general.architecture": "clip", "general.type": "mmproj", "general.name": "synthetic-" + name,
                f"clip.has_{kind}_encoder": True, "clip.projector_type": family["projector"],
                **{"clip." + key: value for key, value in family.get("flags", {}).items() if key != "minicpmv_version"},
                **{f"clip.{kind}.{key}": value for key, value in {**keys, **family["keys"]}.items()}}
    shapes = list(projector_files.tensors_of(family["head"], "", sizes))
    for i in range(sizes["l"]):
        shapes += projector_files.tensors_of(family["block"], f"{kind[0]}.blk.{i}.", sizes)
    exact, stored = {}, []
    for tensor, shape in shapes:
        values = numbers(tensor, shape, rng).astype(np.float32)
        half = family.get("f16") and len(shape) > 1 and "query" not in tensor and (tensor != "v.position_embd.weight" or shape[1] == 4900)
        if half:
            values = values.astype(np.float16)
        exact[tensor] = values.astype(np.float64)
        stored.append((tensor, shape, F16 if half else F32, values.tobytes()))
    entries = {key: entry(value) for key, value in metadata.items()}
    if "minicpmv_version" in family.get("flags", {}):  # the only signed one
        entries["clip.minicpmv_version"] = gguf_file.entry(gguf_file.I32, family["flags"]["minicpmv_version"])
    gguf_file.write(path, entries, stored)
    return exact


def vocabulary():
    """The tokenizer of the stories, with the families' control tokens behind it."""
    old = gguf_file.read_metadata(os.path.join(GOLDEN, "text-llama.gguf"))
    control = projector_files.CONTROL
    texts = gguf_file.strings(old["tokenizer.ggml.tokens"])[:512] + [text.encode() for text in control]
    scores = list(struct.unpack_from("<512f", old["tokenizer.ggml.scores"], 16)) + [0.0] * len(control)
    kinds = list(struct.unpack_from("<512i", old["tokenizer.ggml.token_type"], 16)) + [3] * len(control)
    changed = {"tokens": (gguf_file.STRING, texts), "scores": (gguf_file.F32, scores), "token_type": (gguf_file.I32, kinds)}
    made = {key: raw for key, raw in old.items() if key.startswith("tokenizer.")}
    made.update({f"tokenizer.ggml.{key}": gguf_file.entry(gguf_file.ARRAY, value) for key, value in changed.items()})
    return made, len(texts)


def make_text(width, path):
    """A llama of one block and this width: for its tokenizer."""
    tokenizer, size = vocabulary()
    rng = random.Random(width)
    keys = {"vocab_size": size, "context_length": 4096, "embedding_length": width, "block_count": 1, "feed_forward_length": 8,
            "attention.head_count": 1, "attention.head_count_kv": 1, "rope.freq_base": 10000.0,
            "rope.dimension_count": width, "attention.layer_norm_rms_epsilon": 1e-5}
    metadata = {"general.architecture": entry("llama"), "general.name": entry("synthetic-text-pictures"),
                **{"llama." + key: entry(value) for key, value in keys.items()}, **tokenizer}
    shapes = dict(projector_files.tensors_of("token_embd w v; output_norm w; output w v", "", dict(w=width, v=size)))
    shapes |= projector_files.tensors_of("attn_norm w; ffn_norm w; attn_q w w; attn_k w w; attn_v w w; attn_output w w; ffn_gate w f; ffn_up w f; "
                         "ffn_down f w", "blk.0.", dict(w=width, f=8))
    stored = []
    for name, shape in shapes.items():
        kind = np.float16 if len(shape) > 1 else np.float32
        stored.append((name, shape, F16 if len(shape) > 1 else F32, numbers(name, shape, rng).astype(kind).tobytes()))
    gguf_file.write(path, metadata, stored)


def make_family_text(name, path):
    """The text model of a family, as scripts/oracle/architectures.py describes it, with our vocabulary."""
    tokenizer, size = vocabulary()
    arch, more = projector_files.TEXTS[name]
    description = architectures.ARCHS[arch]
    sizes = {**logits.sizes_of(description, 0), "v": size}
    metadata = {"general.architecture": entry(arch), "general.name": entry("synthetic-text-" + name)}
    for key, value in {**architectures.COMMON, **description["keys"], **more}.items():
        metadata[f"{arch}.{key}"] = logits.entry_of(value if not isinstance(value, str) else eval(value, dict(sizes), {}))
    shapes = list(logits.tensors_of(description["head"], "", sizes, 0))
    for i in range(sizes["l"]):
        for group, condition in description["blocks"].items():
            if eval(condition, {}, {**sizes, "i": i}):
                shapes += logits.tensors_of(group, f"blk.{i}.", sizes, i)
    rng, stored = random.Random(name), []
    for tensor, shape in shapes:
        stored.append((tensor, shape, F32, logits.values(tensor, shape, rng)))
    gguf_file.write(path, {**metadata, **tokenizer}, stored)


def draw_large(path):
    """A picture that LFM2-VL cuts into tiles."""
    image = Image.new("RGB", (1100, 500), (30, 60, 120))
    draw = ImageDraw.Draw(image)
    draw.rectangle((80, 60, 460, 440), fill=(220, 180, 40))
    draw.rectangle((620, 120, 980, 300), fill=(200, 40, 60))
    image.save(path, optimize=True)


# ---- llama.cpp

class Answer:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        self.at += 4
        return struct.unpack_from("<i", self.data, self.at - 4)[0]

    def array(self, count, kind):
        self.at += 4 * count
        return np.frombuffer(self.data, kind, count, self.at - 4 * count)


def ask(program, peer, arguments, given):
    done = subprocess.run([program, peer.all_libraries, *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries})
    if done.returncode != 0:
        raise ValueError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace').strip()[:2000]}")
    return Answer(done.stdout)


def theirs(program, peer, mmproj, text, prompt, media):
    """The passes [(width, height, values [channels, height, width])], and chunks [(ids) or (rows, columns, positions, values)]."""
    given = struct.pack("<i", len(prompt.encode())) + prompt.encode() + struct.pack("<i", len(media))
    for one in media:
        if isinstance(one, Image.Image):
            given += struct.pack("<3i", 0, *one.size) + one.tobytes()
        else:
            given += struct.pack("<2i", 1, len(one)) + one.astype("<f4").tobytes()
    a = ask(program, peer, ["encode", mmproj, text], given)
    passes, chunks = [], []
    for _ in range(a.number()):
        width, height, channels = a.number(), a.number(), a.number()
        passes.append(a.array(width * height * channels, "<f4").reshape(channels, height, width))
    for _ in range(a.number()):
        is_picture, count = a.number(), a.number()
        if is_picture:
            columns, positions, width = a.number(), a.number(), a.number()
            chunks.append(dict(rows=a.array(count * width, "<f4").reshape(count, width), columns=columns, positions=positions))
        else:
            chunks.append(dict(tokens=a.array(count, "<i4").tolist()))
    return passes, chunks


def their_logits(program, peer, text, chunks):
    """Of all rows: [rows, vocabulary]. `chunks`: lists of tokens, or (rows, columns or 0, whether they see each other)."""
    given = struct.pack("<i", len(chunks))
    for chunk in chunks:
        if isinstance(chunk, list):
            given += struct.pack(f"<{2 + len(chunk)}i", 0, len(chunk), *chunk)
        else:
            rows, columns, together = chunk
            given += struct.pack("<5i", 1, len(rows), columns, together, rows.shape[1]) + rows.astype("<f4").tobytes()
    a = ask(program, peer, ["logits", text], given)
    rows, size = a.number(), a.number()
    return a.array(rows * size, "<f4").reshape(rows, size)


def add_logits(case, program, peer, text):
    """Logits and greedy tokens of their text model behind our rows."""
    values = np.frombuffer(base64.b64decode(case["embedding_ref64"]), "<f4").reshape(-1, case["embedding_width"])
    chunks, at, kept = [], 0, []
    for chunk in case["chunks"]:
        first = sum(len(one) if isinstance(one, list) else len(one[0]) for one in chunks)
        if "tokens" in chunk:
            chunks.append(list(chunk["tokens"]))
        else:
            piece = case["pieces"][chunk["piece"]]
            columns = piece["grid"][0] if "grid" in piece else 0
            chunks.append((values[at:at + chunk["rows"]], columns, int(case["non_causal_images"])))
            at += chunk["rows"]
        kept += [first, first + len(chunks[-1] if isinstance(chunks[-1], list) else chunks[-1][0]) - 1]
    case["logit_rows"] = sorted({*kept, case["rows"] // 2})
    all_rows = their_logits(program, peer, text, chunks)
    case["logits_llamacpp"] = base64_of(all_rows[case["logit_rows"]])
    case["greedy"], case["greedy_margins"] = [], []
    for _ in range(6):
        best = np.argsort(all_rows[-1])
        case["greedy"].append(int(best[-1]))
        case["greedy_margins"].append(float(all_rows[-1][best[-1]] - all_rows[-1][best[-2]]))
        chunks = chunks[:-1] + [chunks[-1] + [int(best[-1])]] if isinstance(chunks[-1], list) else chunks + [[int(best[-1])]]
        all_rows = their_logits(program, peer, text, chunks)
    print(f"  logits: spread {all_rows.std():.2f}; greedy {case['greedy']}", flush=True)


# ---- a case

def read_sound(path):
    with wave.open(path) as file:
        frames = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
        assert file.getframerate() == 16000 and file.getsampwidth() == 2
        return (frames.astype(np.float32) / 32768).mean(axis=1).astype(np.float32)


def pieces_of(name, images):
    """[(index of the picture, what, picture, row, column)]"""
    family = projector_files.FAMILIES[name]
    rule, more = picture_pieces.RULES[family["projector"]]
    sizes = sizes_of(family)
    own = {"image": family["keys"].get("image_size", 24), "p": sizes["p"], "m": sizes["m"], **more}
    if "image_min_pixels" in family["keys"]:
        own["pixels"] = family["keys"]["image_min_pixels"], family["keys"]["image_max_pixels"]
    return [(i, *piece) for i, image in enumerate(images) for piece in rule(image, own)]


def base64_of(values):
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def far(a, b):
    return float(np.abs(a - b).max()) if a.shape == b.shape else math.inf


def layout(chunks, pieces, rows_of):
    """Their chunks with gimbal's names; text and pieces have positions."""
    out, position, piece = [], 0, 0
    for chunk in chunks:
        if "tokens" in chunk:
            out.append({"tokens": chunk["tokens"], "position": position})
            position += len(chunk["tokens"])
        else:
            rows = rows_of[piece]
            positions = max(pieces[piece].get("grid", [rows, 0]))
            out.append({"piece": piece, "rows": rows, "position": position, "positions": positions})
            position, piece = position + positions, piece + 1
    assert piece == len(pieces), "another number of pieces"
    return out, position


def make_case(name, case, tensors, ask_theirs):
    family = projector_files.FAMILIES[name]
    label, prompt, images = case
    sizes = sizes_of(family)
    encoders = [projector_reference.Encoder(tensors, sizes, family["projector"], oracle=oracle) for oracle in (False, True)]
    mean, std = np.array(family.get("mean", [0.5, 0.4, 0.3]), np.float32), np.array(family.get("std", [0.5, 0.25, 0.3]), np.float32)
    paths = [os.path.join(*([OWN] if image == "large.png" else [GOLDEN, "images"]), image) for image in images]
    case = {"name": label, "prompt": prompt, "images": images}
    if family.get("sound"):
        media = [read_sound(path) for path in paths]
        passes, chunks = ask_theirs(prompt, media)
        inputs = [np.float64(one[0]) for one in passes]
        pieces = [{"image": 0, "what": "sound", "width": 3000, "height": sizes["mel"]} for _ in inputs]
        case["pixels_f32_zlib_b64"] = base64.b64encode(zlib.compress(passes[0].astype("<f4").tobytes(), 9)).decode()
        unequal = 0
    else:
        media = [Image.open(path).convert("RGB") for path in paths]
        passes, chunks = ask_theirs(prompt, media)
        own = pieces_of(name, media)
        pixels = [np.asarray(piece[2]) for piece in own]
        inputs = [np.float64((values.astype(np.float32) / np.float32(255) - mean) / std) for values in pixels]
        pieces = [{"image": i, "what": what, "width": image.width, "height": image.height,
                   **({"row": row, "column": column} if what == "tile" else {})} for i, what, image, row, column in own]
        case["pixels_u8_zlib_b64"] = base64.b64encode(zlib.compress(b"".join(values.tobytes() for values in pixels), 9)).decode()
        seen = [np.rint((one.transpose(1, 2, 0) * std + mean) * 255) for one in passes]
        same = [a.shape for a in seen] == [a.shape for a in pixels]
        unequal = sum(int((a != b).sum()) for a, b in zip(seen, pixels)) if same else math.inf
    rows = [encoders[0].rows(one) for one in inputs]
    near = [encoders[1].rows(one) for one in inputs]
    grid = family["projector"] in ("glm4v", "paddleocr")
    for piece, of in zip(pieces, rows):
        piece["rows"] = len(of)
        if grid:
            piece["grid"] = [piece["width"] // (sizes["p"] * sizes["m"]), piece["height"] // (sizes["p"] * sizes["m"])]
    said = [chunk["rows"] for chunk in chunks if "rows" in chunk]
    distance = far(np.concatenate(said), np.concatenate(near))
    print(f"{name} {label}: {len(pieces)} pieces, {sum(map(len, rows))} rows; pixels that differ from llama.cpp's: {unequal}; "
          f"its rows differ by {distance:.2g} (spread {np.concatenate(rows).std():.2f}), "
          f"the publisher's from those by {far(np.concatenate(near), np.concatenate(rows)):.2g}", flush=True)
    case["chunks"], case["next_position"] = layout(chunks, pieces, [len(of) for of in rows])
    case["rows"] = sum(len(chunk["tokens"]) if "tokens" in chunk else chunk["rows"] for chunk in case["chunks"])
    case.update({"pieces": pieces, "embedding_width": rows[0].shape[1], "embedding_ref64": base64_of(np.concatenate(rows)),
                 "non_causal_images": family["projector"].startswith("gemma4"),
                 "measured": {"pixels_unequal_to_llamacpp": unequal, "rows_from_llamacpp": distance}})
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="families; all of them if none")
    parser.add_argument("--update", action="store_true", help="write the data to tests/data/peer/vision")
    options = parser.parse_args()
    peer = install.install(os.path.join(ROOT, "build", "compare"), print)
    program = peer_mtmd.program(peer, os.path.join(HERE, "pictures.cpp"), print)
    work = os.path.dirname(program)
    os.makedirs(OWN, exist_ok=True)
    if not os.path.exists(os.path.join(OWN, "large.png")):
        draw_large(os.path.join(OWN, "large.png"))
    folder = OWN if options.update else work
    make_text(16, os.path.join(folder, "text-pictures.gguf"))
    for name in options.names or projector_files.FAMILIES:
        family = projector_files.FAMILIES[name]
        mmproj, text = os.path.join(work if "file" in family else folder, f"mmproj-{name}.gguf"), os.path.join(work, "text.gguf")
        tensors = make_projector(name, mmproj)
        make_text(sizes_of(family)["t"], text)
        golden = {"mmproj": f"mmproj-{family.get('file', name)}.gguf", "text": "text-pictures.gguf", "projector": family["projector"],
                  "reference_engine": ENGINE, "tolerance": {"rows": 1e-4}, "width": sizes_of(family)["t"]}
        if "file" in family:
            golden["minicpmv_version"] = family["flags"]["minicpmv_version"]
        if not family.get("sound"):
            golden.update({"mean": family.get("mean", [0.5, 0.4, 0.3]), "std": family.get("std", [0.5, 0.25, 0.3])})
        golden["cases"] = [make_case(name, case, tensors, lambda prompt, media: theirs(program, peer, mmproj, text, prompt, media))
                           for case in family["cases"]]
        if name in projector_files.TEXTS:
            golden["text"] = f"text-{name}.gguf"
            make_family_text(name, os.path.join(folder, golden["text"]))
            golden["n_vocab"], golden["tolerance"]["logits"] = vocabulary()[1], projector_files.LOGITS[name]
            for case in golden["cases"]:
                add_logits(case, program, peer, os.path.join(folder, golden["text"]))
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(golden, file, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()
