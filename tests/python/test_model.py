"""Models in Python: texts, probabilities and embeddings beside those of the program and of other people's engines."""

import base64
import glob
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import gimbal as gb

import golden

TOP = os.path.join(golden.HERE, "..", "..")
GIMBAL = os.environ.get("GIMBAL") or os.path.join(TOP, "build", "release", "gimbal")
STORIES = os.path.join(golden.FOLDER, "stories", "stories260K-f32.gguf")
PROMPT = "Once upon a time"
# The work is verified by other tests; here it would be repeated for each of many small files.
QUICK = {"device": "cpu", "verify": "never", "progress": False}


def program(*arguments, text=None):
    done = subprocess.run([GIMBAL, *arguments, "--json", "--quiet", "--backend", "cpu", "--verify", "never"], input=text, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def stories():
    return gb.Model(STORIES, **QUICK)


def words(data):
    return np.frombuffer(base64.b64decode(data), "<f4")


class Pictures(unittest.TestCase):
    def test_words(self):
        folder = os.path.join(golden.FOLDER, "vision")
        with open(os.path.join(folder, "shapes.json")) as file:
            shapes = json.load(file)["answers"][:2]
        settings = {"mmproj": os.path.join(folder, "mmproj-shapes.gguf"), "cache_type": "f32", "context": 512, "chat_template": "{{ bos_token }}{{ messages[-1].content }}"}
        with gb.Model(os.path.join(folder, "text-shapes.gguf"), **settings, **QUICK) as model:
            for shape in shapes:
                path = os.path.join(folder, "images", shape["image"])
                with open(path, "rb") as file:
                    read = file.read()
                self.assertEqual(model.generate(shape["prompt"], images=[path], greedy=True, max_tokens=48).text, shape["answer"])
                message = {"role": "user", "content": "What is in the picture?", "images": [read]}
                self.assertEqual(" " + model.chat([message], greedy=True, max_tokens=48).text, shape["answer"])
            with self.assertRaises(gb.UsageError):
                model.generate("What?", images=[b"no picture"]).text
        with self.assertRaises(gb.UsageError):
            stories().generate("What?", images=[read]).text


class PrefixStore(unittest.TestCase):
    def test_a_second_model_reads_the_pages(self):
        prompt = "Once upon a time, there was a little girl named Lily. " * 24
        with tempfile.TemporaryDirectory() as folder:
            texts = []
            for _ in range(2):
                with gb.Model(STORIES, prefix_store=pathlib.Path(folder, "store"), prefix_store_bytes=50_000_000, **QUICK) as model:
                    text = model.generate(prompt, greedy=True, max_tokens=10)
                    texts.append((text.text, text.stored_tokens))
                    hits = model.prefix_store()["hits"]
            self.assertEqual(texts[0][0], texts[1][0])
            self.assertEqual(texts[0][1], 0)
            self.assertGreaterEqual(texts[1][1], 256)
            self.assertEqual(hits, 1)
        with self.assertRaises(gb.UsageError) as error:
            gb.Model(STORIES, prefix_store=os.curdir, prefix_store_salt="short", **QUICK)
        self.assertEqual(error.exception.field, "prefix_store_salt")


class Golden(unittest.TestCase):
    """Every small model of every architecture."""


def of_model(path):
    def test(self):
        with open(path[:-5] + ".json") as file:
            facts = json.load(file)
        trained = gb.plan(path, device="cpu")["trained_context"]
        plain = set(facts.get("tensor_types", ())) == {"F32"}  # others are judged by C++, with their tolerances
        cases = [c for c in facts["cases"] if "greedy" in c]
        for case in [*cases[:1], *cases[1:][-1:]]:
            context, n = min(case.get("n_ctx", 512), trained), len(case["greedy"])
            with gb.Model(path, context=context, logit_rows=64, **QUICK) as model:
                got = model.generate(case["tokens"], max_tokens=n, greedy=True, ignore_stop_tokens=True)
                ids = ",".join(map(str, case["tokens"]))
                same = program("run", path, "--tokens", ids, "-n", str(n), "--greedy", "--ignore-eos", "--ctx", str(context))
                self.assertEqual((got.tokens, got.text), (same["tokens"], same["text"]))
                clear = next((i for i, m in enumerate(case.get("greedy_margins", [])) if m < 0.05), n) if plain else 0
                self.assertEqual(got.tokens[:clear], case["greedy"][:clear])
                tokens = case["tokens"] if max(case["positions"]) < len(case["tokens"]) else case["all_tokens"]
                rows = np.asarray(model.logits(tokens, positions="all"))
                self.assertEqual(rows.shape, (len(tokens), model.vocabulary))
                self.assertTrue((rows[-1:] == np.asarray(model.logits(tokens))).all())
                if plain:
                    want = words(case["logits_ref64"]).reshape(len(case["positions"]), -1)
                    self.assertLess(np.abs(rows[case["positions"]] - want).mean(), 0.01)

    return test


for _path in sorted(p for folder in ("stories", "arch", "more/arch") for p in glob.glob(os.path.join(golden.FOLDER, folder, "*.gguf"))):
    setattr(Golden, "test_" + os.path.basename(_path)[:-5].replace("-", "_"), of_model(_path))


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stories()

    def test_pieces_are_the_text_as_the_program_writes_it(self):
        generation = self.model.generate(PROMPT, max_tokens=30, greedy=True)
        pieces = list(generation)
        self.assertGreater(len(pieces), 10)
        same = program("run", STORIES, "-p", PROMPT, "-n", "30", "--greedy", "--logprobs", "2")
        self.assertEqual("".join(pieces), same["text"])
        self.assertEqual((generation.text, generation.tokens, generation.finish), (same["text"], same["tokens"], "length"))
        self.assertEqual(generation.prompt_tokens, same["prompt_tokens"])
        self.assertRaises(StopIteration, next, generation)

    def test_settings_and_seeds(self):
        def text(**options):
            return self.model.generate(PROMPT, max_tokens=16, **options).text

        self.assertEqual(text(seed=3), text(seed=3))
        self.assertNotEqual(text(seed=3, temperature=2.0), text(seed=4, temperature=2.0))
        self.assertEqual(text(greedy=True, stop=" a"), ", there was")
        self.assertEqual(text(greedy=True, logit_bias={432: -math.inf})[:1] == ",", False)
        self.assertRegex(text(grammar='root ::= " yes" | " no"'), "^ (yes|no)$")

    def test_many_at_once_are_as_each_alone(self):
        prompts = [PROMPT, "Lily", "The dog was", "One day", "Tom saw a cat"]
        with gb.Model(STORIES, sequences=3, **QUICK) as model:
            together = [g.tokens for g in model.generate_many(prompts, max_tokens=20, greedy=True)]
        self.assertEqual(together, [self.model.generate(p, max_tokens=20, greedy=True).tokens for p in prompts])

    def test_more_texts_than_can_wait(self):
        all = self.model.generate_many([PROMPT] * 400, max_tokens=1, greedy=True)
        self.assertEqual({g.text for g in all}, {","})

    def test_probabilities(self):
        generation = self.model.generate(PROMPT, max_tokens=5, greedy=True, logprobs=2)
        same = program("run", STORIES, "-p", PROMPT, "-n", "5", "--greedy", "--logprobs", "2")["logprobs"]
        self.assertEqual(generation.logprobs, [t["logprob"] for t in same])
        self.assertEqual([t[0]["token"] for t in generation.top], generation.tokens)
        # Of the prompt: by the logits, in double.
        tokens = self.model.tokenizer.encode(PROMPT)
        rows = np.asarray(self.model.logits(tokens, positions="all"), np.float64)
        want = [rows[i, t] - np.log(np.exp(rows[i]).sum()) for i, t in enumerate(tokens[1:])]
        np.testing.assert_allclose(self.model.logprobs(PROMPT), want, atol=1e-5)
        probable, top = self.model.logprobs(tokens, top=3)
        self.assertEqual([len(t) for t in top], [3] * len(probable))
        with self.assertRaises(gb.UsageError):
            self.model.generate(PROMPT, prompt_logprobs=True)

    def test_perplexity_is_that_of_the_program(self):
        text = self.model.generate(PROMPT, max_tokens=400, seed=7).text
        for window in (64, 100):
            same = program("perplexity", STORIES, "--ctx", str(window), text=text)
            with gb.Model(STORIES, sequences=4, logit_rows=16, **QUICK) as model:
                perplexity, error = model.perplexity(text, window=window)
            self.assertAlmostEqual(perplexity / same["perplexity"], 1, 5)
            self.assertAlmostEqual(error / same["standard_error"], 1, 4)

    def test_drafts_change_no_text(self):
        want = self.model.generate(PROMPT, max_tokens=60, greedy=True).tokens
        with gb.Model(STORIES, draft="ngram", **QUICK) as model:
            drafted = model.generate(PROMPT, max_tokens=60, greedy=True)
            self.assertEqual(drafted.tokens, want)
            self.assertGreaterEqual(drafted.drafted, drafted.accepted)

    def test_a_text_ends_with_its_loop_or_by_cancel(self):
        with self.model.generate(PROMPT, max_tokens=400) as generation:
            next(generation)
        self.assertEqual(generation.finish, "cancelled")
        started = self.model.generate(PROMPT, max_tokens=400)
        started.cancel()
        self.assertIn(started.finish, ("cancelled", "length"))
        for _ in self.model.generate(PROMPT, max_tokens=400):
            break  # the last reference is gone
        self.assertEqual(len(self.model.generate(PROMPT, max_tokens=3).tokens), 3)

    def test_async(self):
        import asyncio

        async def text(prompt):
            pieces = []
            async for piece in self.model.generate(prompt, max_tokens=20, greedy=True):
                pieces.append(piece)
            return "".join(pieces)

        async def all():
            done = await self.model.generate(PROMPT, max_tokens=3, greedy=True)
            return done.text, await asyncio.gather(*(text(p) for p in (PROMPT, "Lily", "One day")))

        three, texts = asyncio.run(all())
        self.assertEqual(texts, [self.model.generate(p, max_tokens=20, greedy=True).text for p in (PROMPT, "Lily", "One day")])
        self.assertTrue(texts[0].startswith(three))

        async def cancelled():
            generation = self.model.generate(PROMPT, max_tokens=400)

            async def read():
                async for _ in generation:
                    pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return generation

        self.assertIn(asyncio.run(cancelled()).finish, ("cancelled", "length"))

    def test_threads_share_a_model(self):
        got, want = [], self.model.generate(PROMPT, max_tokens=20, greedy=True).tokens
        threads = [threading.Thread(target=lambda: got.append(self.model.generate(PROMPT, max_tokens=20, greedy=True).tokens)) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [want] * 6)

    def test_errors(self):
        for wrong in ({"temprature": 1}, {"top_p": 3.0}, {"grammar": "root ::= ("}, {"schema": 3}, {"stop": ""}):
            with self.subTest(wrong), self.assertRaises(gb.UsageError) as caught:
                self.model.generate(PROMPT, **wrong).text
        with self.assertRaises(gb.UsageError):
            self.model.generate([])
        with self.assertRaises(gb.UsageError):
            self.model.generate([10 ** 6])
        with self.assertRaises(gb.UsageError):
            self.model.generate([-1])
        with self.assertRaises(gb.UsageError) as caught:
            gb.Model(STORIES, contxt=3)
        self.assertEqual(caught.exception.field, "contxt")
        with self.assertRaises(gb.NotFound):
            gb.Model("/no/such/model.gguf")
        with self.assertRaises(gb.FileError):
            gb.Model(os.path.join(golden.HERE, "test_model.py"))
        with self.assertRaises(gb.DeviceError):
            gb.Model(STORIES, device="metal", strict=True)
        with gb.Model(STORIES, **QUICK) as closed:
            pass
        with self.assertRaises(gb.UsageError):
            closed.generate(PROMPT)


class Interrupted(unittest.TestCase):
    # A shell ignores SIGINT for what it starts in the background, and Python inherits that.
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_ctrl_c_ends_a_text_at_once(self):
        code = """if True:
            import gimbal as gb, signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)
            model = gb.Model(sys.argv[1], device="cpu", verify="never", context=2048, sequences=1)
            busy = [model.generate("Once", max_tokens=2000, ignore_stop_tokens=True) for _ in range(50)]
            try:
                print("ready", flush=True)
                busy[-1].text
            except KeyboardInterrupt:
                for g in busy: g.cancel()
                print("interrupted", busy[-1].finish, flush=True)
        """
        child = subprocess.Popen([sys.executable, "-c", code, STORIES], stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        self.assertEqual((out, child.returncode), ("interrupted cancelled\n", 0))

    def test_ctrl_c_ends_loading(self):
        def interrupt(event):
            signal.raise_signal(signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            gb.Model(STORIES, device="cpu", verify="always", progress=interrupt)

    def test_an_error_of_the_progress_is_raised(self):
        def fail(event):
            raise RuntimeError(event["kind"])

        with self.assertRaisesRegex(RuntimeError, "verifying|loading|chosen|note"):
            gb.Model(STORIES, device="cpu", verify="always", progress=fail)

    def test_other_threads_run_meanwhile(self):
        count, stop = 0, False

        def work():
            nonlocal count
            while not stop:
                count += 1
                time.sleep(0)

        thread = threading.Thread(target=work)
        model = stories()
        thread.start()
        before = count
        model.generate(PROMPT, max_tokens=200, ignore_stop_tokens=True).text
        stop = True
        thread.join()
        self.assertGreater(count, before)

    def test_a_second_interpreter_is_refused(self):
        code = """if True:
            import _xxsubinterpreters as more
            import gimbal
            try:
                more.run_string(more.create(), "import gimbal")
            except more.RunFailedError as error:
                print(error)
        """
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("one interpreter", told.stdout + told.stderr)


class Chats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stories()

    def test_a_turn_is_as_the_program_answers(self):
        reply = self.model.chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who is Lily?"}], max_tokens=12, greedy=True)
        pieces = list(reply)
        same = program("run", STORIES, "--chat", "-s", "Be brief.", "-p", "Who is Lily?", "-n", "12", "--greedy")
        self.assertEqual(reply.tokens, same["tokens"])
        self.assertEqual("".join(pieces), reply.message["content"])
        self.assertEqual(reply.message["role"], "assistant")
        text, tokens = self.model.chat_prompt([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
        self.assertIn("Hi", text)
        self.assertEqual(tokens, self.model.chat_prompt("Hi")[1])

    def test_structured_output(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
        for of in (schema, json.dumps(schema)):
            value = self.model.chat("How many?", schema=of, max_tokens=40, seed=1).parsed
            self.assertEqual(list(value), ["n"])
            self.assertIn(value["n"], range(10))

    def test_a_class_gives_its_schema_and_reads_the_answer(self):
        class Count:  # as pydantic's classes do
            def __init__(self, n):
                self.n = n

            @classmethod
            def model_json_schema(cls):
                return {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}

            @classmethod
            def model_validate_json(cls, text):
                return cls(**json.loads(text))

        self.assertIn(self.model.chat("How many?", schema=Count, max_tokens=40).parsed.n, (1, 2))

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {
            "type": "object", "properties": {"at": {"enum": ["sky", "sea"]}}, "required": ["at"], "additionalProperties": False}}}
        with gb.Model(STORIES, chat_template="chatml", context=2048, **QUICK) as model:
            reply = model.chat("Look!", tools=[tool], tool_choice="required", max_tokens=100, seed=2)
            kinds = [kind for kind, _ in reply.events()]
            self.assertIn("tool_call", kinds)
            (call,) = reply.tool_calls[:1]
            self.assertEqual(call["name"], "look")
            self.assertIn(call["arguments"]["at"], ("sky", "sea"))
            again = model.chat(["Look!", reply.message, {"role": "tool", "content": "blue", "tool_call_id": ""}], tools=[tool], max_tokens=5)
            self.assertEqual(again.message["role"], "assistant")

    def test_messages_that_make_no_sense(self):
        for wrong in ([], [{"role": "nobody", "content": "x"}], [{"content": "x"}]):
            with self.subTest(wrong), self.assertRaises(gb.UsageError):
                self.model.chat(wrong)


class Numbers(unittest.TestCase):
    def test_embeddings_are_those_of_the_program(self):
        for path in sorted(glob.glob(os.path.join(golden.FOLDER, "more", "embed", "*.gguf"))):
            with self.subTest(path), gb.Model(path, embed=True, **QUICK) as model:
                texts = ["the cat sat", "a dog"]
                rows = np.asarray(model.embed(texts))
                for text, row in zip(texts, rows):
                    np.testing.assert_array_equal(row, np.float32(program("embed", path, "-p", text, "--kv-type", "f16")["embedding"]))
                np.testing.assert_array_equal(np.asarray(model.embed(texts[0])), rows[0])
                np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
                scores = model.rerank("the cat sat", ["the cat sat", "a dog"])
                np.testing.assert_allclose(scores, rows @ rows[0], atol=1e-6)
                with self.assertRaises(gb.UsageError):
                    model.generate("x")

    def test_a_reranker_gives_its_own_judgement(self):
        with tempfile.TemporaryDirectory() as folder:
            bert = os.path.join(golden.FOLDER, "more", "embed", "bert.gguf")
            made = subprocess.run([sys.executable, os.path.join(TOP, "tests", "apps", "reranker.py"), bert, folder, GIMBAL], capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            want = json.loads(made.stdout)
            with gb.Model(os.path.join(folder, "reranker.gguf"), embed=True, **QUICK) as model:
                got = model.rerank(want["query"], want["documents"])
        np.testing.assert_allclose(got, [1 / (1 + math.exp(-s)) for s in want["scores"]], atol=1e-4, rtol=0)

    def test_offsets_spell_the_text(self):
        model = stories()
        for text in ("Once upon a time", " two  spaces\nand lines", "déjà vu, 水 and 🙂", ""):
            parts = model.tokenizer.offsets(text)
            self.assertEqual([t for t, _, _ in parts], model.tokenizer.encode(text))
            self.assertEqual(parts[0][1:], (0, 0))
            at = 0
            for _, begin, end in parts:
                self.assertLessEqual(begin, at)
                self.assertGreaterEqual(end, at)
                at = max(at, end)
            self.assertEqual(at, len(text))
        self.assertEqual(model.tokenizer.decode(model.tokenizer.encode(PROMPT, add_bos=False)), PROMPT)
        self.assertEqual((model.tokenizer.bos, model.tokenizer.is_stop(model.tokenizer.eos), len(model.tokenizer)), (1, True, 512))

    def test_adapters(self):
        want = program("run", STORIES, "-p", PROMPT, "-n", "20", "--greedy")["tokens"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "adapter.gguf")
            write_adapter(path)
            with gb.Model(STORIES, lora=path, **QUICK) as model:
                adapted = model.generate(PROMPT, max_tokens=20, greedy=True).tokens
                without = model.generate(PROMPT, max_tokens=20, greedy=True, adapters=[0]).tokens
            with gb.Model(STORIES, lora=[(path, 0)], **QUICK) as model:
                self.assertEqual(model.generate(PROMPT, max_tokens=20, greedy=True, adapters=[1]).tokens, adapted)
            same = program("run", STORIES, "-p", PROMPT, "-n", "20", "--greedy", "--lora", path)["tokens"]
        self.assertEqual(without, want)
        self.assertEqual(adapted, same)
        self.assertNotEqual(adapted, want)


def write_adapter(path):
    sys.path.insert(0, os.path.join(TOP, "scripts"))
    import gguf_file

    values = np.random.default_rng(1).normal(0, 2, (2, 64 * 4)).astype("<f4")
    metadata = {key: gguf_file.entry(gguf_file.STRING, value) for key, value in
                {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}.items()}
    metadata["adapter.lora.alpha"] = gguf_file.entry(gguf_file.F32, 4.0)
    gguf_file.write(path, metadata, [("blk.0.attn_q.weight.lora_a", [64, 4], 0, values[0].tobytes()), ("blk.0.attn_q.weight.lora_b", [4, 64], 0, values[1].tobytes())])


class Reports(unittest.TestCase):
    def test_plan_explain_and_receipt(self):
        with gb.Model(STORIES, context=256, **QUICK) as model:
            model.generate(PROMPT, max_tokens=3).text
            plan, explained, receipt = model.plan(), model.explain(), model.receipt()
            self.assertEqual((plan["context"], plan["fits"], plan["placement"]), (256, True, model.placement))
            self.assertEqual(model.fallbacks, [])
        self.assertEqual(explained["plan"]["context"], 256)
        kernels = {c["kernel"] for c in explained["choices"]}
        self.assertTrue({r["kernel"] for r in receipt if r["op"] != "top_k"} <= kernels)  # which runs after the step
        self.assertTrue(all(r["runs"] for r in receipt if not r["not_counted"]))
        for shown in (plan, explained, receipt):
            self.assertIn("cpu:0", str(shown))
            self.assertIn("<table>", shown._repr_html_())
            self.assertIn(type(shown).__name__, repr(shown))
        small = gb.plan(STORIES, context=128, cache_type="f32")
        self.assertEqual((small["context"], small["cache_type"]), (128, "f32"))

    def test_events_and_devices(self):
        events = []
        with gb.Model(STORIES, device="cpu", verify="always", progress=events.append):
            pass
        self.assertTrue({"verifying", "loading"} <= {e["kind"] for e in events})
        self.assertTrue(all(e["done"] <= e["total"] for e in events if e["total"]))
        names = [b["name"] for b in gb.backends()]
        self.assertIn("cpu", names)
        self.assertIsInstance(gb.models(), list)

    def test_a_fallback_is_a_warning(self):
        with self.assertWarnsRegex(RuntimeWarning, "metal is not used"):
            gb.Model(STORIES, device="metal", verify="never", progress=False).close()


if __name__ == "__main__":
    unittest.main()
