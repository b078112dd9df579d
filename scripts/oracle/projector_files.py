"""The keys and tensors of a projector file (mmproj) of each family, as data for scripts/oracle/projectors.py. Widths are tiny, and odd
where a family allows it. bench/compare/pictures.py uses the same parts with published widths. A description is a dict:
  projector  its name in files; keys: below clip.vision. (or clip.audio., with sound=True); flags: below clip.
  sizes      w width, h heads, hd of a head, f feed-forward, l blocks, p patch, m merge, t width of a row for the text model
  head       tensors of the whole file; block: of each block. "name shape; ...", shapes in the order of files
  f16        the matrices are F16
  cases      (name, prompt, pictures)
  file       the family whose file serves for it, too
Names get ".weight", after a colon ".bias", and nothing after "!", as in scripts/oracle/architectures.py.
"""

SIZES = dict(w=24, h=2, hd=12, f=40, l=2, p=4, m=2, t=48, mel=16)
LN = "ln1 w; ln1: w; ln2 w; ln2: w; "
RMS = "ln1 w; ln2 w; "
QKV = "attn_q w w; attn_k w w; attn_v w w; attn_out w w; "
QKV_BIAS = "attn_q: w; attn_k: w; attn_v: w; attn_out: w; "
MLP = "ffn_up w f; ffn_up: f; ffn_down f w; ffn_down: w"
GLU = "ffn_gate w f; ffn_up w f; ffn_down f w"
SIGLIP = LN + QKV + QKV_BIAS + MLP
KERNEL = "v.patch_embd p p 3 w; v.patch_embd: w; "
POST = "v.post_ln w; v.post_ln: w; "
NORM_B = "mm.input_norm {0}; mm.input_norm: {0}; "
CLAMPS = "; ".join(f"{name}.{way}_{end}! 1" for name in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down")
                   for way in ("input", "output") for end in ("min", "max"))
WHISPER = ("a.conv1d.1 3 mel w; a.conv1d.1: 1 w; a.conv1d.2 3 w w; a.conv1d.2: 1 w; a.position_embd w 1500; a.post_ln w; a.post_ln: w; ")
RESAMPLER = ("resampler.pos_embed_k! t 16; resampler.query! t queries; resampler.proj t t; resampler.kv w t; "
             + "".join(f"resampler.attn.{name} t t; resampler.attn.{name}: t; " for name in ("q", "k", "v", "out"))
             + "; ".join(f"resampler.ln_{name} t; resampler.ln_{name}: t" for name in ("q", "kv", "post")))
MERGER_46 = ("v.vit_merger.ln1 w; v.vit_merger.ln1: w; "
             + "".join(f"v.vit_merger.attn_{name} w w; v.vit_merger.attn_{name}: w; " for name in ("q", "k", "v", "out"))
             + "v.vit_merger.ds_ln 4*w; v.vit_merger.ds_ln: 4*w; v.vit_merger.ds_ffn_up 4*w f; v.vit_merger.ds_ffn_up: f; "
             "v.vit_merger.ds_ffn_down f w; v.vit_merger.ds_ffn_down: w; ")
FINAL_46 = NORM_B.format("4*w") + "mm.up 4*w 4*w; mm.up: 4*w; mm.down 4*w t; mm.down: t"

ONE = ("one", "Once upon a time, <__media__> there was a little girl", ["photo.png"])
WIDE = ("wide", "Tim saw <__media__>", ["wide.png"])
TWO = ("two", "<__media__>A cat and <__media__>a dog", ["narrow.png", "other.png"])
SOUND = ("short", "Once <__media__> there was", ["short.wav"])

FAMILIES = {
    "gemma4v": dict(
        projector="gemma4v", flags={"use_gelu": True}, keys={"projector.scale_factor": 3}, sizes=dict(m=3),
        mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0],
        head="v.patch_embd p p 3 w; v.position_embd w 40 2; v.std_bias! w; v.std_scale! w; mm.input_projection w t",
        block=RMS + QKV + "attn_q_norm hd; attn_k_norm hd; attn_post_norm w; ffn_post_norm w; out_scale w; " + GLU + "; " + CLAMPS,
        cases=[ONE, ("other", "Tim saw <__media__>", ["other.png"])]),
    "gemma4uv": dict(
        projector="gemma4uv", flags={"use_gelu": True}, keys={"projector.scale_factor": 2}, sizes=dict(l=0),
        mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0],
        head="v.patch_embd 3*(m*p)**2 w; v.patch_embd: w; v.position_embd w 30 2; v.patch_norm.1 3*(m*p)**2; v.patch_norm.1: 3*(m*p)**2; "
        "v.patch_norm.2 w; v.patch_norm.2: w; v.patch_norm.3 w; v.patch_norm.3: w; mm.input_projection w t",
        block="", cases=[ONE]),
    "lfm2": dict(
        projector="lfm2", flags={"use_gelu": True}, keys={"projector.scale_factor": 2}, sizes=dict(w=16, hd=8, p=16, t=8), f16=True,
        head=KERNEL + "v.position_embd w 36; " + POST + "mm.1 m*m*w f; mm.1: f; mm.2 f t; mm.2: t", block=SIGLIP,
        cases=[("dot", "Tim saw <__media__>", ["dot.png"]), ("large", "See <__media__>", ["large.png"])]),
    "lfm2-norm": dict(
        projector="lfm2", flags={"use_gelu": True}, keys={"projector.scale_factor": 2}, sizes=dict(t=8),
        head=KERNEL + "v.position_embd w 400; " + POST + NORM_B.format("m*m*w") + "mm.1 m*m*w f; mm.1: f; mm.2 f t; mm.2: t", block=SIGLIP,
        cases=[TWO]),
    "llama4": dict(
        projector="llama4", flags={"use_gelu": True}, keys={"projector.scale_factor": 2, "image_size": 32}, sizes=dict(p=4, t=8),
        head="v.patch_embd 3*p*p w; v.class_embd! w; v.position_embd w 65; v.pre_ln w; v.pre_ln: w; " + POST
        + "mm.model.mlp.1 4*w f; mm.model.mlp.2 f f; mm.model.fc f t", block=SIGLIP, cases=[ONE, TWO]),
    "glm4v": dict(
        projector="glm4v", flags={"use_silu": True}, keys={"spatial_merge_size": 2, "image_size": 28}, sizes=dict(h=3, hd=8),
        head="v.patch_embd p p 3 w; v.patch_embd.weight.1! p p 3 w; v.patch_embd: w; v.norm_embd w; v.position_embd w 49; v.post_ln w; "
        "mm.patch_merger m m w 32; mm.patch_merger: 32; mm.model.fc 32 t; mm.post_norm t; mm.post_norm: t; mm.gate t 56; mm.up t 56; "
        "mm.down 56 t", block=RMS + "attn_qkv w 3*w; attn_out w w; " + GLU, cases=[ONE, WIDE]),
    "glm-ocr": dict(
        projector="glm4v", flags={"use_silu": True}, keys={"spatial_merge_size": 2, "image_size": 28}, sizes=dict(h=3, hd=8, t=16),
        head="v.patch_embd p p 3 w; v.patch_embd.weight.1! p p 3 w; v.patch_embd: w; v.post_ln w; "
        "mm.patch_merger m m w 32; mm.patch_merger: 32; mm.model.fc 32 t; mm.post_norm t; mm.post_norm: t; mm.gate t 56; mm.up t 56; "
        "mm.down 56 t", block=RMS + "attn_qkv w 3*w; attn_qkv: 3*w; attn_q_norm hd; attn_k_norm hd; attn_out w w; attn_out: w; " + GLU,
        cases=[TWO]),
    "minicpmv": dict(
        projector="resampler", flags={"use_gelu": True, "minicpmv_version": 3, "minicpmv_query_num": 5}, keys={"image_size": 28},
        sizes=dict(w=8, hd=4, t=128, m=1), queries=5, f16=True, head=KERNEL + "v.position_embd w 4900; " + POST + RESAMPLER, block=SIGLIP,
        cases=[ONE, WIDE]),
    "minicpmv46": dict(
        projector="minicpmv4_6", flags={"use_gelu": True}, keys={"image_size": 48, "projector.scale_factor": 4, "wa_layer_indexes": [0]},
        sizes=dict(w=8, hd=4, t=16, m=4), f16=True, head=KERNEL + "v.position_embd w 4900; " + POST + MERGER_46 + FINAL_46, block=SIGLIP,
        cases=[ONE, WIDE]),
    "minicpmv46-4x": dict(
        projector="minicpmv4_6", flags={"use_gelu": True}, keys={"image_size": 24, "projector.scale_factor": 2},
        sizes=dict(w=8, hd=4, t=16, m=2), f16=True, head=KERNEL + "v.position_embd w 4900; " + POST + FINAL_46, block=SIGLIP,
        cases=[TWO]),
    "kimivl": dict(
        projector="kimivl", flags={"use_gelu": True}, keys={"projector.scale_factor": 2}, sizes=dict(t=16),
        head=KERNEL + "v.position_embd w 64; " + POST + NORM_B.format("w") + "mm.1 m*m*w f; mm.1: f; mm.2 f t; mm.2: t", block=SIGLIP,
        cases=[TWO]),
    "paddleocr": dict(
        projector="paddleocr", flags={"use_gelu": True}, keys={"image_min_pixels": 640, "image_max_pixels": 4096},
        head=KERNEL + "v.position_embd w 36; " + POST + NORM_B.format("w") + "mm.1 m*m*w f; mm.1: f; mm.2 f t; mm.2: t", block=SIGLIP,
        cases=[TWO]),
    "lightonocr": dict(
        projector="lightonocr", flags={"use_silu": True}, keys={"spatial_merge_size": 2, "image_size": 60}, sizes=dict(t=16),
        head="v.patch_embd p p 3 w; v.pre_ln w; mm.input_norm w; mm.patch_merger 4*w w; mm.1 w t; mm.2 t t",
        block=RMS + QKV + GLU, cases=[TWO]),
    "janus": dict(
        projector="janus_pro", flags={"use_gelu": True}, keys={"image_size": 24}, sizes=dict(t=16, m=1),
        head=KERNEL + "v.position_embd w 36; " + POST + "mm.0 w t; mm.0: t; mm.1 t t; mm.1: t", block=SIGLIP, cases=[TWO]),
    "qwen2a": dict(
        projector="qwen2a", sound=True, keys={"num_mel_bins": 16}, sizes=dict(w=8, hd=4, t=8), head=WHISPER + "mm.a.fc w t; mm.a.fc: t",
        block=LN + QKV + QKV_BIAS.replace("attn_k: w; ", "") + MLP, cases=[SOUND]),
    "voxtral": dict(
        projector="voxtral", sound=True, keys={"num_mel_bins": 16, "projector.stack_factor": 5}, sizes=dict(w=8, hd=4, t=8),
        head=WHISPER + "mm.a.mlp.1 5*w t; mm.a.mlp.2 t t", block=LN + QKV + QKV_BIAS.replace("attn_k: w; ", "") + MLP, cases=[SOUND]),
}

def tensors_of(text, prefix, sizes):
    """(name, dimensions) of each tensor of a description."""
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, shape = item.split(" ", 1)
        suffix = {":": ".bias", "!": ""}.get(name[-1], ".weight")
        yield prefix + name.rstrip(":!") + suffix, [int(eval(part, {}, dict(sizes))) for part in shape.split(" ")]


# The same file, but for its version, whose prompts have other tokens.
FAMILIES["minicpmv-2.5"] = {**FAMILIES["minicpmv"], "file": "minicpmv", "cases": [TWO],
                            "flags": {**FAMILIES["minicpmv"]["flags"], "minicpmv_version": 2}}

# Tokens of the text models behind the vocabulary of the stories.
CONTROL = (["<|image>", "<image|>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", "<|begin_of_image|>", "<|end_of_image|>", "<image>",
            "</image>", "<slice>", "</slice>", "<|media_start|>", "<|media_end|>", "<|IMAGE_START|>", "<|IMAGE_END|>", "<|im_start|>",
            "<|im_end|>", "<|audio_bos|>", "<|audio_eos|>", "[BEGIN_AUDIO]"]
           + [f"<|img_row_{row}_col_{column}|>" for row in (1, 2) for column in (1, 2, 3)])

# The text models of families whose pictures change more than the input of a text: their architecture, and keys beyond those
# of scripts/oracle/architectures.py. The others take rows as any text model does.
TEXTS = {"gemma4v": ("gemma4", {}), "glm4v": ("glm4", {"rope.dimension_sections": [2, 2, 2, 0]}),
         "paddleocr": ("paddleocr", {})}
# The most that logits may differ from llama.cpp's: gemma4's GELU is a table of f16 there.
LOGITS = {"gemma4v": 1e-1, "glm4v": 1e-4, "paddleocr": 1e-4}
