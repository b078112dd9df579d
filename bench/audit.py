#!/usr/bin/env python3
"""What certificates and audits cost: the same answer is written without and with a certificate, and audited; a prompt of the same length gives the
speed to compare with. Rounds alternate, and all ratios are medians of the rounds' own, so a busy machine changes all parts of a round alike.

Usage: bench/audit.py MODEL [--program build/release/gimbal] [--prompt 512] [--answer 512] [--rounds 5] [-- OPTIONS OF GIMBAL]
Prints JSON: tokens per second of each part, and the ratios
  audit_of_writing   seconds of the audit / seconds of the answer        (issue: at most 0.1)
  audit_of_prompt    tokens per second of the audit / of a prompt        (issue: at least 0.9)
  certificate_costs  seconds of the answer with a certificate / without  (issue: below 1.01)
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("model")
parser.add_argument("--program", default="build/release/gimbal")
parser.add_argument("--prompt", type=int, default=512)
parser.add_argument("--answer", type=int, default=512)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("options", nargs="*", help="of gimbal, behind --")
o = parser.parse_args()


def ran(*words):
    done = subprocess.run([o.program, *words, "--json", "--quiet", *o.options], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"gimbal {words[0]} failed")
    return json.loads(done.stdout)


def write(n_prompt, n, *more):
    """Seconds of the prompt and of the answer."""
    chance = random.Random(1)
    ids = ",".join(str(chance.randrange(300, 400)) for _ in range(n_prompt))
    return ran("run", o.model, "--tokens", ids, "-n", str(n), "--seed", "1", "--ignore-eos", "--ctx", str(o.prompt + o.answer + 64), *more)["timing"]


rounds = []
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "answer.json")
    for _ in range(o.rounds):
        plain = write(o.prompt, o.answer)
        certified = write(o.prompt, o.answer, "--certificate", file)
        audit = ran("audit", file, "-m", o.model)
        prompt = write(o.prompt + o.answer, 1)
        if audit["verdict"] != "same" or audit["rows"] != o.answer:
            sys.exit(f"the audit says: {audit}")
        rounds.append({"writing": plain["generate_seconds"], "certified": certified["generate_seconds"], "audit": audit["compute_seconds"],
                       "prompt": prompt["prompt_seconds"]})
all_tokens = o.prompt + o.answer
median = statistics.median
print(json.dumps({
    "model": os.path.basename(o.model), "prompt": o.prompt, "answer": o.answer, "options": o.options, "load": os.getloadavg()[0],
    "cores": len(os.sched_getaffinity(0)), "rounds": o.rounds,
    "tokens_per_second": {"writing": round(o.answer / median(r["writing"] for r in rounds), 1),
                          "audit": round(all_tokens / median(r["audit"] for r in rounds), 1),
                          "prompt": round(all_tokens / median(r["prompt"] for r in rounds), 1)},
    "audit_of_writing": round(median(r["audit"] / r["writing"] for r in rounds), 3),
    "audit_of_prompt": round(median(r["prompt"] / r["audit"] for r in rounds), 3),
    "certificate_costs": round(median(r["certified"] / r["writing"] for r in rounds), 4),
}))
