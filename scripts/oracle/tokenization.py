#!/usr/bin/env python3
"""Token ids beside llama.cpp's, over random mixed text: for every vocabulary that the peer's sources carry, and for every
name of a pre-tokenizer with a vocabulary put under that name. Answers are written in the form of the reference
collection, and tokenizer_test reads them there, so that one text decides what equal means.

  scripts/oracle/tokenization.py                      every name and vocabulary; needs build/release/tests/tokenizer_test
  scripts/oracle/tokenization.py qwen2 bert-bge       only these
  scripts/oracle/tokenization.py --write tests/data/peer   the data of the repository (tests/data/README.md)
"""
import argparse
import base64
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile


HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import install  # noqa: E402

CHARACTER_LEVEL = {"gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace"}
# Where llama.cpp approximates the expression that a model's makers published, gimbal has theirs, and texts leave out what
# shows the difference: (kinds of characters, letters only in lower case, reason).
BY_CASE = ({"cased", "marks"}, False, "letters beyond ASCII by case, and marks")
DIFFERENT = {name: BY_CASE for name in (
    "tekken", "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "granite-embed-multi-97m", "youtu")}
DIFFERENT["kimi-k2"] = ({"cased", "marks", "cjk marks"}, True, "words by case, marks, the script Han beyond its blocks")
for name in ("tiny_aya", "cohere2moe"):
    DIFFERENT[name] = ({"cased", "marks", "digits"}, False, BY_CASE[2] + "; spaces before digits, digits before letters")
DIFFERENT["afmoe"] = ({"digits", "numbers", "wide"}, False, "spaces before digits")
DIFFERENT["superbpe"] = ({"numbers", "wide"}, False, "digits beyond ASCII")
# Pieces outside of GPT-2's alphabet: llama.cpp renders them as [UNK_BYTE_0x...], gimbal as the characters they are.
IDS_ONLY = {"whitespace", "vocabulary:command-r"}

KINDS = {
    "ascii": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "digits": "0123456789",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "spaces": "     \t\n\n\r\u00a0\u2003\u3000\u2028\u0085\x0b",
    "controls": "\x01\x07\x1b\x7f\u0091\u200b\u200d\u200e\ufeff\ufffd\u00ad\u2060",
    "cased": "éèüößÀÇñĀžЖжДΩωßǅⅧÅİıЀ",
    "caseless": "אבجدकखগଅ가각힣あアカ世界語漢字กขዐႠ",
    "marks": "\u0301\u0308\u0327\u093f\u0940\u094d\u0e31\u064b\u20dd",
    "cjk marks": "々〇〆「」。、！？：；—…“”",
    "numbers": "½²①Ⅳ٣३๓〇",
    "symbols": "€£¥©®°±×÷→∀∑█▁♥",
    "emoji": "😀👍🏽👨\u200d👩🇩🇪🫠",
    "wide": "ＡＢｃ１２３！＄ﾊﾝｶｸ",
    "private": "\ue000\U000f0000",
}
PHRASES = ["it's", "DON'T", "we'LL", " they've", "I'm", "  two", "\n\n", " \n ", "3.14", "12345678", "x=1;", "https://a.b/c?d=1",
           "camelCase", "HTTPServer", "naïve", "Ünïcödé", "<s>", "</s>", "<|endoftext|>", "[CLS]", "<mask>", "  [MASK]",
           "▁", "����", "don’t", "Straße", "ﬁnance", "école", "한국어", "नमस्ते", "สวัสดี", "0x1F", "100,000"]


def random_text(rng, without, lower):
    kinds = [kind for kind in KINDS if kind not in without]
    parts = []
    for _ in range(rng.randint(1, 12)):
        if rng.random() < 0.3:
            part = rng.choice(PHRASES)
            if without and not part.isascii():
                continue
            if "digits" in without and re.search(r"\d", part):
                continue
        else:
            kind = rng.choice(kinds)
            part = "".join(rng.choice(KINDS[kind]) for _ in range(rng.randint(1, 5)))
        parts.append(part.lower() if lower else part)
        if rng.random() < 0.5:
            parts.append(" ")
    return "".join(parts)


class Answers:
    """What llama.cpp says about one vocabulary and some texts."""

    def __init__(self, peer, vocabulary, texts):
        data = b"".join(struct.pack("<i", len(t)) + t for t in texts)
        done = subprocess.run([install.program(peer, os.path.join(HERE, "peer.cpp")), peer.all_libraries, "tokenize",
                               vocabulary], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries})
        if done.returncode != 0:
            raise install.Problem(done.stderr.decode(errors="replace").strip())
        self.data, self.at = done.stdout, 0
        size, bos, eos, add_bos = (self.number() for _ in range(4))
        self.head = {"n_vocab": size, "bos": bos, "eos": eos, "add_bos": bool(add_bos), "eog": self.ids()}
        pieces = {}
        for name in ("pieces_sha256", "pieces_sha256_nospecial"):
            pieces[name] = [self.text() for _ in range(size)]
            self.head[name] = hashlib.sha256(b"".join(struct.pack("<I", len(p)) + p for p in pieces[name])).hexdigest()
        shown = pieces["pieces_sha256"]
        self.cases = []
        self.head["tidied"] = False
        for number, t in enumerate(texts):
            case = {"tag": str(number)}
            case.update(self.field("text", t))
            case["ids"], case["ids_parse"], case["ids_full"] = self.ids(), self.ids(), self.ids()
            detok = [self.text() for _ in range(3)]
            for name, value in zip(("detok_ids", "detok", "detok_plain"), detok):
                case.update(self.field(name, value))
            raw = b"".join(shown[i] for i in case["ids_full"])
            self.head["tidied"] = self.head["tidied"] or detok[1] not in (raw, raw[1:])
            self.cases.append(case)

    @staticmethod
    def field(name, value):
        try:
            return {name: value.decode()}
        except UnicodeDecodeError:
            return {name + "_b64": base64.b64encode(value).decode()}

    def number(self):
        self.at += 4
        return struct.unpack_from("<i", self.data, self.at - 4)[0]

    def ids(self):
        count = self.number()
        self.at += 4 * count
        return list(struct.unpack_from(f"<{count}i", self.data, self.at - 4 * count))

    def text(self):
        count = self.number()
        self.at += count
        return self.data[self.at - count:self.at]


def write_collection(folder, name, metadata, texts, peer, kind):
    """vocab/NAME.gguf.gz and tokenizer/NAME.json under `folder`."""
    for part in ("vocab", "tokenizer"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    vocabulary = os.path.join(folder, "vocab", name + ".gguf")
    gguf_file.write(vocabulary, metadata)
    answers = Answers(peer, vocabulary, [t.encode() for t in texts])
    with open(vocabulary, "rb") as plain, open(vocabulary + ".gz", "wb") as packed:
        with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=1 if kind == "random" else 9, mtime=0) as z:
            shutil.copyfileobj(plain, z)
    os.remove(vocabulary)
    with open(os.path.join(folder, "tokenizer", name + ".json"), "w", encoding="ascii") as file:
        json.dump({"vocab": name + ".gguf", "type": kind, **answers.head, "cases": answers.cases}, file, indent=0)
        file.write("\n")


def names_of_pretokenizers():
    with open(os.path.join(ROOT, "src", "tokenizer", "split_families.cpp"), encoding="utf-8") as file:
        table = file.read().split("kFamilies[] = {", 1)[1]
    lists = re.findall(r'^    \{((?:"[^"]*"\s*)+),', table, re.M)
    return sorted(" ".join("".join(re.findall(r'"([^"]*)"', names)) for names in lists).split())


def jobs(peer):
    """{name: (metadata, texts left out, only lower case)} of every vocabulary, and of every name of a pre-tokenizer."""
    folder = install.vocabularies(peer)
    all_jobs = {}
    for file in sorted(os.listdir(folder)):
        name = file[len("ggml-vocab-"):-len(".gguf")]
        all_jobs["vocabulary:" + name] = (os.path.join(folder, file), {}, name)
    for name in names_of_pretokenizers():
        base = "gemma-4" if name in CHARACTER_LEVEL else "gpt-2"
        changes = {"tokenizer.ggml.model": gguf_file.entry(gguf_file.STRING, "whitespace" if name == "whitespace" else "gpt2"),
                   "tokenizer.ggml.pre": gguf_file.entry(gguf_file.STRING, name)}
        all_jobs["pre:" + name] = (os.path.join(folder, f"ggml-vocab-{base}.gguf"), changes, name)
    return all_jobs


def compare(name, job, peer, arguments):
    path, changes, short = job
    without, lower, reason = DIFFERENT.get(short, ((), False, "")) if name.startswith("pre:") else ((), False, "")
    rng = random.Random(arguments.seed)
    texts = [random_text(rng, without, lower) for _ in range(arguments.texts)]
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        write_collection(folder, short, {**gguf_file.read_metadata(path), **changes}, texts, peer, "random")
        tests = ["EveryIdAgrees", "TheSpecialIdsAgree"]
        if name not in IDS_ONLY and short not in IDS_ONLY:
            tests += ["EveryTextAgrees", "EveryPieceAgrees"]
        done = subprocess.run([arguments.test, "--gtest_filter=" + ":".join("Golden." + test for test in tests)],
                              env={**os.environ, "GIMBAL_GOLDEN": folder}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
    out = done.stdout.decode(errors="replace")
    failed = re.findall(r"\[  FAILED  \] Golden\.(\w+) \(", out)
    cases = len(set(re.findall(r", case (\d+)", out)))
    print(f"{name:36} {len(texts):5} texts  " + ("equal" if done.returncode == 0 else f"DIFFERS in {cases}: {' '.join(failed)}") +
          (f"  (left out: {reason})" if reason else ""), flush=True)
    if done.returncode != 0 and arguments.show:
        print("\n".join(line for line in out.splitlines() if line)[:6000])
    return done.returncode == 0


def shortened(metadata, size, last):
    """A vocabulary with its first `size` tokens and, at the end, the token `last`, which gets the number `size`."""
    out = dict(metadata)
    for key in ("tokens", "scores", "token_type"):
        raw = metadata["tokenizer.ggml." + key]
        element, count = struct.unpack_from("<IQ", raw, 4)
        if element == gguf_file.STRING:
            items = gguf_file.strings(raw)
        else:
            items = struct.unpack_from(f"<{count}{gguf_file.PACK[element]}", raw, 16)
        out["tokenizer.ggml." + key] = gguf_file.entry(gguf_file.ARRAY, (element, [*items[:size], items[last]]))
    out["tokenizer.ggml.mask_token_id"] = gguf_file.entry(gguf_file.U32, size)
    return out


def as_plamo2(metadata, size):
    """A vocabulary as PLaMo 2's files have it, with the first `size` plain tokens of a Unigram one and their scores. It has no
    unused tokens: llama.cpp gives these a text here, and gimbal nowhere."""
    found = dict(zip((t.decode().replace("▁", " ") for t in gguf_file.strings(metadata["tokenizer.ggml.tokens"])),
                     struct.unpack_from(f"<{4 + size}f", metadata["tokenizer.ggml.scores"], 16)))
    rows = [("<|plamo:unk|>", 0, 2), ("<|plamo:bos|>", 0, 3), ("<|plamo:eos|>", 0, 3), ("<|plamo:pad|>", 0, 3)]
    rows += [(f"<0x{byte:02X}>", 0, 6) for byte in range(256)]
    rows += [(text, score, 1) for text, score in found.items() if not text.startswith("<")]
    texts, scores, types = zip(*rows)
    lists = {"tokens": (gguf_file.STRING, texts), "scores": (gguf_file.F32, scores), "token_type": (gguf_file.I32, types)}
    return {"general.architecture": gguf_file.entry(gguf_file.STRING, "plamo2"),
            "tokenizer.ggml.model": gguf_file.entry(gguf_file.STRING, "plamo2"),
            "tokenizer.ggml.pre": gguf_file.entry(gguf_file.STRING, "default"),
            **{"tokenizer.ggml." + key: gguf_file.entry(gguf_file.ARRAY, value) for key, value in lists.items()},
            "tokenizer.ggml.bos_token_id": gguf_file.entry(gguf_file.U32, 1), "tokenizer.ggml.eos_token_id": gguf_file.entry(gguf_file.U32, 2),
            "tokenizer.ggml.unknown_token_id": gguf_file.entry(gguf_file.U32, 0)}


def write_data(peer, folder):
    """The data of the repository: a WordPiece vocabulary, and parts of a Unigram one: with its whole map of characters, and as PLaMo 2
    has it."""
    rng = random.Random(7)
    texts = [random_text(rng, (), False) for _ in range(150)] + PHRASES
    vocabularies = install.vocabularies(peer)
    bert = gguf_file.read_metadata(os.path.join(vocabularies, "ggml-vocab-bert-bge.gguf"))
    write_collection(folder, "bert-bge", bert, texts, peer, "WPM")
    nomic = gguf_file.read_metadata(os.path.join(vocabularies, "ggml-vocab-nomic-bert-moe.gguf"))
    write_collection(folder, "xlm-roberta-6000", shortened(nomic, 6000, 250001), texts, peer, "UGM")
    write_collection(folder, "plamo2-3000", as_plamo2(nomic, 3000), texts, peer, "PLaMo2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of vocabularies or pre-tokenizers; all when none is given")
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", metavar="FOLDER", help="write the data of the repository, and compare nothing")
    parser.add_argument("--show", action="store_true", help="show what differs")
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), help="where the peer is installed")
    parser.add_argument("--test", default=os.path.join(ROOT, "build", "release", "tests", "tokenizer_test"))
    arguments = parser.parse_args()
    peer = install.install(arguments.work, print)
    if arguments.write:
        write_data(peer, arguments.write)
        return 0
    chosen = {name: job for name, job in jobs(peer).items()
              if not arguments.names or name in arguments.names or name.split(":")[1] in arguments.names}
    if not chosen:
        raise install.Problem(f"no vocabulary and no pre-tokenizer is called {' or '.join(arguments.names)}")
    different = [name for name, job in chosen.items() if not compare(name, job, peer, arguments)]
    print(f"{len(chosen) - len(different)} of {len(chosen)} equal")
    return 1 if different else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except install.Problem as problem:
        sys.exit(f"tokenization: {problem}")
