#!/usr/bin/env python3
"""What a client gets from `gimbal serve --tls-cert`: Python's ssl, which shares no code with the server's own stream.

Usage: tls_client.py PORT CERT MODEL      (the server was started with --header-timeout 1)
"""
import json
import socket
import ssl
import sys
import time

PORT, CERT, MODEL = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def plain():
    s = socket.create_connection(("127.0.0.1", PORT), timeout=60)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def context(version=None):
    c = ssl.create_default_context(cafile=CERT)
    if version:
        c.minimum_version = c.maximum_version = version
    return c


def connect(version=None):
    return context(version).wrap_socket(plain(), server_hostname="localhost")


def post(path, body):
    text = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def answer(s, held=b""):
    """Status, body and what came behind it."""
    while b"\r\n\r\n" not in held:
        more = s.recv(65536)
        assert more, held
        held += more
    head, _, held = held.partition(b"\r\n\r\n")
    length = [l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")]
    if length:
        n = int(length[0].split(b":")[1])
        while len(held) < n:
            held += s.recv(65536)
        return int(head.split()[1]), held[:n], held[n:]
    while not held.endswith(b"0\r\n\r\n"):
        more = s.recv(65536)
        assert more, held[-100:]
        held += more
    return int(head.split()[1]), held, b""


def ended(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def metric(name):
    s = connect()
    s.sendall(get("/metrics"))
    text = answer(s)[1].decode()
    return [l.split()[1] for l in text.split("\n") if l.startswith(name + " ")][0]


chat = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20, "temperature": 0}
answers = []
for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    s = connect(version)
    assert s.version() == version.name.replace("_", "."), s.version()
    s.sendall(post("/v1/chat/completions", chat) + get("/health/live"))  # the second one behind the first
    status, body, rest = answer(s)
    assert status == 200, body
    answers.append(json.loads(body)["choices"][0]["message"]["content"])
    assert answer(s, rest)[0] == 200
    s.sendall(post("/v1/chat/completions", dict(chat, stream=True)))
    status, body, _ = answer(s)
    assert status == 200 and b"data: [DONE]" in body
    assert s.unwrap() is not None  # both sides close the session
assert answers[0] == answers[1]

# More than a record, in both directions; the answer to what is too much is read behind all of it.
s = connect()
s.sendall(post("/v1/completions", {"model": MODEL, "prompt": "a" * 900_000, "max_tokens": 1}))
assert answer(s)[0] == 400
s = connect()
s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20000000\r\n\r\n")
s.sendall(b"x" * 20_000_000)
assert answer(s)[0] == 413


def by_hand():
    """A connection whose records the caller carries: the socket, what comes in, what goes out, and its TLS."""
    raw, into, out = plain(), ssl.MemoryBIO(), ssl.MemoryBIO()
    return raw, into, out, context().wrap_bio(into, out, server_hostname="localhost")


def dribble(act, raw, into, out):
    """Does `act`, and sends what it takes a byte at a time."""
    while True:
        wants = False
        try:
            result = act()
        except ssl.SSLWantReadError:
            wants = True
        for b in out.read():
            raw.sendall(bytes([b]))
        if not wants:
            return result
        into.write(raw.recv(65536))


*ends, s = by_hand()
dribble(s.do_handshake, *ends)
dribble(lambda: s.write(get("/health/live")), *ends)
assert dribble(lambda: s.read(65536), *ends).startswith(b"HTTP/1.1 200")

# One who leaves in the middle ends his answer.
s = connect()
s.sendall(post("/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 400, "ignore_eos": True, "stream": True}))
s.recv(10)
s.close()
while metric("gimbal_requests_running") != "0":
    time.sleep(0.05)

# No TLS: HTTP gets an answer that says so; anything else is closed.
s = plain()
s.sendall(get("/health/live"))
status, body, _ = answer(s)
assert status == 400 and b"https://" in body, body
assert ended(s)
for garbage in (b"\x00" * 100, b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\xff\xff" + b"x" * 70000):
    s = plain()
    try:
        s.sendall(garbage)
        while s.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass

# A record that was changed on its way is not answered.
*ends, s = by_hand()
dribble(s.do_handshake, *ends)
raw, into, out = ends
s.write(get("/health/live"))
record = bytearray(out.read())
record[-1] ^= 1
raw.sendall(record)
try:
    while more := raw.recv(65536):
        into.write(more)
except ConnectionResetError:
    pass
into.write_eof()
try:
    raise AssertionError(f"answered: {s.read(65536)}")
except ssl.SSLError:
    pass

# A handshake that stays half, and one that never begins, are closed.
for begin in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"):
    s = plain()
    s.sendall(begin)
    assert ended(s)

# And the server is well.
s = connect()
s.sendall(get("/health/ready"))
assert answer(s)[0] == 200
print("ok")
