"""Pictures as the pieces that encoders get, by Pillow 11.3: what gimbal's media/pieces.cpp is compared with. Sizes are worked
out as llama.cpp v0.5.0 does, in single precision; slices of MiniCPM-V are chosen as the publisher does (docs/vision.md).
"""
import math

import numpy as np
from PIL import Image

F = np.float32
BICUBIC, BILINEAR = Image.Resampling.BICUBIC, Image.Resampling.BILINEAR


def away(x):
    """Rounded, halves away from zero."""
    return math.floor(float(x) + 0.5)


def fitted(size, align, least, most):
    w, h, step = F(size[0]), F(size[1]), F(align)
    width, height = (max(align, away(n / step) * align) for n in (w, h))
    if width * height > most:
        shrink = np.sqrt(w * h / F(most))
        width, height = (max(align, math.floor(n / shrink / step) * align) for n in (w, h))
    elif width * height < least:
        grow = np.sqrt(F(least) / (w * h))
        width, height = (math.ceil(n * grow / step) * align for n in (w, h))
    return width, height


def padded(image, size, how, colour=(0, 0, 0)):
    scale = min(F(size[0]) / F(image.width), F(size[1]) / F(image.height))
    inner = tuple(min(math.ceil(F(n) * scale), most) for n, most in zip(image.size, size))
    out = Image.new("RGB", size, colour)
    out.paste(stretched(image, inner, how), ((size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2))
    return out


def stretched(image, size, how):
    return image if image.size == tuple(size) else image.resize(size, how)


def tiles(image, grid, size):
    return [("tile", image.crop((x * size[0], y * size[1], (x + 1) * size[0], (y + 1) * size[1])), y, x)
            for y in range(grid[1]) for x in range(grid[0])]


def free(image, s, how=BICUBIC):
    align = s["p"] * s["m"]
    least, most = s.get("pixels") or (n * align * align for n in s["rows"])
    return [("whole", padded(image, fitted(image.size, align, least, most), how), 0, 0)]


def square(image, s):
    return [("whole", padded(image, (s["image"], s["image"]), BICUBIC, (127, 127, 127)), 0, 0)]


def longest(image, s):
    align = s["p"] * s["m"]
    scale = min(F(s["image"]) / F(image.width), F(s["image"]) / F(image.height))
    size = tuple(math.ceil(F(n) * scale / F(align)) * align for n in image.size)
    return [("whole", padded(image, size, BICUBIC), 0, 0)]


def llama4(image, s):
    side = s["image"]
    overview = ("overview", stretched(image, (side, side), BICUBIC), 0, 0)
    if max(image.size) <= side:
        return [overview]
    best = None
    for x in (1, 2, 3):
        for y in (1, 2, 3):
            scale = min(F(x * side) / F(image.width), F(y * side) / F(image.height))
            effective = min(math.prod(int(F(n) * scale) for n in image.size), math.prod(image.size))
            score = (effective, effective - x * y * side * side)
            if x * y > 1 and (best is None or score > best[0]):
                best = (score, (x, y))
    grid = best[1]
    return tiles(padded(image, (grid[0] * side, grid[1] * side), BICUBIC), grid, (side, side)) + [overview]


def lfm2(image, s):
    align, least, most = s["p"] * s["m"], *s["rows"]
    size = fitted(image.size, align, least * align * align, most * align * align)
    bar = [max(s["p"], round(n / align) * align) for n in image.size]
    whole = stretched(image, size, BILINEAR)
    if math.prod(bar) <= 2 * most * align * align:
        return [("whole", whole, 0, 0)]
    ratio, best, grid = image.width / image.height, math.inf, None
    for x, y in sorted(((x, y) for x in range(1, 11) for y in range(1, 11) if 2 <= x * y <= 10), key=lambda g: g[0] * g[1]):
        distance = abs(ratio - x / y)
        if distance < best or (distance == best and math.prod(image.size) > 0.5 * 512 * 512 * x * y):
            best, grid = distance, (x, y)
    return tiles(padded(image, (grid[0] * 512, grid[1] * 512), BILINEAR), grid, (512, 512)) + [("overview", whole, 0, 0)]


def slices(image, s):
    side, step = s["image"], s["p"] * s["m"]

    def size_of(w, h, enlarge):
        if enlarge or w * h > side * side:
            ratio = F(w) / F(h)
            h = int(F(side) / np.sqrt(ratio))
            w = int(F(h) * ratio)
        return tuple(max(away(F(n) / F(step)) * step, step) for n in (w, h))
    count = min(math.ceil(math.prod(image.size) / side / side), 9)
    overview = [("overview", stretched(image, size_of(*image.size, count <= 1), BICUBIC), 0, 0)]
    if count <= 1:
        return overview
    grids = [(x, n // x) for n in (count - 1, count, count + 1) if 1 < n <= 9 for x in range(1, n + 1) if n % x == 0]
    grid = min(grids, key=lambda g: abs(math.log(image.width / image.height) - math.log(g[0] / g[1])))
    part = [max(away(F(n) / F(of)), 1) for n, of in zip(image.size, grid)]
    size = size_of(*part, True)
    return overview + tiles(padded(image, (grid[0] * size[0], grid[1] * size[1]), BICUBIC), grid, size)


RULES = {
    "gemma4v": (free, dict(rows=(70, 1120))), "gemma4uv": (free, dict(rows=(70, 1120))), "glm4v": (free, dict(rows=(8, 4096))),
    "kimivl": (free, dict(rows=(8, 1024))), "paddleocr": (free, dict()), "lightonocr": (longest, dict()), "janus_pro": (square, dict()),
    "llama4": (llama4, dict()), "lfm2": (lfm2, dict(rows=(64, 256))), "resampler": (slices, dict()), "minicpmv4_6": (slices, dict()),
}
