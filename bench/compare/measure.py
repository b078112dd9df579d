"""One round of one engine on one file: starts the process, reads its numbers, returns one record for the results file.

Both engines are measured by their own clock for speeds, and from outside, in the same way, for starting: the time from
starting a process that computes one token to its end, the file being in the page cache.
"""
import json
import os
import re
import resource
import subprocess
import time

from install import Problem

# Settings of the person's shell that would reach one of the engines.
FOREIGN = re.compile(r"GGML_|LLAMA_|OMP_|GIMBAL_|LD_LIBRARY_PATH$|LD_PRELOAD$")


def environment(**more):
    return {**{key: value for key, value in os.environ.items() if not FOREIGN.match(key)}, **more}


def finish(command, env):
    """Standard output and wall time of a process that must succeed."""
    begin = time.monotonic()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    taken = time.monotonic() - begin
    if done.returncode != 0:
        tail = done.stderr.decode(errors="replace").strip().splitlines()[-4:]
        raise Problem(f"{' '.join(command)}\nended with {done.returncode}: " + " ".join(line.strip() for line in tail))
    return done.stdout, taken


def same_start(path):
    """What the first of two engines would otherwise do for both: bring the file into the page cache, and make the host of a
    virtual machine back enough free memory again (it takes back what lay idle, and a first touch is then slow)."""
    size = 0
    with open(path, "rb", buffering=0) as f:
        while part := f.read(1 << 24):
            size += len(part)
    touched = bytearray(b"x") * (2 * size)
    del touched


class Gimbal:
    def __init__(self, program, variant, name="gimbal"):
        self.program, self.variant, self.name = program, variant, name

    def round(self, path, threads, prompt, generate):
        where = ["--backend", "cpu", "--strict", "-t", str(threads)]
        if self.variant is not None:
            where += ["--cpu-variant", self.variant]
        same_start(path)
        _, start = finish([self.program, "logits", path, "--tokens", "1", "-o", "/dev/null", "--quiet",
                           "--ctx", str(max(prompt, generate + 1)), *where], environment())
        out, _ = finish([self.program, "bench", path, "-p", str(prompt), "-n", str(generate), "-r", "1", "--json",
                         *where], environment())
        found = json.loads(out)
        if found["threads"] != threads:
            raise Problem(f"gimbal took {found['threads']} threads where {threads} were asked for")
        return {
            "prompt": found["prompt_tokens_per_second"]["median"],
            "generation": found["generation_tokens_per_second"]["median"],
            "start_seconds": start,
            "load_seconds": found["load_seconds"],
            "peak_bytes": found["peak_memory_bytes"],
            "memory_limit": found["memory_bytes_per_second"],
            "memory_share": found["memory_share"],
            "weight_bytes_per_token": found["weight_bytes_per_token"],
            "uses": sorted({k["kernel"] for k in found["kernels"] if k["op"] == "mat_mul"}),
        }

    def version(self):
        return finish([self.program, "--version"], environment())[0].decode().strip()

    def description(self):
        return {"engine": self.version()}


class PackagedPeer:
    name = "peer"

    def __init__(self, peer, variant):
        self.driver, self.variant, self.libraries, self.description = peer.driver, variant, peer.libraries(variant), peer.description

    def round(self, path, threads, prompt, generate):
        def drive(prompt, generate, repetitions):
            return finish([self.driver, self.libraries, path, str(threads), str(prompt), str(generate), str(repetitions)],
                          environment(LD_LIBRARY_PATH=self.libraries))

        same_start(path)
        _, start = drive(prompt, generate, 0)
        out, _ = drive(prompt, generate, 1)
        found = json.loads(out)
        return {
            "prompt": found["prompt_tokens_per_second"][0],
            "generation": found["generation_tokens_per_second"][0],
            "start_seconds": start,
            "load_seconds": found["load_seconds"],
            "peak_bytes": found["peak_memory_bytes"],
            "uses": [found["library"]],
            "system": found["system"],
            "log": found["log"],
        }


class Others:
    """How much of the machine everything else used: a round beside a compiler run is worth nothing, and threads that
    wait for each other suffer far more than the share that was taken."""

    def __init__(self):
        self.wall, self.busy, self.own = time.monotonic(), self.machine(), self.children()

    @staticmethod
    def machine():
        with open("/proc/stat", encoding="utf-8") as file:
            user, nice, system, _, _, irq, softirq, steal = (int(n) for n in file.readline().split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def share(self):
        """Processors that others kept busy since this was made; 1.0 is one whole processor."""
        others = (self.machine() - self.busy) - (self.children() - self.own)
        return max(0.0, others / (time.monotonic() - self.wall))


def warm(path):
    """Reads the file once, so that no engine waits for the disk."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def least_disturbed(engine, path, threads, prompt, generate, attempts, quiet):
    """One round, again while others disturb it and attempts are left; and the rounds not used. What decides is what
    others took, never the speed."""
    rounds = []
    while len(rounds) < attempts:
        others = Others()
        found = engine.round(path, threads, prompt, generate)
        rounds.append({**found, "others": others.share()})
        if rounds[-1]["others"] <= quiet:
            break
    rounds.sort(key=lambda found: found["others"])
    return rounds[0], rounds[1:]


def alternate(engines, path, threads, rounds, prompt, generate, attempts, quiet, record):
    """A B A B ...: hands every finished round to record(engine's name, round, numbers, rounds not used)."""
    for number in range(rounds):
        for engine in engines:
            record(engine.name, number, *least_disturbed(engine, path, threads, prompt, generate, attempts, quiet))
