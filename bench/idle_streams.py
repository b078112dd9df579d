#!/usr/bin/env python3
"""The memory that a server takes for event streams in which nothing happens: its worker is stopped (SIGSTOP) while they wait.

Usage: bench/idle_streams.py [--program build/release/gimbal] [--streams 4000] [--most MEGABYTES]
Prints JSON: resident memory of the front before and with the streams. Exits with 1 above --most (100).
"""
import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts"))
from send_signal import send_signal  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--program", default="build/release/gimbal")
parser.add_argument("--streams", type=int, default=4000)
parser.add_argument("--most", type=float, default=100)
options = parser.parse_args()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def megabytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        own = [int(word) for word in file.read().split()]
    tasks = [int(t) for t in os.listdir(f"/proc/{pid}/task") if int(t) != pid]
    for task in tasks:
        with open(f"/proc/{pid}/task/{task}/children") as file:
            own += [int(word) for word in file.read().split()]
    return own


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def running(port):
    with connect(port) as s:
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b""
        while more := s.recv(65536):
            text += more
    return next(int(line.split()[1]) for line in text.decode().split("\n") if line.startswith("gimbal_requests_running "))


command = [options.program, "serve", "--port", "0", "--json", "--quiet", "--queue", str(options.streams)]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
try:
    start = json.loads(server.stdout.readline())
    port = int(start["url"].rsplit(":", 1)[1])
    worker, = children(server.pid)
    before = megabytes(server.pid)
    send_signal(worker, signal.SIGSTOP)
    body = json.dumps({"model": start["models"][0], "messages": [{"role": "user", "content": "Hi"}], "stream": True})
    request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    streams = []
    for _ in range(options.streams):
        streams.append(connect(port))
        streams[-1].sendall(request)
    end = time.monotonic() + 20
    while (waiting := running(port)) < options.streams and time.monotonic() < end:
        time.sleep(0.1)
    with_streams = megabytes(server.pid)
    print(json.dumps({"streams": waiting, "before_mb": round(before, 1), "with_streams_mb": round(with_streams, 1),
                      "kb_each": round((with_streams - before) * 1024 / max(1, waiting), 1)}))
    sys.exit(0 if waiting == options.streams and with_streams < options.most else 1)
finally:
    server.kill()
