"""The contract of `gimbal serve` (contract_test.py): who may ask, which models there are, and how a prompt is formed and counted."""
import hashlib
import json
import os
import re
import tempfile

from contract_client import GIMBAL, ASSET, USER, Server, check, gimbal, wrong


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
    with Server(GIMBAL, "--alias", "first,second", "--alias", "third", check=check) as s:
        check.begin("Models")
        listed = s.ask("/v1/models").json["data"]
        check("--alias names the model", [(m["id"], m["aliases"]) for m in listed] == [("first", ["first", "second", "third"])], listed)
        check("all APIs know each of the names", all(s.ask("/api/show", {"model": name}).status == 200 for name in ("first", "second", "third")))
        check("answers have the first", s.ask("/v1/completions", {"model": "third", "prompt": "x", "max_tokens": 1}).json["model"] == "first")
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
        if path.startswith("/api/"):
            check(f"{path} of an unknown model", a.status == 404 and isinstance(a.json["error"], str), a)
        else:
            check(f"{path}: the only model answers to any name", a.status in (200, 201, 202) and a.json.get("model", s.model) == s.model, a)
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
            for path, body in texts.items():
                if not path.startswith("/api/"):
                    a = several.ask(path, dict(body, model="nobody"))
                    e = a.json["error"]
                    form = e["type"] == "not_found_error" if "/messages" in path else e["code"] == "model_not_found"
                    check(f"{path} of an unknown model among several", a.status == 404 and form, a)
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
