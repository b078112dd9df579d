"""What every test of pull_test.py has: a home, a site with two models, and the program."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from pull_site import Files, Hub

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
GIMBAL, EXAMPLE = sys.argv[1:3]
STORY = os.path.join(ROOT, "assets", "stories260K.gguf")
TOKEN = "hf_SECRETsecretSECRET"
TLS = [os.path.join(ROOT, "tests/apps/tls", name) for name in ("cert.pem", "key.pem")]
with open(STORY, "rb") as file:
    SMALL = file.read()
# The same model, and bytes behind it that no tensor has: enough for several connections.
LARGE = SMALL + b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(5 << 15))


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="gimbal-pull-")
        self.addCleanup(shutil.rmtree, self.home)
        self.files = Files()
        self.hub = Hub(self.files)
        self.addCleanup(self.files.stop)
        self.addCleanup(self.hub.stop)
        self.hub.add("Org/Tiny-GGUF", {"tiny-Q8_0.gguf": SMALL, "tiny-Q4_K_M.gguf": LARGE})
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "HF_ENDPOINT": self.hub.url, "LC_ALL": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "GIMBAL_KERNEL_CACHE"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.cache = os.path.join(self.home, ".cache/huggingface/hub/models--Org--Tiny-GGUF")

    def start(self, *args, environment={}, **more):
        program = [GIMBAL] if args[0] != EXAMPLE else []
        return subprocess.Popen([*program, *args], env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.home, **more)

    def gimbal(self, *args, code=0, environment={}, **more):
        process = self.start(*args, environment=environment, **more)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, f"gimbal {' '.join(args)}\n{out}\n{err}")
        for secret in (TOKEN, "secret-signature"):
            self.assertNotIn(secret, out + err, "a secret was printed")
        return out, err

    def blob(self, data=LARGE):
        return os.path.join(self.cache, "blobs", sha(data))

    def part(self, data=LARGE):
        return self.blob(data) + ".gimbal-part"

    def assertWhole(self, path, data=LARGE):
        with open(path, "rb") as file:
            self.assertEqual(sha(file.read()), sha(data))

    def pull_one(self, *more, code=0, **how):
        return self.gimbal("pull", "hf.co/Org/Tiny-GGUF", *more, code=code, **how)

    def serves(self, name):
        """What the server makes of the story's beginning with this model."""
        process = self.start("serve", name, "--port", "0", "--json")
        try:
            line = process.stdout.readline()
            self.assertTrue(line, "it ended")
            told = json.loads(line)
            body = json.dumps({"model": told["models"][0], "prompt": "Once upon a time", "max_tokens": 5, "temperature": 0}).encode()
            with urllib.request.urlopen(urllib.request.Request(told["url"] + "/v1/completions", body, {"Content-Type": "application/json"})) as answer:
                return json.load(answer)["choices"][0]["text"] + "\n"
        finally:
            process.terminate()
            _, self.said = process.communicate(timeout=60)

    def wait_for_part(self, process, bytes_there):
        """Until the part's note tells of so many bytes."""
        for _ in range(3000):
            try:
                with open(self.part() + ".json") as file:
                    note = json.load(file)
                if note["bytes"] - sum(end - at for at, end in note["missing"]) >= bytes_there:
                    return
            except (OSError, ValueError):
                pass
            self.assertIsNone(process.poll(), "it ended before")
            time.sleep(0.01)
        self.fail("nothing arrives")
