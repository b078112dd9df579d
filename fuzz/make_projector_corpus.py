#!/usr/bin/env python3
"""Writes the seeds in fuzz/corpus/projector: tiny projector files of a few families. The output is the same every time."""
import pathlib

from make_gguf_corpus import ARRAY, F32, STRING, U32, gguf

WIDTH, TEXT = 4, 8


def keys(projector, kind="vision", of_file=(), **more):
    """`of_file`: keys and numbers that stand below clip. itself."""
    prefix = f"clip.{kind}."
    numbers = {"embedding_length": WIDTH, "feed_forward_length": 6, "block_count": 1, "attention.head_count": 1, **more}
    return [("general.architecture", STRING, "clip"), ("clip.projector_type", STRING, projector),
            *[(prefix + key, U32, number) for key, number in numbers.items()],
            *[("clip." + key, U32, number) for key, number in of_file],
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
    "gemma4v": gguf(keys("gemma4v", image_size=4, patch_size=2, **{"projector.scale_factor": 2}),
                    [KERNEL, ("v.position_embd.weight", (WIDTH, 5, 2), 0), *block(), ("v.std_bias", (WIDTH,), 0), ("v.std_scale", (WIDTH,), 0),
                     ("v.blk.0.attn_q.input_min", (1,), 0), ("v.blk.0.attn_q.input_max", (1,), 0),
                     ("mm.input_projection.weight", (WIDTH, TEXT), 0)]),
    "gemma4uv": gguf(keys("gemma4uv", image_size=4, patch_size=1, **{"projector.scale_factor": 2}),
                     [("v.patch_embd.weight", (12, WIDTH), 0), ("v.patch_embd.bias", (WIDTH,), 0), ("v.position_embd.weight", (WIDTH, 5, 2), 0),
                      ("mm.input_projection.weight", (WIDTH, TEXT), 0)]),
    "lfm2": gguf(keys("lfm2", image_size=8, patch_size=4, **{"projector.scale_factor": 2}),
                 [("v.patch_embd.weight", (4, 4, 3, WIDTH), 0), ("v.position_embd.weight", (WIDTH, 9), 0), *block(), ("mm.1.weight", (4 * WIDTH, 6), 0), ("mm.2.weight", (6, TEXT), 0)]),
    "llama4": gguf(keys("llama4", image_size=4, patch_size=2, **{"projector.scale_factor": 2}),
                   [("v.patch_embd.weight", (12, WIDTH), 0), ("v.class_embd", (WIDTH,), 0), ("v.position_embd.weight", (WIDTH, 5), 0), *block(),
                    ("mm.model.fc.weight", (6, TEXT), 0)]),
    "glm4v": gguf(keys("glm4v", image_size=4, patch_size=2, spatial_merge_size=2),
                  [KERNEL, ("v.patch_embd.weight.1", (2, 2, 3, WIDTH), 0), ("v.position_embd.weight", (WIDTH, 9), 0), *block(),
                   ("mm.patch_merger.weight", (2, 2, WIDTH, 6), 0), ("mm.down.weight", (6, TEXT), 0)]),
    "minicpmv": gguf(keys("resampler", of_file=[("minicpmv_version", 3), ("minicpmv_query_num", 2)], image_size=4, patch_size=2),
                     [KERNEL, ("v.position_embd.weight", (WIDTH, 4), 0), *block(), ("resampler.query", (TEXT, 2), 0),
                      ("resampler.kv.weight", (WIDTH, TEXT), 0), ("resampler.proj.weight", (TEXT, TEXT), 0)]),
    "minicpmv46": gguf(keys("minicpmv4_6", image_size=8, patch_size=2, **{"projector.scale_factor": 4})
                       + [("clip.vision.wa_layer_indexes", ARRAY, (U32, [0]))],
                       [KERNEL, ("v.position_embd.weight", (WIDTH, 4), 0), *block(), ("v.vit_merger.ln1.weight", (WIDTH,), 0),
                        ("mm.down.weight", (4 * WIDTH, TEXT), 0)]),
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
