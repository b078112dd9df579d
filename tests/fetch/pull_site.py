"""A site that speaks as Hugging Face does, and the server that its files come from, each with faults on demand. Used by pull_test.py."""
import hashlib
import http.server
import json
import re
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Server:
    """One origin: a thread per connection. `requests` has (path, headers, status) of each that was answered. `tls`: certificate and key."""

    def __init__(self, answer, host="127.0.0.1", tls=None):
        self.requests, self.lock, owner = [], threading.Lock(), self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                if tls:  # here and not at the listening socket: a client that refuses the certificate delays no other
                    self.request.settimeout(60)
                    self.request = secured.wrap_socket(self.request, server_side=True)
                super().setup()

            def finish(self):
                super().finish()
                if tls:
                    self.request.close()

            def do_CONNECT(self):
                owner.connect(self)

            def do_GET(self):
                self.status = 0
                try:
                    answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                with owner.lock:
                    owner.requests.append((self.path, dict(self.headers), self.status))

            def send_response(self, code, message=None):
                self.status = code
                super().send_response(code, message)

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client):
                if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):  # which a program that is killed leaves, or that refuses
                    super().handle_error(request, client)

        if tls:
            secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            secured.load_cert_chain(*tls)
        self.http = Threads((host, 0), Handler)
        self.url = f"http{'s' if tls else ''}://{host}:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        if self.http:
            self.http.shutdown()
            self.http.server_close()
        self.http = None

    def headers_of(self, pattern):
        with self.lock:
            return [headers for path, headers, _ in self.requests if re.search(pattern, path)]


class Files(Server):
    """Where the bytes are: /NAME. Faults are members; `served` counts bytes of bodies."""

    def __init__(self, tls=None):
        self.files, self.served, self.ranges, self.slow = {}, 0, True, 0.0
        self.cuts = []  # where the next connections for more than a header break off
        self.lie_about_length, self.flip, self.refuse = 0, None, None
        super().__init__(self.answer, tls=tls)

    def answer(self, h):
        name = urllib.parse.unquote(h.path.split("?")[0].lstrip("/"))
        if self.refuse and self.refuse(h):
            return h.reply(403, b"expired")
        if name not in self.files:
            return h.reply(404)
        data = self.files[name]
        etag = '"%s"' % hashlib.md5(data).hexdigest()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", h.headers.get("Range", ""))
        if wanted and h.headers.get("If-Range", etag) != etag:
            wanted = None
        begin, end = 0, len(data)
        if wanted and self.ranges:
            begin, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
            h.send_response(206)
            h.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data) + self.lie_about_length}")
        else:
            h.send_response(200)
        h.send_header("ETag", etag)
        h.send_header("Content-Length", str(end - begin))
        h.end_headers()
        body = bytearray(data[begin:end])
        if self.flip is not None and begin <= self.flip < end:
            body[self.flip - begin] ^= 1
        with self.lock:
            cut = self.cuts.pop(0) if self.cuts and end - begin > 1 << 20 else None
        if cut is not None:
            del body[cut:]
        for at in range(0, len(body), 65536):
            h.wfile.write(body[at:at + 65536])
            with self.lock:
                self.served += len(body[at:at + 65536])
            if self.slow:
                h.wfile.flush()
                time.sleep(self.slow)
        if cut is not None:
            h.close_connection = True
            h.connection.shutdown(socket.SHUT_RDWR)


class Hub(Server):
    """Repositories: add(). Its files come from another origin, to which it redirects."""

    def __init__(self, files, tls=None):
        self.repositories, self.store, self.token, self.status = {}, files, None, None
        self.announced_more = 0  # bytes of each file, in the list
        self.digest = None  # in place of each file's SHA-256, in the list
        self.leads_to = None  # in place of the store's address
        super().__init__(self.answer, tls=tls)

    def add(self, repository, files):
        self.repositories[repository] = files
        for data in files.values():
            self.store.files["blob/" + hashlib.sha256(data).hexdigest()] = data

    def answer(self, h):
        given = h.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.status:
            return h.reply(self.status[0], b"no", self.status[1])
        path = urllib.parse.unquote(h.path.split("?")[0])
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", path):
            files = self.repositories.get(match[1])
            if files is None:
                return h.reply(404 if given else 401, b"", [("X-Error-Code", "RepoNotFound"), ("X-Error-Message", "Repository not found")])
            if self.token and given != self.token:
                return h.reply(403 if given else 401, b"", [("X-Error-Code", "GatedRepo"), ("X-Error-Message", "Access is restricted")])
            siblings = [{"rfilename": name, "size": len(data) + self.announced_more, "blobId": hashlib.sha1(data).hexdigest(),
                         "lfs": {"sha256": self.digest or hashlib.sha256(data).hexdigest(), "size": len(data) + self.announced_more, "pointerSize": 134}} for name, data in files.items()]
            siblings.append({"rfilename": "README.md", "size": 3, "blobId": "0" * 40})
            return h.reply(200, json.dumps({"id": match[1], "sha": COMMIT, "siblings": siblings}).encode(), [("Content-Type", "application/json")])
        if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            data = self.repositories.get(match[1], {}).get(match[3])
            if data is None:
                return h.reply(404, b"", [("X-Error-Code", "EntryNotFound")])
            sha = hashlib.sha256(data).hexdigest()
            return h.reply(302, b"", [("Location", f"{self.leads_to or self.store.url}/blob/{sha}?X-Signature=secret-signature"), ("X-Linked-Etag", f'"{sha}"'),
                                      ("X-Linked-Size", str(len(data))), ("X-Repo-Commit", COMMIT)])
        h.reply(404)


class Proxy(Server):
    """Asks `target` in place of whatever host is wanted."""

    def __init__(self, target):
        self.target = target
        super().__init__(self.answer)

    def connect(self, h):
        """A tunnel: the proxy does not see its contents."""
        with self.lock:
            self.requests.append((h.path, dict(h.headers), 200))
        host, port = urllib.parse.urlsplit(self.target(h.path)).netloc.split(":")
        with socket.create_connection((host, int(port))) as there:
            h.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            ends = {h.connection: there, there: h.connection}
            while ends:
                for one in select.select(list(ends), [], [], 60)[0] or [h.connection]:
                    if not (piece := one.recv(65536)):
                        ends = {}
                        break
                    ends[one].sendall(piece)
        h.close_connection = True

    def answer(self, h):
        url = urllib.parse.urlsplit(h.path)
        if not url.scheme:
            return h.reply(400)
        kept = {name: value for name, value in h.headers.items() if name in ("Range", "If-Range", "Authorization")}

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        request = urllib.request.Request(self.target(url.netloc) + url.path + ("?" + url.query if url.query else ""), headers=kept)
        try:
            answer = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({})).open(request)
        except urllib.error.HTTPError as refused:
            answer = refused
        h.reply(answer.status, answer.read(), [(n, v) for n, v in answer.headers.items() if n in ("Location", "ETag", "Content-Range", "X-Linked-Etag")])
