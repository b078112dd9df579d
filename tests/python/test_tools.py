"""The server, the doctor and the command, beside the package."""

import json
import os
import subprocess
import sys
import unittest
import urllib.request

import gimbal as gb


class Serve(unittest.TestCase):
    def test_it_answers_as_the_model_does(self):
        body = {"model": "default", "prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
        with gb.serve("default", parallel=2, backend="cpu") as server:
            request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                text = json.load(answer)["choices"][0]["text"]
            process = server.process
        self.assertIsNotNone(process.poll())
        with gb.Model("default", device="cpu", progress=False) as model:
            self.assertEqual(text, model.generate("Once upon a time", max_tokens=8, greedy=True).text)

    def test_what_it_refuses_is_an_error(self):
        with self.assertRaisesRegex(gb.Error, "no/such"):
            gb.serve("no/such.gguf")


class Doctor(unittest.TestCase):
    def test_it_says_what_works(self):
        done = subprocess.run([sys.executable, "-m", "gimbal.doctor"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for word in ("package", "program", "cpu:0", "tensors   work", "models    work"):
            self.assertIn(word, done.stdout)

    def test_a_failure_is_named(self):
        done = subprocess.run([sys.executable, "-m", "gimbal.doctor"], capture_output=True, text=True, env={**os.environ, "GIMBAL": "/bin/false"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("program   FAILED", done.stdout)


if __name__ == "__main__":
    unittest.main()
