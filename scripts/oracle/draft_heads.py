#!/usr/bin/env python3
"""Draft heads beside llama.cpp's: its drafts by tiny heads for tiny models, all with plain weights (plain_weights.py).

  scripts/oracle/draft_heads.py           writes tests/data/peer/draft_heads/<name>.json, for draft_heads_test
  scripts/oracle/draft_heads.py eagle3    this one
"""
import argparse
import array
import base64
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import logits
import plain_weights

sys.path[:0] = [os.path.join(logits.ROOT, "scripts"), os.path.join(logits.ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import install  # noqa: E402

TOKENS, GREEDY = 24, 6
MOST_DRAFTS = 15  # kMaxDrafts
I64 = 27  # the id of the format in tensors

# Sizes: d width, h heads, kv heads of keys and values, hd their size, f feed-forward, t the target's width, v its tokens, n logits.
LAYER = ("attn_norm d; attn_norm_2 d; attn_q 2*d h*hd; attn_k 2*d kv*hd; attn_v 2*d kv*hd; attn_output h*hd d; ffn_norm d; ffn_gate d f; "
         "ffn_up d f; ffn_down f d")
KEYS = {"context_length": "2048", "embedding_length": "d", "block_count": "1", "feed_forward_length": "f", "vocab_size": "v",
        "attention.head_count": "h", "attention.head_count_kv": "kv", "attention.key_length": "hd", "attention.value_length": "hd",
        "rope.freq_base": "10000.0", "rope.dimension_count": "hd", "attention.layer_norm_rms_epsilon": "1e-5", "target_hidden_size": "t"}
HEADS = {
    # With a table of its own, and fewer logits than the target has tokens.
    "eagle3": dict(target="llama", sizes=dict(d=40, h=5, kv=1, hd=16, f=52, n=200), keys={"target_layers": "[1, 0, 2]"},
                   head="fc 3*t d; output_norm d; output d n; token_embd d v"),
    # With the target's table and output head, and both norms.
    "eagle3-norms": dict(target="qwen3", sizes=dict(d=48, h=4, kv=2, hd=24, f=40, n=0),
                         keys={"target_layers": "[0, 1, 2]", "norm_before_residual": "True", "norm_before_fc": "True"},
                         head="enc.output_norm 3*t; fc 3*t d; output_norm d; rope_freqs hd//2"),
}


# An assistant of Gemma 4: e the model's width, w the size of heads in layers with a window. It reads no layers, but attends to the keys of the
# model's last ones.
ASSISTANT = {
    "target": "gemma4", "sizes": dict(d=28, h=4, kv=2, hd=32, w=16, f=36, n=0),
    "keys": {"block_count": "3", "nextn_predict_layers": "3", "embedding_length_out": "t", "attention.key_length_swa": "w",
             "attention.value_length_swa": "w", "attention.sliding_window": "9", "attention.sliding_window_pattern": "[1, 0, 1]",
             "attention.layer_norm_rms_epsilon": "eps", "rope.dimension_count_swa": "w", "rope.freq_base_swa": "5000.0"},
    "head": "token_embd d v; output_norm d; nextn.pre_projection 2*t d; nextn.post_projection d t; rope_freqs hd//2",
    "layer": "attn_norm d; attn_q d h*{0}; attn_q_norm {0}; attn_output h*{0} d; post_attention_norm d; ffn_norm d; ffn_gate d f; ffn_up d f; "
             "ffn_down f d; post_ffw_norm d; layer_output_scale 1",
    "heads": ["w", "hd", "w"], "gelu_by_table": True}  # in half precision, as the target's
HEADS["gemma4-assistant"] = ASSISTANT



# Heads that guess a block in one step: r the number of layers that they read, b the rows of a block. Their width is the target's.
BLOCK = {"target_hidden_size": "t", "block_size": "b", "attention.layer_norm_rms_epsilon": "1e-5"}
HEADS["dflash"] = {  # with tables of its own, fewer logits, and a window
    "target": "llama", "sizes": dict(d="t", h=5, kv=1, hd=16, f=52, n=200, r=3, b=7),
    "keys": {**BLOCK, "block_count": "2", "target_layers": "[1, 0, 2]", "attention.sliding_window": "9",
             "attention.sliding_window_pattern": "[1, 0]"},
    "head": "fc r*t d; enc.output_norm d; output_norm d; output d n; token_embd d v",
    "layer": "attn_norm d; attn_q d h*hd; attn_k d kv*hd; attn_v d kv*hd; attn_q_norm hd; attn_k_norm hd; attn_sinks h; attn_output h*hd d; "
             "ffn_norm d; ffn_gate d f; ffn_up d f; ffn_down f d"}
HEADS["dflash-borrowing"] = {  # with the target's table and output head, values from the keys, and all that is optional
    "target": "qwen3", "sizes": dict(d="t", h=4, kv=2, hd=24, f=40, n=0, r=2, b=5),
    "keys": {**BLOCK, "block_count": "2", "target_layers": "[0, 2]", "hidden_activation": "'gelu_pytorch_tanh'", "embedding_scale": "1.75",
             "attention.scale": "0.25"},
    "gelu_by_table": True,
    "head": "fc r*t d; enc.output_norm d; output_norm d; rope_freqs hd//2",
    "layer": "attn_norm d; attn_q d h*hd; attn_k d kv*hd; attn_q_norm hd; attn_k_norm hd; attn_output h*hd d; post_attention_norm d; "
             "ffn_norm d; ffn_gate d f; ffn_up d f; ffn_down f d; post_ffw_norm d; layer_output_scale 1"}
HEADS["dflash-causal"] = {  # causal attention inside a block, and a block longer than one draft
    "target": "llama", "sizes": dict(d="t", h=3, kv=3, hd=16, f=36, n=0, r=1, b=20),
    "keys": {**BLOCK, "block_count": "1", "target_layers": "[2]", "attention.causal": "True"},
    "head": "fc r*t d; enc.output_norm d; output_norm d; token_embd d v", "layer": HEADS["dflash"]["layer"].replace("attn_sinks h; ", "")}
# With a Markov head: q its columns. The first row gives a guess, or does not.
MARKOV = "; markov_w1 q v; markov_w2 q n"
HEADS["dspark"] = {
    **HEADS["dflash"], "sizes": {**HEADS["dflash"]["sizes"], "q": 6}, "keys": {**HEADS["dflash"]["keys"], "sample_from_anchor": "True"},
    "head": HEADS["dflash"]["head"] + MARKOV + "; conf_proj d+q 1; conf_proj: 1", "spreads": {"markov_w1.weight": 1.5, "markov_w2.weight": 0.5}}
HEADS["dspark-masks"] = {
    **HEADS["dflash-causal"], "sizes": {**HEADS["dflash-causal"]["sizes"], "q": 4, "b": 6},
    "keys": {**BLOCK, "block_count": "1", "target_layers": "[2]", "sample_from_anchor": "False"},
    "head": HEADS["dflash-causal"]["head"] + MARKOV.replace(" n", " v"), "spreads": {"markov_w1.weight": 1.5, "markov_w2.weight": 0.5}}
MASK = 4  # its token


def layers_of(head, sizes):
    for i, size in enumerate(head.get("heads", [None] * int({**KEYS, **head["keys"]}["block_count"]))):
        yield from logits.tensors_of(head.get("layer", LAYER).format(size), f"blk.{i}.", sizes, i)


def described(keys, tensors, spreads={}):
    """Of a tensor in `spreads`: numbers around 0, with this spread."""
    ranges = {n: (0, spreads[n]) if n in spreads else plain_weights.range_of(n, d) for n, d in tensors}
    return {"metadata": keys, "tensors": [[n, d, *ranges[n]] for n, d in tensors]}


def write(path, description, tokens):
    metadata = {**logits.vocabulary_of_tok512(), **{key: logits.entry_of(value) for key, value in description["metadata"].items()}}
    tensors = [(n, d, 0, plain_weights.values(n, d, middle, spread)) for n, d, middle, spread in description["tensors"]]
    if tokens:
        tensors.append(("d2t", [len(tokens)], I64, struct.pack(f"<{len(tokens)}q", *tokens)))
    gguf_file.write(path, metadata, tensors)


def made(name, peer, folder):
    head = HEADS[name]
    arch = name if head is ASSISTANT else "dflash" if "b" in head["sizes"] else name.split("-")[0]
    of_target, target_keys, target_tensors = logits.contents(head["target"], 0)
    sizes = {**head["sizes"], "t": of_target["d"], "v": of_target["v"], "eps": target_keys[f"{head['target']}.attention.layer_norm_rms_epsilon"]}
    greedy = GREEDY
    if "b" in sizes:
        sizes["d"] = sizes["t"]
        from_first = head["keys"].get("sample_from_anchor") == "True"
        greedy = min(sizes["b"], MOST_DRAFTS) if from_first else min(sizes["b"] - 1, MOST_DRAFTS)
    keys = {"general.architecture": arch, "general.name": "oracle",
            **{f"{arch}.{key}": eval(value, dict(sizes), {}) for key, value in {**KEYS, **head["keys"]}.items()}}
    if "b" in sizes:
        keys["tokenizer.ggml.mask_token_id"] = MASK
    tensors = [*logits.tensors_of(head["head"], "", sizes, 0), *layers_of(head, sizes)]
    rng = random.Random(name)
    named = sorted(rng.sample(range(sizes["v"]), sizes["n"]))
    golden = {"reference_engine": f"llama.cpp of node-llama-cpp {install.VERSION}", "target": described(target_keys, target_tensors),
              "head": described(keys, tensors, head.get("spreads", {})), "named": named}
    files = {part: os.path.join(folder, f"{name}-{part}.gguf") for part in ("target", "head")}
    write(files["target"], golden["target"], [])
    write(files["head"], golden["head"], named)
    for _ in range(50):
        tokens = [1] + [rng.randrange(3, sizes["v"]) for _ in range(TOKENS - 1)]
        answer = drafts(peer, files, tokens, greedy)
        width, = struct.unpack_from("<i", answer)
        steps = list(struct.iter_unpack("<if", answer[4 + 4 * width:]))
        if min(margin for _, margin in steps) >= logits.LEAST_MARGIN:
            break
    else:
        raise install.Problem(f"{name}: of no text are the drafts far from the next best ones")
    numbers = array.array("f")
    numbers.frombytes(answer[4:4 + 4 * width])
    if head.get("gelu_by_table"):
        golden["gelu_by_table"] = True
    if named:
        numbers = array.array("f", [numbers[token] for token in named])
    golden.update(tokens=tokens, logits=base64.b64encode(numbers.tobytes()).decode(), drafts=[token for token, _ in steps],
                  margin=min(margin for _, margin in steps))
    return golden


def drafts(peer, files, tokens, greedy):
    """See drafted() in peer.cpp."""
    done = subprocess.run(
        [install.program(peer, os.path.join(logits.HERE, "peer.cpp")), peer.all_libraries, "drafts", files["head"], str(logits.CONTEXT),
         str(greedy), files["target"]],
        input=struct.pack(f"<{len(tokens) + 1}i", len(tokens), *tokens), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": peer.all_libraries})
    if done.returncode != 0:
        raise install.Problem((done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heads", nargs="*", choices=[[], *HEADS], help="heads; all when none is given")
    parser.add_argument("--work", default=os.path.join(logits.ROOT, "build", "compare"), help="where the peer is installed")
    arguments = parser.parse_args()
    peer = install.install(arguments.work, print)
    out = os.path.join(logits.ROOT, "tests", "data", "peer", "draft_heads")
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for name in arguments.heads or HEADS:
            path = os.path.join(out, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(made(name, peer, folder), file, separators=(",", ":"))
                file.write("\n")
            print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    try:
        main()
    except install.Problem as problem:
        sys.exit(f"oracle: {problem}")
