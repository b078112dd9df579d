"""A client of `gimbal serve` for contract_test.py: starts the program, asks it, and collects what was not as promised."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Checks:
    """Every check names the section of SERVE.md that promises it."""

    def __init__(self):
        self.section, self.failed, self.done = "", [], {}

    def begin(self, section):
        self.section = section

    def __call__(self, name, right, seen=""):
        self.done[self.section] = self.done.get(self.section, 0) + 1
        if not right:
            self.failed.append(f"{self.section}: {name}: {str(seen)[:600]}")
            print("FAILED", self.failed[-1], flush=True)


class Answer:
    def __init__(self, status, body, headers):
        self.status, self.body, self.headers = status, body, {k.lower(): v for k, v in headers}
        self.text = body.decode("utf-8", "replace")
        try:
            self.json = json.loads(self.text)
        except ValueError:
            self.json = None

    def __repr__(self):
        return f"{self.status} {self.text[:500]}"

    def events(self):
        """The objects behind `data: `, without [DONE]."""
        return [json.loads(line[6:]) for line in self.text.split("\n") if line.startswith("data: {")]

    def data(self):
        """All behind `data: `, without [DONE]."""
        return [json.loads(line[6:]) for line in self.text.split("\n") if line.startswith("data: ") and line != "data: [DONE]"]


def descriptions():
    """The published descriptions of the answers."""
    try:
        from published import Published
    except ImportError:
        print("answers are not compared with their descriptions: python3-jsonschema is not installed (serve_published is skipped, too)")
        return None
    return Published()


class Server:
    """`gimbal serve` on a port of its own. What it answers with an error must name nothing of its inside."""

    def __init__(self, program, *options, check=None, environment=None, ready=True, published=None):
        home = dict(os.environ, XDG_CACHE_HOME="", GIMBAL_MODELS="", **(environment or {}))
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([program, "serve", *options, "--port", "0", "--json", "-t", "2"], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=home)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the server did not start: " + self.said_on_stderr())
        self.start = json.loads(line)
        self.port = int(re.search(r":(\d+)/?$", self.start["url"]).group(1))
        self.model = self.start["models"][0]
        self.check, self.published = check, published
        while ready and self.ask("/health/ready").status != 200:
            time.sleep(0.02)

    def ask(self, path, body=None, method=None, headers=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = dict(headers or {})
        if body is not None:
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
            headers.setdefault("Content-Type", kind)
        connection.request(method or ("POST" if body is not None else "GET"), path, body, headers)
        answer = connection.getresponse()
        out = Answer(answer.status, answer.read(), answer.getheaders())
        connection.close()
        if self.published:
            faults = self.published.answer(method or ("POST" if body is not None else "GET"), path, out)
            section, self.check.section = self.check.section, "Descriptions"
            self.check(f"{path} is as its publisher describes it", not faults, (faults[:3], body, out))
            self.check.section = section
        if self.check and out.status >= 400:
            inside = re.search(r"\.(cpp|h|cc)\b|\bat 0x|/(work|src|usr|tmp|home)/", out.text)
            section, self.check.section = self.check.section, "HTTP"
            self.check("an error tells nothing of the inside", not inside, out)
            self.check.section = section
        return out

    def drains(self):
        """Whether it says that it drains. What connects just before may find its connection closed: then it is to be asked again."""
        try:
            return self.ask("/health/ready").status == 503
        except ConnectionError:
            return False

    def completion(self, **fields):
        return self.ask("/v1/completions", {"model": self.model, "temperature": 0, **fields})

    def chat(self, **fields):
        fields.setdefault("messages", [{"role": "user", "content": "Tell"}])
        return self.ask("/v1/chat/completions", {"model": self.model, **fields})

    def said(self, **fields):
        return self.chat(**fields).json["choices"][0]["message"]["content"]

    def raw(self, sent, wait=10.0):
        """All that comes back until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), wait) as s:
            s.sendall(sent)
            got = b""
            try:
                while more := s.recv(65536):
                    got += more
            except (TimeoutError, ConnectionResetError):
                got += b"(still open)"
            return got

    def metric(self, name):
        at = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.ask("/metrics").text, re.M)
        return float(at.group(1)) if at else None

    def until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not (now := condition()) and time.monotonic() < end:
            time.sleep(0.05)
        return now

    def workers(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
                if int(stat[1]) == self.process.pid and b"worker" in open(f"/proc/{pid}/cmdline", "rb").read():
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def end(self, how=signal.SIGTERM):
        """The exit code, and the seconds until then."""
        begin = time.monotonic()
        self.process.send_signal(how)
        self.process.communicate(timeout=30)
        return self.process.returncode, time.monotonic() - begin

    def said_on_stderr(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


GIMBAL, ASSET = sys.argv[1], sys.argv[2]
check = Checks()
USER = [{"role": "user", "content": "Tell"}]


def gimbal(*words):
    return subprocess.run([GIMBAL, *words], capture_output=True, text=True, timeout=60).stdout


def wrong(answer, code=None):
    """OpenAI's form of an error."""
    e = (answer.json or {}).get("error", {})
    return answer.status == 400 and e.get("type") == "invalid_request_error" and bool(e.get("message")) and (not code or e.get("code") == code)
