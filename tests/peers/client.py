"""`gimbal serve` for the drivers: starts it on a free port, and sends bodies as they are."""
import http.client
import json
import os
import re
import subprocess


class Server:
    def __init__(self, program, *options, model="default", environment=None):
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--json", "--quiet", *options], stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **{"GIMBAL_MODELS": "", **(environment or {})}))
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the server did not start")
        start = json.loads(line)
        self.port = int(re.search(r":(\d+)/?$", start["url"]).group(1))
        self.model = start["models"][0]

    def ask(self, path, body=None, method=None, headers=None):
        """The status and the text of an answer. `body`: bytes, or what becomes JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method or ("GET" if body is None else "POST"), path, body, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer.status, text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
