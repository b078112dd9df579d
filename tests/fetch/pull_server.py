"""Tests of `POST /api/pull` and `DELETE /api/delete` of a server (pull_test.py): what clients of Ollama send and read."""
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request

from pull_case import LARGE, SMALL, TOKEN, Case, sha


class Client:
    def __init__(self, url):
        self.url = url

    def ask(self, path, body=None, method=None):
        """Status and lines of JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, [json.loads(line) for line in answer.read().splitlines()]
        except urllib.error.HTTPError as e:
            return e.code, [json.loads(e.read())]

    def names(self):
        return [m["name"] for m in self.ask("/api/tags")[1][0]["models"]]


class OverHttp(Case):
    def setUp(self):
        super().setUp()
        self.process = self.start("serve", "--port", "0", "--json")
        self.addCleanup(self.end)
        self.client = Client(json.loads(self.process.stdout.readline())["url"])

    def end(self):
        self.process.terminate()
        self.said = self.process.communicate(timeout=60)[1]
        self.assertEqual(self.process.returncode, 0, self.said)

    def test_progress_use_and_deletion(self):
        self.files.slow = 0.02
        name = "hf.co/Org/Tiny-GGUF:Q4_K_M"
        status, lines = self.client.ask("/api/pull", {"model": name})
        self.assertEqual((status, lines[0], lines[-1]), (200, {"status": "pulling manifest"}, {"status": "success"}))
        progress = [line for line in lines if "completed" in line]
        self.assertGreater(len(progress), 1)
        self.assertEqual({(p["digest"], p["total"], p["status"]) for p in progress}, {("sha256:" + sha(LARGE), len(LARGE), "pulling " + sha(LARGE)[:12])})
        self.assertEqual(sorted(p["completed"] for p in progress), [p["completed"] for p in progress])
        self.assertIn("writing manifest", [line.get("status") for line in lines])
        self.assertWhole(self.blob())
        self.assertEqual(self.client.names(), ["stories260K", name])
        self.assertEqual(self.client.ask("/api/pull", {"name": name, "stream": False}), (200, [{"status": "success"}]))
        body = {"prompt": "Once", "raw": True, "stream": False, "options": {"temperature": 0, "num_predict": 5}}
        texts = [self.client.ask("/api/generate", {"model": m, **body})[1][0] for m in ("stories260K", name)]
        self.assertEqual(texts[0]["response"], texts[1]["response"])
        self.assertEqual(texts[1]["model"], name)
        digests = [m["digest"] for m in self.client.ask("/api/tags")[1][0]["models"]]
        self.assertEqual(digests[1], sha(LARGE))
        self.assertEqual(self.client.ask("/api/delete", {"model": name}, "DELETE"), (200, []))
        self.assertFalse(os.path.exists(self.blob()))
        self.assertEqual(self.client.names(), ["stories260K"])
        self.assertEqual(self.client.ask("/api/generate", {"model": name, **body})[0], 404)

    def test_what_cannot_be_fetched(self):
        for body, status in (({"model": "llama3.2"}, 400), ({}, 400), ({"model": "hf.co/Org"}, 400), ({"model": "file:///etc/passwd"}, 400),
                             ({"model": "hf.co/Org/None", "stream": False}, 500), ({"model": "hf.co/Org/Tiny-GGUF", "insecure": True}, 400)):
            self.assertEqual(self.client.ask("/api/pull", body)[0], status, body)
        status, lines = self.client.ask("/api/pull", {"model": "hf.co/Org/None"})
        self.assertEqual((status, list(lines[-1])), (200, ["error"]), lines)
        # An address inside of this network is for the command line.
        before = len(self.files.requests)
        for host in ("127.0.0.1", "localhost", "[::1]", "192.168.0.1", "169.254.169.254", "2130706433"):
            url = self.files.url.replace("127.0.0.1", host) + "/x.gguf"
            status, lines = self.client.ask("/api/pull", {"model": url, "stream": False})
            self.assertEqual(status, 403, (url, lines))
        self.assertEqual(len(self.files.requests), before)
        self.assertNotIn(TOKEN, json.dumps(lines))

    def test_two_clients_share_a_download(self):
        self.files.slow = 0.02
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.client.ask("/api/pull", {"model": "hf.co/Org/Tiny-GGUF"}))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(status, lines[-1]) for status, lines in answers], [(200, {"status": "success"})] * 3)
        self.assertLess(self.files.served, 2 * len(LARGE))
        self.assertWhole(self.blob())

    def test_a_client_that_leaves_ends_it_and_the_rest_comes_later(self):
        self.files.slow = 0.05
        host, port = self.client.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "hf.co/Org/Tiny-GGUF"}).encode()
        with socket.create_connection((host, int(port))) as c:
            c.sendall(b"POST /api/pull HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            got = b""
            while b"completed" not in got:
                piece = c.recv(4096)
                self.assertTrue(piece, got)
                got += piece
        served = -1
        while served != self.files.served:  # until it has ended
            served = self.files.served
            time.sleep(0.5)
        self.assertFalse(os.path.exists(self.blob()))
        self.files.slow = 0
        self.assertEqual(self.client.ask("/api/pull", {"model": "hf.co/Org/Tiny-GGUF", "stream": False})[0], 200)
        self.assertWhole(self.blob())

    def test_the_end_of_the_server_does_not_wait_for_it(self):
        self.files.slow = 5
        host, port = self.client.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "hf.co/Org/Tiny-GGUF:Q8_0"}).encode()
        with socket.create_connection((host, int(port))) as c:
            c.sendall(b"POST /api/pull HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            while not self.files.served:
                time.sleep(0.05)
            self.process.terminate()
            self.assertEqual(self.process.wait(timeout=60), 0, "the download needs 85 s")
        self.assertFalse(os.path.exists(self.blob(SMALL)))
