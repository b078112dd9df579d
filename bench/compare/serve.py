#!/usr/bin/env python3
"""`gimbal serve` beside llama.cpp's server, on the same files: streams at once, each with a prompt of its own.

  serve.py a.gguf b.gguf                      1, 4 and 16 streams, 2 rounds; prints the table
  serve.py a.gguf --streams 16 --rounds 3     more of one cell
  serve.py a.gguf --requests 4                each stream continues with another request, four in all
  serve.py a.gguf --publish                   writes bench/results/serve.json, which docs/serving.md shows
  serve.py --render r.json                    the table anew from an earlier run

Both servers run all the time, one idle while the other is measured, in turn. What is compared is said in README.md.
"""
import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import compare  # noqa: E402
import install  # noqa: E402
import measure  # noqa: E402
import peer_server  # noqa: E402
import report  # noqa: E402
from install import Problem  # noqa: E402

PLACES = 16  # of the peer, which must be told how many streams there can be


def arguments(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*", metavar="MODEL")
    p.add_argument("--render", metavar="RESULTS", help="measure nothing")
    p.add_argument("-t", "--threads", type=int, default=2, metavar="N")
    p.add_argument("-p", "--prompt-tokens", type=int, default=128, metavar="N")
    p.add_argument("-n", "--generate-tokens", type=int, default=64, metavar="N", help="of each stream (default 64)")
    p.add_argument("--streams", default="1,4,16", metavar="LIST", help=f"at most {PLACES}")
    p.add_argument("--requests", type=int, default=1, metavar="N", help="of each stream, one after the other (default 1)")
    p.add_argument("--rounds", type=int, default=2, metavar="N")
    p.add_argument("--gimbal", default=os.path.join(compare.ROOT, "build", "release", "gimbal"), metavar="PROGRAM")
    p.add_argument("--work", default=os.path.join(compare.ROOT, "build", "compare"), metavar="FOLDER")
    p.add_argument("--results", metavar="FILE", help="where to write every run")
    p.add_argument("--publish", action="store_true", help="write bench/results/serve.json and the page that shows it")
    a = p.parse_args(argv)
    a.streams = [int(n) for n in a.streams.split(",")]
    if not a.files and not a.render:
        p.error("give model files, or --render")
    if not all(1 <= n <= PLACES for n in a.streams):
        p.error(f"--streams: from 1 to {PLACES}")
    return a


# ---- the servers

def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def processes(root):
    """A process and all below it."""
    found, more = [], [root]
    while more:
        pid = more.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    more += [int(child) for child in file.read().split()]
    return found


class Server:
    def __init__(self, name, command, environment, log, folder=None):
        self.name, self.port = name, free_port()
        self.log = open(log, "wb")
        self.process = subprocess.Popen([*command, "--port", str(self.port)], env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=folder)

    def wait_ready(self, path):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.1)
        raise Problem(f"{self.name} does not become ready; {self.log.name} says why")

    def cpu_seconds(self, front=False):
        """Of all its processes, or of the one that speaks HTTP."""
        ticks = 0
        for pid in [self.process.pid] if front else processes(self.process.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()


def servers(a, peer, path):
    own = Server("gimbal", [a.gimbal, "serve", path, "-t", str(a.threads), "--backend", "cpu", "--draft", "off"], measure.environment(), os.path.join(a.work, "serve-gimbal.log"))
    each = a.prompt_tokens + a.generate_tokens + 64
    other = Server("peer", [peer_server.program(peer, compare.say), "-m", os.path.abspath(path), "-t", str(a.threads), "-tb", str(a.threads), "--parallel", str(PLACES), "-c",
                            str(PLACES * each), "--host", "127.0.0.1"],
                   measure.environment(LD_LIBRARY_PATH=peer.all_libraries), os.path.join(a.work, "serve-peer.log"),
                   peer.all_libraries)  # it looks for its CPU libraries in its working directory
    return own, other


# ---- a stream

async def body_pieces(reader):
    """The body of an answer in chunks, as they come."""
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def stream(port, body):
    """When text came (seconds from the request on), and how many tokens there were."""
    text = json.dumps(body).encode()
    begin = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise Problem(f"a server answers {head.decode(errors='replace').splitlines()[0]}")
    times, tokens, rest = [], 0, b""
    async for piece in body_pieces(reader):
        at = time.monotonic() - begin
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event["choices"] and event["choices"][0]["text"]:
                times.append(at)
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
    writer.close()
    return times, tokens, time.monotonic() - begin


def prompts(a, streams, seed):
    """Ids of ordinary tokens, for each request of each stream; no two texts begin alike."""
    source = random.Random(seed)
    return [[[source.randrange(1000, 30000) for _ in range(a.prompt_tokens)] for _ in range(a.requests)] for _ in range(streams)]


def load(a, server, name, streams):
    """One round of a cell: all streams begin together, and each sends its next request when one is answered."""
    async def requests(texts):
        return [await stream(server.port, {"model": name, "prompt": text, "max_tokens": a.generate_tokens, "ignore_eos": True, "temperature": 0,
                                           "stream": True, "stream_options": {"include_usage": True}}) for text in texts]

    async def all_of_them():
        return sum(await asyncio.gather(*[requests(texts) for texts in streams]), [])
    front, own, busy = server.cpu_seconds(True), server.cpu_seconds() + time.process_time(), measure.Others.machine()
    begin = time.monotonic()
    done = asyncio.run(all_of_them())
    seconds = time.monotonic() - begin
    others = measure.Others.machine() - busy - (server.cpu_seconds() + time.process_time() - own)
    tokens = [count for _, count, _ in done]
    if tokens != [a.generate_tokens] * (len(streams) * a.requests):
        raise Problem(f"{server.name} gave {tokens} tokens where {a.generate_tokens} each were asked for")
    return {"seconds": seconds, "tokens_per_second": sum(tokens) / seconds, "first": [times[0] for times, _, _ in done],
            "between": [b - a for times, _, _ in done for a, b in zip(times, times[1:])], "others": max(0.0, others / seconds), "front_seconds": server.cpu_seconds(True) - front}


def one_sequence(a, path):
    """Tokens/s without a server: `gimbal bench` of one sequence behind a text as long as the streams' prompts."""
    out, _ = measure.finish([a.gimbal, "bench", path, "--sequences", "1", "--depth", str(a.prompt_tokens), "-n", str(a.generate_tokens), "-r", "1", "-t",
                             str(a.threads), "--backend", "cpu", "--json"], measure.environment())
    return json.loads(out)["depths"][0]["generation"][0]["generation_tokens_per_second"]["median"]


# ---- all of it

def measure_all(a, argv):
    os.makedirs(a.work, exist_ok=True)
    peer = install.install(os.path.abspath(a.work), compare.say)
    peer_server.program(peer, compare.say)
    session = {"date": compare.now(), "command": shlex.join(["bench/compare/serve.py", *argv]), "machine": compare.machine(), "peer": peer.description(),
               "threads": a.threads, "prompt": a.prompt_tokens, "generate": a.generate_tokens, "requests": a.requests, "runs": []}
    for path in a.files:
        name = os.path.basename(path).removesuffix(".gguf")
        measure.same_start(path)
        pair = servers(a, peer, path)
        try:
            for server, ready in zip(pair, ("/health/ready", "/health")):
                server.wait_ready(ready)
                load(a, server, name, prompts(a, 2, "warm"))
            for streams in a.streams:
                for number in range(a.rounds):
                    for server in pair if number % 2 == 0 else pair[::-1]:
                        found = load(a, server, name, prompts(a, streams, f"{streams} {number}"))
                        if streams == 1 and server.name == "gimbal":
                            found["bench"] = one_sequence(a, path)
                        session["runs"].append({"file": name, "streams": streams, "round": number, "engine": server.name, **found})
                        compare.say(f"{name}, {streams} streams, round {number + 1}: {server.name:6} {found['tokens_per_second']:.1f} tok/s, first token "
                                    f"{1e3 * statistics.median(found['first']):.0f} ms, between {1e3 * statistics.median(found['between']):.1f} ms, others {found['others']:.2f}"
                                    + (f", bench {found['bench']:.1f}" if "bench" in found else ""))
                        if a.results:
                            compare.save(a.results, session)
        finally:
            for server in pair:
                server.stop()
    return session


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def milliseconds(runs, what):
    values = [v for run in runs for v in run[what]]
    return f"{1e3 * percentile(values, 0.5):.0f} / {1e3 * percentile(values, 0.99):.0f}"


def front_text(session, file, served):
    """What HTTP and JSON take, which times of whole streams on a busy machine do not show."""
    runs = [run for run in session["runs"] if run["file"] == file and run["engine"] == "gimbal"]
    each = sum(run["front_seconds"] for run in runs) / sum(run["streams"] * session["requests"] * session["generate"] for run in runs)
    return (f"HTTP and JSON (all that the front does) took {1e6 * each:.0f} us of processor time a token: "
            f"{100 * each * served:.2f} % of one stream's time.")


COLUMNS = ["file", "streams", "tokens/s, gimbal", "peer", "ratio", "first token, ms p50 / p99, gimbal", "peer",
           "between tokens, ms p50 / p99, gimbal", "peer"]


def results(session):
    """The contents of a file of bench/results: the table of a session, its commands, machine and date."""
    cells = {}
    for run in session["runs"]:
        cells.setdefault((run["file"], run["streams"]), {}).setdefault(run["engine"], []).append(run)
    rows, cost = [], []
    for (file, streams), engines in sorted(cells.items()):
        ours, theirs = engines["gimbal"], engines["peer"]
        a, b = (statistics.median(run["tokens_per_second"] for run in runs) for runs in (ours, theirs))
        rows.append([file, str(streams), report.figure(a), report.figure(b), f"**{a / b:.2f}**",
                     *(milliseconds(runs, what) for what in ("first", "between") for runs in (ours, theirs))])
        for run in ours:
            if "bench" in run:
                cost.append((file, 1 / statistics.fmean(run["between"]), run["bench"]))
    notes = []
    for file in dict.fromkeys(file for file, _, _ in cost):
        served, alone = (statistics.median(row[i] for row in cost if row[0] == file) for i in (1, 2))
        notes.append(f"{file}, one stream between its first and last token: {served:.1f} tokens/s, where `gimbal bench --sequences 1 --depth "
                     f"{session['prompt']}` has {alone:.1f}: {100 * abs(1 - served / alone):.1f} % {'less' if served < alone else 'more'}. "
                     + front_text(session, file, served))
    notes.append(f"{report.threads_text(session['threads'])}; prompts of {session['prompt']} tokens, no two alike, "
                 f"{session['generate']} tokens of each answer, greedy, no drafts, all streams begin together"
                 + (f", {session['requests']} requests of each, one after the other" if session["requests"] > 1 else "") + ". "
                 f"Other processes kept up to {max(run['others'] for run in session['runs']):.2f} of a processor busy.")
    return {"title": "gimbal serve beside llama.cpp's server", "machine": report.machine_text(session["machine"]),
            "peer": f"{session['peer']['engine']} with --parallel {PLACES}", "date": session["date"][:10], "commit": compare.commit(),
            "commands": [session["command"]], "notes": notes, "columns": COLUMNS, "rows": rows}


def table(session):
    return report.section(results(session))


def main(argv):
    a = arguments(argv)

    def write_page(session):
        if a.publish:
            compare.publish("serve", results(session))

    return compare.run(a, lambda: measure_all(a, argv), table, write_page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
