"""Encoders of pictures and sounds in double precision, written from the publishers' code and papers, not from gimbal's or
llama.cpp's: rows of every family in projector_files.py. `oracle=True` computes what llama.cpp v0.5.0 does where that differs
from the publisher (docs/vision.md), so that the rest of a family can be compared with it.
"""
import math

import numpy as np


def norm(x, weight=None, bias=None, eps=1e-6, rms=False):
    x = x if rms else x - x.mean(axis=-1, keepdims=True)
    y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))


def gelu_erf(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


def triangle(distance):
    return np.maximum(1 - np.abs(distance), 0)


def cubic(distance, a=-0.75):
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def stretch(n_in, n_out, kind):
    """[n_out, n_in]: what each place of a table contributes to each of n_out places; pixel centres lie at halves."""
    scale = n_in / n_out
    weights = np.zeros((n_out, n_in))
    for i in range(n_out):
        centre = (i + 0.5) * scale
        if kind == "antialiased":  # of PyTorch's bilinear with antialias=True
            wide = max(scale, 1.0)
            for j in range(max(0, int(centre - wide + 0.5)), min(n_in, int(centre + wide + 0.5))):
                weights[i, j] = triangle((j - centre + 0.5) / wide)
            weights[i] /= weights[i].sum()
        else:  # bilinear and bicubic: places beyond the edge are the edge's
            at = centre - 0.5
            if kind == "bilinear":
                at = max(at, 0.0)
            first = math.floor(at)
            for j in range(first - 1, first + 3):
                share = cubic(at - j) if kind == "bicubic" else triangle(at - j)
                weights[i, min(max(j, 0), n_in - 1)] += float(share)
    return weights


def stretched(table, height, width, kind):
    """A square table [side * side, w] for a picture: [height * width, w]."""
    side = math.isqrt(len(table))
    square = table.reshape(side, side, -1)
    return np.einsum("yi,xj,ijc->yxc", stretch(side, height, kind), stretch(side, width, kind), square).reshape(height * width, -1)


def turned(x, angles, adjacent):
    """Heads [rows, heads, d] turned by angles [rows, d / 2]: pairs are neighbours, or values half a head apart."""
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    if adjacent:
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * c - b * s, a * s + b * c], axis=-1).reshape(x.shape)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


class Encoder:
    """A family's file: its tensors in double precision, in PyTorch's order of dimensions."""

    def __init__(self, tensors, sizes, family, oracle=False):
        self.t, self.s, self.family, self.oracle = tensors, sizes, family, oracle
        self.rms = family in ("gemma4v", "glm4v", "lightonocr")
        self.eps = 1e-6

    def normed(self, name, x, eps=None, rms=None):
        return norm(x, self.t[name + ".weight"], self.t.get(name + ".bias"), self.eps if eps is None else eps, self.rms if rms is None else rms)

    def product(self, name, x):
        clamp = self.t.get(name + ".input_min") is not None
        if clamp:
            x = np.clip(x, self.t[name + ".input_min"], self.t[name + ".input_max"])
        y = x @ self.t[name + ".weight"].reshape(self.t[name + ".weight"].shape[0], -1).T
        if name + ".bias" in self.t:
            y = y + self.t[name + ".bias"].reshape(-1)
        return np.clip(y, self.t[name + ".output_min"], self.t[name + ".output_max"]) if clamp else y

    def activated(self, x):
        return silu(x) if self.family in ("glm4v", "lightonocr") else gelu_erf(x) if self.family in ("qwen2a", "voxtral") else gelu(x)

    def attention(self, prefix, x, turn, out="attn_out", seen=None):
        rows, heads, d = len(x), self.s["h"], self.s["hd"]
        if prefix + "attn_qkv.weight" in self.t:
            q, k, v = np.split(self.product(prefix + "attn_qkv", x), 3, axis=-1)
        else:
            q, k, v = (self.product(prefix + "attn_" + name, x) for name in "qkv")
        q, k, v = (y.reshape(rows, heads, d) for y in (q, k, v))
        if prefix + "attn_q_norm.weight" in self.t:
            q, k = (norm(y, self.t[prefix + name], eps=self.eps, rms=self.rms) for y, name in
                    ((q, "attn_q_norm.weight"), (k, "attn_k_norm.weight")))
        q, k = turn(q), turn(k)
        scale = 1 / math.sqrt(d)
        if self.family == "gemma4v":
            v, scale = norm(v, eps=self.eps, rms=True), 1.0
        y = attended(q, k, v, scale, seen)
        return self.product(prefix + out, y.reshape(rows, heads * d))

    def block(self, i, x, turn):
        prefix = f"{'a' if self.family in ('qwen2a', 'voxtral') else 'v'}.blk.{i}."
        y = self.attention(prefix, self.normed(prefix + "ln1", x), turn)
        if prefix + "attn_post_norm.weight" in self.t:
            y = self.normed(prefix + "attn_post_norm", y)
        x = x + y
        z = self.normed(prefix + "ln2", x)
        up = self.product(prefix + "ffn_up", z)
        y = self.activated(self.product(prefix + "ffn_gate", z)) * up if prefix + "ffn_gate.weight" in self.t else self.activated(up)
        y = self.product(prefix + "ffn_down", y)
        if prefix + "ffn_post_norm.weight" in self.t:
            y = self.normed(prefix + "ffn_post_norm", y)
        x = x + y
        return x * self.t[prefix + "out_scale.weight"] if prefix + "out_scale.weight" in self.t else x

    def blocks(self, x, turn, first=0, last=None):
        for i in range(first, self.s["l"] if last is None else last):
            x = self.block(i, x, turn)
        return x

    # ---- the parts of pictures

    def patches(self, pixels, side):
        """[height, width, 3] as [lines * columns, 3 * side * side], by channel, line, column."""
        height, width = pixels.shape[0] // side, pixels.shape[1] // side
        cut = pixels[:height * side, :width * side].reshape(height, side, width, side, 3)
        return cut.transpose(0, 2, 4, 1, 3).reshape(height * width, -1), height, width

    def embedded(self, pixels):
        x, height, width = self.patches(pixels, self.s["p"])
        y = self.product("v.patch_embd", x)
        if "v.patch_embd.weight.1" in self.t:
            y = y + x @ self.t["v.patch_embd.weight.1"].reshape(self.s["w"], -1).T
        return y, height, width

    def joined(self, x, height, width, m):
        """m x m neighbours beside each other, ordered line, column, channel."""
        return x.reshape(height // m, m, width // m, m, -1).transpose(0, 2, 1, 3, 4).reshape(height * width // (m * m), -1)

    def turns(self, lines, columns, kind, base=10000.0):
        """A function that turns heads by the places of their patches."""
        d = self.s["hd"]
        quarter = np.arange(d // 4)
        even = base ** (-2.0 * quarter / (d / 2))
        if kind == "qwen":  # halves; lines, then columns
            return lambda x: turned(x, np.concatenate([np.outer(lines, even), np.outer(columns, even)], axis=1), False)
        if kind == "column first":
            return lambda x: turned(x, np.concatenate([np.outer(columns, even), np.outer(lines, even)], axis=1), True)
        if kind == "pixtral":
            odd = base ** (-(4.0 * quarter + 2) / d)
            return lambda x: turned(x, np.concatenate([np.outer(lines, even), np.outer(columns, odd)], axis=1), True)
        if kind == "each half":  # each half of a head by itself
            return lambda x: np.concatenate([turned(x[..., :d // 2], np.outer(columns, even), False),
                                             turned(x[..., d // 2:], np.outer(lines, even), False)], axis=-1)
        raise KeyError(kind)

    @staticmethod
    def places(height, width):
        return np.repeat(np.arange(height), width), np.tile(np.arange(width), height)

    def rows(self, pixels):
        return getattr(self, self.family)(pixels)

    # ---- the families

    def gemma4v(self, pixels):
        x, height, width = self.embedded(2 * (pixels - 0.5))
        lines, columns = self.places(height, width)
        table = self.t["v.position_embd.weight"]
        x = x + table[0][columns] + table[1][lines]
        x = self.blocks(x, self.turns(lines, columns, "each half", 100.0))
        m = self.s["m"]
        x = self.joined(x, height, width, m).reshape(-1, m * m, self.s["w"]).mean(axis=1) * math.sqrt(self.s["w"])
        x = (x - self.t["v.std_bias"]) * self.t["v.std_scale"]
        return self.product("mm.input_projection", norm(x, eps=self.eps, rms=True))

    def gemma4uv(self, pixels):
        x, height, width = self.patches(pixels, self.s["p"] * self.s["m"])
        x = self.product("v.patch_embd", self.normed("v.patch_norm.1", x, 1e-5))
        lines, columns = self.places(height, width)
        table = self.t["v.position_embd.weight"]
        x = self.normed("v.patch_norm.2", x, 1e-5) + table[0][columns] + table[1][lines]
        return self.product("mm.input_projection", norm(self.normed("v.patch_norm.3", x, 1e-5), eps=self.eps, rms=True))

    def lfm2(self, pixels):
        x, height, width = self.embedded(pixels)
        x = self.blocks(x + stretched(self.t["v.position_embd.weight"], height, width, "antialiased"), lambda q: q)
        x = self.joined(self.normed("v.post_ln", x), height, width, self.s["m"])
        if "mm.input_norm.weight" in self.t:
            x = self.normed("mm.input_norm", x, 1e-5)
        return self.product("mm.2", gelu(self.product("mm.1", x)))

    def llama4(self, pixels):
        x, height, width = self.embedded(pixels)
        x = np.concatenate([x, self.t["v.class_embd"].reshape(1, -1)]) + self.t["v.position_embd.weight"]
        lines, columns = (np.append(n + 1, 0) for n in self.places(height, width))
        x = self.blocks(self.normed("v.pre_ln", x), self.turns(lines, columns, "column first"))
        x = self.joined(self.normed("v.post_ln", x)[:-1], height, width, self.s["m"])
        x = self.product("mm.model.fc", gelu(self.product("mm.model.mlp.2", gelu(self.product("mm.model.mlp.1", x)))))
        side = height // self.s["m"]
        return x.reshape(side, side, -1).transpose(1, 0, 2).reshape(side * side, -1) if self.oracle else x

    def glm4v(self, pixels):
        x, height, width = self.embedded(pixels)
        if "v.norm_embd.weight" in self.t:
            x = self.normed("v.norm_embd", x)
        else:
            x = norm(x, eps=self.eps, rms=True) if self.oracle else x
        if "v.position_embd.weight" in self.t:
            x = x + stretched(self.t["v.position_embd.weight"], height, width, "bicubic")
        lines, columns = self.places(height, width)
        x = self.normed("v.post_ln", self.blocks(x, self.turns(lines, columns, "qwen")))
        m = self.s["m"]
        x = self.joined(x, height, width, m).reshape(-1, m * m, self.s["w"]).transpose(0, 2, 1).reshape(len(x) // (m * m), -1)
        x = gelu_erf(self.normed("mm.post_norm", self.product("mm.model.fc", self.product("mm.patch_merger", x)), 1e-5, False))
        return self.product("mm.down", silu(self.product("mm.gate", x)) * self.product("mm.up", x))

    def buckets(self, height, width):
        """The places of a table of 70 x 70."""
        lines, columns = self.places(height, width)
        return (70 * lines // height) * 70 + 70 * columns // width

    def resampler(self, pixels):
        x, height, width = self.embedded(pixels)
        x = self.blocks(x + self.t["v.position_embd.weight"][self.buckets(height, width)], lambda q: q)
        x = self.product("resampler.kv", self.normed("v.post_ln", x))
        d = self.s["t"]
        q, v = self.normed("resampler.ln_q", self.t["resampler.query"]), self.normed("resampler.ln_kv", x)
        lines, columns = self.places(height, width)
        omega = 10000.0 ** (-np.arange(d // 4) / (d / 4))
        angles = np.outer(columns, omega), np.outer(lines, omega)
        k = v + np.concatenate([np.sin(angles[0]), np.cos(angles[0]), np.sin(angles[1]), np.cos(angles[1])], axis=1)
        q, k, v = (self.product("resampler.attn." + name, y).reshape(len(y), -1, 128) for name, y in (("q", q), ("k", k), ("v", v)))
        y = self.product("resampler.attn.out", attended(q, k, v, 1 / math.sqrt(128)).reshape(len(q), d))
        return self.product("resampler.proj", self.normed("resampler.ln_post", y))

    def minicpmv4_6(self, pixels):
        x, height, width = self.embedded(pixels)
        x = x + self.t["v.position_embd.weight"][self.buckets(height, width)]
        first = 0
        if self.s["m"] == 4:
            first = self.s["merger_behind"] + 1
            x = self.blocks(x, lambda q: q, 0, first)
            square = np.arange(height * width).reshape(height, width)
            of = (square // width // 2) * (width // 2) + square % width // 2
            seen = of.reshape(-1)[:, None] == of.reshape(-1)[None]
            x = x + self.attention("v.vit_merger.", self.normed("v.vit_merger.ln1", x), lambda q: q, seen=seen)
            four = self.joined(x, height, width, 2)
            y = self.product("v.vit_merger.ds_ffn_down", gelu(self.product("v.vit_merger.ds_ffn_up", self.normed("v.vit_merger.ds_ln", four))))
            x = y + four.reshape(len(four), 4, -1).mean(axis=1)
            height, width = height // 2, width // 2
        x = self.normed("v.post_ln", self.blocks(x, lambda q: q, first))
        x = self.normed("mm.input_norm", self.joined(x, height, width, 2))
        return self.product("mm.down", gelu_erf(self.product("mm.up", x)))

    def kimivl(self, pixels):
        x, height, width = self.embedded(pixels)
        lines, columns = self.places(height, width)
        x = x + stretched(self.t["v.position_embd.weight"], height, width, "antialiased" if self.oracle else "bicubic")
        x = self.normed("v.post_ln", self.blocks(x, self.turns(lines, columns, "column first")))
        x = self.joined(self.normed("mm.input_norm", x, 1e-5), height, width, self.s["m"])
        return self.product("mm.2", gelu(self.product("mm.1", x)))

    def paddleocr(self, pixels):
        x, height, width = self.embedded(pixels)
        lines, columns = self.places(height, width)
        x = x + stretched(self.t["v.position_embd.weight"], height, width, "antialiased" if self.oracle else "bilinear")
        x = self.normed("v.post_ln", self.blocks(x, self.turns(lines, columns, "qwen")))
        x = self.joined(self.normed("mm.input_norm", x, 1e-5), height, width, self.s["m"])
        return self.product("mm.2", gelu(self.product("mm.1", x)))

    def lightonocr(self, pixels):
        x, height, width = self.embedded(pixels)
        lines, columns = self.places(height, width)
        x = self.blocks(self.normed("v.pre_ln", x), self.turns(lines, columns, "pixtral"))
        m = self.s["m"]
        x = self.joined(self.normed("mm.input_norm", x), height, width, m).reshape(-1, m * m, self.s["w"])
        x = self.product("mm.patch_merger", x.transpose(0, 2, 1).reshape(len(x), -1))
        return self.product("mm.2", gelu(self.product("mm.1", x)))

    def janus_pro(self, pixels):
        x, _, _ = self.embedded(pixels)
        x = self.normed("v.post_ln", self.blocks(x + self.t["v.position_embd.weight"], lambda q: q))
        return self.product("mm.1", gelu(self.product("mm.0", x)))

    # ---- sounds: spectra [bins, frames]

    def whisper(self, mel):
        def convolved(x, name, step):
            padded = np.pad(x, ((0, 0), (1, 1)))
            taps = np.concatenate([padded[None, :, i:i + x.shape[1]:1][..., ::step] for i in range(3)])  # [tap, in, time]
            y = np.einsum("kit,oik->to", taps, self.t[f"a.conv1d.{name}.weight"]) + self.t[f"a.conv1d.{name}.bias"].reshape(-1)
            return gelu_erf(y)
        x = convolved(convolved(mel, 1, 1).T, 2, 2)
        return self.blocks(x + self.t["a.position_embd.weight"], lambda q: q)

    def qwen2a(self, mel):
        x = self.whisper(mel).reshape(750, 2, -1).mean(axis=1)
        return self.product("mm.a.fc", self.normed("a.post_ln", x))

    def voxtral(self, mel):
        x = self.whisper(mel)
        if self.oracle:
            x = x.reshape(750, 2, -1).mean(axis=1)
        x = self.normed("a.post_ln", x)
        x = x.reshape(-1, self.s["stack"] * self.s["w"])
        return self.product("mm.a.mlp.2", gelu_erf(self.product("mm.a.mlp.1", x)))


def attended(q, k, v, scale, seen=None):
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    if seen is not None:
        scores = np.where(seen[None], scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", scores / scores.sum(axis=-1, keepdims=True), v)
