"""Tests of `gimbal pull` (pull_test.py): who may fetch and sees the token, proxies, TLS, and addresses of other kinds."""
import glob
import json
import os
import shutil
import signal

from pull_case import LARGE, SMALL, TLS, TOKEN, Case, sha
from pull_site import Files, Hub, Proxy


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
        proxy = Proxy(lambda host: self.hub.url if host == "models.localhost" else "http://" + host)
        self.addCleanup(proxy.stop)
        environment = {"HF_ENDPOINT": "http://models.localhost", "http_proxy": proxy.url, "HF_TOKEN": TOKEN}
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
        self.hub.status, before = (500, []), len(self.hub.requests)
        self.assertIn("HTTP status 500", self.pull_one(code=1)[1])
        self.assertGreater(len(self.hub.requests) - before, 1, "a failure of the server may pass: it is asked again")
        self.assertIn("no token", self.pull_one(code=2, environment={"HF_TOKEN": "a b"})[1])
        self.assertIn("HF_HUB_OFFLINE", self.pull_one(code=2, environment={"HF_HUB_OFFLINE": "1"})[1])

    def test_a_proxy(self):
        proxy = Proxy(lambda host: self.hub.url if host == "models.localhost" else "http://" + host)
        self.addCleanup(proxy.stop)
        environment = {"HF_ENDPOINT": "http://models.localhost", "http_proxy": proxy.url, "no_proxy": "127.0.0.1"}
        self.pull_one(environment=environment)
        self.assertWhole(self.blob())
        self.assertTrue(proxy.headers_of("^http://models.localhost/") and not proxy.headers_of("127.0.0.1"))
        _, err = self.gimbal("pull", "hf.co/Org/Tiny-GGUF:Q8_0", code=1, environment={**environment, "http_proxy": "http://127.0.0.1:1"})
        self.assertIn("https_proxy", err)

    def test_no_redirection_leads_into_a_network(self):
        # The address of the connection counts, however it is written; nothing of it is asked.
        for place in ("http://169.254.1.1:1", "http://[fe80::1]", "http://2851995905:1", "http://[::ffff:169.254.1.1]:1", "http://[64:ff9b::a9fe:101]"):
            self.hub.leads_to = place
            _, err = self.pull_one(code=1)
            self.assertIn("redirected to http://", err)
        # A public name, which a proxy asks for: what it leads to is judged by its name alone.
        proxy = Proxy(lambda host: self.hub.url if host == "models.example" else self.files.url)
        self.addCleanup(proxy.stop)
        environment = {"HF_ENDPOINT": "http://models.example", "http_proxy": proxy.url}
        for place in ("http://127.0.0.1:1", "http://localhost:1", "http://10.0.0.1", "http://192.168.1.1"):
            self.hub.leads_to = place
            _, err = self.pull_one(code=1, environment=environment)
            self.assertIn("redirected to " + place, err)
        self.assertEqual(self.files.requests, [])
        self.hub.leads_to = "http://files.example"
        self.pull_one(environment=environment)
        self.assertWhole(self.blob())

    def test_tls(self):
        files = Files(TLS)
        hub = Hub(files, TLS)
        self.addCleanup(files.stop), self.addCleanup(hub.stop)
        hub.add("Org/Tiny-GGUF", {"tiny-Q4_K_M.gguf": LARGE})
        environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        _, err = self.pull_one(code=1, environment=environment)
        self.assertIn("SSL_CERT_FILE", err)
        self.assertEqual(hub.requests, [], "an unknown server gets no request")
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
        self.assertIn(f"redirects from https to {self.files.url}", err)
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
        self.assertIn("its hash is unknown", err)
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
        self.assertIn("may belong to another file", self.gimbal("pull", url)[1])
        self.assertWhole(path, other)

    def test_a_list_with_names_elsewhere(self):
        # As in CVE-2024-37032, where a server's word for a digest was a path that the client wrote to.
        outside = [f"{up}escaped-Q4_K_M.gguf" for up in ("../", "../../../../", "/", "a/../../", "/tmp/")]
        self.hub.add("Org/Evil", dict.fromkeys(outside, SMALL))
        before = self.everything()
        self.gimbal("pull", "hf.co/Org/Evil", "--quiet", code=1)
        self.assertEqual(self.everything() - before, set())
        self.hub.add("Org/Mixed", {**dict.fromkeys(outside, SMALL), "right-Q5_K_M.gguf": SMALL})
        out, _ = self.gimbal("pull", "hf.co/Org/Mixed", "--quiet")
        self.assertTrue(out.endswith("/right-Q5_K_M.gguf\n"), out)
        made = self.everything() - before
        self.assertTrue(made and all(path.startswith(os.path.join(self.home, ".cache/")) for path in made), made)
        self.assertFalse([path for path in made if "escaped" in path])

    def everything(self):
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.home) for name in names} | set(glob.glob("/tmp/escaped*"))

    def test_names_that_are_none(self):
        self.assertIn("gimbal pull hf.co/Org/Tiny-GGUF", self.gimbal("pull", "Org/Tiny-GGUF", code=1)[1])
        self.assertIn("ollama pull", self.gimbal("pull", "llama3.2:1b", code=1)[1])
        self.assertIn("inside the program", self.gimbal("pull", "default")[0])
