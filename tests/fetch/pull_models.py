"""Tests of `gimbal pull` (pull_test.py): which model of an address is fetched, where its files lie, and how they are removed."""
import hashlib
import json
import os
import re
import resource
import shutil

import gguf_file
from pull_case import EXAMPLE, GIMBAL, LARGE, SMALL, STORY, Case, sha
from pull_site import COMMIT


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
        self.assertIn("2 matching models", err)
        self.assertIn("/b-Q4_K_M.gguf\n", self.gimbal("pull", "hf.co/Org/Two/b-Q4_K_M.gguf", "--quiet")[0])
        self.hub.add("Org/None-Here", {"model.safetensors": b"x"})
        self.assertIn("has no GGUF model", self.gimbal("pull", "hf.co/Org/None-Here", code=1)[1])

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

    def test_folders_of_safetensors_come_whole(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/hf/qwen3-f16-sharded")
        files = {}
        for name in os.listdir(source):
            with open(os.path.join(source, name), "rb") as file:
                files[name] = file.read()
        self.hub.add("Org/Folder", {**files, "README.md": b"x", "pytorch_model.bin": b"x", "sub/config.json": b"{}"})
        folder = self.gimbal("pull", "hf.co/Org/Folder", "--quiet")[0].strip()
        self.assertEqual(sorted(os.listdir(folder)), sorted(files), "what is needed and nothing else")
        args = ("-p", "memory", "-n", "6", "--greedy")
        self.assertEqual(self.gimbal("run", "hf.co/Org/Folder", *args)[0], self.gimbal("run", source, *args)[0])
        listed = json.loads(self.gimbal("models", "--json")[0])["models"]
        self.assertIn(("Org/Folder", folder), [(m["name"], m["path"]) for m in listed])
        self.assertEqual(self.gimbal("run", "Org/Folder", *args)[0], self.gimbal("run", source, *args)[0])
        os.unlink(os.path.realpath(os.path.join(folder, "model-00002-of-00003.safetensors")))
        self.gimbal("pull", "hf.co/Org/Folder", "--quiet")
        self.assertEqual(self.gimbal("run", "hf.co/Org/Folder", *args)[0], self.gimbal("run", source, *args)[0])

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

    def test_a_digest_that_is_none_names_no_file(self):
        for digest in ("../../../../evil", sha(LARGE) + "0"):
            self.hub.digest = digest
            self.pull_one()
            self.assertEqual(os.listdir(os.path.join(self.cache, "blobs")), [hashlib.sha1(LARGE).hexdigest()])
            shutil.rmtree(self.cache)

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
