#!/usr/bin/env python3
"""`gimbal pull`, `list`, `rm` and addresses in place of files, against servers on this machine with the faults that networks have.

Usage: pull_test.py GIMBAL EXAMPLE_PULL [unittest's arguments]     the program, and examples/pull.cpp built
"""
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(ROOT, "scripts")]
import gguf_file  # noqa: E402
from pull_site import COMMIT, Files, Hub, Proxy  # noqa: E402

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


class Layout(Case):
    def test_files_lie_as_hugging_face_lays_them_out(self):
        out, err = self.pull_one()
        path = os.path.join(self.cache, "snapshots", COMMIT, "tiny-Q4_K_M.gguf")
        self.assertEqual(out, path + "\n")
        self.assertEqual(os.readlink(path), "../../blobs/" + sha(LARGE))
        self.assertWhole(path)
        with open(os.path.join(self.cache, "refs/main")) as file:
            self.assertEqual(file.read(), COMMIT)
        self.assertEqual(os.listdir(os.path.join(self.cache, "blobs")), [sha(LARGE)], "nothing else is left")
        self.assertIn("tiny-Q4_K_M.gguf", err)
        self.assertIn("llama, 5 layers", err)
        self.assertIn("it fits", err)
        self.files.requests.clear()
        _, err = self.pull_one()
        self.assertIn("all of it was here already", err)
        self.assertEqual(self.files.requests, [], "what is here is not asked for")

    def test_every_command_takes_the_name_without_a_network(self):
        self.pull_one()
        self.hub.stop(), self.files.stop()
        for name in ("hf.co/Org/Tiny-GGUF", "hf.co/Org/Tiny-GGUF:q4_k_m", "huggingface.co/Org/Tiny-GGUF", "hf://Org/Tiny-GGUF:Q4_K_M",
                     "https://huggingface.co/Org/Tiny-GGUF/blob/main/tiny-Q4_K_M.gguf", self.environment["HF_ENDPOINT"] + "/Org/Tiny-GGUF"):
            self.assertIn("llama", self.gimbal("info", name)[0])
        out, _ = self.gimbal("run", "hf.co/Org/Tiny-GGUF", "-p", "Once upon a time", "-n", "5", "--greedy")
        self.assertEqual(out, self.gimbal("run", "-p", "Once upon a time", "-n", "5", "--greedy")[0])
        _, err = self.gimbal("run", "hf.co/Org/Tiny-GGUF:Q8_0", "-p", "x", "-n", "1", code=1)
        self.assertIn("no answer from", err)

    def test_cache_folders_of_the_variables(self):
        for variable, below in (("HF_HOME", "hub/"), ("HF_HUB_CACHE", ""), ("XDG_CACHE_HOME", "huggingface/hub/")):
            folder = os.path.join(self.home, variable)
            out, _ = self.gimbal("pull", "hf.co/Org/Tiny-GGUF:Q8_0", environment={variable: folder})
            self.assertTrue(out.startswith(f"{folder}/{below}models--Org--Tiny-GGUF/snapshots/"), out)

    def test_list_and_json(self):
        self.pull_one()
        listed = json.loads(self.gimbal("list", "--json")[0])["models"]
        model = next(m for m in listed if m["name"] == "Org/Tiny-GGUF/tiny-Q4_K_M")
        self.assertEqual((model["source"], model["format"], model["architecture"], model["bytes"]), ("Hugging Face", "f32", "llama", len(LARGE)))
        self.assertIn("FORMAT", self.gimbal("list")[0])

    def test_events(self):
        self.files.slow = 0.02
        lines = [json.loads(line) for line in self.pull_one("--json", "--connections", "2")[0].splitlines()]
        events = [line["event"] for line in lines]
        self.assertEqual(events[:2], ["resolved", "plan"])
        self.assertEqual(events[-1], "done")
        resolved, plan, done = lines[0], lines[1], lines[-1]
        self.assertEqual((resolved["name"], resolved["commit"], resolved["bytes"], resolved["missing"]), ("hf.co/Org/Tiny-GGUF", COMMIT, len(LARGE), len(LARGE)))
        self.assertEqual(resolved["files"], [{"name": "tiny-Q4_K_M.gguf", "bytes": len(LARGE), "sha256": sha(LARGE), "path": done["path"], "here": False}])
        self.assertEqual((plan["architecture"], plan["layers"], plan["fits"]), ("llama", 5, True))
        progress = [line for line in lines if line["event"] == "progress"]
        self.assertGreater(len(progress), 1)
        self.assertEqual(sorted(p["done"] for p in progress), [p["done"] for p in progress])
        self.assertEqual(progress[-1], {"event": "progress", "file": "tiny-Q4_K_M.gguf", "done": len(LARGE), "total": len(LARGE)})
        self.assertEqual((done["bytes"], done["fetched"]), (len(LARGE), True))
        out, _ = self.gimbal("pull", "hf.co/Org/None", "--json", code=1)
        self.assertEqual(json.loads(out.splitlines()[-1])["error"]["code"], "not-found")

    def test_from_code(self):
        process = self.start(EXAMPLE, "hf.co/Org/Tiny-GGUF")
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertWhole(out.strip().splitlines()[-1])
        self.assertIn("tiny-Q4_K_M.gguf: ", err)
        self.files.slow = 0.05
        process = self.start(EXAMPLE, "hf.co/Org/Tiny-GGUF:Q8_0", "100000")
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1, out)
        self.assertIn("cancelled", err)
        self.assertTrue(os.path.exists(self.part(SMALL)))


class Choosing(Case):
    def test_header_alone_is_read_for_a_plan(self):
        out, _ = self.gimbal("plan", "hf.co/Org/Tiny-GGUF", "--json", "--ctx", "128")
        plan = json.loads(out)
        local = json.loads(self.gimbal("plan", "--json", "--ctx", "128")[0])
        self.assertEqual(plan["devices"][0]["total"], local["devices"][0]["total"])
        self.assertEqual(plan["file_bytes"], len(LARGE))
        self.assertLess(self.files.served, len(LARGE) // 2)
        self.assertFalse(os.path.exists(self.cache), "nothing is fetched")
        self.assertIn("llama", self.gimbal("info", "hf.co/Org/Tiny-GGUF")[0])
        self.assertIn("403", self.gimbal("tokenize", "hf.co/Org/Tiny-GGUF", "--text", "Once upon a time")[0])
        _, err = self.pull_one("--dry-run")
        self.assertIn("it fits", err)
        self.assertFalse(os.path.exists(self.blob()))

    def test_quantizations(self):
        self.hub.add("Org/Many", {"m-Q5_K_M.gguf": SMALL + b"5", "m-Q6_K.gguf": SMALL + b"6", "mmproj-F16.gguf": b"x", "UD/m-UD-Q4_K_XL.gguf": SMALL + b"4"})
        out, _ = self.gimbal("pull", "hf.co/Org/Many", "--quiet")
        self.assertTrue(out.endswith("/m-Q5_K_M.gguf\n"), "the first of the default order that there is")
        self.assertIn("/UD/m-UD-Q4_K_XL.gguf", self.gimbal("pull", "hf.co/Org/Many:q4_k_xl", "--quiet")[0])
        _, err = self.gimbal("pull", "hf.co/Org/Many:Q2_K", code=1)
        for text in ("there is no 'Q2_K'", "Q5_K_M", "1.05 MB", "UD-Q4_K_XL", "m-Q6_K.gguf"):
            self.assertIn(text, err)
        self.hub.add("Org/Two", {"a-Q4_K_M.gguf": SMALL, "b-Q4_K_M.gguf": SMALL})
        _, err = self.gimbal("pull", "hf.co/Org/Two", code=2)
        self.assertIn("2 models that are meant", err)
        self.assertIn("/b-Q4_K_M.gguf\n", self.gimbal("pull", "hf.co/Org/Two/b-Q4_K_M.gguf", "--quiet")[0])
        self.hub.add("Org/None-Here", {"model.safetensors": b"x"})
        self.assertIn("has no model in GGUF", self.gimbal("pull", "hf.co/Org/None-Here", code=1)[1])

    def test_split_models_come_whole(self):
        metadata, tensors = gguf_file.read_metadata(STORY), gguf_file.read_tensors(STORY)
        parts = {}
        for n, some in enumerate((tensors[:9], tensors[9:])):
            path = os.path.join(self.home, "part")
            keys = {"split.no": gguf_file.entry(gguf_file.U16, n), "split.count": gguf_file.entry(gguf_file.U16, 2),
                    "split.tensors.count": gguf_file.entry(gguf_file.I32, len(tensors))}
            gguf_file.write(path, {**(metadata if n == 0 else {}), **keys}, some)
            with open(path, "rb") as file:
                parts[f"q8/s-Q8_0-0000{n + 1}-of-00002.gguf"] = file.read()
        self.hub.add("Org/Split", parts)
        whole = json.loads(self.gimbal("plan", "--json")[0])
        plan = json.loads(self.gimbal("plan", "hf.co/Org/Split", "--json")[0])
        self.assertEqual((plan["devices"][0]["weights"], plan["file_bytes"]), (whole["devices"][0]["weights"], sum(map(len, parts.values()))))
        _, err = self.gimbal("run", "hf.co/Org/Split:Q8_0", "-p", "Once", "-n", "3", "--greedy")
        self.assertIn("is not on this machine yet", err)
        path = self.gimbal("pull", "hf.co/Org/Split", "--quiet")[0].strip()
        self.assertTrue(path.endswith("-00001-of-00002.gguf") and os.path.exists(path.replace("-00001-", "-00002-")))
        os.unlink(os.path.realpath(path.replace("-00001-", "-00002-")))
        self.assertIn("/q8/", self.gimbal("pull", "hf.co/Org/Split", "--quiet")[0])
        self.gimbal("rm", "hf.co/Org/Split", "--yes")
        self.assertFalse(os.path.exists(path) or os.path.exists(path.replace("-00001-", "-00002-")))

    def test_what_does_not_fit_is_not_fetched_to_run_it(self):
        with open(GIMBAL, "rb") as program:
            if re.search(rb"__(asan|tsan)_init", program.read()):
                self.skipTest("a sanitizer takes more addresses than any limit leaves; release runs it")
        _, err = self.gimbal("run", "hf.co/Org/Tiny-GGUF", "-p", "x", "--ctx", "16777216", code=5,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)))
        self.assertIn("it does not fit", err)
        self.assertFalse(os.path.exists(self.part()))

    def test_serve_takes_an_address(self):
        story = self.gimbal("run", "-p", "Once upon a time", "-n", "5", "--greedy")[0]
        self.assertEqual(self.serves("hf.co/Org/Tiny-GGUF"), story)
        self.assertIn("is not on this machine yet", self.said)
        self.assertWhole(self.blob())
        self.hub.stop(), self.files.stop()
        self.assertEqual(self.serves("hf.co/Org/Tiny-GGUF:Q4_K_M"), story)


class Faults(Case):
    def test_parts_come_in_parallel(self):
        self.files.slow = 0.01
        self.pull_one("--connections", "4")
        ranges = [h["Range"] for h in self.files.headers_of("blob")]
        large = {r for r in ranges if int(r.split("-")[1]) - int(r[6:].split("-")[0]) > 1 << 20}
        self.assertEqual(len(large), 4, ranges)
        self.assertWhole(self.blob())

    def test_a_cut_connection_is_made_anew(self):
        self.files.cuts = [300000, 0, 200000]
        self.pull_one("--connections", "2")
        self.assertWhole(self.blob())
        self.assertEqual(self.files.cuts, [])

    def test_cut_again_and_again_it_keeps_the_part_and_resumes(self):
        self.files.cuts = [2000000] + 20 * [0]
        _, err = self.pull_one("--connections", "1", code=1)
        self.assertIn("is asked for again", err)
        self.assertIn("what arrived is kept", err)
        self.assertTrue(os.path.exists(self.part()))
        self.files.cuts, before = [], self.files.served
        _, err = self.pull_one()
        self.assertIn("goes on where an earlier run ended", err)
        self.assertLess(self.files.served - before, len(LARGE) - 2000000 + (2 << 20))
        self.assertWhole(self.blob())

    def test_wrong_length(self):
        self.files.lie_about_length = 7
        _, err = self.pull_one(code=1)
        self.assertIn(str(len(LARGE) + 7), err)
        self.assertIn(str(len(LARGE)), err)
        self.assertFalse(os.path.exists(self.blob()))

    def test_another_length_than_was_announced(self):
        self.hub.announced_more = 5
        _, err = self.pull_one(code=1)
        self.assertIn(f"has {len(LARGE)} bytes at {self.files.url}, where {len(LARGE) + 5} were announced", err)
        self.assertFalse(os.path.exists(self.blob()) or os.path.exists(self.part()))

    def test_wrong_contents(self):
        self.files.flip = len(LARGE) - 5
        _, err = self.pull_one(code=1)
        self.assertIn("wrong contents, and was removed", err)
        self.assertIn(sha(LARGE), err)
        self.assertFalse(os.path.exists(self.blob()) or os.path.exists(self.part()) or os.path.exists(self.part() + ".json"))
        self.files.flip = None
        self.pull_one()
        self.assertWhole(self.blob())

    def test_no_room(self):
        limit = 3 << 20
        _, err = self.pull_one("--connections", "1", code=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertIn("cannot write", err)
        self.assertIn("what arrived is kept", err)
        before = self.files.served
        _, err = self.pull_one("--connections", "1")
        self.assertIn("goes on where an earlier run ended", err)
        self.assertLess(self.files.served - before, len(LARGE) - limit // 2 + (1 << 20))
        self.assertWhole(self.blob())

    def test_a_disk_that_is_too_small(self):
        os.mkdir(os.path.join(self.home, "small"))
        script = 'mount -t tmpfs -o size=3m none small && exec "$0" pull hf.co/Org/Tiny-GGUF'
        ways = ["--mount"], ["--user", "--map-root-user", "--mount"]
        way = next((w for w in ways if subprocess.run(["unshare", *w, "sh", "-c", "mount -t tmpfs none small"], cwd=self.home, stderr=subprocess.DEVNULL,
                                                      check=False).returncode == 0), None)
        if not way:
            self.assertNotIn("CI", os.environ, "no file system can be mounted here")
            self.skipTest("no file system can be mounted here")
        done = subprocess.run(["unshare", *way, "sh", "-c", script, GIMBAL], env={**self.environment, "HF_HOME": os.path.join(self.home, "small")}, cwd=self.home,
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"there is no room for tiny-Q4_K_M.gguf: .* more are needed, and '.*/small/.*' has ")
        self.assertIn("HF_HOME", done.stderr)
        self.assertLess(self.files.served, 3 << 20, "the header alone was asked for")

    def test_a_cache_that_cannot_be_written(self):
        with open(os.path.join(self.home, "file"), "w"):
            pass
        _, err = self.pull_one(code=1, environment={"HF_HOME": os.path.join(self.home, "file")})
        self.assertRegex(err, "cannot create .*Not a directory")
        self.assertIn("HF_HOME", err)

    def test_killed_it_goes_on(self):
        self.files.slow = 0.02
        process = self.start("pull", "hf.co/Org/Tiny-GGUF", "--connections", "2")
        self.wait_for_part(process, 2 << 20)
        process.kill()
        process.communicate()
        self.assertFalse(os.path.exists(self.blob()))
        self.files.slow, before = 0, self.files.served
        _, err = self.pull_one()
        self.assertIn("goes on where an earlier run ended", err)
        self.assertLess(self.files.served - before, len(LARGE) - (1 << 20) + (1 << 20))
        self.assertWhole(self.blob())

    def test_interrupted_it_says_how_to_go_on(self):
        self.files.slow = 0.02
        process = self.start("pull", "hf.co/Org/Tiny-GGUF", "--connections", "1")
        self.wait_for_part(process, 1 << 20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("what arrived is kept", err)
        self.assertIn("the same command goes on", err)
        self.assertTrue(os.path.exists(self.part()))

    def test_a_server_without_ranges(self):
        self.files.ranges = False
        _, err = self.pull_one()
        self.assertIn("as a whole only", err)
        self.assertWhole(self.blob())
        _, err = self.gimbal("plan", "hf.co/Org/Tiny-GGUF:Q8_0", code=3)
        self.assertIn("knows no parts of files", err)

    def test_an_address_that_expires_is_asked_for_again(self):
        seen = []

        def expired(h):
            big = re.fullmatch(r"bytes=(\d+)-(\d+)", h.headers.get("Range", ""))
            if not big or int(big[2]) - int(big[1]) < 1 << 20 or len(seen) > 1:
                return False
            seen.append(h.path)
            if len(seen) == 1:  # the first one is cut short, the second one refused
                self.files.cuts = [1500000]
            return len(seen) == 2

        self.files.refuse = expired
        self.pull_one("--connections", "1")
        self.assertWhole(self.blob())
        self.assertEqual(len(self.hub.headers_of("resolve")), 3, "for the header, for the file, and once more")

    def test_two_at_once(self):
        self.files.slow = 0.02
        first = self.start("pull", "hf.co/Org/Tiny-GGUF")
        self.wait_for_part(first, 1)
        _, err = self.pull_one()
        self.assertIn("waiting for it", err)
        out, _ = first.communicate(timeout=300)
        self.assertEqual(first.returncode, 0)
        self.assertLess(self.files.served, 2 * len(LARGE))
        self.assertWhole(out.strip())


class Permission(Case):
    def test_a_token_goes_to_no_other_host(self):
        self.hub.token = TOKEN
        places = {"file": os.path.join(self.home, ".cache/huggingface/token"), "HF_TOKEN_PATH": os.path.join(self.home, "my-token"),
                  "HF_HOME": os.path.join(self.home, "hf/token")}
        for how in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", *places):
            shutil.rmtree(self.cache, ignore_errors=True)
            self.files.requests.clear(), self.hub.requests.clear()
            environment = {how: TOKEN} if how not in places else {}
            if how in places:
                environment = {"HF_TOKEN_PATH": places[how]} if how == "HF_TOKEN_PATH" else {"HF_HOME": os.path.dirname(places[how])} if how == "HF_HOME" else {}
                os.makedirs(os.path.dirname(places[how]), exist_ok=True)
                with open(places[how], "w") as file:
                    file.write(TOKEN + "\n")
            self.pull_one(environment=environment)
            if how in places:
                os.unlink(places[how])
            self.assertTrue(all(h.get("Authorization") == "Bearer " + TOKEN for h in self.hub.headers_of("")))
            self.assertTrue(self.files.requests and not any("Authorization" in h for h in self.files.headers_of("")))

    def test_no_token_in_clear(self):
        proxy = Proxy(lambda host: self.hub.url if host == "models.example" else "http://" + host)
        self.addCleanup(proxy.stop)
        environment = {"HF_ENDPOINT": "http://models.example", "http_proxy": proxy.url, "HF_TOKEN": TOKEN}
        _, err = self.pull_one(environment=environment)
        self.assertIn("without your token", err)
        self.assertFalse(any("Authorization" in h for h in self.hub.headers_of("")))

    def test_refusals_say_what_to_do(self):
        self.hub.token = TOKEN
        _, err = self.pull_one(code=1)
        for text in ("HTTP status 401", "HF_TOKEN", self.hub.url + "/Org/Tiny-GGUF", "accept the terms"):
            self.assertIn(text, err)
        _, err = self.pull_one(code=1, environment={"HF_TOKEN": "hf_other"})
        self.assertIn("HTTP status 403", err)
        self.assertIn("accept the terms", err)
        _, err = self.gimbal("pull", "hf.co/Org/Nothing", code=1)
        self.assertIn("check the spelling", err)
        self.hub.status = (429, [("Retry-After", "17")])
        _, err = self.pull_one(code=1)
        self.assertIn("wait 17 seconds", err)
        self.hub.status = (500, [])
        self.assertIn("HTTP status 500", self.pull_one(code=1)[1])
        self.assertIn("no token", self.pull_one(code=2, environment={"HF_TOKEN": "a b"})[1])
        self.assertIn("HF_HUB_OFFLINE", self.pull_one(code=2, environment={"HF_HUB_OFFLINE": "1"})[1])

    def test_a_proxy(self):
        proxy = Proxy(lambda host: self.hub.url if host == "models.example" else "http://" + host)
        self.addCleanup(proxy.stop)
        environment = {"HF_ENDPOINT": "http://models.example", "http_proxy": proxy.url, "no_proxy": "127.0.0.1"}
        self.pull_one(environment=environment)
        self.assertWhole(self.blob())
        self.assertTrue(proxy.headers_of("^http://models.example/") and not proxy.headers_of("127.0.0.1"))
        _, err = self.gimbal("pull", "hf.co/Org/Tiny-GGUF:Q8_0", code=1, environment={**environment, "http_proxy": "http://127.0.0.1:1"})
        self.assertIn("https_proxy", err)

    def test_tls(self):
        files = Files(TLS)
        hub = Hub(files, TLS)
        self.addCleanup(files.stop), self.addCleanup(hub.stop)
        hub.add("Org/Tiny-GGUF", {"tiny-Q4_K_M.gguf": LARGE})
        environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        _, err = self.pull_one(code=1, environment=environment)
        self.assertIn("SSL_CERT_FILE", err)
        self.assertEqual(hub.requests, [], "an unknown server is told nothing")
        for variable in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            shutil.rmtree(self.cache, ignore_errors=True)
            self.pull_one(environment={**environment, variable: TLS[0]})
            self.assertWhole(self.blob())
        self.assertTrue(files.requests and not any("Authorization" in h for h in files.headers_of("")))

        # Through a proxy: a tunnel, in which nothing can be read, and neither can the token.
        proxy = Proxy(lambda host: "//" + host)
        self.addCleanup(proxy.stop)
        shutil.rmtree(self.cache)
        trusted = {**environment, "CURL_CA_BUNDLE": TLS[0]}
        self.pull_one(environment={**trusted, "https_proxy": proxy.url})
        self.assertWhole(self.blob())
        self.assertEqual({path for path, _, _ in proxy.requests}, {hub.url[8:], files.url[8:]})
        self.assertFalse(any(TOKEN in str(headers) for _, headers, _ in proxy.requests))

        # From https to http leads nowhere: anybody on the way could change it.
        shutil.rmtree(self.cache)
        hub.store = self.files
        before = len(self.files.requests)
        _, err = self.pull_one(code=1, environment=trusted)
        self.assertIn(f"leads from https to {self.files.url}", err)
        self.assertEqual(len(self.files.requests), before)

    def test_without_libcurl(self):
        folder = os.path.join(self.home, "lib")
        os.mkdir(folder)
        for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
            with open(os.path.join(folder, name), "w") as file:
                file.write("no library")
        _, err = self.pull_one(code=3, environment={"LD_LIBRARY_PATH": folder})
        self.assertIn("apt-get install libcurl4", err)
        self.gimbal("run", "-p", "Once", "-n", "1", environment={"LD_LIBRARY_PATH": folder})


class Addresses(Case):
    def test_plain_urls(self):
        self.files.files["models/plain.gguf"] = LARGE
        url = self.files.url + "/models/plain.gguf"
        out, err = self.gimbal("pull", url)
        self.assertWhole(out.strip())
        self.assertIn("nobody tells its hash", err)
        self.assertTrue(out.startswith(self.home + "/.cache/gimbal/models/127.0.0.1_"), out)
        self.assertIn("llama", self.gimbal("info", url)[0])
        listed = json.loads(self.gimbal("list", "--json")[0])["models"]
        self.assertTrue(any(m["path"] == out.strip() and m["source"] == "gimbal" for m in listed), listed)
        self.gimbal("rm", url, "--yes")
        self.assertFalse(os.path.exists(out.strip()))
        self.assertIn("expected the sha256", self.gimbal("pull", url, "--sha256", "0" * 64, code=1)[1])
        self.gimbal("pull", url, "--sha256", sha(LARGE).upper())
        for wrong in ("ftp://x/y.gguf", "https://x/y.bin", "hf.co/Org", "hf.co/../x", "hf.co/Org/Tiny-GGUF:../x", "https://"):
            self.gimbal("pull", wrong, code=2)
        self.files.files["models/other.gguf"] = b"no model at all"
        self.assertIn("GGUF", self.gimbal("pull", self.files.url + "/models/other.gguf", code=3)[1])

    def test_a_file_that_changed_begins_anew(self):
        self.files.files["models/plain.gguf"] = LARGE
        url, self.files.slow = self.files.url + "/models/plain.gguf", 0.02
        path = os.path.join(self.home, ".cache/gimbal/models", self.files.url[7:].replace(":", "_"), "models/plain.gguf")
        self.part = lambda: path + ".gimbal-part"
        process = self.start("pull", url, "--connections", "1")
        self.wait_for_part(process, 1 << 20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        other = LARGE[:-1] + b"!"
        self.files.files["models/plain.gguf"], self.files.slow = other, 0
        self.assertIn("may be of another file", self.gimbal("pull", url)[1])
        self.assertWhole(path, other)

    def test_names_that_are_none(self):
        self.assertIn("gimbal pull hf.co/Org/Tiny-GGUF", self.gimbal("pull", "Org/Tiny-GGUF", code=1)[1])
        self.assertIn("ollama pull", self.gimbal("pull", "llama3.2:1b", code=1)[1])
        self.assertIn("inside the program", self.gimbal("pull", "default")[0])


class Removing(Case):
    def test_what_pull_put_there(self):
        self.pull_one()
        self.gimbal("pull", "hf.co/Org/Tiny-GGUF:Q8_0")
        _, err = self.gimbal("rm", "hf.co/Org/Tiny-GGUF:Q8_0", code=2)
        self.assertIn("--yes", err)
        removed = json.loads(self.gimbal("rm", "hf.co/Org/Tiny-GGUF:Q8_0", "--yes", "--json")[0])
        self.assertEqual(removed["bytes"], len(SMALL))
        self.assertFalse(os.path.exists(self.blob(SMALL)))
        self.assertWhole(self.blob())
        # Another commit has the same file.
        other = os.path.join(self.cache, "snapshots", "f" * 40)
        os.mkdir(other)
        os.symlink("../../blobs/" + sha(LARGE), os.path.join(other, "same.gguf"))
        self.gimbal("rm", "hf.co/Org/Tiny-GGUF", "--yes")
        self.assertWhole(os.path.join(other, "same.gguf"))
        self.gimbal("rm", "Org/Tiny-GGUF/same", "--yes")
        self.assertFalse(os.path.exists(self.cache))

    def test_what_is_not_gimbals(self):
        own = os.path.join(self.home, "own.gguf")
        shutil.copy(STORY, own)
        self.assertIn("--force", self.gimbal("rm", "own.gguf", "--yes", code=2)[1])
        self.gimbal("rm", "./own.gguf", "--yes", "--force")
        self.assertFalse(os.path.exists(own))
        blobs = os.path.join(self.home, ".ollama/models/blobs")
        manifest = os.path.join(self.home, ".ollama/models/manifests/registry.ollama.ai/library/tiny")
        os.makedirs(blobs), os.makedirs(manifest)
        shutil.copy(STORY, os.path.join(blobs, "sha256-12ab"))
        with open(os.path.join(manifest, "1b"), "w") as file:
            json.dump({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:12ab"}]}, file)
        self.assertIn("ollama rm tiny:1b", self.gimbal("rm", "tiny:1b", "--yes", "--force", code=2)[1])
        self.assertIn("inside the program", self.gimbal("rm", "default", "--yes", code=2)[1])
        self.assertIn("sha256-12ab", self.gimbal("pull", "tiny:1b")[0])
        self.assertTrue(any(m["name"] == "tiny:1b" and m["source"] == "Ollama" for m in json.loads(self.gimbal("list", "--json")[0])["models"]))
        story = self.gimbal("run", "-p", "Once upon a time", "-n", "5", "--greedy")[0]
        self.assertEqual(self.gimbal("run", "tiny:1b", "-p", "Once upon a time", "-n", "5", "--greedy")[0], story)
        self.assertEqual(self.serves("tiny:1b"), story)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
