#!/usr/bin/env python3
"""gimbal beside llama.cpp with several sequences generated together, and after long texts: a table of tokens per second, and a
plot (SVG) of each depth.

  sequences.py a.gguf b.gguf                            1, 2, 4, 8 and 16 sequences from an empty context
  sequences.py a.gguf --depths 0,4096 --sequences 1,4   after 4096 tokens of each, too
  sequences.py --render r.json --plot plot.svg          the table and the plot anew from an earlier run

In every round gimbal and the peer run in turn. What is compared is said in bench/compare/README.md.
"""
import argparse
import json
import math
import os
import shlex
import statistics
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import compare  # noqa: E402
import install  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402


def arguments(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*", metavar="MODEL")
    p.add_argument("--render", metavar="RESULTS", help="measure nothing")
    p.add_argument("-t", "--threads", type=int, default=2, metavar="N")
    p.add_argument("-n", "--generate-tokens", type=int, default=32, metavar="N", help="of each sequence (default 32)")
    p.add_argument("--sequences", default="1,2,4,8,16", metavar="LIST")
    p.add_argument("--depths", default="0", metavar="LIST", help="tokens that precede in each sequence")
    p.add_argument("--rounds", type=int, default=1, metavar="N")
    p.add_argument("--gimbal", default=os.path.join(compare.ROOT, "build", "release", "gimbal"), metavar="PROGRAM")
    p.add_argument("--work", default=os.path.join(compare.ROOT, "build", "compare"), metavar="FOLDER")
    p.add_argument("--results", metavar="FILE", help="where to write every run")
    p.add_argument("--plot", metavar="FILE", help="an SVG of tokens/s over the number of sequences")
    a = p.parse_args(argv)
    a.sequences, a.depths = ([int(n) for n in text.split(",")] for text in (a.sequences, a.depths))
    if not a.files and not a.render:
        p.error("give model files, or --render")
    return a


def ours(a, path, depth):
    """{sequences: tokens per second}: one process, as a user would run it."""
    out, _ = measure.finish([a.gimbal, "bench", path, "--sequences", ",".join(map(str, a.sequences)), "--depth", str(depth), "-n",
                             str(a.generate_tokens), "-r", "1", "-t", str(a.threads), "--backend", "cpu", "--strict", "--json"],
                            measure.environment())
    return {cell["sequences"]: cell["generation_tokens_per_second"]["median"] for cell in json.loads(out)["depths"][0]["generation"]}


def theirs(a, peer, path, depth):
    found = {}
    for n in a.sequences:
        out, _ = measure.finish([peer.driver, peer.all_libraries, path, str(a.threads), str(depth), str(a.generate_tokens), "1", str(n)],
                                measure.environment(LD_LIBRARY_PATH=peer.all_libraries))
        found[n] = json.loads(out)["generation_tokens_per_second"][0]
    return found


def measure_all(a, argv):
    peer = install.install(os.path.abspath(a.work), compare.say)
    session = {"date": compare.now(), "command": shlex.join(["bench/compare/sequences.py", *argv]), "machine": compare.machine(),
               "peer": peer.description(), "threads": a.threads, "generate": a.generate_tokens, "runs": []}
    for path in a.files:
        measure.warm(path)
        for depth in a.depths:
            for number in range(a.rounds):
                for engine, speeds in (("gimbal", lambda: ours(a, path, depth)), ("peer", lambda: theirs(a, peer, path, depth))):
                    measure.same_start(path)
                    others = measure.Others()
                    found = speeds()
                    session["runs"].append({"file": os.path.basename(path).removesuffix(".gguf"), "depth": depth, "engine": engine,
                                            "round": number, "speeds": found, "others": others.share()})
                    compare.say(f"{session['runs'][-1]}")
                    if a.results:
                        compare.save(a.results, session)
    return session


def medians(session):
    """{(file, depth): {engine: {sequences: tokens per second}}}"""
    rounds = {}
    for run in session["runs"]:
        for n, speed in run["speeds"].items():
            rounds.setdefault((run["file"], run["depth"]), {}).setdefault(run["engine"], {}).setdefault(int(n), []).append(speed)
    return {cell: {engine: {n: statistics.median(v) for n, v in of.items()} for engine, of in engines.items()}
            for cell, engines in rounds.items()}


def table(session):
    cells = medians(session)
    numbers = sorted({n for engines in cells.values() for n in engines["gimbal"]})
    lines = ["| file | depth | " + " | ".join(f"{n}: gimbal / peer, ratio" for n in numbers) + " |", "|---|--:|" + "--:|" * len(numbers)]
    ratios = []
    for (file, depth), engines in sorted(cells.items()):
        row = []
        for n in numbers:
            a, b = engines["gimbal"][n], engines["peer"][n]
            row.append(f"{report.figure(a)} / {report.figure(b)}, **{a / b:.2f}**")
            if n >= 4:
                ratios.append((a / b, f"{file}, {n} sequences, depth {depth}"))
        lines.append(f"| {file} | {depth} | " + " | ".join(row) + " |")
    if ratios:
        lines += ["", f"Of 4 sequences and more: {statistics.geometric_mean(r for r, _ in ratios):.2f} times the peer's speed in the "
                  f"geometric mean, lowest {min(ratios)[0]:.2f} ({min(ratios)[1]})."]
    worst = max(run["others"] for run in session["runs"])
    lines += ["", f"{report.machine_text(session['machine'])}; {report.threads_text(session['threads'])}, {session['generate']} tokens of each "
              f"sequence; {session['peer']['engine']}. Others kept up to {worst:.2f} processors busy.", "", "```", session["command"] + f"   # {session['date'][:10]}",
              "```"]
    return "\n".join(lines)


COLOURS = ["#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce", "#b91c1c", "#0f766e"]


def plot(session):
    """Tokens per second over the number of sequences, both on a logarithmic scale: gimbal drawn through, the peer dashed."""
    cells = medians(session)
    speeds = [v for engines in cells.values() for of in engines.values() for v in of.values()]
    numbers = sorted({n for engines in cells.values() for of in engines.values() for n in of})
    low, high, width, height, left, top = min(speeds) / 1.2, max(speeds) * 1.2, 640, 360, 60, 20
    x = lambda n: left + width * math.log2(n / numbers[0]) / max(1, math.log2(numbers[-1] / numbers[0]))
    y = lambda v: top + height * (1 - math.log(v / low) / math.log(high / low))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 190} {top + height + 50}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for n in numbers:
        out.append(f'<path d="M{x(n):.1f} {top}V{top + height}" stroke="#ddd"/><text x="{x(n):.1f}" y="{top + height + 18}" text-anchor="middle">{n}</text>')
    for v in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if low <= v <= high:
            out.append(f'<path d="M{left} {y(v):.1f}H{left + width}" stroke="#ddd"/><text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v}</text>')
    for i, ((file, depth), engines) in enumerate(sorted(cells.items())):
        colour = COLOURS[i % len(COLOURS)]
        for engine, dash in (("gimbal", ""), ("peer", ' stroke-dasharray="5 4"')):
            points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in sorted(engines[engine].items()))
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        name = file + (f", depth {depth}" if depth else "")
        out.append(f'<text x="{left + width + 12}" y="{top + 16 + 18 * i}" fill="{colour}">{name}</text>')
    out += [f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">sequences generated together; tokens/s of all (gimbal drawn '
            'through, llama.cpp dashed)</text>', "</svg>"]
    return "\n".join(out) + "\n"


def main(argv):
    a = arguments(argv)

    def write_plot(session):
        if a.plot:
            with open(a.plot, "w", encoding="utf-8") as file:
                file.write(plot(session))

    return compare.run(a, lambda: measure_all(a, argv), table, write_plot)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
