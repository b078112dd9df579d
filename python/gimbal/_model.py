"""Models: loaded and verified as `gimbal run` does, on the devices of this machine."""

import base64
import json
import math
import os
import threading
import weakref

from . import _gimbal
from ._generation import Generation, Reply
from ._progress import Watch
from ._queues import queue_of
from ._reports import Explanation, Plan, Receipt
from ._tokenizer import Tokenizer

_DEVICE, _MODEL = frozenset(_gimbal.device_settings()), frozenset(_gimbal.model_settings())


def _adapters(lora):
    lora = [lora] if isinstance(lora, (str, os.PathLike, tuple, dict)) else lora
    pairs = [one if isinstance(one, tuple) else (one, 1.0) for one in lora]
    return [one if isinstance(one, dict) else {"path": os.fspath(one), "scale": scale} for one, scale in pairs]


def _options(device, settings):
    """The JSON texts of the engine's and the model's options."""
    engine, model = {}, {}
    for name, value in settings.items():
        if name not in _DEVICE and name not in _MODEL:
            import difflib

            near = difflib.get_close_matches(name, sorted(_DEVICE | _MODEL), 1)
            error = _gimbal.UsageError(f"there is no setting '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
            error.field = name
            raise error
        (engine if name in _DEVICE else model)[name] = os.fspath(value) if isinstance(value, os.PathLike) else value
    if device is not None:
        backend, _, number = device.partition(":")
        engine["backend"] = backend
        if number:
            engine["device"] = int(number)
    if "lora" in model:
        model["lora"] = _adapters(model["lora"])
    return json.dumps(engine), json.dumps(model)


def _schema(schema):
    """A schema as JSON text, and the function that reads a text of it."""
    if schema is None or isinstance(schema, str):
        return schema, None
    if isinstance(schema, dict):
        return json.dumps(schema), None
    if hasattr(schema, "model_json_schema"):
        return json.dumps(schema.model_json_schema()), schema.model_validate_json
    raise _gimbal.UsageError("'schema' must be a JSON schema as a dict or text, or a class of pydantic")


def _image(image):
    """A picture as base64: bytes of its file, or the file's path."""
    if not isinstance(image, (bytes, bytearray, memoryview)):
        with open(image, "rb") as file:
            image = file.read()
    return base64.b64encode(image).decode()


def _images(images):
    return [_image(one) for one in ([images] if isinstance(images, (bytes, bytearray, memoryview, str, os.PathLike)) else images)]


def _text_options(options, stop, schema):
    options = {name: value for name, value in options.items() if value is not None}
    if stop is not None:
        options["stops"] = [stop] if isinstance(stop, str) else list(stop)
    if "images" in options:
        options["images"] = _images(options["images"])
    if schema is not None:
        options["json_schema"] = schema
        options.setdefault("complete", True)
    if isinstance(options.get("template_variables"), dict):
        options["template_variables"] = json.dumps(options["template_variables"])
    if isinstance(options.get("logit_bias"), dict):
        options["logit_bias"] = [[t, None if v == -math.inf else v] for t, v in options["logit_bias"].items()]
    return json.dumps(options)


def _message(message):
    message = {"role": "user", "content": message} if isinstance(message, str) else dict(message)
    if isinstance(message.get("content"), list):
        message["content"] = "".join(part["text"] for part in message["content"])
    if "images" in message:
        message["images"] = _images(message["images"])
    return json.dumps(message)


def _messages(messages):
    return [_message(messages)] if isinstance(messages, (str, dict)) else [_message(m) for m in messages]


def _engine(options, progress):
    watch = Watch(progress)
    return _gimbal.new_engine(options, watch), watch


class Model:
    """A model on the devices of this machine.

        model = gimbal.Model("name, path or hf.co/...", device="auto", context=4096)

    name: a GGUF file, a folder of Hugging Face, a name that `gimbal models` lists, the address of a pulled model, or "default", the small model
    inside the library. device: "auto", "cpu", "cuda:1"; with strict=True nothing else. progress: True for a bar, False for none, None for a bar
    where people look, or a function that gets each event as a dict. Settings are those of docs/python.md: context, batch, sequences,
    cache_type, threads, lora, draft, mmproj, embed, chat_template, ... Kernels are verified before their first use.

    Raises NotFound, FileError, UsageError, DeviceError and OutOfMemory. Threads may share a model; texts that are generated at the same time
    share steps if `sequences` is above 1, and wait for each other if not.
    """

    def __init__(self, name="default", *, device=None, progress=None, **settings):
        self._name, self._device, self._settings = os.fspath(name), device, settings
        engine, model = _options(device, settings)
        self._engine, watch = _engine(engine, progress)
        try:
            self._handle = _gimbal.load_model(self._engine, self._name, model)
        finally:
            watch.close()
        self.events = watch.events
        self._lock, self._batch, self._running = threading.RLock(), None, weakref.WeakSet()
        info = json.loads(_gimbal.model_info(self._handle))
        self.name, self.context, self.vocabulary = info["name"], info["context"], info["vocabulary"]
        self.tokenizer = Tokenizer(self._handle)

    # ---- texts
    def _texts(self):
        """The batch that writes all texts."""
        if self._handle is None:
            raise _gimbal.UsageError("the model is closed")
        if self._batch is None:
            self._batch = _gimbal.new_batch(self._handle, "{}")
        return self._batch

    def _begin(self, submit, prompt, options, made):
        with self._lock:
            generation = made(submit(self._texts(), prompt, options))
            self._running.add(generation)
            return generation

    def generate(self, prompt, *, stop=None, schema=None, **options):
        """Continues a text, or a list of token ids, and returns a Generation at once.

        max_tokens, greedy, temperature, top_k, top_p, min_p, seed, repeat_penalty, grammar (GBNF), logprobs, logit_bias, adapters and the other
        members of TextOptions (docs/python.md). stop: texts that end it. schema: a JSON schema, or a class of pydantic. images: pictures of a text,
        as bytes or paths of files, in the places of "<__media__>", or before it. Equal settings and seed give equal texts.

        Raises UsageError for options out of range, and for a prompt that is empty or does not fit; with the iterator the other errors.
        """
        text, _ = _schema(schema)
        return self._begin(_gimbal.submit, prompt, _text_options(options, stop, text), Generation)

    def generate_many(self, prompts, **options):
        """A list of Generations, one for each prompt, which share steps (`sequences` of them at once). Each text is as alone."""
        all = []
        for prompt in prompts:
            while True:
                try:
                    all.append(self.generate(prompt, **options))
                    break
                except _gimbal.OutOfMemory as error:  # too many wait
                    waiting = [g for g in all if g._result is None]
                    if error.reason != "queue-full" or not waiting:
                        raise
                    waiting[0]._wait()
        return all

    def chat(self, messages, *, tools=None, schema=None, stop=None, **options):
        """The model's answer to messages by the chat template of its file: a Reply, at once.

        messages: a text, or a list of {"role": "system" | "user" | "assistant" | "tool", "content": str}; "images" of one: pictures before its
        content, as bytes or paths, for a model that was loaded with mmproj="FILE". tools: a list of {"name", "description",
        "parameters": JSON schema}, or in OpenAI's form; tool_choice: "auto", "none", "required"; tool: the name of the one to call. think, effort,
        reasoning_budget (tokens). template_variables: more variables of the template, as a dict. Options as generate().

        Raises UsageError for messages that the template refuses; FileError for a template that cannot be read.
        """
        text, parse = _schema(schema)
        if tools:
            options["tools"] = tools
        return self._begin(_gimbal.submit_chat, _messages(messages), _text_options(options, stop, text), lambda handle: Reply(handle, parse))

    def chat_prompt(self, messages, *, tools=None, **options):
        """(text, token ids) of the prompt that chat() would continue."""
        if tools:
            options["tools"] = tools
        return _gimbal.chat_prompt(self._handle, _messages(messages), _text_options(options, None, None))

    # ---- numbers
    def logprobs(self, prompt, *, top=0):
        """The log-probability of each token of a text, or of ids, but the first: a list of floats. With top: also the most likely tokens in each
        place, [{"token", "logprob"}, ...]. `logit_rows` of the model makes it faster."""
        scored = self.generate(prompt, max_tokens=0, logprobs=top, prompt_logprobs=True)
        return (scored.prompt_logprobs, scored.prompt_top) if top else scored.prompt_logprobs

    def perplexity(self, text, *, window=512):
        """(perplexity, standard error) of a text: windows of tokens, the second half of each is scored, as `gimbal perplexity` does."""
        tokens = self.tokenizer.encode(text, parse_special=False)
        first = self.tokenizer.encode("")
        window = min(window, self.context - 1, len(tokens))
        if window < 4:
            raise _gimbal.UsageError(f"there are {window} tokens; 4 or more are needed")
        windows = [tokens[i:i + window] for i in range(0, len(tokens) - window + 1, window)]
        scored = self.generate_many([[*first[:1], *w[len(first[:1]):]] for w in windows], max_tokens=0, logprobs=0, prompt_logprobs=True)
        losses = [-p for g in scored for p in g.prompt_logprobs[window // 2:]]
        mean = math.fsum(losses) / len(losses)
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in losses) / (len(losses) - 1) / len(losses)) if len(losses) > 1 else 0.0
        return math.exp(mean), math.exp(mean) * error

    def _idle(self):
        if any(g._result is None for g in self._running):
            raise _gimbal.UsageError("the model writes a text; wait for its end, or cancel it")

    def logits(self, prompt, *, positions="last", device=None):
        """The logits after a text or ids: f32 [1, vocabulary]; with positions="all" those after each token: f32 [tokens, vocabulary]. Not
        normalised. Raises UsageError while a text is written."""
        if positions not in ("last", "all"):
            raise _gimbal.UsageError("'positions' must be \"last\" or \"all\"")
        tokens = self.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        with self._lock:
            self._idle()
            self._batch = None
            return _gimbal.logits(_gimbal.new_sequence(self._handle), tokens, positions == "all", queue_of(device))

    def embed(self, texts, *, pooling="of_file", normalised=True, device=None):
        """The embeddings of texts: f32 [texts, width]; of one text f32 [width]. The model must be loaded with embed=True. pooling: "of_file", "mean",
        "first", "last". normalised: of Euclidean length 1."""
        one = isinstance(texts, str)
        options = json.dumps({"pooling": pooling, "normalised": bool(normalised)})
        with self._lock:
            rows = _gimbal.embed(self._handle, [texts] if one else texts, options, queue_of(device))
        return rows.select(0, 0) if one else rows

    def rerank(self, query, documents):
        """The relevance of each document for a query: a list of floats, from 0 to 1 by a reranker, from -1 to 1 (the cosine) by another model. The
        model must be loaded with embed=True."""
        with self._lock:
            return _gimbal.rerank(self._handle, query, documents)

    # ---- reports
    def plan(self):
        """The model's plan: placement, memory, reasons."""
        return plan(self._name, device=self._device, **self._settings)

    def explain(self):
        """The plan with the kernel of every op, the reason for it, and the rejected kernels."""
        return explain(self._name, device=self._device, **self._settings)

    def receipt(self):
        """The kernels that ran, with the number of their runs. Raises UsageError while a text is written."""
        with self._lock:
            self._idle()
            return Receipt(json.loads(_gimbal.receipt_of_model(self._handle)))

    def prefix_store(self):
        """The numbers of the folder that `prefix_store=DIR` named, since the model was loaded: a dict with hits, misses, tokens, pages_read,
        pages_written, pages_damaged, pages_dropped, pages_evicted, bytes (in the folder), saved_seconds and errors (a list of texts)."""
        with self._lock:
            return json.loads(_gimbal.prefix_store(self._engine))

    def _info(self, key):
        with self._lock:
            self._idle()
            return json.loads(_gimbal.model_info(self._handle))[key]

    @property
    def placement(self):
        """The devices it runs on and their layers, with the reasons."""
        return self._info("placement")

    @property
    def fallbacks(self):
        """What was requested and is not used, with the reasons."""
        return self._info("fallbacks")

    # ---- its end
    def close(self):
        """Cancels its texts and frees its memory."""
        with self._lock:
            for generation in list(self._running):
                generation.cancel()
            self._batch = self._handle = self._engine = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<gimbal.Model {self.name}: context {self.context}, vocabulary {self.vocabulary}>"


def plan(name="default", *, device=None, progress=False, **settings):
    """The plan that Model(name, ...) would carry out, from the file's header alone: a dict that shows as a table. A model that does not fit is no
    error: `fits` is False, and `misfit` has what would help."""
    engine, model = _options(device, settings)
    return Plan(json.loads(_gimbal.plan_model(_engine(engine, progress)[0], os.fspath(name), model)))


def explain(name="default", *, device=None, progress=False, **settings):
    """The same plan after verification, with the kernel of every op."""
    engine, model = _options(device, settings)
    return Explanation(json.loads(_gimbal.explain_model(_engine(engine, progress)[0], os.fspath(name), model)))


def backends():
    """Every known backend: [{"name", "available", "why_not", "devices": [...]}, ...]. Asks drivers in processes of their own."""
    return json.loads(_gimbal.backends(_engine(_options(None, {})[0], False)[0]))


def models():
    """The model files of this machine: [{"name", "source", "path", "bytes"}, ...]."""
    return json.loads(_gimbal.models(_engine("{}", False)[0]))


def pull(address, *, connections=4, sha256="", progress=None):
    """Downloads hf.co/OWNER/REPO[:QUANT] or the URL of a .gguf file into the caches of this machine, and returns its path. Ctrl-C keeps the bytes
    that arrived."""
    watch = Watch(progress)
    try:
        return _gimbal.pull(address, json.dumps({"connections": connections, "sha256": sha256}), watch)
    finally:
        watch.close()
