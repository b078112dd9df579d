#!/usr/bin/env python3
"""Start and detection within their budgets: the time from exec to the first answer, and the memory that a search for devices takes.

Usage: budgets.py [--program FILE] [--runs N] [--publish]

  --program FILE   default: build/release/gimbal; the plugins of tests (the target test_plugins) lie in tests/plugins beside it
  --publish        write bench/results/budgets.json, which docs/performance.md shows

Time: 20 runs each; the median must be within the budget, in one of three attempts. Where other processes keep the machine busy, the
processor time counts in its place. The first run on a machine verifies the kernels, so it is not among them. Memory: of `gimbal serve` before and after it searched for devices, with
stand-ins for all six GPU backends: no driver, such as lavapipe with LLVM inside, counts. A backend that was refused must not stay mapped.
"""
import argparse
import contextlib
import datetime
import http.client
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
ATTEMPTS = 3
START_MS = 100  # from exec to the first answer
SEARCH_MB = 8  # that a search adds to the peak of its process
KEPT_MB = 2  # that stays after the search
DISTURBED = 0.1  # of all processors, used by others

COLUMNS = ["what", "median", "highest", "processor time", "budget"]

# What stand-ins do (tests/device/plugins/fake.cpp): each way to be refused.
REFUSED = {"cuda": "abi=1", "rocm": "no-backend", "metal": "devices=0", "vulkan": "devices=1,device=emulated,open-fails", "opencl": "crash",
           "webgpu": "devices=0,says=no driver"}


class Fault(Exception):
    pass


def environment(home, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIMBAL_", "XDG_"))}
    return dict(kept, HOME=home, **more)


def answer(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


@contextlib.contextmanager
def server(program, variables):
    """A server of the model inside the program: its process, its port, and when it was started."""
    begin = time.perf_counter()
    process = subprocess.Popen([program, "serve", "default", "--port", "0", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=variables, text=True)
    try:
        line = process.stdout.readline()
        port = re.search(r'"url": *"[^"]*:(\d+)"', line)
        if not port:
            raise Fault(f"gimbal serve did not start: {line}{process.stdout.read()}")
        yield process, int(port.group(1)), begin
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def seconds_of_command(program, words, variables):
    begin = time.perf_counter()
    subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables, check=True)
    return time.perf_counter() - begin


def seconds_to_health(program, variables):
    with server(program, variables) as (_, port, begin):
        status, _ = answer(port, "/health")
        if status != 200:
            raise Fault(f"/health answered {status} after the server had said that it serves")
        return time.perf_counter() - begin


def busy_seconds():
    """Processor seconds of the machine that were not idle."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(n) for n in file.readline().split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Processor seconds of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def attempt(once, runs):
    """Milliseconds of each run; processor milliseconds of a run; the share of the machine's processors that others used."""
    begin, busy, own = time.perf_counter(), busy_seconds(), own_seconds()
    found = [1e3 * once() for _ in range(runs)]
    used, whole = own_seconds() - own, time.perf_counter() - begin
    return found, 1e3 * used / runs, max(0.0, busy_seconds() - busy - used) / whole / os.cpu_count()


def starts(program, home, runs):
    """(what, milliseconds of all runs of the best attempt, whether others disturbed all attempts, processor milliseconds)"""
    variables = environment(home)
    ways = [("gimbal --version", lambda: seconds_of_command(program, ["--version"], variables)),
            ("gimbal backends", lambda: seconds_of_command(program, ["backends"], variables)),
            ("gimbal serve default, to /health", lambda: seconds_to_health(program, variables))]
    for what, once in ways:
        once()
        attempts = []
        for _ in range(ATTEMPTS):
            attempts.append(attempt(once, runs))
            if statistics.median(attempts[-1][0]) <= START_MS:
                break
        found, processor, _ = min(attempts, key=lambda a: statistics.median(a[0]))
        yield what, found, all(others > DISTURBED for _, _, others in attempts), processor


def memory_of(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        status = file.read()
    peak, now = (int(re.search(rf"^{field}:\s*(\d+) kB", status, re.M).group(1)) / 1024 for field in ("VmHWM", "VmRSS"))
    return peak, now


def mapped(process):
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
        return sorted(set(re.findall(r"libgimbal-backend-(\w+)\.so", file.read())))


def search(program, home, folder):
    """MB that a search for devices adds to the peak and to what stays. Raises Fault for a stand-in that was not refused or stays mapped."""
    from_file = os.path.join(os.path.dirname(os.path.abspath(program)), "tests", "plugins", "v1", "libgimbal-backend-fake.so")
    if not os.path.exists(from_file):
        raise Fault(f"{from_file} is absent; build the target test_plugins")
    for name in REFUSED:
        shutil.copy(from_file, os.path.join(folder, f"libgimbal-backend-{name}.so"))
    told = {f"GIMBAL_FAKE_{name}": words for name, words in REFUSED.items()}
    with server(program, environment(home, GIMBAL_BACKEND_PATH=folder, **told)) as (process, port, _):
        answer(port, "/health")
        peak, now = memory_of(process)
        found = json.loads(answer(port, "/v1/backends")[1])["backends"]
        peak_after, now_after = memory_of(process)
        still = [name for name in mapped(process) if name in REFUSED]
    refused = [b for b in found if b["backend"] in REFUSED and b["present"] and not b["available"]]
    if len(refused) != len(REFUSED):
        raise Fault(f"of {len(REFUSED)} stand-ins {len(refused)} were refused: {found}")
    if still:
        raise Fault(f"refused, and still mapped: {', '.join(still)}")
    return peak_after - peak, now_after - now


def publish(rows, command):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    record = {"title": "Start and search for devices", "machine": f"{cpu.group(1) if cpu else 'a CPU'}, {os.cpu_count()} cores",
              "date": datetime.date.today().isoformat(), "commands": [command],
              "notes": [f"The machine's load was {os.getloadavg()[0]:.1f} with {os.cpu_count()} processors."],
              "columns": COLUMNS, "rows": rows}
    with open(os.path.join(ROOT, "bench", "results", "budgets.json"), "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "gimbal"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args(argv)
    wrong, rows = [], []

    def row(what, median, highest, budget, unit, processor=None):
        rows.append([what, f"{median:.1f} {unit}", f"{highest:.1f} {unit}", f"{processor:.1f} ms" if processor else "", f"{budget} {unit}"])
        print("budgets: " + ", ".join([what, *(f"{name} {value}" for name, value in zip(COLUMNS[1:], rows[-1][1:]) if value)]), flush=True)

    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        try:
            for what, times, disturbed, processor in starts(options.program, home, options.runs):
                row(what, statistics.median(times), max(times), START_MS, "ms", processor)
                if disturbed and statistics.median(times) > START_MS:
                    print("budgets: other processes kept the machine busy: the processor time counts", flush=True)
                if (processor if disturbed else statistics.median(times)) > START_MS:
                    wrong.append(what)
            searches = [search(options.program, home, folder) for _ in range(3)]
        except (Fault, OSError, subprocess.SubprocessError) as fault:
            print(f"budgets: {fault}", file=sys.stderr)
            return 1
        for what, sizes, budget in zip(("a search with six refused backends, peak memory", "the same, memory that stays"), zip(*searches), (SEARCH_MB, KEPT_MB)):
            row(what, statistics.median(sizes), max(sizes), budget, "MB")
            if statistics.median(sizes) > budget:
                wrong.append(what)
    if options.publish:
        publish(rows, shlex.join(["scripts/check/budgets.py", *argv]))
    for what in wrong:
        print(f"budgets: {what}: over its budget", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
