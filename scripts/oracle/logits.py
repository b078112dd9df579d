#!/usr/bin/env python3
"""Logits beside llama.cpp's: makes tiny files with random weights for an architecture (two seeds, odd shapes), runs both
engines on the same tokens by `gimbal crossval`, which decides whether rounding explains the differences (docs/crossval.md), and
compares one batch with single tokens. Embeddings are compared by peer.cpp.

  scripts/oracle/logits.py llama qwen2        these architectures (scripts/oracle/architectures.py describes them)
  scripts/oracle/logits.py                    all of them
  scripts/oracle/logits.py --update           all of them, and the table in docs/models.md; with names, only their rows
  scripts/oracle/logits.py --keep DIR llama   leave the files there
  scripts/oracle/logits.py --write llama      what llama.cpp says, for peer_architectures_test of a clone
"""
import argparse
import array
import base64
import gzip
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import architectures
import plain_weights

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import install  # noqa: E402

PROMPT, GREEDY, CONTEXT = 24, 12, 256
LEAST_MARGIN = 0.02  # of greedy tokens that are written down
EMBEDDING_TOLERANCE = 1e-5  # of 1 - cosine
MARKS = ("<!-- oracle: written by scripts/oracle/logits.py --update -->", "<!-- oracle: end -->")


def sizes_of(description, seed):
    sizes = dict(architectures.SIZES[seed])
    given = description.get("sizes", {})
    for name, value in {**architectures.DERIVED, **given}.items():
        if name in given or name not in sizes:
            sizes[name] = value
    while any(isinstance(value, str) for value in sizes.values()):  # expressions of each other
        known = {name: value for name, value in sizes.items() if not isinstance(value, str)}
        for name, value in list(sizes.items()):
            if isinstance(value, str):
                try:
                    sizes[name] = eval(value, {}, known)
                except NameError:
                    pass
    return sizes


def entry_of(value):
    if isinstance(value, str):
        return gguf_file.entry(gguf_file.STRING, value)
    if isinstance(value, list):
        kind = gguf_file.F32 if any(isinstance(one, float) for one in value) else gguf_file.I32
        return gguf_file.entry(gguf_file.ARRAY, (kind, value))
    kind = {bool: gguf_file.BOOL, int: gguf_file.U32, float: gguf_file.F32}[type(value)]
    return gguf_file.entry(kind, value)


def keys_of(arch, description, sizes):
    """{key: value} of a file."""
    return {key[1:] if key.startswith("/") else f"{arch}.{key}": value[1:] if value.startswith("=") else eval(value, dict(sizes), {})
            for key, value in {**architectures.COMMON, **description["keys"]}.items()}


def tensors_of(text, prefix, sizes, i):
    """(name, dimensions) of "name shape; name shape"."""
    for item in text.split(";"):
        name, shape = item.strip().split(" ", 1)
        suffix = {":": ".bias", "!": ""}.get(name[-1], ".weight")
        yield prefix + name.rstrip(":!") + suffix, [eval(part, {}, {**sizes, "i": i}) for part in shape.split(" ")]


def values(name, dimensions, rng):
    """Random numbers of a size that keeps every layer's output alive."""
    count = math.prod(dimensions)
    base = name.split(".")[-1] if name.endswith(("ssm_a", "ssm_d")) else ".".join(name.split(".")[-2:])
    if base == "ssm_a":
        numbers = (-math.exp(rng.uniform(-1, 1.5)) for _ in range(count))
    elif base == "ssm_d":
        numbers = (rng.uniform(0.5, 1.5) for _ in range(count))
    elif base.startswith(("rope_freqs", "rope_factors")):
        numbers = (rng.uniform(1, 4) for _ in range(count))
    elif base in ("time_mix_w0.weight", "time_mix_decay.weight"):
        numbers = (rng.uniform(-5, 0.5) for _ in range(count))
    elif "_lerp_" in base:
        numbers = (rng.uniform(0, 1) for _ in range(count))
    elif base in ("time_mix_first.weight", "time_mix_k_k.weight", "time_mix_k_a.weight", "time_mix_r_k.weight"):
        numbers = (rng.gauss(0.5, 0.3) for _ in range(count))
    elif base.endswith("bias"):
        numbers = (rng.gauss(0, 0.2) for _ in range(count))
    elif "norm" in base or base in ("ffn_norm", "time_mix_ln.weight"):
        numbers = (1 + rng.gauss(0, 0.2) for _ in range(count))
    elif base in ("token_embd.weight", "position_embd.weight", "attn_sinks.weight"):
        numbers = (rng.gauss(0, 1) for _ in range(count))
    else:
        spread = 1.5 / math.sqrt(dimensions[0])
        numbers = (rng.gauss(0, spread) for _ in range(count))
    return array.array("f", numbers).tobytes()


def vocabulary_of_tok512():
    with gzip.open(os.path.join(ROOT, "tests", "data", "vocab", "tok512.gguf.gz")) as packed, \
            tempfile.NamedTemporaryFile(suffix=".gguf") as plain:
        plain.write(packed.read())
        plain.flush()
        vocabulary = gguf_file.read_metadata(plain.name)
    return {key: raw for key, raw in vocabulary.items() if key.startswith("tokenizer.")}


def contents(name, seed):
    """Sizes, own keys with their values, and (tensor, dimensions), of a file of the architecture."""
    description = architectures.ARCHS[name]
    arch = name.split(":")[0]
    sizes = sizes_of(description, seed)
    keys = {"general.architecture": arch, "general.name": "oracle", **keys_of(arch, description, sizes)}
    if "bert" in arch:
        keys["tokenizer.ggml.token_type_count"] = 2
    tensors = list(tensors_of(description["head"], "", sizes, 0))
    for i in range(sizes["l"]):
        for group, condition in description["blocks"].items():
            if eval(condition, {}, {**sizes, "i": i}):
                tensors += tensors_of(group, f"{description.get('stack', '')}blk.{i}.", sizes, i)
    return sizes, keys, tensors


def make_file(path, name, seed):
    """A file of the architecture; the same one every time."""
    sizes, keys, tensors = contents(name, seed)
    rng = random.Random(f"{name} {seed}")
    metadata = {**vocabulary_of_tok512(), **{key: entry_of(value) for key, value in keys.items()}}
    gguf_file.write(path, metadata, [(n, d, 0, values(n, d, rng)) for n, d in tensors])
    return sizes["v"]


def libllama(peer):
    """The peer's library itself, which `gimbal crossval` opens."""
    found = [name for name in sorted(os.listdir(peer.all_libraries)) if name.startswith("libllama.")]
    return os.path.join(peer.all_libraries, found[0])


def crossval(program, peer, path, tokens):
    """What `gimbal crossval` says of these tokens."""
    done = subprocess.run([program, "crossval", path, "--library", libllama(peer), "--tokens", ",".join(map(str, tokens)),
                           "--greedy", str(GREEDY), "--ctx", str(CONTEXT), "--threads", "1", "--backend", "cpu", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ValueError(answer["error"]["message"])
    if not answer.get("logits"):
        raise ValueError(answer["reason"])
    return answer


def ask(peer, what, path, number, tokens):
    done = subprocess.run(
        [install.program(peer, os.path.join(HERE, "peer.cpp")), peer.all_libraries, what, path, str(CONTEXT), str(number)],
        input=struct.pack(f"<{len(tokens) + 1}i", len(tokens), *tokens), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries})
    if done.returncode != 0:
        raise ValueError((done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout[4:]


def peer_embedding(peer, path, tokens):
    numbers = array.array("f")
    numbers.frombytes(ask(peer, "embed", path, 0, tokens))
    return numbers


def write_golden(name, peer, folder):
    """Writes the peer's answers to a file with plain weights: tests/data/peer/architectures/<name>.json."""
    sizes, keys, tensors = contents(name, 0)
    tensors = [(n, d, *plain_weights.range_of(n, d)) for n, d in tensors]
    path = os.path.join(folder, "plain.gguf")
    weights = {n: (d, array.array("f", plain_weights.values(n, d, middle, spread))) for n, d, middle, spread in tensors}
    twin = architectures.ARCHS[name].get("twin")
    asked, weights = twin(keys, weights) if twin else (keys, weights)
    metadata = {**vocabulary_of_tok512(), **{key: entry_of(value) for key, value in asked.items()}}
    gguf_file.write(path, metadata, [(n, d, 0, values.tobytes()) for n, (d, values) in weights.items()])
    golden = {"reference_engine": f"llama.cpp of node-llama-cpp {install.VERSION}", "metadata": keys, "tensors": [list(tensor) for tensor in tensors]}
    for attempt in range(20):
        rng = random.Random(f"{name} {attempt}")
        golden["tokens"] = [1] + [rng.randrange(3, sizes["v"]) for _ in range(prompt_of(name) - 1)]
        if architectures.ARCHS[name].get("embeds"):
            golden["embedding"] = base64.b64encode(ask(peer, "embed", path, 0, golden["tokens"])).decode()
            break
        answer = ask(peer, "logits", path, GREEDY, golden["tokens"])
        at = 4 * sizes["v"]
        steps = list(struct.iter_unpack("<if", answer[at:]))
        if architectures.ARCHS[name].get("gelu"):
            golden["gelu_by_table"] = True  # in half precision
        golden.update(logits=base64.b64encode(answer[:at]).decode(), greedy=[token for token, _ in steps],
                      margin=min(margin for _, margin in steps))
        if golden["margin"] >= LEAST_MARGIN:
            break
    else:
        raise install.Problem(f"{name}: of no prompt are the greedy tokens far from the next best ones")
    out = os.path.join(ROOT, "tests", "data", "peer", "architectures", name.replace(":", "-") + ".json")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")
    print(f"{out}: {os.path.getsize(out)} bytes")


def gimbal_logits(program, path, tokens, batch):
    done = subprocess.run([program, "logits", path, "--tokens", ",".join(map(str, tokens)), "--positions", "all", "-o", "-",
                           "--backend", "cpu", "--kv-type", "f32", "--batch", str(batch), "--ctx", str(CONTEXT)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.decode(errors="replace").strip().splitlines()[0])
    numbers = array.array("f")
    numbers.frombytes(done.stdout)
    return numbers


def gimbal_embeddings(program, path, texts):
    """Of lists of tokens, computed beside each other."""
    done = subprocess.run([program, "embed", path, "--jsonl", "--backend", "cpu", "--kv-type", "f32", "--ctx", str(CONTEXT)],
                          input="\n".join(json.dumps({"tokens": tokens}) for tokens in texts).encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.decode(errors="replace").strip().splitlines()[0])
    return [json.loads(line)["embedding"] for line in done.stdout.splitlines()]


def from_cosine(a, b):
    """1 - the cosine of two embeddings; infinite where they have not the same length, or are none."""
    if len(a) != len(b):
        return math.inf
    length = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
    result = 1 - sum(x * y for x, y in zip(a, b)) / length if length > 0 else math.inf
    return result if math.isfinite(result) else math.inf


def compare_embeddings(label, peer, program, path, tokens):
    """As compare(), of an embedding: there are no greedy tokens."""
    theirs = peer_embedding(peer, path, tokens)
    row = [label, f"{math.sqrt(sum(x * x for x in theirs) / len(theirs)):.1f}, embedding"]
    try:
        ours, = gimbal_embeddings(program, path, [tokens])
        beside = gimbal_embeddings(program, path, [tokens[:5], tokens, tokens[3:]])[1]
    except ValueError as error:
        unknown = any(words in str(error) for words in ("not supported", "not known", "not computed"))
        return row + ["not supported yet" if unknown else str(error), "", ""], None if unknown else False
    far = from_cosine(ours, theirs)
    agrees = far <= EMBEDDING_TOLERANCE and ours == beside
    return row + [f"1 - cosine {max(far, 0):.0e}", "", "same bits" if ours == beside else "differs"], agrees


def prompt_of(name):
    return architectures.ARCHS[name].get("prompt", PROMPT)


def label_of(name, seed):
    return f"`{name}` {seed + 1}"


def compare(name, seed, peer, program, folder):
    """A row of the table: [architecture, spread, difference, greedy, batch against single], and whether gimbal knows it and agrees."""
    path = os.path.join(folder, f"{name.replace(':', '-')}-{seed + 1}.gguf")
    label = label_of(name, seed)
    width = make_file(path, name, seed)
    rng = random.Random(seed)
    tokens = [1] + [rng.randrange(3, width) for _ in range(prompt_of(name) - 1)]
    try:
        if architectures.ARCHS[name].get("embeds"):
            return compare_embeddings(label, peer, program, path, tokens)
        found = crossval(program, peer, path, tokens)
        ours = gimbal_logits(program, path, tokens, len(tokens))
        alone = gimbal_logits(program, path, tokens, 1)
    except ValueError as error:
        unknown = any(words in str(error) for words in ("not supported", "not known", "not computed"))
        return [label, "", "not supported yet" if unknown else str(error), "", ""], None if unknown else False
    logits, greedy = found["logits"], found["greedy"]
    bits = ours.tobytes() == alone.tobytes()
    agrees = found["verdict"] in ("same", "within rounding") and bits
    share = "" if logits["share"] is None else f", {logits['share']:.2g} of rounding"
    row = [label, f"{logits['size']:.1f}", f"{logits['largest']:.0e}{share}", f"{greedy['same']} of {greedy['tokens']}",
           "same bits" if bits else "differs"]
    if found["verdict"] not in ("same", "within rounding"):
        print(f"{label}: {found['verdict']}: {found['reason']}")
    return row, agrees


def update_page(rows):
    """Of architectures that were not asked for, the page's rows stay."""
    page = os.path.join(ROOT, "docs", "models.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    known = {row[0]: row for row in ([cell.strip() for cell in line.split("|")[1:-1]] for line in text[begin:end].splitlines() if "`" in line)}
    known.update({row[0]: row for row in rows})
    labels = [label_of(name, seed) for name in architectures.ARCHS for seed in range(2)]
    rows = [known[label] for label in labels if label in known]
    table = ["| file | spread of the logits | largest difference, share of what rounding explains | greedy tokens | batch against single |",
             "|---|---|---|---|---|"] + ["| " + " | ".join(row) + " |" for row in rows]
    with open(page, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + "\n".join(table) + "\n" + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archs", nargs="*", help="architectures; all when none is given")
    parser.add_argument("--update", action="store_true", help="write the table in docs/models.md")
    parser.add_argument("--keep", metavar="DIR", help="leave the files there")
    parser.add_argument("--write", action="store_true", help="write what llama.cpp says into tests/data/peer/architectures")
    parser.add_argument("--gimbal", default=os.path.join(ROOT, "build", "release", "gimbal"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), help="where the peer is installed")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.archs if name not in architectures.ARCHS]
    if unknown:
        raise install.Problem(f"{unknown[0]} is not described; there are {', '.join(architectures.ARCHS)}")
    peer = install.install(arguments.work, print)
    rows, failures = [], 0
    with tempfile.TemporaryDirectory(dir=arguments.work) as scratch:
        folder = arguments.keep or scratch
        os.makedirs(folder, exist_ok=True)
        if arguments.write:
            for name in arguments.archs:
                write_golden(name, peer, folder)
            return 0
        for name in arguments.archs or [name for name, about in architectures.ARCHS.items() if "twin" not in about]:
            for seed in range(2):
                row, agrees = compare(name, seed, peer, arguments.gimbal, folder)
                rows.append(row)
                failures += agrees is False
                print(("differs  " if agrees is False else "agrees   " if agrees else "unknown  ") + "  ".join(row), flush=True)
    if arguments.update:
        update_page(rows)
    print(f"{failures} of {len(rows)} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except install.Problem as problem:
        sys.exit(f"oracle: {problem}")
