#!/usr/bin/env python3
"""What a client sees of `gimbal serve`, against the contract that clients rely on. Each check names its section there (SERVE.md of the design).

Usage: tests/server/contract_test.py GIMBAL ASSET   (the program; the built-in model's file). Needs seconds; Python's standard library only.
"""
import base64
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract_client import Checks, Server  # noqa: E402

GIMBAL, ASSET = sys.argv[1], sys.argv[2]
check = Checks()
USER = [{"role": "user", "content": "Tell"}]


def gimbal(*words):
    return subprocess.run([GIMBAL, *words], capture_output=True, text=True, timeout=60).stdout


def wrong(answer, code=None):
    """OpenAI's form of an error."""
    e = (answer.json or {}).get("error", {})
    return answer.status == 400 and e.get("type") == "invalid_request_error" and bool(e.get("message")) and (not code or e.get("code") == code)


def start(_):
    check.begin("Start")
    with Server(GIMBAL, check=check) as s:
        check("it listens on this machine only", s.start["url"].startswith("http://127.0.0.1:"), s.start)
        for headers in ({"Authorization": "Bearer any"}, {"x-api-key": "any"}):
            check("any key on loopback", s.ask("/v1/models", headers=headers).status == 200)
    with Server(GIMBAL, "--api-key", "right", check=check) as s:
        for path in ("/health/live", "/health/ready"):
            check(f"{path} needs no key", s.ask(path).status == 200)
        for headers in ({"Authorization": "Bearer right"}, {"x-api-key": "right"}):
            check("the key opens", s.ask("/v1/models", headers=headers).status == 200, headers)
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"x-api-key": "righ"}, {"x-api-key": "rightt"}, {"Authorization": "right"}):
            a = s.ask("/v1/chat/completions", {"model": s.model, "messages": USER}, headers=headers)
            check("401 of OpenAI", a.status == 401 and a.json["error"]["code"] == "invalid_api_key", (headers, a))
            a = s.ask("/v1/messages", {"model": s.model, "messages": USER, "max_tokens": 1}, headers=headers)
            check("401 of Anthropic", a.status == 401 and a.json["error"]["type"] == "authentication_error", (headers, a))
            a = s.ask("/api/tags", headers=headers)
            check("401 of Ollama", a.status == 401 and isinstance(a.json["error"], str), (headers, a))
    with Server(GIMBAL, "--host", "0.0.0.0", check=check) as s:
        said = re.findall(r"shown once, here: (\S+)", s.said_on_stderr())
        check("beyond loopback a key is made up and shown once", len(said) == 1 and len(said[0]) >= 20, said)
        check("401 without it", s.ask("/v1/models").status == 401)
        check("200 with it", s.ask("/v1/models", headers={"x-api-key": said[0]}).status == 200)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write('api-key = "of the file"\ncors-origin = "https://a.example"\n'), f.flush()
        with Server(GIMBAL, "--config", f.name, check=check) as s:
            check("options of a file", s.ask("/v1/models").status == 401)
            a = s.ask("/v1/models", headers={"x-api-key": "of the file", "Origin": "https://a.example"})
            check("options of a file", a.status == 200)
            check.begin("HTTP")
            check("a site that was named may ask", a.headers.get("access-control-allow-origin") == "https://a.example", a.headers)
            a = s.ask("/v1/models", headers={"x-api-key": "of the file", "Origin": "https://b.example"})
            check("another one may not", a.headers.get("access-control-allow-origin") in (None, "https://a.example"), a.headers)
            check.begin("Start")
    with Server(GIMBAL, environment={"GIMBAL_API_KEY": "of the environment"}, check=check) as s:
        check("options of the environment", s.ask("/v1/models").status == 401)
        check("options of the environment", s.ask("/v1/models", headers={"x-api-key": "of the environment"}).status == 200)


def models(s):
    check.begin("Models")
    a = s.ask("/v1/models")
    check("/v1/models", a.status == 200 and a.json["object"] == "list" and a.json["data"][0]["id"] == s.model, a)
    texts = {"/v1/chat/completions": {"messages": USER}, "/v1/completions": {"prompt": "x"}, "/v1/embeddings": {"input": "x"},
             "/v1/responses": {"input": "x"}, "/v1/rerank": {"query": "x", "documents": ["a"]}, "/v1/jobs": {"prompt": "x"},
             "/v1/messages": {"messages": USER, "max_tokens": 2}, "/v1/messages/count_tokens": {"messages": USER},
             "/api/generate": {"prompt": "x", "stream": False}, "/api/chat": {"messages": USER, "stream": False}, "/api/show": {}, "/api/embed": {"input": "x"}}
    for path, body in texts.items():
        a = s.ask(path, dict(body, model=s.model, **({"max_tokens": 2} if path in ("/v1/completions", "/v1/chat/completions") else {})))
        check(f"{path} knows the id", a.status in (200, 201, 202), a)
        a = s.ask(path, dict(body, model="nobody"))
        e = a.json["error"]
        form = isinstance(e, str) if path.startswith("/api/") else e["type"] == "not_found_error" if "/messages" in path else e["code"] == "model_not_found"
        check(f"{path} of an unknown model", a.status == 404 and form, a)
    check("Ollama's name with its tag", s.ask("/api/show", {"model": s.model + ":latest"}).status == 200)
    tags = s.ask("/api/tags").json["models"][0]
    check("/api/tags has the file's sha256", tags["digest"].removeprefix("sha256:") == hashlib.sha256(open(ASSET, "rb").read()).hexdigest(), tags)
    show = s.ask("/api/show", {"model": s.model}).json
    check("/api/show", "completion" in show["capabilities"] and show["model_info"]["general.architecture"] == "llama", show)
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name + ".gguf") for name in ("one", "two")]
        for file in files:
            os.symlink(os.path.abspath(ASSET), file)
        with Server(GIMBAL, *files, "--keep-alive", "1", check=check) as several:
            loaded = lambda: sorted(m["name"].split(":")[0] for m in several.ask("/api/ps").json["models"])
            check("several models", [m["id"] for m in several.ask("/v1/models").json["data"]] == ["one", "two"])
            several.model = "two"
            check("loaded on demand", several.completion(prompt="x", max_tokens=2).status == 200 and "two" in loaded(), loaded())
            check("unloaded after --keep-alive", several.until(lambda: loaded() == []) is True, loaded())
            check("and loaded again", several.completion(prompt="x", max_tokens=2).status == 200)


def plain_form(s):
    check.begin("No chat template in the file")
    roles = [{"role": "developer", "content": "d"}, {"role": "user", "content": "x"},
             {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
             {"role": "tool", "tool_call_id": "1", "content": "r"}]
    check("every role", s.chat(messages=roles, max_tokens=2).status == 200)
    chat = s.chat(max_tokens=1, temperature=0).json["usage"]["prompt_tokens"]
    others = {"count_tokens": s.ask("/v1/messages/count_tokens", {"model": s.model, "messages": USER}).json["input_tokens"],
              "responses": s.ask("/v1/responses", {"model": s.model, "input": "Tell", "max_output_tokens": 16}).json["usage"]["input_tokens"],
              "/api/chat": s.ask("/api/chat", {"model": s.model, "messages": USER, "stream": False, "options": {"num_predict": 1}}).json["prompt_eval_count"]}
    check("the same form in every API", set(others.values()) == {chat}, (chat, others))
    system = [dict(USER[0], role="developer"), USER[0]]
    same = [s.said(messages=[dict(system[0], role=r), USER[0]], max_tokens=12, temperature=0) for r in ("developer", "system")]
    check("developer is system", same[0] == same[1], same)
    tools = [{"type": "function", "function": {"name": name, "description": "Tells what it is like in a place.", "parameters": {
        "type": "object", "properties": {"place": {"type": "string", "maxLength": 8}}, "required": ["place"], "additionalProperties": False}}}
        for name in ("get_weather", "get_time")]
    a = s.chat(tools=tools, max_tokens=160)
    check("two small tools and 160 tokens fit 512", a.status == 200 and a.json["usage"]["prompt_tokens"] + 160 <= 512, a)
    lengths = [s.chat(messages=[{"role": "user", "content": w}], max_tokens=1).json["usage"]["prompt_tokens"] for w in ("x", "</s>", "<s>", "<unk>")]
    check("what a user writes never becomes a control token", all(n > lengths[0] for n in lengths[1:]), lengths)


def counts(s):
    check.begin("Counts")
    a = s.completion(prompt="Once upon a time", max_tokens=8)
    ids = json.loads(gimbal("tokenize", "default", "--text", "Once upon a time", "--json"))
    ids = ids["tokens"] if isinstance(ids, dict) else ids
    check("prompt_tokens are those of gimbal tokenize", a.json["usage"]["prompt_tokens"] == len(ids), (a, ids))
    check("length when max_tokens are used up", a.json["usage"]["completion_tokens"] == 8 and a.json["choices"][0]["finish_reason"] == "length", a)
    several = s.completion(prompt="Once upon a time", max_tokens=8, n=3, temperature=1).json["usage"]
    check("the prompt counts once for n", several["prompt_tokens"] == len(ids) and several["completion_tokens"] == 24, several)
    a = s.completion(prompt="x", grammar='root ::= "yes"', max_tokens=20, logprobs=1)
    c = a.json["choices"][0]
    check("the end token does not count", c["text"] == "yes" and c["finish_reason"] == "stop" and a.json["usage"]["completion_tokens"] == len(c["logprobs"]["tokens"]), a)
    used = a.json["usage"]["completion_tokens"]
    a = s.completion(prompt="x", grammar='root ::= "yes" "no"*', max_tokens=used)
    check("length exactly when it was used up", a.json["choices"][0]["finish_reason"] == "length", a)
    a = s.completion(prompt="Once", max_tokens=10**8, stop=["."])
    check("max_tokens beyond the context is clamped", a.status == 200 and a.json["choices"][0]["finish_reason"] == "stop", a)
    a = s.completion(prompt="Once", max_tokens=10**8, logit_bias={"2": -100, "1": -100})
    total = a.json["usage"]["total_tokens"]
    check("length when the context is used up", a.json["choices"][0]["finish_reason"] == "length" and 511 <= total <= 513, a.json["usage"])
    a = s.completion(prompt="a b c " * 4000, max_tokens=1)
    check("a prompt beyond the context", wrong(a, "context_length_exceeded") and "512" in a.json["error"]["message"], a)


def sampling(s):
    check.begin("Sampling")
    text = s.completion(prompt="Once upon a time", max_tokens=60).json["choices"][0]["text"]
    ran = gimbal("run", "default", "--raw", "--greedy", "-p", "Once upon a time", "-n", "60", "--quiet")
    check("temperature 0 is greedy, as gimbal run", ran.rstrip("\n").endswith(text.rstrip("\n")) and len(text) > 60, (ran, text))
    seeded = {"messages": USER, "max_tokens": 24, "seed": 7, "temperature": 1}
    alone = s.said(**seeded)
    check("a seed gives the same text", s.said(**seeded) == alone)
    streamed = "".join(e["choices"][0]["delta"].get("content") or "" for e in s.chat(stream=True, **seeded).events() if e["choices"])
    check("and streamed", streamed == alone, (streamed, alone))
    under_load = []
    load = [threading.Thread(target=lambda i=i: under_load.append((i, s.said(**(seeded if i % 2 else dict(seeded, seed=i)))))) for i in range(12)]
    for t in load: t.start()
    for t in load: t.join()
    check("and under load", all(said == alone for i, said in under_load if i % 2) and len(under_load) == 12, (under_load, alone))
    check("no seed, another text", len({s.completion(prompt="One", max_tokens=16, temperature=1).json["choices"][0]["text"] for _ in range(4)}) > 1)
    a = s.chat(n=8, max_tokens=16, temperature=1)
    check("n sampled choices differ", len({c["message"]["content"] for c in a.json["choices"]}) > 1 and len(a.json["choices"]) == 8, a)
    forced = s.completion(prompt="One", max_tokens=4, logit_bias={"300": 100}, logprobs=1).json["choices"][0]["logprobs"]["tokens"]
    check("a bias of 100 forces", len(set(forced)) == 1 and len(forced) == 4, forced)
    chosen = s.completion(prompt="Once upon a time", max_tokens=1, logprobs=5).json["choices"][0]
    ids = json.loads(gimbal("tokenize", "default", "--text", "Once upon a time" + chosen["text"], "--json"))
    ids = ids["tokens"] if isinstance(ids, dict) else ids
    last = ids[-1]["id"] if isinstance(ids[-1], dict) else ids[-1]
    banned = s.completion(prompt="Once upon a time", max_tokens=1, logit_bias={str(last): -100}).json["choices"][0]["text"]
    check("a bias of -100 bans", banned != chosen["text"], (last, banned, chosen))
    check("20 top_logprobs", len(s.chat(max_tokens=1, logprobs=True, top_logprobs=20).json["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 20)
    for field, values in {"temperature": (-1, 9, "x"), "top_p": (2, -0.1), "n": (0, 9), "top_logprobs": (21, -1), "presence_penalty": (3,),
                          "frequency_penalty": (-3,), "seed": ("a", 1.5), "stop": (5, [1]), "logit_bias": ({"x": 1}, {"5": 101}, {"99999": 1}),
                          "max_tokens": (-1, "x"), "stream": ("yes",), "max_completion_tokens": ("many",), "logprobs": (7,),
                          "response_format": ({"type": "xml"},), "tools": ([{"type": "zzz"}],), "messages": ([], "x", [{"role": "nobody", "content": "x"}]),
                          "no_such_field": (1,), "tool_choice": ("sometimes",), "model": (5,)}.items():
        for value in values:
            a = s.chat(**{"max_tokens": 2, **({"logprobs": True} if field == "top_logprobs" else {}), field: value})
            check(f"{field} {value!r} is refused by name", wrong(a) and re.split(r"[.\[]", a.json["error"].get("param") or "")[0] == field, a)
    # Nothing known is ignored in silence: done, or refused by name.
    known = {"audio": {"voice": "alloy", "format": "mp3"}, "modalities": ["text", "audio"], "prediction": {"type": "content", "content": "x"}, "service_tier": "flex",
             "store": True, "metadata": {"a": "b"}, "user": "u", "parallel_tool_calls": False, "reasoning_effort": "high", "verbosity": "low",
             "web_search_options": {}, "functions": [{"name": "f"}], "function_call": "auto", "prompt_cache_key": "k", "safety_identifier": "s"}
    for field, value in known.items():
        a = s.chat(max_tokens=2, **{field: value})
        check(f"{field} is done, or refused by name", a.status == 200 or (wrong(a) and field in (a.json["error"].get("param") or "")), a)
    for field, value in {"best_of": 2, "suffix": "x", "echo": True, "user": "u"}.items():
        a = s.completion(prompt="x", max_tokens=2, **{field: value})
        check(f"{field} of completions is done, or refused by name", a.status == 200 or (wrong(a) and a.json["error"]["param"] == field), a)
    a = s.ask("/v1/messages", {"model": s.model, "max_tokens": 2, "messages": USER, "temperature": 9})
    check("in Anthropic's form", a.status == 400 and a.json["type"] == "error" and a.json["error"]["type"] == "invalid_request_error", a)
    check("max_tokens is Anthropic's duty", s.ask("/v1/messages", {"model": s.model, "messages": USER}).status == 400)
    a = s.ask("/api/generate", {"model": s.model, "prompt": "x", "stream": False, "options": {"temperature": "x"}})
    check("in Ollama's form", a.status == 400 and isinstance(a.json["error"], str), a)


def constrained(s):
    check.begin("Constrained answers")

    def answers(schema, **more):
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
        return s.chat(**{"max_tokens": 400, "temperature": 1, "seed": 3, "response_format": form, **more})

    date = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    clock = r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|z|[+-]\d\d:\d\d)"
    closed = {"type": "object", "additionalProperties": False}
    for name, schema, right in [
            ("type, minimum, maximum", {"type": "integer", "minimum": 3, "maximum": 5}, lambda v: v in (3, 4, 5)),
            ("properties, required, additionalProperties", {**closed, "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}, "required": ["a"]},
             lambda v: set(v) in ({"a"}, {"a", "b"}) and isinstance(v["a"], bool)),
            ("enum", {"enum": ["x", 5, None]}, lambda v: v in ("x", 5, None)), ("const", {"const": {"a": [1]}}, lambda v: v == {"a": [1]}),
            ("anyOf", {"anyOf": [{"const": 1}, {"const": "b"}]}, lambda v: v in (1, "b")),
            ("oneOf", {"oneOf": [{"type": "boolean"}, {"const": "b"}]}, lambda v: v in (True, False, "b")),
            ("allOf", {"allOf": [{"type": "integer", "minimum": 4}, {"maximum": 5}]}, lambda v: v in (4, 5)),
            ("$ref, $defs", {"$defs": {"d": {"const": 7}}, **closed, "properties": {"a": {"$ref": "#/$defs/d"}}, "required": ["a"]}, lambda v: v == {"a": 7}),
            ("items, minItems, maxItems", {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
             lambda v: len(v) in (2, 3) and all(isinstance(x, bool) for x in v)),
            ("prefixItems", {"type": "array", "prefixItems": [{"const": 1}, {"const": "b"}], "items": False, "minItems": 2}, lambda v: v == [1, "b"]),
            ("minLength, maxLength", {"type": "string", "minLength": 3, "maxLength": 5}, lambda v: 3 <= len(v) <= 5),
            ("pattern", {"type": "string", "pattern": "^[a-c]{2}x$"}, lambda v: re.fullmatch("[a-c]{2}x", v)),
            ("format date", {"type": "string", "format": "date"}, lambda v: re.fullmatch(date, v)),
            ("format time", {"type": "string", "format": "time"}, lambda v: re.fullmatch(clock, v)),
            ("format date-time", {"type": "string", "format": "date-time"}, lambda v: re.fullmatch(date + "[Tt]" + clock, v)),
            ("format uuid", {"type": "string", "format": "uuid"}, lambda v: re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", v))]:
        a = answers(schema)
        # A finite schema ends by itself: white space is bounded.
        try:
            ok = a.json["choices"][0]["finish_reason"] == "stop" and bool(right(json.loads(a.json["choices"][0]["message"]["content"])))
        except (TypeError, KeyError, ValueError):
            ok = False
        check(name, ok, a)
    for keyword, value in {"propertyNames": {"type": "integer"}, "dependentSchemas": {"a": {}}, "zzz": 1, "not": {"type": "integer"}, "contains": {"const": 1},
                           "minProperties": 1, "patternProperties": {"^a": {}}, "multipleOf": 3, "uniqueItems": True, "if": {"const": 1},
                           "exclusiveMinimum": 3, "unevaluatedProperties": False, "format": "ipv4"}.items():
        a = answers({"type": "string" if keyword == "format" else "object", keyword: value})
        check(f"{keyword} is obeyed, or refused by name", a.status == 200 or (wrong(a) and keyword in a.json["error"]["message"]), a)
    grammar = 'root ::= "yes" | "no"'
    check("grammar of completions", s.completion(prompt="x", grammar=grammar, max_tokens=9).json["choices"][0]["text"] in ("yes", "no"))
    check("grammar of chat", s.said(grammar=grammar, max_tokens=9) in ("yes", "no"))
    check("a grammar that is none", wrong(s.completion(prompt="x", grammar="root ::= (", max_tokens=9)))
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {**closed, "properties": {"c": {"type": "string", "maxLength": 5}}, "required": ["c"]}}}
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        c = s.chat(tools=[tool], tool_choice=choice, max_tokens=160).json["choices"][0]
        call = c["message"]["tool_calls"][0]["function"]
        check("a call that is required", c["finish_reason"] == "tool_calls" and call["name"] == "get_weather" and len(json.loads(call["arguments"])["c"]) <= 5, c)
    check("a form beside tools", s.chat(tools=[tool], response_format={"type": "json_object"}, max_tokens=100).status == 200)
    # Somebody's explosion: an answer within 15 s, and others are served meanwhile.
    exploding = {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}}]} for i in range(40)}}
    exploding["$defs"]["d40"] = {"type": "string", "pattern": "(a|b|ab)*(c{0,400}d{0,400}){0,400}$"}
    exploding["$ref"] = "#/$defs/d0"
    ambiguous = "root ::= m0\n" + "\n".join(f"m{i} ::= [a-{chr(103 + i % 19)} ] (m{i * 7 % 60} | m{(i * 11 + 5) % 60} [a-z])?" for i in range(60))
    said = []
    hostile = [threading.Thread(target=lambda f=f: said.append((time.monotonic(), f()))) for f in (
        lambda: answers(exploding), *([lambda: s.completion(prompt="x", grammar=ambiguous, max_tokens=50, temperature=1)] * 8))]
    begin = time.monotonic()
    for t in hostile: t.start()
    meanwhile = 0
    while any(t.is_alive() for t in hostile):
        meanwhile += s.completion(prompt="Once", max_tokens=4).status == 200
    for t in hostile: t.join()
    check("an explosion is answered within 15 s", len(said) == 9 and max(at for at, _ in said) - begin < 15 and all(a.status in (200, 400) for _, a in said),
          [(at - begin, a) for at, a in said])
    check("others are served meanwhile", meanwhile > 0, meanwhile)


def streams(s):
    check.begin("Streams")
    form = "\u00e9\u4e2d\U0001f600"
    for path, body, named in (("/v1/completions", {"prompt": "x", "grammar": f'root ::= "{form}"{{3}}', "max_tokens": 60}, False),
                              ("/v1/chat/completions", {"messages": USER, "max_tokens": 5, "stream_options": {"include_usage": True}}, False),
                              ("/v1/messages", {"messages": USER, "max_tokens": 5}, True), ("/v1/responses", {"input": "Tell", "max_output_tokens": 16}, True)):
        a = s.ask(path, {"model": s.model, "stream": True, **body})
        lines = a.text.split("\n")
        check(f"{path}: an event stream", a.headers["content-type"].startswith("text/event-stream") and a.status == 200, a.headers)
        check(f"{path}: LF", "\r" not in a.text)
        check(f"{path}: 'data: ', and nothing unknown", all(not l or re.match(r"data: \S|event: \S|:", l) for l in lines), a.text)
        check(f"{path}: one data line an event", all(e.count("data: ") == 1 for e in a.text.strip().split("\n\n") if not e.startswith(":")), a.text)
        check(f"{path}: names", named == any(l.startswith("event: ") for l in lines), a.text)
        if path in ("/v1/completions", "/v1/chat/completions"):
            check(f"{path}: [DONE]", a.text.endswith("data: [DONE]\n\n"), a.text[-60:])
        if path == "/v1/completions":
            pieces = [e["choices"][0]["text"] for e in a.events() if e["choices"]]
            check("no half character", "".join(pieces) == form * 3 and "\ufffd" not in a.text, pieces)
        if path == "/v1/messages":
            names = [l[7:] for l in lines if l.startswith("event: ")]
            check("Anthropic's events", names[0] == "message_start" and names[-1] == "message_stop" and "content_block_delta" in names, names)
        if path == "/v1/responses":
            names = [l[7:] for l in lines if l.startswith("event: ")]
            check("events of responses", names[0] == "response.created" and names[-1] in ("response.completed", "response.incomplete"), names)
    for path, body in (("/api/generate", {"prompt": "x"}), ("/api/chat", {"messages": USER})):
        a = s.ask(path, {"model": s.model, "options": {"num_predict": 4}, **body})
        told = [json.loads(l) for l in a.text.strip().split("\n")]
        check(f"{path} streams unless told not to", a.headers["content-type"].startswith("application/x-ndjson") and told[-1]["done"] and len(told) == 5, a)
        a = s.ask(path, {"model": s.model, "stream": False, "options": {"num_predict": 4}, **body})
        check(f"{path} told not to", a.headers["content-type"].startswith("application/json") and a.json["done"], a)
    a = s.completion(prompt="a b c " * 4000, stream=True)
    check("an error before the first token is a status", wrong(a, "context_length_exceeded"), a)
    body = json.dumps({"model": s.model, "prompt": "Once", "stream": True, "max_tokens": 400, "ignore_eos": True}).encode()

    def part_that_came_first():
        with socket.create_connection(("127.0.0.1", s.port), 20) as c:
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            got = [c.recv(1 << 20)]
            while b"[DONE]" not in got[-1][-40:]:
                got.append(c.recv(1 << 20))
        return len(got[0]) / sum(map(len, got))

    # The machine may be so busy that this client reads nothing for a while.
    check("a token is sent when it exists", any(part_that_came_first() < 0.5 for _ in range(20)))


def embeddings(s):
    check.begin("Embeddings")
    ask = lambda text, **more: s.ask("/v1/embeddings", {"model": s.model, "input": text, **more})
    batch = [d["embedding"] for d in ask(["a b", "c d e"]).json["data"]]
    check("length 1", all(abs(sum(x * x for x in v) - 1) < 1e-4 for v in batch))
    check("bit-equal alone and in a batch", ask("a b").json["data"][0]["embedding"] == batch[0])
    binary = base64.b64decode(ask("a b", encoding_format="base64").json["data"][0]["embedding"])
    check("base64", binary == struct.pack(f"<{len(batch[0])}f", *batch[0]))
    ids = json.loads(gimbal("tokenize", "default", "--text", "a b", "--json"))
    ids = [t["id"] if isinstance(t, dict) else t for t in (ids["tokens"] if isinstance(ids, dict) else ids)]
    check("ids", ask([ids]).json["data"][0]["embedding"] == batch[0] and ask(ids).json["data"][0]["embedding"] == batch[0], ids)
    one = s.ask("/api/embed", {"model": s.model, "input": "a b"}).json["embeddings"][0]
    packed = struct.pack(f"<{len(one)}f", *one)
    check("/api/embed gives the same", packed == binary)
    check("nothing to embed", wrong(ask([])))


def http(s):
    check.begin("HTTP")
    json_head = b"Host: x\r\nContent-Type: application/json\r\n"
    a = s.ask("/v1/completions", b'{"model":"' + s.model.encode() + b'","max_tokens":1,"prompt":"' + b"x" * 1_000_000 + b'"}')
    check("a body of 1 MB is read", wrong(a, "context_length_exceeded"), a)
    try:
        a = s.ask("/v1/completions", b'{"model":"' + b"x" * (20 << 20) + b'"}')
        check("20 MB: the answer reaches who is still sending", a.status == 413, a.status)
    except OSError as e:
        check("20 MB: the answer reaches who is still sending", False, e)
    check("another type of content", s.ask("/v1/chat/completions", "x", kind="text/plain").status == 415)
    check("Ollama's paths take any", s.ask("/api/generate", {"model": s.model, "prompt": "a", "stream": False, "options": {"num_predict": 1}}, kind="text/plain").status == 200)
    for method, path in (("PUT", "/v1/models"), ("GET", "/v1/completions"), ("DELETE", "/api/tags"), ("POST", "/metrics")):
        a = s.ask(path, {} if method in ("PUT", "POST") else None, method=method)
        check(f"405 for {method} {path}", a.status == 405 and a.headers.get("allow"), (a, a.headers))
    for path in ("/v1/models", "/health/live", "/metrics", "/api/tags", "/"):
        a = s.ask(path, method="HEAD")
        check(f"HEAD {path}", a.status == 200 and not a.body, a)
    check("an unknown path", s.ask("/nothing").status == 404)
    tail = b"Host: x\r\nContent-Length: 3\r\n"
    for name, sent in (("no Host", b"GET /v1/models HTTP/1.1\r\n\r\n"), ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
                       ("a length beside chunks", b"POST / HTTP/1.1\r\n" + tail + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                       ("two lengths", b"POST / HTTP/1.1\r\n" + tail + b"Content-Length: 4\r\n\r\nabc"), ("a negative length", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"),
                       ("a bare LF", b"GET / HTTP/1.1\nHost: x\n\n"), ("a folded line", b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
                       ("space before the colon", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"), ("no chunk's size", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n"),
                       ("nonsense", b"\x16\x03\x01\x02\x00\r\n\r\n")):
        got = s.raw(sent)
        check(f"{name}: 400 and close", got.startswith(b"HTTP/1.1 400") and not got.endswith(b"(still open)"), got[:200])
    check("too long a head", b" 431 " in s.raw(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 70000 + b"\r\n\r\n")[:20])
    got = s.raw(b"GET /v1/models HTTP/1.0\r\n\r\n")
    check("HTTP/1.0", b" 200 " in got[:20] and not got.endswith(b"(still open)"), got[:100])
    got = s.raw(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\nGET /health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    check("pipelining, in order", re.findall(rb"HTTP/1\.1 (\d+)", got) == [b"200", b"200", b"404"], got)
    with socket.create_connection(("127.0.0.1", s.port), 10) as c:
        body = json.dumps({"model": s.model, "prompt": "x", "max_tokens": 1}).encode()
        c.sendall(b"POST /v1/completions HTTP/1.1\r\n" + json_head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        check("100-continue", c.recv(100).startswith(b"HTTP/1.1 100 "))
        c.sendall(body)
        check("and then the answer", c.recv(100).startswith(b"HTTP/1.1 200 "))
        c.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        more = b""
        while more.count(b"HTTP/1.1 200") < 1 and (read := c.recv(65536)):
            more += read
        check("keep-alive", b"HTTP/1.1 200" in more, more[-200:])
    a = s.ask("/v1/models", headers={"Origin": "https://a.example"})
    check("no Access-Control-Allow-Origin", "access-control-allow-origin" not in a.headers, a.headers)
    a = s.ask("/v1/completions", b'{"model":"' + s.model.encode() + b'","prompt":"\xff\xc0","max_tokens":1}')
    check("invalid UTF-8 is refused or replaced", a.status in (200, 400), a)
    for open_, close in (("[", "]"), ('{"a":', "}")):
        a = s.ask("/v1/completions", '{"model":"m","prompt":' + open_ * 250 + "1" + close * 250 + "}")
        check("JSON beyond 200 levels", wrong(a), a)
    check("no JSON", wrong(s.ask("/v1/completions", "{")))
    for path, name in (("/v1/models", "x-request-id"), ("/v1/nothing", "x-request-id")):
        check(f"{name} on {path}", s.ask(path).headers.get(name))
    a = s.ask("/v1/messages", {"model": s.model, "max_tokens": 1, "messages": USER})
    check("request-id of Anthropic's", a.headers.get("request-id"), a.headers)
    with Server(GIMBAL, "--header-timeout", "1", "--body-timeout", "1") as hurried:
        for sent in (b"GET /v1/models HTTP/1.1\r\nHos", b"POST /v1/completions HTTP/1.1\r\n" + json_head + b"Content-Length: 100\r\n\r\n{"):
            got = hurried.raw(sent)
            check("who sends too slowly is not waited for", not got.endswith(b"(still open)"), got)


def metrics(s):
    check.begin("Metrics")
    names = ("gimbal_tokens_generated_total", "gimbal_prompt_tokens_total")
    idle = lambda: s.metric("gimbal_requests_running") == 0 and s.metric("gimbal_requests_waiting") == 0
    # Numbers are those that workers told last.
    settled = lambda: (lambda before: (time.sleep(0.1), [s.metric(n) for n in names] == before)[1] and before)([s.metric(n) for n in names])
    before = s.until(settled)
    usage = s.completion(prompt="Once upon a time", max_tokens=30, n=2, temperature=1).json["usage"]
    want = [before[0] + usage["completion_tokens"], before[1] + usage["prompt_tokens"]]
    check("tokens are counted exactly", s.until(lambda: [s.metric(n) for n in names] == want), (want, [s.metric(n) for n in names]))
    body = json.dumps({"model": s.model, "prompt": "x", "n": 8, "max_tokens": 500, "stream": True, "ignore_eos": True}).encode()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", s.port), 10) as c:
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            c.recv(100)
    check("nothing runs when every client has gone", s.until(idle), s.metric("gimbal_requests_running"))
    text = s.ask("/metrics").text
    for name, kind in {"gimbal_requests_running": "gauge", "gimbal_requests_waiting": "gauge", "gimbal_tokens_generated_total": "counter",
                       "gimbal_prompt_tokens_total": "counter", "gimbal_time_to_first_token_seconds": "histogram", "gimbal_time_between_tokens_seconds": "histogram",
                       "gimbal_kv_pages": "gauge", "gimbal_memory_bytes": "gauge", "gimbal_worker_restarts_total": "counter",
                       "gimbal_draft_tokens_accepted_total": "counter"}.items():
        check(f"{name}, a {kind}", f"# TYPE {name} {kind}\n" in text and re.search(rf"^{name}", text, re.M), text[:200])
    check("Prometheus' text", all(re.fullmatch(r'# (HELP|TYPE) .*|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+.0-9eEINnaf]+', l)
                                  for l in text.strip().split("\n")), [l for l in text.split("\n") if "#" not in l][:50])


def workers(s):
    check.begin("Workers")
    check("a process below the front", len(s.workers()) >= 1, s.workers())
    asked = {"prompt": "Once upon a time", "max_tokens": 300, "temperature": 1, "seed": 5, "logprobs": 1}
    alone = s.completion(**asked).json["choices"][0]
    after = []
    clients = [threading.Thread(target=lambda: after.append(s.completion(**asked).json["choices"][0])) for _ in range(4)]
    for c in clients: c.start()
    time.sleep(0.02)
    for pid in s.workers():
        os.kill(pid, signal.SIGKILL)
    for c in clients: c.join()
    check("kill -9 loses nothing and repeats nothing", after == [alone] * 4, [a["text"][-50:] for a in after])
    check("and is counted", s.until(lambda: s.metric("gimbal_worker_restarts_total") > 0))
    rss = lambda: int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{s.process.pid}/status").read()).group(1)) / 1024
    before = rss()
    body = json.dumps({"model": s.model, "prompt": "x", "n": 8, "max_tokens": 500, "stream": True, "ignore_eos": True, "logprobs": 5}).encode()
    unread = []
    for _ in range(8):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        unread.append(c)
    time.sleep(1)
    check("64 choices that nobody reads cost 16 MB at most", rss() - before < 16, (before, rss()))
    for c in unread: c.close()


def jobs(s):
    check.begin("Jobs")
    asked = {"model": s.model, "prompt": "Once", "max_tokens": 4, "temperature": 0, "stream": True}
    job = s.ask("/v1/jobs", asked).json
    check("a job", set(job) >= {"job_id", "sse_url"} and job["sse_url"] == f"/v1/jobs/{job['job_id']}/stream", job)
    a = s.ask(job["sse_url"])
    events = a.events()
    check("its events", events[0] == {"type": "started", "job_id": job["job_id"]} and events[-1]["type"] == "end" and events[-1]["tokens_out"] == 4
          and isinstance(events[-1]["stop_reason"], str) and a.text.rstrip().endswith("data: [DONE]"), a)
    tokens = [e for e in events if e["type"] == "token"]
    check("tokens without a gap", [e["i"] for e in tokens] == [0, 1, 2, 3])
    check("the prompt is raw text", "".join(e["t"] for e in tokens) == s.completion(prompt="Once", max_tokens=4).json["choices"][0]["text"])
    job = s.ask("/v1/jobs", dict(asked, max_tokens=400)).json
    check("DELETE cancels", s.ask(f"/v1/jobs/{job['job_id']}", method="DELETE").status in (200, 202, 204))
    check("no such job", s.ask("/v1/jobs/nobody", method="DELETE").status == 404 and s.ask("/v1/jobs/nobody/stream").status == 404)
    a = s.ask("/v1/loading/progress")
    check("loading ends with ready", a.events()[-1]["stage"] == "ready" and a.text.rstrip().endswith("data: [DONE]"), a)


def receipts(s):
    check.begin("Receipts")
    prompt = "Once upon a time there was a little girl who lived in a small house near the forest with her mother and her dog. " * 2
    for _ in range(2):
        answer = s.completion(prompt=prompt, max_tokens=4).json
    a = s.ask("/v1/receipts/" + answer["id"])
    ops = [o for o in next(v for v in a.json.values() if isinstance(v, list) and v and "op" in v[0])]
    check("device, kernel and reason of every op", a.status == 200 and all(o.get("device") and o.get("kernel") and o.get("reason") for o in ops)
          and "mat_mul" in {o["op"] for o in ops}, a)
    check("what was shared", re.search(r'"shared[a-z_]*":\s*[1-9]', a.text), a.text[:300])
    check("what was speculated and accepted", set(a.json["speculation"]) == {"drafted", "accepted"}, a.text[:300])
    check("an unknown one", s.ask("/v1/receipts/nobody").status == 404)
    # `next` is for whoever sits at this machine: its commands have paths, which no answer has.
    there, here = s.ask("/v1/backends").json, json.loads(gimbal("backends", "--json"))
    check("/v1/backends is gimbal backends --json", there.keys() == here.keys() - {"next"}
          and all({**a, "devices": 0} == {**b, "devices": 0} for a, b in zip(there["backends"], here["backends"], strict=True)), (there, here))


def load(s):
    check.begin("Load")
    body = {"prompt": "Once", "max_tokens": 100, "stream": True, "ignore_eos": True}
    said = []
    clients = [threading.Thread(target=lambda: said.append(s.completion(**body))) for _ in range(64)]
    for c in clients: c.start()
    for c in clients: c.join()
    check("64 streams are admitted", len(said) == 64 and all(a.status == 200 and a.text.endswith("[DONE]\n\n") for a in said), [a.status for a in said])
    with Server(GIMBAL, "--parallel", "1", "--queue", "2", check=check) as small:
        said = []
        asked = {"prompt": "Once", "max_tokens": 450, "ignore_eos": True}
        clients = [threading.Thread(target=lambda: said.append(small.completion(**asked))) for _ in range(24)]
        for c in clients: c.start()
        for c in clients: c.join()
        refused = [a for a in said if a.status != 200]
        check("beyond it: a queue, then 429 with Retry-After", len(said) - len(refused) >= 3 and refused
              and all(a.status == 429 and int(a.headers["retry-after"]) > 0 for a in refused), [(a.status, a.headers.get("retry-after")) for a in said])
    with Server(GIMBAL, "--drain-timeout", "3", check=check) as draining:
        body = json.dumps({"model": draining.model, "messages": USER, "n": 8, "max_tokens": 450, "logprobs": True, "top_logprobs": 20, "stream": True, "ignore_eos": True})
        with socket.socket() as unread:  # more than the system's buffers hold: it stays in flight
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect(("127.0.0.1", draining.port))
            unread.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            unread.recv(100)
            draining.process.send_signal(signal.SIGTERM)
            check("not ready while it drains", draining.until(lambda: draining.ask("/health/ready").status == 503))
            check("but alive", draining.ask("/health/live").status == 200)
            a = draining.completion(prompt="x", max_tokens=2)
            check("no new requests", a.status == 503 and a.json["error"]["message"], a)
            code = draining.process.wait(15)
        check("exit 0 at --drain-timeout", code == 0, code)
    with Server(GIMBAL, check=check) as ending:
        workers = ending.until(ending.workers)
        said = []
        asked = {"prompt": "Once", "max_tokens": 450, "n": 8, "stream": True, "ignore_eos": True}

        def ask():
            try:
                said.append(ending.completion(**asked))
            except OSError:
                pass  # it came too late

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for c in clients: c.start()
        ending.until(lambda: ending.metric("gimbal_requests_running"))
        code, seconds = ending.end()
        for c in clients: c.join()
        check("SIGTERM: exit 0 within 10 s", code == 0 and seconds < 10, (code, seconds))
        check("answers in flight are completed", any(a.status == 200 for a in said)
              and all(a.status == 503 or (a.text.endswith("[DONE]\n\n") and "error" not in a.text) for a in said), [a.text[-200:] for a in said])
        check("no process is left", not any(os.path.exists(f"/proc/{pid}") for pid in workers), workers)


def main():
    start(None)
    with Server(GIMBAL, check=check) as s:
        for part in (models, plain_form, counts, sampling, constrained, streams, embeddings, http, metrics, workers, jobs, receipts, load):
            begin = time.monotonic()
            part(s)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    print(", ".join(f"{section} {n}" for section, n in check.done.items()))
    print(f"{sum(check.done.values())} checks, {len(check.failed)} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
