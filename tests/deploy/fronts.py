"""Servers (`gimbal serve`, built-in model) with an address of their own each, as on machines of their own, for the tests of this folder.

In network namespaces where the system has them: addresses and files of deploy/ are used as they stand. Elsewhere on 127.80.0.x, which
`Net.substituted` puts in their place."""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

KEY = "a-key-of-the-test"
ADDRESSES = ["10.80.0.11", "10.80.0.12", "10.80.0.13"]
INSIDE = "GIMBAL_TEST_IN_NAMESPACE"


def enter_namespaces():
    """Starts this program again in a network namespace of its own, which ends with it; stays in this one where that is refused."""
    if INSIDE in os.environ:
        return
    ways = [["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]]
    try_out = ["sh", "-c", "ip link add br0 type bridge && ip link add port9 type veth peer name eth9"]
    for way in ways:
        if (tried := subprocess.run(way + try_out, capture_output=True, text=True, check=False)).returncode == 0:
            os.environ[INSIDE] = "yes"
            os.execvp(way[0], way + [sys.executable] + sys.argv)
    print(f"network namespaces are refused here ({tried.stderr.strip()}): the servers are on 127.80.0.x instead", flush=True)
    os.environ[INSIDE] = "no"


def ends_with_parent():
    """In a child: it is killed when this program dies, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(arguments, **more):
    return subprocess.Popen(arguments, preexec_fn=ends_with_parent, **more)


class Net:
    """A bridge with the balancer's and the clients' end in this namespace, and a namespace for each server."""

    def __init__(self):
        self.real = os.environ[INSIDE] == "yes"
        self.holders = []
        if not self.real:
            return
        run = lambda *a: subprocess.run(a, check=True)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", "10.80.0.1/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        mine = os.readlink("/proc/self/ns/net")
        for number, address in enumerate(ADDRESSES):
            holder = start(["unshare", "--net", "sleep", "3600"])
            self.holders.append(holder)
            while os.readlink(f"/proc/{holder.pid}/ns/net") == mine:
                time.sleep(0.01)
            run("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            run("ip", "link", "set", f"port{number}", "master", "br0", "up")
            for words in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                run("nsenter", f"--net=/proc/{holder.pid}/ns/net", "ip", *words.split())

    def enter(self, number):
        """What stands before the command of server `number`."""
        return ["nsenter", f"--net=/proc/{self.holders[number].pid}/ns/net"] if self.real else []

    def substituted(self, text):
        """A file of deploy/ for this net."""
        return text if self.real else text.replace("10.80.0.", "127.80.0.")


class Front:
    """One server. `url`: where it is asked without the balancer."""

    def __init__(self, net, number, program, home, drain_seconds=30):
        self.net, self.number, self.program, self.home, self.drain_seconds = net, number, program, home, drain_seconds
        self.address = net.substituted(ADDRESSES[number])
        self.url = f"http://{self.address}:8080"
        self.process = None

    def start(self):
        environment = dict(os.environ, HOME=self.home, XDG_CACHE_HOME="", GIMBAL_API_KEY=KEY)
        self.process = start(self.net.enter(self.number) + [
            self.program, "serve", "--host", self.address, "--port", "8080", "--quiet", "-t", "1",
            "--drain-timeout", str(self.drain_seconds)], env=environment, stdout=subprocess.DEVNULL)

    def wait_ready(self, seconds=60):
        for _ in range(seconds * 20):
            if self.process.poll() is not None:
                raise SystemExit(f"front{self.number + 1} ended with {self.process.returncode} instead of serving")
            try:
                with urllib.request.urlopen(self.url + "/health/ready", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise SystemExit(f"front{self.number + 1} was not ready after {seconds} s")

    def running(self):
        """Requests that it computes right now."""
        request = urllib.request.Request(self.url + "/metrics", headers={"Authorization": "Bearer " + KEY})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(re.search(r"^gimbal_requests_running (\d+)", answer.read().decode(), re.M)[1])

    def workers(self):
        """Process ids of its workers."""
        out = []
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                out += [int(word) for word in file.read().split()]
        return out

    def end(self, signal_number):
        self.process.send_signal(signal_number)

    def wait(self, seconds):
        return self.process.wait(seconds)


def model_of(front):
    request = urllib.request.Request(front.url + "/v1/models", headers={"Authorization": "Bearer " + KEY})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["data"][0]["id"]
