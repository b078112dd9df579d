#!/usr/bin/env python3
"""Measures experts from disk in a control group with half the memory of the model's file, beside llama.cpp, which maps the file there, and beside the
plan's promise. `gimbal pack` runs in the group, too. (gimbal itself refuses a model that does not fit.) The model is a mixture with random weights.

Usage: sudo bench/disk_experts.py FOLDER [--program build/release/gimbal] [--golden ../shared/golden] [--layers 8] [--tokens 48] [--threads 2]
Needs about three times the model's size (0.9 GB) in FOLDER, on the disk that is measured, and the memory controller of control groups in version 1.
The peer is the one that bench/compare/install.py installs. Prints JSON: tokens/s `mapped` (the peer) and `from_disk`, `promised` (the plan's two speeds,
measured in the group, too), and
  faster   from_disk / mapped            (issue: at least 3)
  kept     from_disk / promised evenly   (issue: at least 0.8)
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench/compare")]
import gguf_file as gguf  # noqa: E402
import install  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--program", default="build/release/gimbal")
parser.add_argument("--compare", default=str(ROOT / "build/compare"), help="where the peer is installed")
parser.add_argument("--golden", default="../shared/golden", type=pathlib.Path)
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--tokens", type=int, default=48)
parser.add_argument("--threads", type=int, default=2)
o = parser.parse_args()
WIDTH, EXPERT, EXPERTS, USED, HEADS, HEAD = 1024, 512, 64, 8, 8, 64
Q8_0, F32_TENSOR = 8, 0


def blocks(values):
    """Random Q8_0 of so many values: a scale about 0.0003, codes of any value."""
    scale = struct.pack("<e", 0.0003)
    noise = os.urandom(values)
    return b"".join(scale + noise[i:i + 32] for i in range(0, len(noise), 32))


def numbers(count, size):
    """Random f32, even in [-size, size]."""
    return struct.pack(f"<{count}f", *((b / 127.5 - 1) * size for b in os.urandom(count)))


def make(path):
    metadata = gguf.read_metadata(o.golden / "arch/qwen3moe.gguf")
    for key, value in {"block_count": o.layers, "embedding_length": WIDTH, "expert_feed_forward_length": EXPERT, "expert_count": EXPERTS,
                       "expert_used_count": USED, "attention.head_count": HEADS, "attention.head_count_kv": HEADS, "attention.key_length": HEAD,
                       "attention.value_length": HEAD, "context_length": 1024, "feed_forward_length": EXPERT}.items():
        metadata["qwen3moe." + key] = gguf.entry(gguf.U32, value)
    metadata.pop("qwen3moe.rope.dimension_count", None)
    vocabulary = next(d[1] for name, d, *_ in gguf.read_tensors(o.golden / "arch/qwen3moe.gguf") if name == "token_embd.weight")
    ones = struct.pack("<f", 1.0)
    tensors = [("token_embd.weight", [WIDTH, vocabulary], Q8_0, blocks(WIDTH * vocabulary)), ("output_norm.weight", [WIDTH], F32_TENSOR, ones * WIDTH),
               ("output.weight", [WIDTH, vocabulary], Q8_0, blocks(WIDTH * vocabulary))]
    for layer in range(o.layers):
        def add(name, dims, layer=layer):
            count = 1
            for d in dims:
                count *= d
            tensors.append((f"blk.{layer}.{name}.weight", dims, Q8_0, blocks(count)))
        for name, size in (("attn_norm", WIDTH), ("ffn_norm", WIDTH), ("attn_q_norm", HEAD), ("attn_k_norm", HEAD)):
            tensors.append((f"blk.{layer}.{name}.weight", [size], F32_TENSOR, ones * size))
        for name in ("attn_q", "attn_k", "attn_v"):
            add(name, [WIDTH, HEADS * HEAD])
        add("attn_output", [HEADS * HEAD, WIDTH])
        tensors.append((f"blk.{layer}.ffn_gate_inp.weight", [WIDTH, EXPERTS], F32_TENSOR, numbers(WIDTH * EXPERTS, 1.0)))
        for name, dims in (("ffn_gate_exps", [WIDTH, EXPERT, EXPERTS]), ("ffn_up_exps", [WIDTH, EXPERT, EXPERTS]),
                           ("ffn_down_exps", [EXPERT, WIDTH, EXPERTS])):
            add(name, dims)
    gguf.write(path, metadata, tensors)


def mounted():
    root = pathlib.Path("/tmp/cg")
    root.mkdir(exist_ok=True)
    if not (root / "memory.limit_in_bytes").exists():
        subprocess.run(["mount", "-t", "cgroup", "-o", "memory", "none", str(root)], check=True)
    return root


def run(command, group, **more):
    """A program in the group: its output. The page cache of earlier runs belongs to no group any more."""
    def join():
        (group / "cgroup.procs").write_text(str(os.getpid()))
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=join, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def forget(path):
    os.sync()
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


model = o.folder / "mixture.gguf"
packed = pathlib.Path(f"{model}.packed")
if not packed.exists():
    make(model)
peer = install.install(o.compare, lambda line: print(line, file=sys.stderr))
driver = install.program(peer, ROOT / "bench/compare/peer.cpp")
# One that computes Q8_0 from the mapped file. Others copy the weights into another order, and are killed in the group.
libraries = peer.libraries("icelake")
limit = model.stat().st_size // 2
group = mounted() / f"disk-experts-{os.getpid()}"
group.mkdir()
try:
    (group / "memory.limit_in_bytes").write_text(str(limit))
    if not packed.exists():
        run([o.program, "pack", model], group)
    common = [model, "--backend", "cpu", "--threads", o.threads, "--ctx", "256", "--batch", "4", "--verify", "never"]
    # The program itself, its copy of the header and its activations need about 80 MB.
    most = limit - (80 << 20)
    rest = json.loads(run([o.program, "plan", *common, "--experts-from-disk", "1TB", "--json"], group))["experts_from_disk"]["weights_in_memory"]
    disk = ["--experts-from-disk", most - rest]
    text = ["--prompt", "once upon a time", "--max-tokens", o.tokens, "--temperature", "1", "--seed", "1", "--ignore-eos", "--json"]
    forget(model)
    theirs = json.loads(run([driver, libraries, model, o.threads, 4, o.tokens, 1], group,
                            env={**os.environ, "LD_LIBRARY_PATH": libraries}).splitlines()[-1])
    forget(packed)
    ours = json.loads(run([o.program, "run", *common, *disk, *text], group))
    promised = json.loads(run([o.program, "plan", *common, *disk, "--json"], group))["experts_from_disk"]
finally:
    group.rmdir()
print(json.dumps(theirs), file=sys.stderr)
mapped, from_disk = theirs["generation_tokens_per_second"][0], ours["timing"]["tokens_per_second"]
print(json.dumps({"file_bytes": model.stat().st_size, "limit_bytes": limit, "mapped": mapped, "from_disk": from_disk, "promised": promised,
                  "faster": from_disk / mapped, "kept": from_disk / promised["tokens_per_second_evenly"]}, indent=1))
