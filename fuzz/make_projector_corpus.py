#!/usr/bin/env python3
"""Writes the seeds in fuzz/corpus/projector: tiny projector files of a few families. The output is the same every time."""
import pathlib

from make_gguf_corpus import ARRAY, F32, STRING, U32, gguf

WIDTH, TEXT = 4, 8


def keys(projector, kind="vision", **more):
    prefix = f"clip.{kind}."
    numbers = {"embedding_length": WIDTH, "feed_forward_length": 6, "block_count": 1, "attention.head_count": 1, **more}
    return [("general.architecture", STRING, "clip"), ("clip.projector_type", STRING, projector),
            *[(prefix + key, U32, number) for key, number in numbers.items()],
            (prefix + "attention.layer_norm_epsilon", F32, 1e-6),
            (prefix + "image_mean", ARRAY, (F32, [0.5, 0.5, 0.5])), (prefix + "image_std", ARRAY, (F32, [0.5, 0.5, 0.5]))]


def block(prefix="v.blk.0."):
    products = {"attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_out": (WIDTH, WIDTH),
                "ffn_up": (WIDTH, 6), "ffn_down": (6, WIDTH)}
    return [*[(prefix + norm + part, (WIDTH,), 0) for norm in ("ln1", "ln2") for part in (".weight", ".bias")],
            *[(prefix + name + ".weight", dims, 0) for name, dims in products.items()]]


KERNEL = ("v.patch_embd.weight", (2, 2, 3, WIDTH), 0)
SEEDS = {
    "gemma3": gguf(keys("gemma3", image_size=4, patch_size=2, **{"projector.scale_factor": 2}),
                   [KERNEL, ("v.patch_embd.bias", (WIDTH,), 0), ("v.position_embd.weight", (WIDTH, 4), 0), *block(),
                    ("v.post_ln.weight", (WIDTH,), 0), ("mm.soft_emb_norm.weight", (WIDTH,), 0), ("mm.input_projection.weight", (TEXT, WIDTH), 0)]),
    "llava": gguf(keys("mlp", image_size=4, patch_size=2) + [("clip.vision.feature_layer", ARRAY, (U32, [0, 1]))],
                  [KERNEL, ("v.class_embd", (WIDTH,), 0), ("v.position_embd.weight", (WIDTH, 5), 0), *block(), ("mm.0.weight", (2 * WIDTH, TEXT), 0)]),
    "qwen3vl": gguf(keys("qwen3vl_merger", image_size=4, patch_size=2),
                    [KERNEL, ("v.patch_embd.weight.1", (2, 2, 3, WIDTH), 0), ("v.position_embd.weight", (WIDTH, 4), 0), *block(),
                     ("v.deepstack.0.fc2.weight", (4 * WIDTH, TEXT), 0), ("mm.0.weight", (4 * WIDTH, 4 * WIDTH), 0), ("mm.2.weight", (4 * WIDTH, TEXT), 0)]),
    "pixtral": gguf(keys("pixtral", image_size=4, patch_size=2, spatial_merge_size=2),
                    [KERNEL, *block(), ("mm.patch_merger.weight", (4 * WIDTH, WIDTH), 0), ("mm.2.weight", (TEXT, TEXT), 0),
                     ("v.token_embd.img_break", (TEXT,), 0)]),
    "ultravox": gguf(keys("ultravox", "audio", num_mel_bins=2, **{"projector.stack_factor": 8}),
                     [("a.conv1d.1.weight", (3, 2, WIDTH), 0), ("a.conv1d.1.bias", (1, WIDTH), 0), ("a.conv1d.2.weight", (3, WIDTH, WIDTH), 0),
                      ("a.conv1d.2.bias", (1, WIDTH), 0), ("a.position_embd.weight", (WIDTH, 1500), 0), *block("a.blk.0."),
                      ("mm.a.mlp.2.weight", (TEXT, TEXT), 0)]),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus" / "projector"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / f"{name}.gguf").write_bytes(data)
