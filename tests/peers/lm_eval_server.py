#!/usr/bin/env python3
"""The harness lm_eval over the server: lm_eval_server.py GIMBAL MODEL.gguf

Its client `local-completions` sends token ids with `echo` and `logprobs`, as docs/serving.md says. The task is that of
tests/python/lm_eval_task.py. Each log-likelihood is compared with the sum over `gimbal logits` in double. The tokenizer that
the harness needs is made from the model file (byte-level BPE of SmolLM2), and must give the server's ids. Needs lm_eval[api],
transformers and numpy (60 packages).
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import lm_eval
import numpy as np
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from client import Server
from suites import ROOT

sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "tests/python")]
import gguf_file  # noqa: E402
from lm_eval_task import QUESTIONS, written  # noqa: E402


def tokenizer_of(path, folder):
    """The file's tokenizer in the form of Hugging Face."""
    metadata = gguf_file.read_metadata(path)
    tokens, merges = ([text.decode() for text in gguf_file.strings(metadata["tokenizer.ggml." + name])] for name in ("tokens", "merges"))
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", bos_token="<|im_start|>").save_pretrained(folder)
    return made


def by_logits(gimbal, model, context, whole):
    """The log-likelihood of what stands behind the first ids, from all logits, in double."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([gimbal, "logits", model, "--tokens", ",".join(map(str, whole)), "--positions", "all", "-o", file.name, "--quiet"], check=True)
        rows = np.fromfile(file.name, "<f4").reshape(len(whole), -1).astype(np.float64)
    rows -= rows.max(-1, keepdims=True)
    logprobs = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
    return sum(logprobs[i - 1, whole[i]] for i in range(context, len(whole)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    gimbal, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, Server(gimbal, model=model) as server:
        tokenizer = tokenizer_of(model, folder)
        written(folder)
        want = []
        for query, choices, _ in QUESTIONS:
            for choice in choices:
                ids = tokenizer.encode(query + choice).ids
                served = json.loads(server.ask("/tokenize", {"content": query + choice})[1])["tokens"]
                if ids != served:
                    sys.exit(f"the tokenizers differ in {query + choice!r}: {ids}, server {served}")
                want.append(by_logits(gimbal, model, len(tokenizer.encode(query).ids), ids))
        found = lm_eval.simple_evaluate(
            model="local-completions", tasks=["ends_of_sentences"], task_manager=TaskManager(include_path=folder), log_samples=True, bootstrap_iters=0,
            model_args={"model": server.model, "base_url": f"http://127.0.0.1:{server.port}/v1/completions", "tokenizer": folder,
                        "tokenized_requests": True, "tokenizer_backend": "huggingface"})
    samples = sorted(found["samples"]["ends_of_sentences"], key=lambda s: s["doc_id"])
    scores = [float(answer[0]) for sample in samples for answer in sample["filtered_resps"]]
    apart = max(abs(a - b) for a, b in zip(scores, want))
    print(f"lm_eval {lm_eval.__version__}: accuracy {found['results']['ends_of_sentences']['acc,none']:.3f}; {len(scores)} log-likelihoods differ by at most "
          f"{apart:.1e} from the sums over the logits")
    return int(len(scores) != len(want) or apart > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
