#!/usr/bin/env python3
"""llama.cpp's texts with token ids of its vocabularies, through `gimbal tokenize`: tokenizers.py GIMBAL [LLAMA_CPP] [-v]

models/ggml-vocab-*.gguf with .inp (texts) and .out (ids, without BOS, control tokens as text).
"""
import glob
import os
import subprocess
import sys
import tempfile

from suites import Tally, llama_cpp

BETWEEN = b"\n__ggml_vocab_test__\n"


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not 1 <= len(words) <= 2:
        sys.exit(__doc__)
    folder = llama_cpp(*words[1:])
    tally = Tally("tokenizers", "-v" in sys.argv)
    for path in sorted(glob.glob(os.path.join(folder, "models/ggml-vocab-*.gguf"))):
        if not os.path.exists(path + ".inp"):
            continue
        with open(path + ".inp", "rb") as texts, open(path + ".out", encoding="ascii") as ids:
            cases = zip(texts.read().split(BETWEEN), ids.read().splitlines())
        for text, want in cases:
            with tempfile.NamedTemporaryFile() as file:
                file.write(text)
                file.flush()
                done = subprocess.run([words[0], "tokenize", path, "--file", file.name, "--no-bos", "--no-special", "--ids"], capture_output=True, text=True)
            got = done.stdout.strip().replace(",", " ").split()
            case = f"{os.path.basename(path)} {text[:40]!r}"
            if done.returncode == 0 and got == want.split():
                tally.passed(case)
            else:
                tally.failed(case, f"{done.stderr.strip()} {' '.join(got)}, expected {want}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
