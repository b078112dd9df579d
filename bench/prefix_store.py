#!/usr/bin/env python3
"""Measures the savings of the prefix store: a conversation grows turn by turn, and the server restarts before each turn. Then measures its cost:
the speed of prompts with an empty store and without one, in turns.

Usage: bench/prefix_store.py MODEL [--program build/release/gimbal] [--turns 40] [--tokens 30000] [--answer 16] [--rounds 5] [--workers cpu] [-- OPTIONS OF GIMBAL]
Prints JSON:
  recomputed       tokens of prompts that were computed beyond the new ones, by turn: the most, and all    (issue: less than a page, 64, a turn)
  first_token_ms   of each turn: from the request to its first token, less the time of the steps that computed the prompt; median, most, last
                                                                                                           (issue: below 100)
  prompt_speed     speed of prompts with an empty store / without, median of rounds                        (issue: at least 0.99)
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("model")
parser.add_argument("--program", default="build/release/gimbal")
parser.add_argument("--turns", type=int, default=40)
parser.add_argument("--tokens", type=int, default=30000, help="of the last turn's prompt")
parser.add_argument("--answer", type=int, default=16, help="tokens of each answer")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--workers", default="cpu", help="of the server; none: it computes itself")
parser.add_argument("options", nargs="*", help="of gimbal, behind --")
o = parser.parse_args()
chance = random.Random(1)


def some(n):
    return [chance.randrange(300, 400) for _ in range(n)]


def turn(prompt, folder):
    """One request to a new server: its answer's tokens, timings, and counters of the store."""
    server = subprocess.Popen([o.program, "serve", o.model, "--port", "0", "--json", "--workers", o.workers, "--parallel", "1", "--quiet", "--prefix-store",
                               folder, "--ctx", str(o.tokens + 256), *o.options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = json.loads(server.stdout.readline())["url"]
        body = {"prompt": prompt, "n_predict": o.answer, "temperature": 0, "ignore_eos": True, "return_tokens": True, "stream": True}
        request = urllib.request.Request(url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        begun, first, tokens, timings = time.monotonic(), 0, [], {}
        with urllib.request.urlopen(request) as reply:
            for line in reply:
                if not line.startswith(b"data: {"):
                    continue
                first = first or time.monotonic() - begun
                event = json.loads(line[6:])
                tokens += event.get("tokens", [])
                timings = event.get("timings", timings)
        with urllib.request.urlopen(url + "/metrics") as reply:
            lines = [line.split() for line in reply.read().decode().splitlines() if line.startswith("gimbal_prefix_store")]
        return tokens, timings, first, {name: float(value) for name, value in lines}
    finally:
        server.terminate()
        server.wait()


def prompt_seconds(tokens, *more):
    done = subprocess.run([o.program, "run", o.model, "--tokens", ",".join(map(str, tokens)), "-n", "1", "--json", "--quiet", "--ctx", "1024", *more,
                           *o.options], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("gimbal run failed")
    return json.loads(done.stdout)["timing"]["prompt_seconds"]


turns, conversation, speed = [], [], 0
with tempfile.TemporaryDirectory() as parent:
    folder = os.path.join(parent, "store")
    for _ in range(o.turns):
        fresh = o.tokens // o.turns - (o.answer if conversation else 0)
        # The last token of an answer was not computed yet.
        new = fresh + (1 if conversation else 0)
        conversation += some(fresh)
        answer, timings, first, counters = turn(conversation, folder)
        computed, seconds = timings["prompt_n"], timings["prompt_ms"] / 1e3
        speed = speed or computed / seconds
        answer = answer[-o.answer:]
        turns.append({"prompt": len(conversation), "new": new, "computed": computed, "beyond": computed - new,
                      "first_token_ms": round(first * 1e3, 1), "over_ms": round((first - seconds) * 1e3, 1),
                      "stored": counters["gimbal_prefix_store_tokens_total"], "read_bytes": counters["gimbal_prefix_store_read_bytes_total"]})
        conversation += answer
    rounds = []
    for i in range(o.rounds):
        tokens, seconds = some(768), {}
        for stored in (True, False) if i % 2 else (False, True):
            shutil.rmtree(folder, ignore_errors=True)
            seconds[stored] = prompt_seconds(tokens, *(["--prefix-store", folder] if stored else []))
        rounds.append(seconds[False] / seconds[True])
later = turns[1:]
print(json.dumps({
    "model": os.path.basename(o.model), "turns": o.turns, "tokens": o.tokens, "answer": o.answer, "workers": o.workers, "options": o.options, "load": os.getloadavg()[0],
    "cores": len(os.sched_getaffinity(0)),
    "recomputed": {"most": max(t["beyond"] for t in later), "all": sum(t["beyond"] for t in later), "without_store": sum(t["prompt"] for t in later)},
    "first_token_ms": {"median": statistics.median(t["over_ms"] for t in later), "most": max(t["over_ms"] for t in later),
                       "last": later[-1]["over_ms"], "whole_last": later[-1]["first_token_ms"], "read_bytes_last": later[-1]["read_bytes"]},
    "new_tokens_per_second": round(speed, 1),
    "prompt_speed": round(statistics.median(rounds), 4), "rounds": o.rounds,
}))
