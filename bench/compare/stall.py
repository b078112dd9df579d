#!/usr/bin/env python3
"""The longest stall that one long prompt causes others: `gimbal serve` beside llama.cpp's server.

  stall.py a.gguf                          4 streams, then a prompt of 2048 tokens; 3 rounds; prints the table
  stall.py a.gguf --long 8192 --streams 1  another prompt, another number of streams
  stall.py a.gguf --publish                writes bench/results/stall.json
  stall.py --render r.json                 the table anew from an earlier run

Streams are being written when the long prompt arrives. A stall is the time between two pieces of one stream, while the
long prompt waits for its first token. Servers, streams and prompts are those of serve.py.
"""
import argparse
import asyncio
import os
import shlex
import statistics
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import compare  # noqa: E402
import install  # noqa: E402
import measure  # noqa: E402
import peer_server  # noqa: E402
import report  # noqa: E402
import serve  # noqa: E402
from install import Problem  # noqa: E402


def arguments(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*", metavar="MODEL")
    p.add_argument("--render", metavar="RESULTS", help="measure nothing")
    p.add_argument("-t", "--threads", type=int, default=2, metavar="N")
    p.add_argument("-p", "--prompt-tokens", type=int, default=64, metavar="N", help="of each stream (default 64)")
    p.add_argument("-n", "--generate-tokens", type=int, default=512, metavar="N", help="of each stream (default 512): it must outlast the long prompt")
    p.add_argument("--long", type=int, default=2048, metavar="N", help="tokens of the long prompt (default 2048)")
    p.add_argument("--streams", type=int, default=4, metavar="N", help=f"at most {serve.PLACES - 1}")
    p.add_argument("--rounds", type=int, default=3, metavar="N")
    p.add_argument("--gimbal", default=os.path.join(compare.ROOT, "build", "release", "gimbal"), metavar="PROGRAM")
    p.add_argument("--work", default=os.path.join(compare.ROOT, "build", "compare"), metavar="FOLDER")
    p.add_argument("--results", metavar="FILE", help="where to write every run")
    p.add_argument("--publish", action="store_true", help="write bench/results/stall.json and the page that shows it")
    a = p.parse_args(argv)
    a.requests = 1  # of each stream
    if not a.files and not a.render:
        p.error("give model files, or --render")
    if not 1 <= a.streams < serve.PLACES:
        p.error(f"--streams: from 1 to {serve.PLACES - 1}")
    return a


def body(name, prompt, tokens):
    return {"model": name, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}}


def gaps(times, begin, end):
    """Of one stream: the times between two pieces, of those that end or begin while the prompt waited."""
    return [b - a for a, b in zip(times, times[1:]) if b > begin and a < end]


def load(a, server, name, seed):
    """One round: the streams begin, and after a second the long prompt joins them."""
    texts = serve.prompts(a, a.streams, seed)
    long = serve.prompts(argparse.Namespace(prompt_tokens=a.long, requests=1), 1, seed + " long")[0][0]
    delay = 1.0

    async def joins():
        await asyncio.sleep(delay)
        return await serve.stream(server.port, body(name, long, 4))

    async def all_of_them():
        streams = [serve.stream(server.port, body(name, text[0], a.generate_tokens)) for text in texts]
        return await asyncio.gather(joins(), *streams)
    (times, _, _), *others = asyncio.run(all_of_them())
    waited = (delay, delay + times[0])
    during = [gap for found, _, _ in others for gap in gaps(found, *waited)]
    if not during or min(found[-1] for found, _, _ in others) < waited[1]:
        raise Problem(f"{server.name}: a stream ended before the long prompt had its first token; give more of -n")
    alone = [gap for found, _, _ in others for gap in gaps(found, 0, delay)]
    return {"longest": max(during), "typical": statistics.median(during), "alone": statistics.median(alone) if alone else 0.0, "first": times[0]}


def measure_all(a, argv):
    os.makedirs(a.work, exist_ok=True)
    peer = install.install(os.path.abspath(a.work), compare.say)
    peer_server.program(peer, compare.say)
    session = {"date": compare.now(), "command": shlex.join(["bench/compare/stall.py", *argv]), "machine": compare.machine(), "peer": peer.description(),
               "threads": a.threads, "long": a.long, "streams": a.streams, "generate": a.generate_tokens, "runs": []}
    for path in a.files:
        name = os.path.basename(path).removesuffix(".gguf")
        measure.same_start(path)
        # The peer divides its context among its places: each must hold the long prompt.
        room = argparse.Namespace(**{**vars(a), "prompt_tokens": max(a.long, a.prompt_tokens)})
        pair = serve.servers(room, peer, path)
        try:
            for server, ready in zip(pair, ("/health/ready", "/health")):
                server.wait_ready(ready)
            for number in range(a.rounds):
                for server in pair if number % 2 == 0 else pair[::-1]:
                    found = load(a, server, name, f"{number}")
                    session["runs"].append({"file": name, "round": number, "engine": server.name, **found})
                    compare.say(f"{name}, round {number + 1}: {server.name:6} longest {1e3 * found['longest']:.0f} ms, typical "
                                f"{1e3 * found['typical']:.0f} ms, long prompt {found['first']:.1f} s")
                    if a.results:
                        compare.save(a.results, session)
        finally:
            for server in pair:
                server.stop()
    return session


COLUMNS = ["file", "longest stall, ms, gimbal", "peer", "between tokens meanwhile, ms, gimbal", "peer", "first token of the long prompt, s, gimbal", "peer"]


def results(session):
    cells = {}
    for run in session["runs"]:
        cells.setdefault(run["file"], {}).setdefault(run["engine"], []).append(run)

    def middle(runs, what, scale, form):
        return format(scale * statistics.median(run[what] for run in runs), form)
    rows = [[file, *(middle(engines[who], what, scale, form)
                     for what, scale, form in (("longest", 1e3, ".0f"), ("typical", 1e3, ".0f"), ("first", 1, ".1f")) for who in ("gimbal", "peer"))]
            for file, engines in sorted(cells.items())]
    notes = [f"{report.threads_text(session['threads'])}; {session['streams']} streams are being written when a prompt of {session['long']} tokens arrives. "
             "The longest time between two pieces of one stream while that prompt waits for its first token, the median of the rounds."]
    return {"title": "The longest stall that one long prompt causes others", "machine": report.machine_text(session["machine"]),
            "peer": f"{session['peer']['engine']} with --parallel {serve.PLACES}", "date": session["date"][:10], "commit": compare.commit(),
            "commands": [session["command"]], "notes": notes, "columns": COLUMNS, "rows": rows}


def table(session):
    return report.section(results(session))


def main(argv):
    a = arguments(argv)

    def write_page(session):
        if a.publish:
            compare.publish("stall", results(session))

    return compare.run(a, lambda: measure_all(a, argv), table, write_page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
