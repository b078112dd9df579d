"""Requests of every kind that OpenAI, Anthropic and Ollama describe and gimbal serves: path, body, and the status of the answer."""
import glob
import json
import os

from contract_client import USER

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "agents")
SCHEMA = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"], "additionalProperties": False}
FUNCTION = {"name": "weather", "description": "The weather", "parameters": SCHEMA}
CHAT_TOOLS = {"tools": [{"type": "function", "function": FUNCTION}]}
CHAT_CHOICE = {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
# A call as a template without tools has it: the model must write this.
CALL = {"type": "object", "properties": {"name": {"const": "weather"}, "parameters": SCHEMA}, "required": ["name", "parameters"],
        "additionalProperties": False}
LONG = "a b c " * 4000
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

# Tools of the Responses API, each alone: the model must call it.
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
RESPONSE_TOOLS = [
    {"type": "function", **FUNCTION, "strict": True},
    {"type": "custom", "name": "apply_patch", "description": "Changes files", "format": GRAMMAR},
    {"type": "custom", "name": "note"},
    {"type": "local_shell"},
    {"type": "namespace", "name": "mail", "description": "Letters", "tools": [{"type": "function", **FUNCTION}]},
    {"type": "namespace", "name": "mcp__files__", "description": "Files", "tools": [{"type": "custom", "name": "write"}]},
]


def openai(model):
    chat = lambda **more: ("/v1/chat/completions", {"model": model, "messages": USER, "max_tokens": 12, **more}, 200)
    text = lambda **more: ("/v1/completions", {"model": model, "prompt": "Once", "max_tokens": 6, **more}, 200)
    response = lambda **more: ("/v1/responses", {"model": model, "input": "Tell", "max_output_tokens": 12, **more}, 200)
    wrong = lambda request, status=400: (*request[:2], status)
    for stream in ({}, {"stream": True}):
        yield chat(**stream)
        yield chat(n=3, logprobs=True, top_logprobs=3, **stream)
        yield chat(max_tokens=40, reasoning_budget=4, **stream)
        yield chat(max_tokens=120, **CHAT_TOOLS, **CHAT_CHOICE, **stream)
        yield chat(max_tokens=60, response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}, **stream)
        yield text(**stream)
        yield text(n=2, logprobs=3, echo=True, **stream)
        yield text(max_tokens=0, logprobs=0, echo=True, **stream)
        yield text(stop=["e"], max_tokens=40, **stream)
        yield response(**stream)
        yield response(instructions="Be brief.", reasoning={"effort": "low", "summary": "auto"}, metadata={"a": "b"}, user="u", temperature=0.5,
                       top_p=0.9, max_output_tokens=300, **stream)
        yield response(input=[{"role": "user", "content": [{"type": "input_text", "text": "Tell"}]}], max_output_tokens=80,
                       text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}, **stream)
        for tool in RESPONSE_TOOLS:
            yield response(tools=[tool], tool_choice="required", parallel_tool_calls=False, max_output_tokens=200, **stream)
        yield response(tools=RESPONSE_TOOLS, tool_choice={"type": "custom", "name": "note"}, max_output_tokens=150, **stream)
        yield response(tools=[{"type": "function", "name": "bare"}, {"type": "web_search"}, {"type": "image_generation", "output_format": "png"},
                              {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}}],
                       text={"verbosity": "low"}, **stream)
    yield chat(stream=True, stream_options={"include_usage": True}, timings_per_token=True)
    yield text(stream=True, stream_options={"include_usage": True})
    yield text(prompt=["a", "b"])
    for form in ("float", "base64"):
        yield "/v1/embeddings", {"model": model, "input": ["a b", "c"], "encoding_format": form}, 200
    yield wrong(chat(temperature="x"))
    yield wrong(chat(no_such_field=1))
    yield wrong(chat(messages=[{"role": "user", "content": [PICTURE]}]))
    yield wrong(response(previous_response_id="resp_1"))
    yield wrong(response(tools=[{"type": "computer_use_preview"}]))
    yield wrong(text(prompt=LONG))
    yield wrong(text(prompt=LONG, stream=True))


def anthropic(model):
    message = lambda **more: ("/v1/messages", {"model": model, "messages": USER, "max_tokens": 12, **more}, 200)
    wrong = lambda request: (*request[:2], 400)
    tools = {"tools": [{"name": "weather", "input_schema": SCHEMA}]}
    for stream in ({}, {"stream": True}):
        yield message(**stream)
        yield message(max_tokens=40, thinking={"type": "enabled", "budget_tokens": 4}, **stream)
        yield message(max_tokens=40, stop_sequences=["e"], **stream)
        yield message(max_tokens=120, tool_choice={"type": "tool", "name": "weather"}, **tools, **stream)
        yield message(max_tokens=60, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}, **stream)
    yield "/v1/messages/count_tokens", {"model": model, "messages": USER, **tools}, 200
    yield wrong(message(temperature=9))
    yield wrong(message(messages=[{"role": "user", "content": LONG}]))
    yield wrong(message(stream=True, messages=[{"role": "user", "content": LONG}]))
    yield "/v1/messages", {"model": model, "messages": USER}, 400
    yield "/v1/messages/count_tokens", {"model": model}, 400


def ollama(model):
    few = {"options": {"num_predict": 8, "temperature": 0}}
    for stream in ({"stream": False}, {}):
        yield "/api/generate", {"model": model, "prompt": "Once", **few, **stream}, 200
        yield "/api/generate", {"model": model, "prompt": "Once", "think": True, **few, **stream}, 200
        yield "/api/generate", {"model": model, "prompt": "Once", "raw": True, "logprobs": True, "top_logprobs": 2, **few, **stream}, 200
        yield "/api/generate", {"model": model, **stream}, 200
        yield "/api/chat", {"model": model, "messages": USER, **few, **stream}, 200
        yield "/api/chat", {"model": model, "messages": USER, "think": True, "logprobs": True, **few, **stream}, 200
        yield "/api/chat", {"model": model, "messages": USER, "format": SCHEMA, "options": {"num_predict": 60}, **stream}, 200
        yield "/api/chat", {"model": model, "messages": USER, "format": CALL, "options": {"num_predict": 90}, **CHAT_TOOLS, **stream}, 200
        yield "/api/chat", {"model": model, "messages": [], **stream}, 200
        yield "/api/generate", {"model": model, "keep_alive": 0, **stream}, 200
    yield "/api/embed", {"model": model, "input": ["a b", "c"]}, 200
    yield "/api/embeddings", {"model": model, "prompt": "a b"}, 200
    yield "/api/show", {"model": model}, 200
    yield "/api/show", {"model": model, "verbose": True}, 200
    yield "/api/show", {"model": "nobody"}, 404
    yield "/api/chat", {"model": "nobody", "messages": USER}, 404
    yield "/api/generate", {"model": model, "prompt": 5}, 400
    yield "/api/create", {"model": "made", "from": model}, 403


def made(model):
    """For a server whose clients may add models."""
    for stream in ({"stream": False}, {}):
        yield "/api/create", {"model": f"made{len(stream)}", "from": model, "system": "Be brief.", "parameters": {"top_k": 3}, **stream}, 200
        yield "/api/show", {"model": f"made{len(stream)}"}, 200
        yield "/api/generate", {"model": f"made{len(stream)}", "prompt": "Once", "options": {"num_predict": 8}, **stream}, 200
    yield "/api/pull", {"model": "http://127.0.0.1:9/none", "stream": False}, None
    yield "/v1/chat/completions", {"model": "nobody", "messages": USER}, 404
    yield "/v1/messages", {"model": "nobody", "messages": USER, "max_tokens": 2}, 404


def agents(model):
    """What agents and front ends send (agents_test)."""
    for file in sorted(glob.glob(os.path.join(DATA, "*.json"))):
        with open(file, encoding="utf-8") as f:
            for r in json.load(f):
                if "body" in r:
                    yield r["path"], json.loads(json.dumps(r["body"]).replace('"MODEL"', json.dumps(model))), 200
