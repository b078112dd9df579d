#!/usr/bin/env python3
"""Every kind of request that OpenAI, Anthropic and Ollama describe and gimbal serves; whole answers and events must be as published.

Usage: tests/server/published_test.py GIMBAL ASSET   (the program; the built-in model's file).
Needs python3-jsonschema (`scripts/setup.sh checks`); without it, exit code 77: skipped.
"""
import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../scripts")]
import gguf_file  # noqa: E402
import published_requests as requests  # noqa: E402
from contract_client import ASSET, GIMBAL, USER, Answer, Server, check  # noqa: E402

try:
    from published import Published
except ImportError:
    print("skipped: python3-jsonschema is not installed: scripts/setup.sh checks")
    sys.exit(77)

# Reasoning comes first, and the template knows no tools: they are given in the plain form.
THINKS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: <think>\n{% endif %}"


def look(published, method, path, answer, status=None):
    faults = published.answer(method, path, answer)
    if status and answer.status != status:
        faults.insert(0, f"status {answer.status} in place of {status}")
    check(f"{method} {path}", not faults, "\n  ".join([""] + faults[:4] + [str(answer)[:300]]))


def answer_of(got):
    head, _, body = got.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    return Answer(int(status.split()[1]), body, [line.split(": ", 1) for line in headers])


def ask_all(s, published, kinds):
    for kind in kinds:
        check.begin(kind.__name__)
        for path, body, status in kind(s.model):
            look(published, "POST", path, s.ask(path, body), status)


def ask_lists(s, published):
    check.begin("lists")
    for path in ("/v1/models", "/models", "/v1/models/" + s.model, "/v1/models/nobody", "/nothing", "/api/tags", "/api/ps", "/api/version",
                 "/api/nothing", "/v1/messages/nothing"):
        look(published, "GET", path, s.ask(path))
    for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
        look(published, "GET", path, s.ask(path), 405)
        look(published, "POST", path, s.ask(path, "{"), 400)
    look(published, "POST", "/v1/responses", s.ask("/v1/responses", "{}", kind="text/plain"), 415)
    for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
        sent = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
        look(published, "POST", path, answer_of(s.raw(sent.encode())), 413)


def adapter(folder):
    values = random.Random(7)
    data = [struct.pack("<256f", *(values.uniform(-1, 1) for _ in range(256))) for _ in range(2)]
    metadata = {key: gguf_file.entry(gguf_file.STRING, value) for key, value in
                {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}.items()}
    metadata["adapter.lora.alpha"] = gguf_file.entry(gguf_file.F32, 4.0)
    path = os.path.join(folder, "verses.gguf")
    gguf_file.write(path, metadata, [("blk.0.attn_q.weight.lora_a", [64, 4], 0, data[0]), ("blk.0.attn_q.weight.lora_b", [4, 64], 0, data[1])])
    return path


def broken_stream(s, path, body):
    """A stream that has begun, as a connection."""
    body = json.dumps({"model": s.model, "stream": True, **body}).encode()
    c = socket.create_connection(("127.0.0.1", s.port), 60)
    c.sendall(b"POST %s HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
    return c, c.recv(1 << 16)


def broken_streams(published):
    """The server ends without waiting for its answers: each stream ends with an error. One that was complete before shows nothing, so several
    tries."""
    check.begin("broken streams")
    chat = {"messages": USER}
    bodies = {"/v1/chat/completions": {**chat, "ignore_eos": True}, "/v1/completions": {"prompt": "Once", "ignore_eos": True},
              "/v1/responses": {"input": "Tell"}, "/v1/messages": {**chat, "max_tokens": 3000}, "/api/chat": chat}
    missing = set(bodies)
    for _ in range(20):
        with Server(GIMBAL, "default", "--drain-timeout", "0", check=check) as s:
            begun = {path: broken_stream(s, path, bodies[path]) for path in missing}
            s.process.send_signal(signal.SIGTERM)
            for path, (c, got) in begun.items():
                while more := c.recv(1 << 16):
                    got += more
                c.close()
                answer = answer_of(got)
                if answer.status == 200 and ('"error":{' in answer.text or '"error":"' in answer.text):
                    missing.discard(path)
                    look(published, "POST", path, answer)
        if not missing:
            break
    check("each API tells an error in a stream", not missing, missing)


def main():
    published = Published()
    with tempfile.TemporaryDirectory() as folder:
        template = os.path.join(folder, "thinks.jinja")
        with open(template, "w", encoding="utf-8") as f:
            f.write(THINKS)
        with Server(GIMBAL, "default", "--chat-template", template, check=check) as s:
            ask_all(s, published, (requests.openai, requests.anthropic, requests.ollama, requests.agents))
            ask_lists(s, published)
        with Server(GIMBAL, ASSET, "--lora", adapter(folder), "--alias", "a,b", "--keep-alive", "600", check=check) as s:
            ask_lists(s, published)
        with Server(GIMBAL, "default", "--all-models", check=check, environment={"HOME": folder, "XDG_DATA_HOME": folder}) as s:
            ask_all(s, published, (requests.made,))
        with Server(GIMBAL, "default", "--api-key", "k", check=check, ready=False) as s:
            check.begin("keys")
            for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
                look(published, "POST", path, s.ask(path, {}), 401)
    broken_streams(published)
    check.begin("descriptions")
    check("every field of gimbal's own occurs", not published.never_seen(), published.never_seen())
    check("every schema of a path occurs", not published.unused(), published.unused())
    print(f"{sum(published.counts.values())} answers and events against {len(published.counts)} schemas")
    print(", ".join(f"{section} {n}" for section, n in check.done.items()))
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
