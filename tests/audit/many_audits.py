#!/usr/bin/env python3
"""Writes many answers with certificates and audits them on other machines; then forges certificates, and each forgery must be found with the right
word. Every fourth answer is replayed, and has a branch that is audited like an answer.

Usage: tests/audit/many_audits.py [PROGRAM] [--answers 48] [--forgeries 48] [--seed 1]   (with GIMBAL_FEWER_CASES: half of them)
Answers come from servers with several models, caches, threads, drafts, constraints and batches; their workers are killed while they write. Some come
from the command line, and are signed. Auditors: every instruction set of this CPU, other numbers of threads, drawn positions, and the emulator or
software GPU of the program. One false alarm, or one forgery that is not found, is a failure.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(SOURCE, "scripts")]
from forgeries import FORGERIES, forged  # noqa: E402
from send_signal import send_signal  # noqa: E402

STORIES = os.path.join(SOURCE, "tests", "data", "stories", "stories260K-{}.gguf")
PROMPTS = ["Once upon a time", "The dog", "Lily and Tom went to the park. They", "One day, a little bird saw a big", "There was a boy named Max. He liked"]
# Auditors that get every tenth answer: without FMA instructions, each fused multiply-add is a function.
SLOW = ["variant baseline"]
# Model, share of the answers, options of the server, and whether its workers are killed.
WRITERS = [
    ("f32", 0.35, ["-t", "1", "--workers", "cpu,cpu"], True),
    ("q8_0", 0.30, ["-t", "3", "--workers", "none", "--draft", "ngram"], False),
    ("q4_0", 0.25, ["-t", "2", "--draft", "ngram", "--kv-type", "bf16"], True),
]


def request_of(i, r):
    """A request to /v1/completions with the settings of the i-th answer."""
    body = {"prompt": f"{r.choice(PROMPTS)} {r.choice(['', 'and', 'very', 'the'])}", "seed": i, "max_tokens": r.randrange(4, 140),
            "temperature": r.choice([0, 0.7, 0.9, 1.2]), "stream": r.random() < 0.3}
    more = [{}, {}, {"top_k": 40}, {"top_p": 0.9, "min_p": 0.02}, {"repeat_penalty": 1.3}, {"presence_penalty": 0.5, "frequency_penalty": 0.2},
            {"stop": ["."]}, {"stop": ["the", "\n"]}, {"logprobs": 2}, {"n": 2}, {"ignore_eos": True}, {"logit_bias": {"300": -100}},
            {"grammar": 'root ::= " " [a-z]+ (" " [a-z]+)* "."'}, {"response_format": {"type": "json_object"}}]
    body.update(more[i % len(more)])
    return body


class Killer:
    """Kills a worker of a server each time that the server has written a few hundred tokens more. The time does not decide: a server whose workers
    end before they are ready gives up, as it should, and a slow machine loads for long."""

    def __init__(self, server, url, chance):
        self.server, self.url, self.chance, self.killed, self.ends = server, url, chance, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def workers(self):
        found = []
        for task in os.listdir(f"/proc/{self.server.pid}/task"):
            try:
                with open(f"/proc/{self.server.pid}/task/{task}/children") as file:
                    found += [int(word) for word in file.read().split()]
            except OSError:
                pass
        return found

    def tokens(self):
        with urllib.request.urlopen(self.url + "/metrics", timeout=60) as answer:
            return int(float(re.search(r"^gimbal_tokens_generated_total (\S+)", answer.read().decode(), re.M)[1]))

    def run(self):
        due = self.chance.randrange(50, 300)
        while not self.ends.wait(0.01):
            if (written := self.tokens()) < due:
                continue
            due = written + self.chance.randrange(100, 400)
            if workers := self.workers():
                send_signal(self.chance.choice(workers), signal.SIGKILL)
                self.killed += 1

    def end(self):
        self.ends.set()
        self.thread.join()
        return self.killed


def certificates_of_server(program, model, count, options, kills, chance, home):
    """The certificates of `count` answers, and the number of killed workers."""
    server = subprocess.Popen([program, "serve", model, "--port", "0", "--json", "--quiet", *options], stdout=subprocess.PIPE, text=True, env=home)
    try:
        url = json.loads(server.stdout.readline())["url"]
        killer = Killer(server, url, random.Random(chance.random())) if kills else None

        def ask(job):
            i, body = job
            asked = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                           {"Content-Type": "application/json", "X-Gimbal-Certificate": "true"})
            for _ in range(5):
                try:
                    with urllib.request.urlopen(asked, timeout=300) as answer:
                        answer.read()
                        receipt = answer.headers["x-gimbal-receipt"]
                    break
                except urllib.error.HTTPError as error:
                    # The server gives an answer up if it was alone in each of several workers that were killed.
                    if not (kills and error.code == 500 and "the worker process was lost" in error.read().decode()):
                        raise
            else:
                sys.exit("the server gave one answer up five times")
            with urllib.request.urlopen(f"{url}/v1/receipts/{receipt}", timeout=60) as answer:
                return json.load(answer)["certificates"]

        jobs = [(i, request_of(i, chance)) for i in range(count)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            all = [c for some in pool.map(ask, jobs) for c in some][:count]
        return all, killer.end() if killer else 0
    finally:
        if kills and "killer" in locals():
            killer.end()
        server.terminate()
        server.wait(timeout=60)


def certificates_of_runs(program, model, count, chance, folder, home):
    """Signed, if openssl makes a key."""
    key = os.path.join(folder, "key.pem")
    signs = shutil.which("openssl") and subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], capture_output=True).returncode == 0
    all = []
    for i in range(count):
        path = os.path.join(folder, "run.json")
        more = [["--draft", "ngram"], ["--mirostat", "2"], ["--adaptive-target", "0.3"], ["-t", "3"], ["--cpu-variant", "baseline"], ["--xtc-probability", "0.5"]]
        subprocess.run([program, "run", model, "-p", chance.choice(PROMPTS), "-n", str(chance.randrange(40, 90)), "--seed", str(i), "--certificate", path,
                        "--raw", "--quiet", *more[i % len(more)], *(["--certificate-key", key] if signs else [])], check=True, capture_output=True, env=home)
        with open(path) as file:
            all.append(json.load(file))
    return all


def branches(program, answers, files, chance, folder, home):
    """Of every fourth answer: a branch behind some of its tokens, with another seed. Each must keep these tokens."""
    all, wrong = [], []
    for i in range(0, len(answers), 4):
        kind, c = answers[i]
        path = os.path.join(folder, f"branch-{i}.json")
        kept = chance.randrange(len(c["answer"]["tokens"]) + 1)
        ran = subprocess.run([program, "replay", files[i], STORIES.format(kind), "--until", str(kept), "--seed", str(1000 + i), "-t", "2", "-o", path,
                              "--json", "--quiet"], capture_output=True, text=True, env=home)
        told = json.loads(ran.stdout) if ran.returncode == 0 else {"error": ran.stdout + ran.stderr}
        if told.get("verdict") != "same":
            wrong.append({"replay": files[i], "kept": kept, "result": told})
            continue
        with open(path) as file:
            b = json.load(file)
        if b["answer"]["tokens"][:kept] != c["answer"]["tokens"][:kept] or b["origin"]["kept"] != kept:
            wrong.append({"branch": files[i], "kept": kept, "answer": b["answer"], "origin": b["origin"]})
        all.append((kind, b))
    return all, wrong


def auditors(program, home):
    """Options of machines that are not the writers', by name."""
    told = json.loads(subprocess.run([program, "backends", "--json"], check=True, capture_output=True, env=home).stdout)
    machines = {"2 threads": ["-t", "2"], "5 threads": ["-t", "5"], "drawn positions": ["-t", "1", "--sample", "5"]}
    for v in told["automatic"]["variants"]:
        if v["available"]:
            machines[f"variant {v['name']}"] = ["-t", "1", "--cpu-variant", v["name"]]
    for b in told["backends"]:
        if b["available"] and b["backend"] != "cpu":
            machines[f"backend {b['backend']}"] = ["--backend", b["backend"], "--allow-software-devices", "--strict"]
    return machines


def audit(program, files, options, home):
    """The results of `gimbal audit`, by file."""
    ran = subprocess.run([program, "audit", *files, "--json", "--quiet", *options], capture_output=True, text=True, env=home)
    if not ran.stdout.strip():
        if len(files) == 1:
            return [{"error": ran.stderr}]
        sys.exit(f"gimbal audit failed: {ran.stderr}")
    told = json.loads(ran.stdout)
    return told if isinstance(told, list) else [told]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", default="build/release/gimbal")
    few = "GIMBAL_FEWER_CASES" in os.environ  # as in tests/support/golden.h
    parser.add_argument("--answers", type=int, default=24 if few else 48)
    parser.add_argument("--forgeries", type=int, default=24 if few else 48)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    chance = random.Random(o.seed)
    folder = tempfile.mkdtemp()
    home = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder}
    begin = time.monotonic()
    try:
        good = trial(o, chance, folder, home, begin)
    finally:
        shutil.rmtree(folder)
    sys.exit(0 if good else 1)


def trial(o, chance, folder, home, begin):
    answers = []  # (model, certificate)
    count = {"answers": 0, "rows": 0, "killed_workers": 0, "audits": 0, "false_alarms": 0, "forgeries": 0, "not_found": 0}
    problems = []
    for kind, share, options, kills in WRITERS:
        some, killed = certificates_of_server(o.program, STORIES.format(kind), max(1, round(share * o.answers)), options, kills, chance, home)
        answers += [(kind, c) for c in some]
        count["killed_workers"] += killed
    rest = max(2, o.answers - len(answers))
    answers += [("q8_0", c) for c in certificates_of_runs(o.program, STORIES.format("q8_0"), rest, chance, folder, home)]
    count["answers"], count["rows"] = len(answers), sum(len(c["logits"]["rows"]) // 8 for _, c in answers)
    files = []

    def store(some):
        for _, c in some:
            files.append(os.path.join(folder, f"{len(files)}.json"))
            with open(files[-1], "w") as file:
                json.dump(c, file)

    store(answers)
    branched, wrong = branches(o.program, answers, files, chance, folder, home)
    store(branched)
    originals, answers = answers, answers + branched
    count["branches"], count["wrong_branches"] = len(branched), len(wrong)
    problems += wrong

    machines = auditors(o.program, home)
    seconds, not_run = {}, {}
    for name, options in machines.items():
        for kind in sorted({k for k, _ in answers}):
            mine = [f for f, (k, _) in zip(files, answers) if k == kind]
            if name in SLOW:
                mine = mine[::10]
            start = time.monotonic()
            results = audit(o.program, mine, ["-m", STORIES.format(kind), *options], home)
            if name.startswith("backend ") and all("error" in r for r in results):
                not_run[name] = str(results[0]["error"])  # a device of this machine that cannot compute the model exactly
                continue
            seconds[name] = round(seconds.get(name, 0) + time.monotonic() - start, 1)
            for file, r in zip(mine, results):
                count["audits"] += 1
                if r.get("verdict") != "same":
                    count["false_alarms"] += 1
                    problems.append({"auditor": name, "result": r})

    # Forgeries, grouped by how they are audited.
    groups, kinds = {}, {}
    for i in range(o.forgeries):
        kind = FORGERIES[i % len(FORGERIES)]
        fitting = [(k, c) for k, c in originals if kind.fits(c)]
        if not fitting:
            continue
        model, c = chance.choice(fitting)
        if kind.name == "another quantization":
            model = "f16"
            c = json.loads(json.dumps(c))
            c["model"]["sha256"] = sha256_of(STORIES.format("f16"))
        text, place = forged(kind, c, chance)
        file = os.path.join(folder, f"forged-{i}.json")
        with open(file, "w") as out:
            out.write(text)
        groups.setdefault((model, tuple(kind.options)), []).append((file, kind, place))
    for (model, options), some in groups.items():
        for (file, kind, place), r in zip(some, audit(o.program, [f for f, _, _ in some], ["-m", STORIES.format(model), *options], home)):
            count["forgeries"] += 1
            right = r.get("subject") in kind.words if "verdict" in r else any(w in str(r.get("error", "")) for w in kind.words)
            if place is not None and r.get("subject") in ("token", "end", "logits"):
                right = right and r["position"] == place
            kinds.setdefault(kind.name, [0, 0])[0] += 1
            if not right or r.get("verdict", "differs") != "differs":
                count["not_found"] += 1
                kinds[kind.name][1] += 1
                problems.append({"forgery": kind.name, "place": place, "result": r})
    told = {**count, "kinds": {k: n for k, (n, _) in kinds.items()}, "auditors": seconds, "not_run": not_run, "seconds": round(time.monotonic() - begin),
            "problems": problems[:10]}
    print(json.dumps(told))
    enough = len(kinds) >= min(12, o.forgeries) and count["killed_workers"] > 0
    return not count["false_alarms"] and not count["not_found"] and not wrong and branched and enough


def sha256_of(path):
    import hashlib
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    main()
