#!/usr/bin/env python3
"""The harness lm_eval with a gimbal.Model: its log-likelihoods beside those that logits give in double, and those of the server's `echo`.

By hand, as lm_eval draws 60 packages from PyPI: lm_eval_judge.py [MODEL], with gimbal, numpy and lm_eval importable.
"""

import json
import os
import sys
import tempfile
import urllib.request

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import lm_eval
import numpy as np
from lm_eval.tasks import TaskManager

import gimbal as gb
from gimbal.lm_eval import GimbalLM
from lm_eval_task import QUESTIONS, written

MODEL = sys.argv[1] if len(sys.argv) > 1 else "default"


def run(model, folder, **options):
    found = lm_eval.simple_evaluate(model=model, tasks=["ends_of_sentences"], task_manager=TaskManager(include_path=folder), log_samples=True, bootstrap_iters=0,
                                    **options)
    samples = sorted(found["samples"]["ends_of_sentences"], key=lambda s: s["doc_id"])
    return found["results"]["ends_of_sentences"]["acc,none"], [float(r[0]) for s in samples for r in s["filtered_resps"]]


def by_logits(model):
    """The same sums from all logits, in double."""
    sums = []
    for query, choices, _ in QUESTIONS:
        begin = len(model.tokenizer.encode(query))
        for choice in choices:
            tokens = model.tokenizer.encode(query + choice)
            rows = np.asarray(model.logits(tokens, positions="all"), np.float64)
            rows -= rows.max(-1, keepdims=True)
            logprobs = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
            sums.append(sum(logprobs[i - 1, tokens[i]] for i in range(begin, len(tokens))))
    return sums


def by_server(url, name):
    """The same sums as the harness takes them from a server."""
    sums = []
    for query, choices, _ in QUESTIONS:
        for choice in choices:
            body = {"model": name, "prompt": query + choice, "max_tokens": 0, "echo": True, "logprobs": 1, "temperature": 0}
            request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                told = json.load(answer)["choices"][0]["logprobs"]
            sums.append(sum(p for p, at in zip(told["token_logprobs"], told["text_offset"]) if at >= len(query)))
    return sums


def main():
    with tempfile.TemporaryDirectory() as folder:
        written(folder)
        adapter = GimbalLM(MODEL, progress=False)
        accuracy, scores = run(adapter, folder)
        want = by_logits(gb.Model(MODEL, progress=False, logit_rows=64))
        with gb.serve(MODEL, parallel=4) as server:
            with urllib.request.urlopen(server.url + "/v1/models") as answer:
                served = by_server(server.url, json.load(answer)["data"][0]["id"])
    apart = max(abs(a - b) for a, b in zip(scores, want))
    served_apart = max(abs(a - b) for a, b in zip(scores, served))
    print(f"accuracy {accuracy:.3f}; {len(scores)} log-likelihoods differ by at most {apart:.1e} from the logits', "
          f"{served_apart:.1e} from the server's")
    return int(apart > 1e-3 or served_apart > 1e-3)


if __name__ == "__main__":
    sys.exit(main())
