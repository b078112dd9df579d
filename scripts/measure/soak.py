#!/usr/bin/env python3
"""Many streams for a while on the built-in model: some readers are slow, some leave, and a worker is killed now and then. Each stream is compared,
token by token with its probability, with what the same request gets alone.

Usage: scripts/measure/soak.py [--program build/release/gimbal] [--streams 64] [--seconds 300] [--kill-every 20] [--seed 1]
Prints JSON: how many streams there were, tokens that were wrong, lost or repeated, times to the first token and between tokens (of readers who are
not slow), and resident memory by time. Exits with 1 where a token was not right, a stream failed, no worker was killed, or, from 60 seconds on,
memory grew.
"""
import argparse
import asyncio
import difflib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from send_signal import send_signal  # noqa: E402

KINDS = ["whole"] * 7 + ["slow"] * 2 + ["leaves"]
LATE = 60  # seconds without an event: the stream hangs


class Stream:
    """One request's way: what came of it, and when."""

    def __init__(self):
        self.tokens, self.times, self.ended, self.failed = [], [], False, ""

    def take(self, event, at):
        if event == "[DONE]":
            self.ended = True
            return
        said = json.loads(event)
        if "error" in said:
            self.failed = said["error"]["message"]
        for choice in said.get("choices", []):
            if more := choice.get("logprobs"):
                self.tokens += zip(more["tokens"], more["token_logprobs"])
                self.times += [at] * len(more["tokens"])


async def ask(port, body, kind="whole", chance=random.Random(0)):
    """Reads one stream as a reader of this kind does. `begun`, in front of its times, is when it asked."""
    stream = Stream()
    text = json.dumps(body).encode()
    stream.begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096 if kind == "slow" else 1 << 16)
    try:
        writer.write(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        leaves_after = chance.randrange(1, body["max_tokens"]) if kind == "leaves" else None
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LATE)
        if b" 200 " not in head.split(b"\r\n")[0]:
            stream.failed = head.decode(errors="replace").split("\r\n")[0] + " " + (await reader.read(500)).decode(errors="replace")
            return stream
        rest = b""
        while more := await asyncio.wait_for(reader.read(300 if kind == "slow" else 65536), LATE):
            rest += more
            *events, rest = rest.split(b"\n\n")
            for event in events:
                stream.take(event.removeprefix(b"data: ").decode(), time.monotonic())
            if leaves_after is not None and len(stream.tokens) >= leaves_after:
                return stream
            if kind == "slow":
                await asyncio.sleep(0.02)
        if not stream.ended and not stream.failed:
            stream.failed = "the stream was cut"
    except (asyncio.TimeoutError, OSError) as problem:
        stream.failed = f"{type(problem).__name__}: {problem}"
    finally:
        writer.close()
    return stream


def compare(stream, alone, whole):
    """Tokens that were wrong, lost, repeated. One who left is compared as far as it came."""
    expected = alone.tokens if whole else alone.tokens[:len(stream.tokens)]
    if stream.tokens == expected:
        return 0, 0, 0
    wrong = lost = repeated = 0
    for what, a, b, c, d in difflib.SequenceMatcher(None, expected, stream.tokens, autojunk=False).get_opcodes():
        both = min(b - a, d - c)
        wrong += both if what == "replace" else 0
        lost += b - a - both if what in ("replace", "delete") else 0
        repeated += d - c - both if what in ("replace", "insert") else 0
    return wrong, lost, repeated


def self_test():
    alone, got = Stream(), Stream()
    alone.tokens = [(t, -0.5) for t in "abcdefgh"]
    for text, whole, expected in [("abcdefgh", True, (0, 0, 0)), ("abc", False, (0, 0, 0)), ("abc", True, (0, 5, 0)), ("abcefgh", True, (0, 1, 0)),
                                  ("abccdefgh", True, (0, 0, 1)), ("abXdefgh", True, (1, 0, 0)), ("abX", False, (1, 0, 0))]:
        got.tokens = [(t, -0.5) for t in text]
        assert compare(got, alone, whole) == expected, (text, compare(got, alone, whole))
    got.tokens = [*alone.tokens[:-1], ("h", -0.25)]
    assert compare(got, alone, True) == (1, 0, 0), "another probability is another token"
    assert not flat([10.0] * 4 + [100.0 + 10 * i for i in range(40)]) and flat([10.0] * 4 + [100.0, 104.0] * 20)
    print("self-test passed")


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(word) for word in file.read().split()]
    return found


def megabytes(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")), 0.0)
    except OSError:
        return 0.0


def flat(samples):
    """Whether the last third takes no more than the one before it, but for 5 % and 2 MB."""
    third = len(samples) // 3
    before, last = max(samples[third:2 * third]), max(samples[2 * third:])
    return last <= before * 1.05 + 2


def percentiles(seconds):
    ordered = sorted(seconds)
    at = lambda share: round(1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else None
    return {"p50_ms": at(0.5), "p99_ms": at(0.99), "samples": len(ordered)}


async def soak(options, server, port, model):
    chance = random.Random(options.seed)
    bodies = [{"model": model, "prompt": f"{begin} {i}", "seed": i, "temperature": 0.9, "max_tokens": 20 + 5 * (i % 30), "logprobs": 1, "stream": True}
              for i, begin in enumerate(["Once upon a time", "The dog", "Lily and Tom went to the park. They", "A"] * 16)]
    alone = [await ask(port, body) for body in bodies]
    if problems := [a.failed for a in alone if a.failed]:
        sys.exit(f"a request alone failed: {problems[0]}")
    begin = time.monotonic()
    count = dict.fromkeys(["streams", "whole", "slow", "leaves", "tokens", "wrong", "lost", "repeated", "failed", "killed"], 0)
    first, between, failures, memory = [], [], [], []

    async def client():
        while time.monotonic() - begin < options.seconds:
            which, kind = chance.randrange(len(bodies)), chance.choice(KINDS)
            got = await ask(port, bodies[which], kind, chance)
            wrong, lost, repeated = compare(got, alone[which], got.ended)
            count["streams"] += 1
            count[kind] += 1
            count["tokens"] += len(got.tokens)
            count["wrong"], count["lost"], count["repeated"] = count["wrong"] + wrong, count["lost"] + lost, count["repeated"] + repeated
            if got.failed:
                count["failed"] += 1
                failures.append(got.failed)
            if kind != "slow" and got.times:
                first.append(got.times[0] - got.begun)
                between.extend(b - a for a, b in zip(got.times, got.times[1:]))

    async def killer():
        while True:
            await asyncio.sleep(options.kill_every)
            for pid in children(server.pid)[:1]:
                send_signal(pid, signal.SIGKILL)
                count["killed"] += 1

    async def watcher():
        while True:
            memory.append((time.monotonic() - begin, megabytes(server.pid), sum(megabytes(pid) for pid in children(server.pid))))
            await asyncio.sleep(max(0.5, options.seconds / 60))

    others = [asyncio.create_task(killer()), asyncio.create_task(watcher())]
    await asyncio.gather(*(client() for _ in range(options.streams)))
    for task in others:
        task.cancel()
    seconds = time.monotonic() - begin
    # A worker that was just replaced has taken little yet: of the workers, what each had at most until the next kill.
    lives = [max((w for at, _, w in memory if i * options.kill_every <= at < (i + 1) * options.kill_every), default=0.0)
             for i in range(int(seconds // options.kill_every))]
    grows = options.seconds >= 60 and not (flat([front for _, front, _ in memory]) and (len(lives) < 6 or flat(lives)))
    print(json.dumps({
        "seconds": round(seconds, 1), "load": os.getloadavg()[0], "cores": len(os.sched_getaffinity(0)), "count": count,
        "tokens_per_second": round(count["tokens"] / seconds), "first_token": percentiles(first), "between_tokens": percentiles(between),
        "front_mb": [round(front, 1) for _, front, _ in memory], "worker_mb": [round(worker, 1) for _, _, worker in memory],
        "memory": "not judged below 60 seconds" if options.seconds < 60 else "grows" if grows else "flat", "failures": failures[:5]}))
    return not (count["wrong"] or count["lost"] or count["repeated"] or count["failed"] or grows) and count["killed"] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/gimbal")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--kill-every", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    home = tempfile.TemporaryDirectory()
    server = subprocess.Popen([options.program, "serve", "--port", "0", "--json", "--quiet"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "XDG_CACHE_HOME": home.name})
    try:
        start = json.loads(server.stdout.readline())
        good = asyncio.run(soak(options, server, int(start["url"].rsplit(":", 1)[1]), start["models"][0]))
    finally:
        server.terminate()
        ended = server.wait(timeout=60)
    sys.exit(0 if good and ended == 0 else 1)


if __name__ == "__main__":
    main()
