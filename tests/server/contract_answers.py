"""The contract of `gimbal serve` (contract_test.py): what an answer consists of: sampling, given forms, events, embeddings, jobs, receipts."""
import base64
import json
import re
import socket
import struct
import threading
import time

from contract_client import USER, check, gimbal, wrong


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
                          "frequency_penalty": (-3,), "seed": ("a", 1.5), "stop": (5, [1]), "logit_bias": ({"x": "y"}, {"5": 101}, {"99999": 1}),
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
        # Greedy: a random text may end before its four tokens.
        a = s.ask(path, {"model": s.model, "options": {"num_predict": 4, "temperature": 0}, **body})
        told = [json.loads(l) for l in a.text.strip().split("\n")]
        check(f"{path} streams unless told not to", a.headers["content-type"].startswith("application/x-ndjson") and told[-1]["done"] and len(told) == 5, a)
        a = s.ask(path, {"model": s.model, "stream": False, "options": {"num_predict": 4}, **body})
        check(f"{path} told not to", a.headers["content-type"].startswith("application/json") and a.json["done"], a)
    a = s.completion(prompt="a b c " * 4000, stream=True)
    check("an error before the first token is a status", wrong(a, "context_length_exceeded"), a)
    body = json.dumps({"model": s.model, "prompt": "Once", "stream": True, "max_tokens": 400, "ignore_eos": True}).encode()

    def part_that_came_first():
        with socket.create_connection(("127.0.0.1", s.port), 20) as c:
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
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
    # Four members are for the user of this machine alone: `next` and `cpp_ffi` have paths, `capabilities` says whether the latter is there,
    # `sandbox` what a trial found.
    there, here = s.ask("/v1/backends").json, json.loads(gimbal("backends", "--json"))
    check("/v1/backends is gimbal backends --json", there.keys() == here.keys() - {"next", "sandbox", "cpp_ffi", "capabilities"}
          and all({**a, "devices": 0} == {**b, "devices": 0} for a, b in zip(there["backends"], here["backends"], strict=True)), (there, here))
