"""The contract of `gimbal serve` (contract_test.py): HTTP itself, and a server in operation: numbers, workers that are killed, load and its end."""
import json
import os
import re
import signal
import socket
import threading
import time

from contract_client import GIMBAL, USER, Server, check, wrong
from send_signal import send_signal


def http(s):
    check.begin("HTTP")
    json_head = b"Host: localhost\r\nContent-Type: application/json\r\n"
    a = s.ask("/v1/completions", b'{"model":"' + s.model.encode() + b'","max_tokens":1,"prompt":"' + b"x" * 1_000_000 + b'"}')
    check("a body of 1 MB is read", wrong(a, "context_length_exceeded"), a)
    try:
        a = s.ask("/v1/completions", b'{"model":"' + b"x" * (20 << 20) + b'"}')
        check("20 MB: the answer reaches who is still sending", a.status == 413, a.status)
    except OSError as e:
        check("20 MB: the answer reaches who is still sending", False, e)
    check("another type of content", s.ask("/v1/chat/completions", "x", kind="text/plain").status == 415)
    check("Ollama's paths take any", s.ask("/api/generate", {"model": s.model, "prompt": "a", "stream": False, "options": {"num_predict": 1}}, kind="text/plain").status == 200)
    for method, path in (("PUT", "/v1/models"), ("GET", "/v1/completions"), ("DELETE", "/api/tags"), ("POST", "/metrics")):
        a = s.ask(path, {} if method in ("PUT", "POST") else None, method=method)
        check(f"405 for {method} {path}", a.status == 405 and a.headers.get("allow"), (a, a.headers))
    for path in ("/v1/models", "/health/live", "/metrics", "/api/tags", "/"):
        a = s.ask(path, method="HEAD")
        check(f"HEAD {path}", a.status == 200 and not a.body, a)
    check("an unknown path", s.ask("/nothing").status == 404)
    tail = b"Host: localhost\r\nContent-Length: 3\r\n"
    for name, sent in (("no Host", b"GET /v1/models HTTP/1.1\r\n\r\n"), ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
                       ("a length beside chunks", b"POST / HTTP/1.1\r\n" + tail + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                       ("two lengths", b"POST / HTTP/1.1\r\n" + tail + b"Content-Length: 4\r\n\r\nabc"), ("a negative length", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
                       ("a bare LF", b"GET / HTTP/1.1\nHost: x\n\n"), ("a folded line", b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n"),
                       ("space before the colon", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"), ("no chunk's size", b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n"),
                       ("nonsense", b"\x16\x03\x01\x02\x00\r\n\r\n")):
        got = s.raw(sent)
        check(f"{name}: 400 and close", got.startswith(b"HTTP/1.1 400") and not got.endswith(b"(still open)"), got[:200])
    check("too long a head", b" 431 " in s.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 70000 + b"\r\n\r\n")[:20])
    got = s.raw(b"GET /v1/models HTTP/1.0\r\n\r\n")
    check("HTTP/1.0", b" 200 " in got[:20] and not got.endswith(b"(still open)"), got[:100])
    got = s.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    check("pipelining, in order", re.findall(rb"HTTP/1\.1 (\d+)", got) == [b"200", b"200", b"404"], got)
    with socket.create_connection(("127.0.0.1", s.port), 10) as c:
        body = json.dumps({"model": s.model, "prompt": "x", "max_tokens": 1}).encode()
        c.sendall(b"POST /v1/completions HTTP/1.1\r\n" + json_head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        check("100-continue", c.recv(100).startswith(b"HTTP/1.1 100 "))
        c.sendall(body)
        check("and then the answer", c.recv(100).startswith(b"HTTP/1.1 200 "))
        c.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        more = b""
        while more.count(b"HTTP/1.1 200") < 1 and (read := c.recv(65536)):
            more += read
        check("keep-alive", b"HTTP/1.1 200" in more, more[-200:])
    a = s.ask("/v1/models", headers={"Origin": "https://a.example"})
    check("no Access-Control-Allow-Origin", "access-control-allow-origin" not in a.headers, a.headers)
    a = s.ask("/v1/completions", b'{"model":"' + s.model.encode() + b'","prompt":"\xff\xc0","max_tokens":1}')
    check("invalid UTF-8 is refused or replaced", a.status in (200, 400), a)
    for open_, close in (("[", "]"), ('{"a":', "}")):
        a = s.ask("/v1/completions", '{"model":"m","prompt":' + open_ * 250 + "1" + close * 250 + "}")
        check("JSON beyond 200 levels", wrong(a), a)
    check("no JSON", wrong(s.ask("/v1/completions", "{")))
    for path, name in (("/v1/models", "x-request-id"), ("/v1/nothing", "x-request-id")):
        check(f"{name} on {path}", s.ask(path).headers.get(name))
    a = s.ask("/v1/messages", {"model": s.model, "max_tokens": 1, "messages": USER})
    check("request-id of Anthropic's", a.headers.get("request-id"), a.headers)
    with Server(GIMBAL, "--header-timeout", "1", "--body-timeout", "1") as hurried:
        for sent in (b"GET /v1/models HTTP/1.1\r\nHos", b"POST /v1/completions HTTP/1.1\r\n" + json_head + b"Content-Length: 100\r\n\r\n{"):
            got = hurried.raw(sent)
            check("who sends too slowly is not waited for", not got.endswith(b"(still open)"), got)


def metrics(s):
    check.begin("Metrics")
    names = ("gimbal_tokens_generated_total", "gimbal_prompt_tokens_total")
    idle = lambda: s.metric("gimbal_requests_running") == 0 and s.metric("gimbal_requests_waiting") == 0
    # Numbers are those that workers told last.
    settled = lambda: (lambda before: (time.sleep(0.1), [s.metric(n) for n in names] == before)[1] and before)([s.metric(n) for n in names])
    before = s.until(settled)
    usage = s.completion(prompt="Once upon a time", max_tokens=30, n=2, temperature=1).json["usage"]
    want = [before[0] + usage["completion_tokens"], before[1] + usage["prompt_tokens"]]
    check("tokens are counted exactly", s.until(lambda: [s.metric(n) for n in names] == want), (want, [s.metric(n) for n in names]))
    body = json.dumps({"model": s.model, "prompt": "x", "n": 8, "max_tokens": 500, "stream": True, "ignore_eos": True}).encode()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", s.port), 10) as c:
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            c.recv(100)
    check("nothing runs when every client has gone", s.until(idle), s.metric("gimbal_requests_running"))
    text = s.ask("/metrics").text
    for name, kind in {"gimbal_requests_running": "gauge", "gimbal_requests_waiting": "gauge", "gimbal_tokens_generated_total": "counter",
                       "gimbal_prompt_tokens_total": "counter", "gimbal_time_to_first_token_seconds": "histogram", "gimbal_time_between_tokens_seconds": "histogram",
                       "gimbal_kv_pages": "gauge", "gimbal_memory_bytes": "gauge", "gimbal_worker_restarts_total": "counter",
                       "gimbal_draft_tokens_accepted_total": "counter"}.items():
        check(f"{name}, a {kind}", f"# TYPE {name} {kind}\n" in text and re.search(rf"^{name}", text, re.M), text[:200])
    check("Prometheus' text", all(re.fullmatch(r'# (HELP|TYPE) .*|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+.0-9eEINnaf]+', l)
                                  for l in text.strip().split("\n")), [l for l in text.split("\n") if "#" not in l][:50])


def dashboard(s):
    check.begin("Dashboard")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(os.path.join(root, "deploy/grafana/gimbal.json"), encoding="utf-8") as file:
        board = json.load(file)
    s.completion(prompt="Once", max_tokens=3)
    s.ask("/v1/models/none")
    s.until(lambda: "gimbal_model_time_to_first_token_seconds_bucket" in s.ask("/metrics").text)
    series = {}  # name: the names of its labels
    for line in s.ask("/metrics").text.strip().split("\n"):
        if not line.startswith("#"):
            name, labels = re.match(r"([a-z_]+)(\{.*\})? ", line).groups()
            series.setdefault(name, set()).update(re.findall(r'(\w+)="', labels or ""))
    queries = [t["expr"] for p in board["panels"] for t in p["targets"]] + [v["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    with open(os.path.join(root, "deploy/README.md"), encoding="utf-8") as file:
        alerts = re.findall(r"`(?:rate|increase)\([^`]*`", file.read())
    check("alerts in deploy/README.md", len(alerts) == 3, alerts)
    used = set()
    for query in queries + alerts:
        names = set(re.findall(r"\b(?:gimbal|process)_[a-z_]+", query))
        used |= names
        check(f"/metrics has what is asked by {query[:60]}", names and all(n in series for n in names), sorted(names - set(series)))
        for by in re.findall(r"by \(([^)]*)\)", query):
            check(f"labels {by}", all(set(by.split(", ")) <= series[n] for n in names), query)
    for panel in board["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"\b(?:gimbal|process)_[a-z_]+", target["expr"])
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - {"instance"}
            check(f"the legend of {panel['title']}", all(legend <= series[n] for n in names), (legend, names))
    check("many families are shown", len(used) > 20, used)
    said = s.ask("/metrics").text
    of = lambda **labels: sum(float(l.split()[-1]) for l in said.split("\n") if l.startswith("gimbal_http_requests_total{") and all(f'{k}="{v}"' in l for k, v in labels.items()))
    check("requests by path, status and model", of(path="/v1/completions", status=200, method="POST", model=s.model) > 0
          and of(path="/v1/models/*", status=404) > 0 and of(path="/v1/models/none") == 0, said[-3000:])
    for i in range(3):
        s.ask(f"/nowhere/{i}")
    said = s.ask("/metrics").text
    check("unknown paths share one label", of(path="other", status=404) >= 3 and "nowhere" not in said)
    start = s.metric("process_start_time_seconds")
    check("the start of the process", abs(time.time() - start) < 3600 and start < time.time() + 1, start)
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{s.process.pid}/status").read()).group(1)) * 1024
    check("its memory", 0.5 < s.metric("process_resident_memory_bytes") / rss < 2, rss)
    check("its files", 3 < s.metric("process_open_fds") <= len(os.listdir(f"/proc/{s.process.pid}/fd")) + 8 and s.metric("process_cpu_seconds_total") > 0)


def workers(s):
    check.begin("Workers")
    check("a process below the front", len(s.workers()) >= 1, s.workers())
    asked = {"prompt": "Once upon a time", "max_tokens": 300, "temperature": 1, "seed": 5, "logprobs": 1}
    alone = s.completion(**asked).json["choices"][0]
    after = []
    clients = [threading.Thread(target=lambda: after.append(s.completion(**asked).json["choices"][0])) for _ in range(4)]
    for c in clients: c.start()
    time.sleep(0.02)
    for pid in s.workers():
        send_signal(pid, signal.SIGKILL)
    for c in clients: c.join()
    check("kill -9 loses nothing and repeats nothing", after == [alone] * 4, [a["text"][-50:] for a in after])
    check("and is counted", s.until(lambda: s.metric("gimbal_worker_restarts_total") > 0))
    rss = lambda: int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{s.process.pid}/status").read()).group(1)) / 1024
    before = rss()
    body = json.dumps({"model": s.model, "prompt": "x", "n": 8, "max_tokens": 500, "stream": True, "ignore_eos": True, "logprobs": 5}).encode()
    unread = []
    for _ in range(8):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        unread.append(c)
    time.sleep(1)
    check("64 choices that nobody reads cost 16 MB at most", rss() - before < 16, (before, rss()))
    for c in unread: c.close()


def load(s):
    check.begin("Load")
    body = {"prompt": "Once", "max_tokens": 100, "stream": True, "ignore_eos": True}
    said = []
    clients = [threading.Thread(target=lambda: said.append(s.completion(**body))) for _ in range(64)]
    for c in clients: c.start()
    for c in clients: c.join()
    check("64 streams are admitted", len(said) == 64 and all(a.status == 200 and a.text.endswith("[DONE]\n\n") for a in said), [a.status for a in said])
    with Server(GIMBAL, "--parallel", "1", "--queue", "2", check=check) as small:
        said = []
        asked = {"prompt": "Once", "max_tokens": 450, "ignore_eos": True}
        clients = [threading.Thread(target=lambda: said.append(small.completion(**asked))) for _ in range(24)]
        for c in clients: c.start()
        for c in clients: c.join()
        refused = [a for a in said if a.status != 200]
        check("beyond it: a queue, then 429 with Retry-After", len(said) - len(refused) >= 3 and refused
              and all(a.status == 429 and int(a.headers["retry-after"]) > 0 for a in refused), [(a.status, a.headers.get("retry-after")) for a in said])
    with Server(GIMBAL, "--drain-timeout", "3", check=check) as draining:
        body = json.dumps({"model": draining.model, "messages": USER, "n": 8, "max_tokens": 450, "logprobs": True, "top_logprobs": 20, "stream": True, "ignore_eos": True})
        with socket.socket() as unread:  # more than the system's buffers hold: it stays in flight
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect(("127.0.0.1", draining.port))
            unread.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            unread.recv(100)
            draining.process.send_signal(signal.SIGTERM)
            check("not ready while it drains", draining.until(draining.drains))
            check("but alive", draining.ask("/health/live").status == 200)
            a = draining.completion(prompt="x", max_tokens=2)
            check("no new requests", a.status == 503 and a.json["error"]["message"], a)
            code = draining.process.wait(15)
        check("exit 0 at --drain-timeout", code == 0, code)
    with Server(GIMBAL, check=check) as ending:
        workers = ending.until(ending.workers)
        said = []
        asked = {"prompt": "Once", "max_tokens": 450, "n": 8, "stream": True, "ignore_eos": True}

        def ask():
            try:
                said.append(ending.completion(**asked))
            except OSError:
                pass  # it came too late

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for c in clients: c.start()
        ending.until(lambda: ending.metric("gimbal_requests_running"))
        code, seconds = ending.end()
        for c in clients: c.join()
        check("SIGTERM: exit 0 within 10 s", code == 0 and seconds < 10, (code, seconds))
        check("answers in flight are completed", any(a.status == 200 for a in said)
              and all(a.status == 503 or (a.text.endswith("[DONE]\n\n") and "error" not in a.text) for a in said), [a.text[-200:] for a in said])
        check("no process is left", not any(os.path.exists(f"/proc/{pid}") for pid in workers), workers)
