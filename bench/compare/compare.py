#!/usr/bin/env python3
"""gimbal beside llama.cpp as npm packages it: installs that peer, runs both on the same files in alternation
(A B A B ...), and writes medians, spread and ratios into bench/results, whose tables the pages show.

  compare.py --synthetic                     every shape and format of the page, with 1 and 2 threads
  compare.py a.gguf b.gguf -t 2 --quick      one round, printed and not written into bench/results
  compare.py a.gguf --cpu-variant avx2 --peer-variant haswell
  compare.py --synthetic -t 2 --before /old/build/release/gimbal   an earlier gimbal in the peer's place
  compare.py --render r1.json r2.json        the tables anew from sessions of earlier runs

Needs x86-64 Linux, Python 3, npm, git and g++ (`scripts/setup.sh build compare`), and the release build of gimbal.
"""
import argparse
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import install  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
from install import Problem  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
GENERATOR = os.path.normpath(os.path.join(ROOT, "..", "shared", "golden", "tools", "make_synth_gguf.py"))
SHAPES = ["qwen2.5-0.5b", "llama-3.2-1b"]
FORMATS = ["q8_0", "q4_0", "q4_k_m", "q6_k", "iq4_xs", "bf16"]
FLAGS = ["avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16"]


def say(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


def arguments(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*", metavar="MODEL", help="GGUF files")
    p.add_argument("--synthetic", action="store_true", help=f"files with random weights: {', '.join(SHAPES)}, each in "
                   f"{', '.join(FORMATS)}; made where they do not exist yet")
    p.add_argument("--render", nargs="+", metavar="RESULTS", help="measure nothing; make the tables from these results files")
    p.add_argument("--with", nargs="+", default=[], metavar="RESULTS", dest="earlier",
                   help="results files whose rows go into the tables too; where rows are the same, the latest wins")
    p.add_argument("-t", "--threads", default="1,2", metavar="LIST", help="numbers of threads (default 1,2)")
    p.add_argument("-p", "--prompt-tokens", type=int, default=512, metavar="N")
    p.add_argument("-n", "--generate-tokens", type=int, default=128, metavar="N")
    p.add_argument("--rounds", type=int, metavar="N", help="rounds, each engine once in each (default 3)")
    p.add_argument("--attempts", type=int, default=3, metavar="N", help="how often a round is run at most when others keep "
                   "the machine busy; the least disturbed one counts (default 3)")
    p.add_argument("--quick", action="store_true", help="one round, and only printed")
    p.add_argument("--cpu-variant", metavar="NAME", help="force gimbal's instruction set, such as avx2 or avx512vnni")
    p.add_argument("--peer-variant", metavar="NAME", help="force the peer's CPU library, such as haswell or zen4 (default: "
                   "the peer chooses)")
    p.add_argument("--gimbal", default=os.path.join(ROOT, "build", "release", "gimbal"), metavar="PROGRAM")
    p.add_argument("--before", metavar="PROGRAM", help="measure this earlier gimbal in the peer's place, and write no table")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "compare"), metavar="FOLDER",
                   help="the peer, the made files and the results go here (default build/compare)")
    p.add_argument("--results", metavar="FILE", help="where to write every run (default: a new file in the work folder)")
    p.add_argument("--name", metavar="NAME", help="write the table to bench/results/NAME.json (default: a name made of processor and variant)")
    p.add_argument("--no-page", action="store_true", help="print the tables only")
    a = p.parse_args(argv)
    try:
        a.threads = [int(t) for t in a.threads.split(",")]
    except ValueError:
        p.error(f"-t takes numbers such as 1,2, not '{a.threads}'")
    a.rounds = a.rounds or (1 if a.quick else 3)
    if min(*a.threads, a.rounds, a.attempts, a.prompt_tokens, a.generate_tokens) < 1:
        p.error("threads, rounds, attempts and numbers of tokens start at 1")
    if not (a.files or a.synthetic or a.render):
        p.error("give model files, --synthetic or --render")
    a.no_page = a.no_page or a.quick or a.before is not None
    return a


def synthetic_files(folder):
    """Paths of the files with random weights; only those that are missing are made."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for shape in SHAPES:
        for kind in FORMATS:
            path = os.path.join(folder, f"{shape}-{kind}.gguf")
            paths.append(path)
            if os.path.exists(path):
                continue
            if not os.path.exists(GENERATOR):
                raise Problem(f"{GENERATOR}, which makes the files, is not here; give model files instead of --synthetic")
            say(f"making {path}")
            part = path + ".part"  # an interrupted run leaves no half file under the real name
            subprocess.run([python_with_numpy(), GENERATOR, shape, part, "--type", kind], check=True, stdout=subprocess.DEVNULL)
            os.rename(part, path)
    return paths


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    raise Problem("the generator of model files needs NumPy; `scripts/setup.sh models` installs it")


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = dict([part.strip() for part in line.split(":", 1)] for line in file if ":" in line)
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) * 1024
    flags = cpu.get("flags", "").split()
    return {"cpu": cpu.get("model name", platform.machine()), "cores": os.cpu_count(), "memory_bytes": memory,
            "flags": [flag for flag in FLAGS if flag in flags], "system": platform.platform()}


def commit():
    """The checkout's commit, and whether its sources differ from it; empty outside a checkout."""
    def git(*command):
        return subprocess.run(["git", "-C", ROOT, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout.decode().strip()
    name = git("rev-parse", "--short", "HEAD")
    return name + (" and changes" if name and git("status", "--porcelain", "--", "src", "cmake", "CMakeLists.txt") else "")


def now():
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def save(path, session):
    """Anew after every run, so that an interruption costs one run and not the session."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(session, file, indent=1)
    os.replace(path + ".part", path)


def measure_all(a, argv):
    """The session of this command, as it was saved."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Problem("the pinned package of the peer is for x86-64 Linux")
    for program in filter(None, (a.gimbal, a.before)):
        if not os.access(program, os.X_OK):
            raise Problem(f"{program} is not there; `make build` makes gimbal, --gimbal and --before take others")
    for path in a.files:
        if not os.path.isfile(path):
            raise Problem(f"{path} is not a file")
    os.makedirs(a.work, exist_ok=True)
    files = a.files + (synthetic_files(os.path.join(a.work, "models")) if a.synthetic else [])
    ours = measure.Gimbal(os.path.abspath(a.gimbal), a.cpu_variant)
    if a.before:
        theirs = measure.Gimbal(os.path.abspath(a.before), a.cpu_variant, "peer")
    else:
        theirs = measure.PackagedPeer(install.install(os.path.abspath(a.work), say), a.peer_variant)
    began = now()
    results = a.results or os.path.join(a.work, f"results-{began[:19].replace(':', '')}.json")
    built = commit()
    session = {
        "format": report.FORMAT, "date": began, "command": shlex.join(["bench/compare/compare.py", *argv]),
        "machine": machine(), "gimbal": {"version": ours.version() + (f" ({built})" if built else "")},
        "peer": theirs.description(),
        "settings": {"prompt": a.prompt_tokens, "generate": a.generate_tokens, "rounds": a.rounds,
                     "cpu_variant": a.cpu_variant, "peer_variant": a.peer_variant},
        "runs": [], "unused": [], "failures": []}
    for path in files:
        name = os.path.basename(path).removesuffix(".gguf")
        measure.warm(path)
        for threads in a.threads:
            def record(engine, number, found, unused):
                where = {"engine": engine, "file": name, "bytes": os.path.getsize(path), "threads": threads,
                         "round": number, "at": now()}
                session["runs"].append({**where, **found})
                session["unused"] += [{**where, **other} for other in unused]
                save(results, session)
                say(f"{name}, {report.threads_text(threads)}, round {number + 1}: {engine:6} prompt "
                    f"{report.figure(found['prompt'])}, generation {report.figure(found['generation'])} tok/s, start "
                    f"{found['start_seconds']:.2f} s, {found['peak_bytes'] / 1e9:.2f} GB "
                    f"({', '.join(found['uses'])}){report.disturbed_text(found)}")
            try:
                measure.alternate([ours, theirs], path, threads, a.rounds, a.prompt_tokens, a.generate_tokens,
                                  a.attempts, report.QUIET, record)
            except Problem as problem:
                say(f"{name}: {problem}")
                session["failures"].append({"file": name, "threads": threads, "reason": str(problem).splitlines()[-1]})
                save(results, session)
    say(f"every run: {results}")
    return session


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} is not a results file: {error}") from None


def publish(name, data):
    """Writes a file of bench/results, and the table of each page that shows it."""
    say(f"wrote {os.path.relpath(report.save(os.path.join(ROOT, 'bench', 'results'), name, data), ROOT)}")
    subprocess.run([sys.executable, os.path.join(ROOT, "scripts/check/docs.py"), "--update"], check=True)


def run(a, measure_all, table, more):
    """Measures (or reads a.render), prints the table and does `more` with the session. The exit code."""
    try:
        session = read(a.render) if a.render else measure_all()
        print(table(session))
        more(session)
    except (Problem, OSError, ValueError) as problem:
        say(problem)
        return 1
    return 0


def main(argv):
    a = arguments(argv)
    try:
        sessions = [read(path) for path in (a.render or []) + a.earlier]
        failures = []
        if not a.render:
            sessions.append(measure_all(a, argv))
            failures = sessions[-1]["failures"]
        markdown = report.render(sessions)
        print(markdown)
        groups = [] if a.no_page else report.merge(sessions).values()
        if a.name and len(groups) > 1:
            raise Problem(f"--name {a.name}: these sessions make {len(groups)} tables; render them one by one")
        for rows in groups:
            session = next(iter(rows.values())).session
            publish(a.name or report.name_of(session), report.results(rows))
    except (Problem, OSError, ValueError, subprocess.CalledProcessError) as problem:
        say(problem)
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
