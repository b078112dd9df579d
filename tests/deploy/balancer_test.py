#!/usr/bin/env python3
"""HAProxy and nginx, the real ones with the files of deploy/, before three servers: one is killed, one drained, all end, under load.

Usage: balancer_test.py GIMBAL [haproxy|nginx]...

What must hold: every whole answer has the text that its server alone gives. An answer of which the client had nothing yet is never
lost: another server computes it. A stream that had begun on the killed server ends visibly (a connection broken before the stream's
end, with a beginning of the right text), at most one for each client. Draining breaks nothing; where
there is no time for it, streams that had begun end with an error event of their API, and all other answers come from another server.
With no server left, each API has an error of its own form. Exit code 77: a balancer is not installed.
"""
import os
import shutil
import signal
import sys
import tempfile
import time

import fronts
from fronts import Front, Net
from load import Load, ask, kinds

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PORT = 8000  # of the files in deploy/
CLIENTS = 18
TOKENS = 250  # of an answer: long enough that each server has several at any time


class Haproxy:
    name = "haproxy"

    def __init__(self, net, folder):
        self.log = os.path.join(folder, "haproxy.log")
        path = os.path.join(folder, "haproxy.cfg")
        with open(os.path.join(ROOT, "deploy/haproxy/haproxy.cfg"), encoding="utf-8") as file:
            text = net.substituted(file.read())
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with open(self.log, "wb") as log:
            self.process = fronts.start(["haproxy", "-f", path], stdout=log, stderr=log)

    def retried(self):
        """Requests that were sent again. In HAProxy's log: .../RETRIES, with + where it was another server."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return sum(1 for line in file if len(counts := line.split(" ")) > 10 and any(
                word.count("/") == 4 and word.split("/")[4] not in ("0", "") for word in counts[8:16]))


class Nginx:
    name = "nginx"

    def __init__(self, net, folder):
        self.log = os.path.join(folder, "nginx-access.log")
        with open(os.path.join(ROOT, "deploy/nginx/gimbal.conf"), encoding="utf-8") as file:
            text = net.substituted(file.read())
        with open(os.path.join(folder, "gimbal.conf"), "w", encoding="utf-8") as file:
            file.write(text)
        temporary = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"daemon off; user root; worker_processes 2; pid {folder}/pid; error_log {folder}/nginx-error.log;\n"
                       "events { worker_connections 1024; }\n"
                       f"http {{ {temporary} log_format tried '$upstream_addr'; access_log {self.log} tried; include {folder}/gimbal.conf; }}\n")
        self.process = fronts.start(["nginx", "-c", path])

    def retried(self):
        with open(self.log, encoding="utf-8") as file:
            return sum("," in line for line in file)


class Test:
    def __init__(self, program, folder):
        self.net = Net()
        self.folder = folder
        self.fronts = [Front(self.net, number, program, folder) for number in range(3)]
        self.fronts[0].start()
        self.fronts[0].wait_ready()  # it keeps what it verified for the others
        self.address = self.net.substituted("10.80.0.1") if self.net.real else "127.0.0.1"
        self.kinds = kinds(fronts.model_of(self.fronts[0]), TOKENS)
        front = self.fronts[0]
        self.expected = {}
        for kind in self.kinds:
            alone = ask(front.address, 8080, kind)
            self.expect(alone.what == "whole" and len(alone.text) > 100, f"{kind.name}, asked alone: {alone}")
            self.expected[kind.name] = alone.text

    @staticmethod
    def expect(true, why):
        if not true:
            raise SystemExit(f"FAILED: {why}")

    def judge(self, what, outcomes, most_cut=0, most_ended=0):
        """Fails unless every request ended as it must. `most_ended`: streams that end with an error event of their API."""
        count = {name: sum(o.what == name for o in outcomes) for name in ("whole", "error", "cut", "lost")}
        print(f"  {what}: {len(outcomes)} requests: {count}", flush=True)
        for o in outcomes:
            right = self.expected[o.kind.name]
            if o.what == "whole":
                self.expect(o.text == right, f"{o.kind.name}: another text than alone:\n{o.text}\nalone:\n{right}")
            elif o.what == "cut" or (o.what == "error" and o.chunks and most_ended):
                self.expect(right.startswith(o.text), f"{o.kind.name}: what came before the end is no beginning of the answer: {o.text!r}")
            else:
                self.expect(False, f"{o.kind.name}: {o.what}: {o.detail}: another server could have answered")
        self.expect(count["cut"] <= most_cut, f"{count['cut']} streams were cut, and the server had {most_cut} requests")
        self.expect(count["error"] <= most_ended, f"{count['error']} streams ended with an error")
        self.expect(count["whole"] >= CLIENTS, "hardly a request was answered")
        return count

    def busy(self, front, least):
        """Waits until it computes so many requests; how many."""
        for _ in range(6000):
            if (n := front.running()) >= least:
                return n
            time.sleep(0.02)
        raise SystemExit(f"FAILED: the balancer never gave front{front.number + 1} {least} requests at a time")

    def wait_until(self, true, why, seconds=120):
        for _ in range(seconds * 20):
            if true():
                return
            time.sleep(0.05)
        raise SystemExit(f"FAILED: {why} (after {seconds} s)")

    def run(self, make):
        for front in self.fronts:
            if front.process is None or front.process.poll() is not None:
                front.start()
        for front in self.fronts:
            front.wait_ready()
        balancer = make(self.net, self.folder)
        print(f"{balancer.name}:", flush=True)
        try:
            self.under(balancer)
        except BaseException:
            for name in sorted(os.listdir(self.folder)):
                if name.endswith(".log"):
                    with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                        print(f"--- the end of {name}\n" + "".join([line for line in file.readlines() if " 200 " not in line][-20:]))
            raise
        finally:
            balancer.process.terminate()
            balancer.process.wait(20)

    def under(self, balancer):
        one, two, three = self.fronts
        plain = [k for k in self.kinds if not k.stream]
        self.wait_until(lambda: ask(self.address, PORT, plain[0]).what == "whole", "the balancer does not answer")

        # Killed: its plain answers are computed by others; its streams that had begun are cut, and no more.
        before = balancer.retried()
        load = Load(self.address, PORT, self.kinds, CLIENTS)
        for front in self.fronts:
            self.busy(front, 3)
        workers = one.workers()
        self.expect(workers, "front1 has no worker")
        self.busy(one, 3)
        one.end(signal.SIGKILL)
        one.wait(60)
        time.sleep(1.5)
        self.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers), "the worker of the killed server lives on")
        self.judge("front1 killed", load.end(), CLIENTS)
        saved = balancer.retried() - before
        print(f"  {saved} requests were sent to another server", flush=True)
        self.expect(saved > 0, "no request was sent again: the kill met none")

        # It comes back, and gets requests again. Another is drained: nothing at all is lost.
        one.start()
        one.wait_ready()
        load = Load(self.address, PORT, self.kinds, CLIENTS)
        for front in self.fronts:
            self.busy(front, 3)
        two.end(signal.SIGTERM)
        self.expect(two.wait(120) == 0, f"the drained server ended with {two.process.returncode}")
        time.sleep(0.5)
        self.judge("front2 drained", load.end())

        # And one that may not take the time: what it had begun to tell ends with an error event, the rest is computed by others.
        two.drain_seconds = 0
        two.start()
        two.wait_ready()
        load = Load(self.address, PORT, self.kinds, CLIENTS)
        for front in self.fronts:
            self.busy(front, 3)
        two.end(signal.SIGTERM)
        self.expect(two.wait(60) == 0, f"the ended server ended with {two.process.returncode}")
        time.sleep(0.5)
        self.judge("front2 ended at once", load.end(), most_ended=CLIENTS)
        two.drain_seconds = 30

        for front in (one, three):
            self.wait_until(lambda front=front: front.running() == 0, "a request is computed whose client is gone")

        # None left: every API says so in its own form.
        for front in (one, three):
            front.end(signal.SIGTERM)
            self.expect(front.wait(40) == 0, f"front{front.number + 1} ended with {front.process.returncode}")
        for kind in self.kinds:
            o = ask(self.address, PORT, kind)
            self.expect(o.what == "error" and o.detail.startswith("503"), f"{kind.name}, without a server: {o}")
        print("  no server left: an error of its API for each", flush=True)


def main(arguments):
    if not arguments:
        raise SystemExit(__doc__)
    balancers = [b for b in (Haproxy, Nginx) if b.name in (arguments[1:] or ["haproxy", "nginx"])]
    for b in balancers:
        if not shutil.which(b.name, path=os.environ["PATH"] + ":/usr/sbin"):
            print(f"skipped: {b.name} is not installed: scripts/setup.sh deploy")
            return 77
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    fronts.enter_namespaces()
    with tempfile.TemporaryDirectory(prefix="gimbal-balancer-") as folder:
        test = Test(os.path.abspath(arguments[0]), folder)
        for make in balancers:
            test.run(make)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
