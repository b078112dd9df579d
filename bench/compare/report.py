"""From sessions to results: merging, medians, ratios; as Markdown to print, and as files of bench/results, which the pages show.

A session file (JSON) holds one call of compare.py: its conditions ("machine", "gimbal", "peer", "settings"), every single
round ("runs"; "unused" are those that others disturbed and that were run again) and what could not be measured
("failures"). Nothing here measures or needs the peer.
"""
import json
import math
import os
import re
import statistics

FORMAT = 1
QUIET = 0.05  # processors that others may keep busy beside a run before it counts as disturbed
COLUMNS = ["file", "threads", "prompt, tok/s: gimbal", "peer", "ratio", "generation, tok/s: gimbal", "peer", "ratio",
           "% of memory limit", "start, s", "peak memory, GB"]


def figure(x):
    """Three significant digits, no exponent."""
    if x <= 0:
        return f"{x:.0f}"
    return f"{x:.{max(0, 2 - math.floor(math.log10(float(f'{x:.3g}'))))}f}"


def spread(values, unit=1):
    """The median, and the lowest and highest where there are several."""
    values = [value / unit for value in values]
    middle = figure(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({figure(min(values))} to {figure(max(values))})"


def group_key(session):
    """What must be equal for two sessions to share a table."""
    machine, settings = session["machine"], session["settings"]
    return (machine["cpu"], machine["cores"], tuple(machine["flags"]), settings["cpu_variant"], settings["peer_variant"],
            settings["prompt"], settings["generate"])


class Row:
    """One file with one number of threads: the rounds of both engines, out of one session."""

    def __init__(self, session, runs):
        self.session = session
        self.bytes = runs[0]["bytes"]
        self.by_engine = {name: sorted((run for run in runs if run["engine"] == name), key=lambda run: run["round"])
                          for name in ("gimbal", "peer")}

    def complete(self):
        return all(self.by_engine.values())

    def values(self, engine, what):
        return [run[what] for run in self.by_engine[engine]]

    def ratio(self, what):
        """Ours over theirs, of the medians."""
        return statistics.median(self.values("gimbal", what)) / statistics.median(self.values("peer", what))

    def ratio_text(self, what):
        """That ratio, and the lowest and highest of single rounds, whose two runs lay side by side in time."""
        rounds = [a / b for a, b in zip(self.values("gimbal", what), self.values("peer", what))]
        text = f"**{self.ratio(what):.2f}**"
        return text if len(rounds) == 1 else f"{text} ({min(rounds):.2f} to {max(rounds):.2f})"


def merge(sessions):
    """{group key: {(file, threads): Row}}; a row that several sessions hold is the latest session's, never a mixture."""
    groups = {}
    for session in sorted(sessions, key=lambda s: s["date"]):
        if session.get("format") != FORMAT:
            raise ValueError(f"a results file has format {session.get('format')}, {FORMAT} was expected; measure again")
        rows = groups.setdefault(group_key(session), {})
        for cell in dict.fromkeys((run["file"], run["threads"]) for run in session["runs"]):
            row = Row(session, [run for run in session["runs"] if (run["file"], run["threads"]) == cell])
            if row.complete():
                rows[cell] = row
    return {key: rows for key, rows in groups.items() if rows}


def pair(row, what, unit):
    ours, theirs = (figure(statistics.median(row.values(name, what)) / unit) for name in ("gimbal", "peer"))
    return f"{ours} / {theirs}"


def table(rows):
    """The cells of each row, as COLUMNS has them."""
    lines = []
    for (file, threads), row in sorted(rows.items()):
        cells = [file, threads]
        for what in ("prompt", "generation"):
            cells += [spread(row.values("gimbal", what)), spread(row.values("peer", what)), row.ratio_text(what)]
        cells += [f"{100 * statistics.median(row.values('gimbal', 'memory_share')):.0f}",
                  pair(row, "start_seconds", 1), pair(row, "peak_bytes", 1e9)]
        lines.append([str(cell) for cell in cells])
    return lines


def summary(rows):
    """The ratios of all rows in one line: the worst row is named, so that a good mean hides nothing."""
    parts = []
    for what in ("prompt", "generation"):
        ratios = {cell: row.ratio(what) for cell, row in rows.items()}
        worst = min(ratios, key=ratios.get)
        mean = statistics.geometric_mean(ratios.values())
        parts.append(f"{what} {mean:.2f} times the peer's speed in the geometric mean, "
                     f"lowest {ratios[worst]:.2f} ({worst[0]}, {threads_text(worst[1])})")
    return f"Over these {len(rows)} rows: " + "; ".join(parts) + "."


def threads_text(n):
    return "1 thread" if n == 1 else f"{n} threads"


def listed(values):
    return ", ".join(dict.fromkeys(str(value) for value in values))


def disturbed_text(run):
    """A warning about one run, or nothing."""
    return f" DISTURBED: others kept {run['others']:.2f} processors busy" if run["others"] > QUIET else ""


def disturbed(rows):
    """Names the rows whose rounds had company."""
    worst = {cell: max(run["others"] for runs in row.by_engine.values() for run in runs) for cell, row in rows.items()}
    return ["Disturbed, to be measured again: " + ", ".join(
        f"{file} with {threads_text(threads)} (others kept up to {worst[file, threads]:.2f} processors busy)"
        for file, threads in sorted(worst) if worst[file, threads] > QUIET) + "."] if max(worst.values()) > QUIET else []


def machine_text(machine):
    has = machine["flags"]
    lacks = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "amx_int8", "amx_bf16") if flag not in has]
    return (f"{machine['cpu']}, {machine['cores']} cores; has {', '.join(has) or 'none of the vector extensions'}"
            + (f"; lacks {', '.join(lacks)}" if lacks else ""))


def prepared(rows, engine):
    """What really ran: the instruction sets of gimbal's matrix kernels, or the CPU libraries that the peer loaded."""
    uses = {name for row in rows.values() for run in row.by_engine[engine] for name in run["uses"]}
    if any(use.startswith("cpu.") for use in uses):  # gimbal's, such as cpu.avx2.mat_mul.q8_0
        return listed(sorted(use.split(".")[1] for use in uses))
    return listed(sorted(use.removeprefix("libggml-cpu-").removesuffix(".so") for use in uses))


def peer_text(peer):
    return f"{peer['engine']} of the npm package {peer['package']} {peer['version']}" if "package" in peer else peer["engine"]


def results(rows):
    """The contents of a file of bench/results: one table, its commands, machine and date."""
    sessions = list({id(row.session): row.session for row in rows.values()}.values())
    first, settings = sessions[0], sessions[0]["settings"]
    ours = f"gimbal's {prepared(rows, 'gimbal')} kernels" + (" (forced)" if settings["cpu_variant"] else "")
    peers = prepared(rows, "peer")
    if "package" in first["peer"]:
        theirs = f"the peer's {peers} library" + (" (forced)" if settings["peer_variant"] else " (its own choice)")
    else:
        theirs = f"the {peers} kernels of an earlier gimbal"
    counts = sorted({len(runs) for row in rows.values() for runs in row.by_engine.values()})
    rounds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    notes = [summary(rows)] if len(rows) > 1 else []
    notes.append(f"Prompt of {settings['prompt']} tokens, {settings['generate']} tokens generated; {rounds} alternated "
                 f"round{'' if counts == [1] else 's'} (the medians, and in brackets lowest to highest). Start: from the start of the "
                 "process to its end with one token computed; start and memory are gimbal's / the peer's.")
    notes += disturbed(rows)
    failures = {(f["file"], f["threads"]): f for s in sessions for f in s["failures"]}
    notes += [f"Not measured: {file} with {threads_text(threads)}: {failure['reason']}"
              for (file, threads), failure in failures.items() if (file, threads) not in rows]
    return {"title": f"{ours} against {theirs}", "machine": machine_text(first["machine"]),
            "peer": listed(peer_text(s["peer"]) for s in sessions),
            "date": listed(s["date"][:10] for s in sessions), "commit": listed(s["gimbal"]["version"] for s in sessions),
            "commands": [f"{session['command']}   # {session['date'][:10]}" for session in sessions],
            "notes": notes, "columns": COLUMNS, "rows": table(rows)}


def section(data):
    """Such a table as Markdown."""
    lines = [f"### {data['title']}", "", f"Machine: {data['machine']}. gimbal: {data['commit']}. Peer: {data['peer']}.", "",
             "| " + " | ".join(data["columns"]) + " |", "|" + "|".join(["---"] + ["--:"] * (len(data["columns"]) - 1)) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in data["rows"]]
    lines += [line for note in data["notes"] for line in ("", note)]
    return "\n".join([*lines, "", "```", *data["commands"], "```"])


def render(sessions):
    """The Markdown of all sessions: one section per machine and forced variant."""
    groups = merge(sessions)
    if not groups:
        return "Nothing was measured for both engines.\n"
    return "\n\n".join(section(results(rows)) for rows in groups.values()) + "\n"


def name_of(session):
    """The name of the file in bench/results: one for each processor, forced variant, and length of texts."""
    settings = session["settings"]
    parts = ["llama.cpp", session["machine"]["cpu"], settings["cpu_variant"] or ""]
    if (settings["prompt"], settings["generate"]) != (512, 128):
        parts.append(f"{settings['prompt']}-{settings['generate']}")
    return "-".join(re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-") for part in parts if part)


def save(folder, name, data):
    """Writes folder/name.json, a row on each line. Its path."""
    body = json.dumps({key: value for key, value in data.items() if key != "rows"}, indent=1, ensure_ascii=False)
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in data["rows"])
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(body[:-2] + ',\n "rows": [\n' + rows + "\n ]\n}\n")
    return path
