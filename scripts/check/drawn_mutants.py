#!/usr/bin/env python3
"""Puts random small defects into the source and reports which of them the tests notice.

TREE is a checkout of its own with a configured build/release. Its sources are changed and are not restored. All defects are compiled into one
build ("mutant schemata", Untch, Offutt and Harrold 1993): the environment variable GIMBAL_MUTANT chooses one. A first run of all tests
notes which test reaches which defect. Each defect then runs with the tests that reach it, the quickest first, until one fails or
--seconds are over. Outcomes are in TREE/build/drawn/outcomes.json.

The changes: a comparison's bound or sense, one side of `&&` and `||`, a condition made constant, a number made one larger, `true` for
`false`, `+` for `-`, min for max, a statement left out. Changes that do not compile are dropped.

Needs tree-sitter and tree-sitter-cpp from PyPI.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from drawn import places

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from send_signal import send_signal_to_group  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def compiled_sources(tree):
    """The files of src that the build compiles, alone or together with others."""
    build = os.path.join(tree, "build", "release")
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        listed = {os.path.normpath(entry["file"]) for entry in json.load(file)}
    for path in [path for path in listed if "/Unity/" in path and os.path.exists(path)]:
        with open(path, encoding="utf-8") as file:
            listed |= {os.path.normpath(name) for name in re.findall(r'#include "([^"]+)"', file.read())}
    below = os.path.join(tree, "src") + os.sep
    return sorted(os.path.relpath(path, tree) for path in listed if path.startswith(below) and path.endswith(".cpp"))


def offset(path, line, column):
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    return sum(len(each) + 1 for each in lines[:line - 1]) + column - 1


def dropped(tree, output, spans):
    """The sites that the compiler's errors name: the innermost at each place, else all of its line, else all of its file. An error may be in a
    header whose function is used at such a place."""
    gone = set()
    files = set()
    errors = re.findall(r"^(/[^:\n]+):(\d+):(\d+): (?:fatal )?error:", output, re.M)
    uses = re.findall(r"^ +inlined from .* at (/[^:\n]+):(\d+):(\d+)[:,]$", output, re.M)
    for path, line, column in set(errors + uses):
        path = os.path.relpath(path, tree)
        if path not in spans:
            continue
        at = offset(os.path.join(tree, path), int(line), int(column))
        around = [(end - begin, site) for begin, end, site in spans[path] if begin <= at <= end]
        if around:
            gone.add(min(around, key=lambda a: a[0])[1])
        else:
            low, high = offset(os.path.join(tree, path), int(line), 1), offset(os.path.join(tree, path), int(line) + 1, 1)
            on_line = [site for begin, end, site in spans[path] if begin < high and end >= low]
            gone.update(on_line)
            if not on_line:
                files.add(path)
    if not gone:
        for path in files:
            gone.update(site for _, _, site in spans[path])
    return gone


def plan(tree, options):
    rng = random.Random(options.seed)
    texts, sites = {}, []
    for path in compiled_sources(tree):
        if options.inside and not path.startswith(tuple(options.inside)) or path.startswith(tuple(options.outside)):
            continue
        subprocess.run(["git", "checkout", "--quiet", "--", path], cwd=tree, check=True)
        texts[path], found = places.sites_of(os.path.join(tree, path), rng)
        for site in found:
            site.path = path
        sites += found
    print(f"{len(sites)} places in {len(texts)} files", flush=True)
    chosen = rng.sample(sites, min(options.sites, len(sites)))
    for number, site in enumerate(sorted(chosen, key=lambda s: (s.path, s.begin)), 1):
        site.id = number
    return texts, chosen


def build(tree, options, texts, chosen):
    work = os.path.join(tree, "build", "drawn")
    os.makedirs(work, exist_ok=True)
    header = os.path.join(work, "drawn.h")
    with open(header, "w", encoding="utf-8") as file:
        file.write(places.HEADER.replace("SIZE", str(len(chosen) + 1)))
    alive = list(chosen)
    while True:
        by_file = collections.defaultdict(list)
        for site in alive:
            by_file[site.path].append(site)
        spans = {path: places.write_mutated(os.path.join(tree, path), text, by_file[path], header) for path, text in texts.items() if by_file[path]}
        for path in texts:
            if not by_file[path]:
                subprocess.run(["git", "checkout", "--quiet", "--", path], cwd=tree, check=True)
        done = subprocess.run(["cmake", "--build", "build/release", "--", "-k", "0"], cwd=tree, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode == 0:
            break
        gone = dropped(tree, done.stdout, spans)
        print(f"{len(gone)} places do not compile", flush=True)
        if not gone:
            sys.exit(done.stdout[-6000:])
        alive = [site for site in alive if site not in gone]
    with open(os.path.join(work, "sites.json"), "w", encoding="utf-8") as file:
        json.dump([{"id": s.id, "path": s.path, "line": s.line, "what": s.what, "text": s.text} for s in alive], file, indent=0)
    print(f"{len(alive)} places compile", flush=True)


class Entry:
    def __init__(self, described):
        properties = {p["name"]: p["value"] for p in described.get("properties", [])}
        self.name, self.command = described["name"], described.get("command")
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        self.skip_code = properties.get("SKIP_RETURN_CODE")

    def run(self, environment, seconds):
        """(passed, seconds)"""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(self.command, cwd=self.folder, start_new_session=True, stdin=subprocess.DEVNULL,
                                       env={**os.environ, **self.environment, **environment, "TMPDIR": folder},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            try:
                send_signal_to_group(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return code == 0 or (self.skip_code is not None and code == self.skip_code), time.monotonic() - begin


def entries(tree, options):
    listed = subprocess.run(["ctest", "--test-dir", os.path.join(tree, "build", "release"), "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    all_entries = [Entry(each) for each in json.loads(listed)["tests"]]
    return [e for e in all_entries if e.command and not (options.skip and re.search(options.skip, e.name))]


def trace(tree, options):
    work = os.path.join(tree, "build", "drawn")
    with open(os.path.join(work, "sites.json"), encoding="utf-8") as file:
        size = max(site["id"] for site in json.load(file)) + 1

    def one(entry):
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(size + 1))
            file.flush()
            passed, seconds = entry.run({"GIMBAL_MUTANT_TRACE": file.name}, options.longest)
            with open(file.name, "rb") as written:
                data = written.read()
        reached = [i for i in range(1, size) if data[i]]
        if not passed:
            print(f"left out: {entry.name} does not pass, or not in {options.longest} s", flush=True)
            return None
        return {"name": entry.name, "seconds": seconds, "reached": reached}

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = [each for each in pool.map(one, entries(tree, options)) if each]
    with open(os.path.join(work, "reached.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
    print(f"{len(found)} tests reach {len({i for each in found for i in each['reached']})} of {size - 1} places", flush=True)


def run(tree, options):
    work = os.path.join(tree, "build", "drawn")
    with open(os.path.join(work, "sites.json"), encoding="utf-8") as file:
        sites = json.load(file)
    with open(os.path.join(work, "reached.json"), encoding="utf-8") as file:
        reached = json.load(file)
    by_name = {entry.name: entry for entry in entries(tree, options)}
    path = os.path.join(work, "outcomes.json")
    outcomes = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            outcomes = {o["id"]: o for o in json.load(file)}

    def one(site):
        tests = sorted((t for t in reached if site["id"] in t["set"]), key=lambda t: t["seconds"])
        spent, ran = 0, []
        for test in tests:
            if spent + test["seconds"] > options.seconds and ran:
                break
            passed, took = by_name[test["name"]].run({"GIMBAL_MUTANT": str(site["id"])}, 4 * test["seconds"] + 10)
            spent += took
            ran.append(test["name"])
            if not passed:
                return {**site, "outcome": "killed", "by": test["name"], "tests": len(tests)}
        return {**site, "outcome": "lived" if ran else "not reached", "ran": ran, "tests": len(tests)}

    for test in reached:
        test["set"] = set(test["reached"])
    left = [site for site in sites if site["id"] not in outcomes]
    random.Random(options.seed).shuffle(left)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = collections.deque(left)
        running = set()
        while pending or running:
            while pending and len(running) < options.jobs and time.monotonic() - begin < 60 * options.minutes:
                running.add(pool.submit(one, pending.popleft()))
            if not running:
                break
            ended, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for each in ended:
                outcome = each.result()
                outcomes[outcome["id"]] = outcome
                if outcome["outcome"] != "killed":
                    print(f"{outcome['path']}:{outcome['line']}: {outcome['what']}: {outcome['text']} [{outcome['outcome']}]", flush=True)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(list(outcomes.values()), file, indent=0)
    print(collections.Counter(o["outcome"] for o in outcomes.values()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", metavar="TREE")
    parser.add_argument("--sites", type=int, default=1000, help="how many defects")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in", action="append", default=[], dest="inside", metavar="PREFIX", help="only below src/..")
    parser.add_argument("--not-in", action="append", default=[], dest="outside", metavar="PREFIX")
    parser.add_argument("--seconds", type=float, default=15, help="of tests for a defect")
    parser.add_argument("--longest", type=float, default=40, help="seconds of a test; slower ones are left out")
    parser.add_argument("--minutes", type=float, default=1000, help="of the last step; the next call continues")
    parser.add_argument("--skip", metavar="REGEX", help="tests that are left out")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("--steps", default="build,trace,run")
    options = parser.parse_args()
    tree = os.path.realpath(options.tree)
    if tree == os.path.realpath(ROOT):
        sys.exit("drawn_mutants: TREE is this checkout, whose sources would be changed; make another one: git worktree add --detach TREE")
    if "build" in options.steps:
        build(tree, options, *plan(tree, options))
    if "trace" in options.steps:
        trace(tree, options)
    if "run" in options.steps:
        run(tree, options)


if __name__ == "__main__":
    main()
