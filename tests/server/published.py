"""Compares an answer with the published description of its API (tests/data/api). A field that the description lacks is a fault, unless
ADDED names it. docs/serving.md lists the added fields."""
import json
import os
import re

import jsonschema  # Debian: python3-jsonschema, in `scripts/setup.sh checks`

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "api")
TEXT, COUNT, NUMBER, OBJECT, TEXTS = ({"type": t} for t in ("string", "integer", "number", "object", "array"))
LOADED = {"state": TEXT, "aliases": TEXTS, "parent": TEXT, "device_bytes": COUNT, "expires_in": NUMBER, "max_model_len": COUNT,
          "context_length": COUNT, "input_modalities": TEXTS, "meta": OBJECT}

# Fields of gimbal's own: API, schema, and the path of properties in it.
ADDED = {
    ("openai", "CreateChatCompletionResponse"): {"timings": OBJECT},
    ("openai", "CreateChatCompletionStreamResponse"): {"timings": OBJECT},
    ("openai", "CreateCompletionResponse"): {"timings": OBJECT},
    ("openai", "ChatCompletionResponseMessage"): {"reasoning_content": TEXT},
    ("openai", "ChatCompletionStreamResponseDelta"): {"reasoning_content": TEXT},
    ("openai", "Model"): LOADED,
    ("openai", "Response"): {"store": {"type": "boolean"}},  # OpenAI's own examples have it
}
# Where a description is not what its publisher's server and clients do.
CHANGED = {
    # The answer to `encoding_format: "base64"`.
    ("openai", "Embedding", "embedding"): lambda s: {"anyOf": [s, TEXT]},
    # The same schema describes the events of a stream: a choice without an end, and `usage` as `include_usage` has it.
    ("openai", "CreateCompletionResponse", "usage"): lambda s: {"anyOf": [s, {"type": "null"}]},
    ("openai", "CreateCompletionResponse", "choices", "finish_reason"): lambda s: {"anyOf": [s, {"type": "null"}]},
    # Null until the end, as in OpenAI's examples.
    ("openai", "Response", "usage"): lambda s: {"anyOf": [s, {"type": "null"}]},
    # The first token of a prompt follows nothing.
    ("openai", "CreateCompletionResponse", "choices", "logprobs", "token_logprobs"): lambda s: {"type": "array", "items": {"type": ["number", "null"]}},
    ("openai", "CreateCompletionResponse", "choices", "logprobs", "top_logprobs"):
        lambda s: {"type": "array", "items": {"anyOf": [s["items"], {"type": "null"}]}},
}

# The status 413: in Anthropic's reference of errors, not in the types of its clients.
TOO_LARGE = {"type": "object", "properties": {"type": {"const": "request_too_large"}, "message": TEXT}, "required": ["type", "message"],
             "additionalProperties": False}
CHANGED["anthropic", "ErrorResponse", "error"] = lambda s: {"anyOf": [*s["anyOf"], TOO_LARGE]}

# Of each path: API, schema of a whole answer, schema of an event.
FORMS = [
    ("POST", "(/v1)?/chat/completions", "openai", "CreateChatCompletionResponse", "CreateChatCompletionStreamResponse"),
    ("POST", "/v1/completions", "openai", "CreateCompletionResponse", "CreateCompletionResponse"),
    ("POST", "/v1/embeddings", "openai", "CreateEmbeddingResponse", ""),
    ("POST", "(/v1)?/responses", "openai", "Response", "ResponseStreamEvent"),
    ("GET", "(/v1)?/models", "openai", "ListModelsResponse", ""),
    ("GET", "/v1/models/.+", "openai", "Model", ""),
    ("POST", "/v1/messages", "anthropic", "Message", "RawMessageStreamEvent"),
    ("POST", "/v1/messages/count_tokens", "anthropic", "MessageTokensCount", ""),
    ("POST", "/api/generate", "ollama", "GenerateResponse", "GenerateStreamEvent"),
    ("POST", "/api/chat", "ollama", "ChatResponse", "ChatStreamEvent"),
    ("POST", "/api/embed", "ollama", "EmbedResponse", ""),
    ("POST", "/api/embeddings", "ollama", "EmbeddingResponse", ""),
    ("GET", "/api/tags", "ollama", "ListResponse", ""),
    ("GET", "/api/ps", "ollama", "PsResponse", ""),
    ("POST", "/api/show", "ollama", "ShowResponse", ""),
    ("GET", "/api/version", "ollama", "VersionResponse", ""),
    ("POST", "/api/(pull|create)", "ollama", "StatusEvent", "StatusEvent"),
]


def inside(schema):
    """The object that a schema describes, behind lists and alternatives."""
    while "properties" not in schema:
        schema = schema["items"] if "items" in schema else next(s for s in schema["anyOf"] if s.get("type") != "null")
    return schema["properties"]


def load(api):
    with open(os.path.join(DATA, api + ".json"), encoding="utf-8") as f:
        description = json.load(f)
    schemas = description["$defs"]
    for (of, name), fields in ADDED.items():
        if of == api:
            clash = fields.keys() & schemas[name]["properties"].keys()
            assert not clash, f"{name} has {clash}: an addition is none any more"
            schemas[name]["properties"].update(fields)
    for (of, name, *path), change in CHANGED.items():
        if of == api:
            properties = schemas[name]["properties"]
            for step in path[:-1]:
                properties = inside(properties[step])
            properties[path[-1]] = change(properties[path[-1]])
    return description


def reasons(error):
    """The faults below an error. Of alternatives, those whose `type` is the value's: the others say nothing."""
    if not error.context:
        return [f"{error.json_path}: {error.message[:300]}"]
    branches = {}
    for e in error.context:
        branches.setdefault(e.schema_path[0], []).append(e)
    right = [b for b in branches.values()
             if not any(e.validator == "type" or (e.validator in ("enum", "const") and "type" in list(e.path)[-1:]) for e in b if len(e.path) < 2)]
    return [r for b in (right or list(branches.values()))[:3] for e in b for r in reasons(e)]


class Published:
    def __init__(self):
        self.descriptions = {api: load(api) for api in ("openai", "ollama", "anthropic")}
        self.validators, self.counts, self.seen = {}, {}, set()

    def faults(self, api, name, value):
        key = (api, name)
        if key not in self.validators:
            schema = {"$defs": self.descriptions[api]["$defs"], "$ref": "#/$defs/" + name}
            self.validators[key] = jsonschema.Draft202012Validator(schema)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.note(value)
        return [f"{name}: {r}" for e in self.validators[key].iter_errors(value) for r in reasons(e)]

    def note(self, value):
        """Which fields occurred at all."""
        if isinstance(value, dict):
            self.seen.update(value)
        for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self.note(v)

    def never_seen(self):
        return sorted({f for fields in ADDED.values() for f in fields} - self.seen)

    def unused(self):
        return sorted({(api, name) for _, _, api, *names in FORMS for name in names if name} - self.counts.keys())

    def answer(self, method, path, answer):
        """The faults of one answer; nothing where no publisher describes the path."""
        path = path.split("?")[0]
        api = "ollama" if path.startswith("/api/") else "anthropic" if path.startswith("/v1/messages") else "openai"
        if "/health" in path:  # 503 with a status
            return []
        if answer.status >= 400:
            return self.faults(api, "ErrorResponse", answer.json)
        for of, pattern, api, whole, event in FORMS:
            if of == method and re.fullmatch(pattern, path):
                kind = answer.headers.get("content-type", "")
                if kind.startswith("text/event-stream"):
                    return [f for data in answer.data() for f in self.event(api, event, data)]
                if kind.startswith("application/x-ndjson"):
                    return [f for line in answer.text.splitlines() for f in self.event(api, event, json.loads(line))]
                return self.faults(api, whole, answer.json)
        return []

    def event(self, api, name, value):
        # Streams of OpenAI's older paths, of Anthropic and Ollama end with an error in the form of a whole answer.
        if isinstance(value, dict) and ("error" in value or value.get("type") == "error") and name != "ResponseStreamEvent":
            return self.faults(api, "ErrorResponse", value)
        if api == "anthropic" and value == {"type": "ping"}:  # named in the documents, not in the types
            return []
        return self.faults(api, name, value)
