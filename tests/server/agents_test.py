#!/usr/bin/env python3
"""Replays what agents and front ends send (tests/data/agents), request by request, and checks the forms of the answers: those that these
programs read. The texts are a small model's, so only forms are checked.

Usage: tests/server/agents_test.py GIMBAL ASSET   (the program; the built-in model's file). Python's standard library only.
"""
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from contract_client import GIMBAL, Server, check  # noqa: E402

DATA = os.path.join(HERE, "..", "data", "agents")


def rising(numbers):
    return all(b == a + 1 for a, b in zip(numbers, numbers[1:]))


def has(j, **kinds):
    """Whether an object has these fields, of these types."""
    return isinstance(j, dict) and all(isinstance(j.get(name), kind) for name, kind in kinds.items())


def usage(u):
    return has(u, prompt_tokens=int, completion_tokens=int, total_tokens=int) and u["total_tokens"] == u["prompt_tokens"] + u["completion_tokens"]


def chat(a):
    choice = a.json["choices"][0]
    return (has(a.json, id=str, created=int, model=str, usage=dict) and a.json["object"] == "chat.completion" and usage(a.json["usage"])
            and choice["message"]["role"] == "assistant" and choice["finish_reason"] in ("stop", "length", "tool_calls"))


def chunks(a, with_usage):
    events = a.events()
    last = events[-1]
    if with_usage:
        events = events[:-1]
        if last["choices"] or not usage(last["usage"]):
            return False
    choices = [e["choices"][0] for e in events]
    return (a.text.rstrip().endswith("data: [DONE]") and all(e["object"] == "chat.completion.chunk" and e["id"] == events[0]["id"] for e in events)
            and choices[0]["delta"].get("role") == "assistant" and all(c["finish_reason"] is None for c in choices[:-1])
            and choices[-1]["finish_reason"] in ("stop", "length", "tool_calls"))


def text_stream(a):
    events = a.events()
    return a.text.rstrip().endswith("data: [DONE]") and all(e["object"] == "text_completion" and has(e["choices"][0], text=str) for e in events)


def completion_stream(a):
    events = a.events()
    return all(has(e, content=str, stop=bool) for e in events) and [e["stop"] for e in events] == [False] * (len(events) - 1) + [True]


def lines(a, field):
    """Ollama's: a line for each piece, and one at the end that counts."""
    all_lines = [json.loads(line) for line in a.text.splitlines()]
    last = all_lines[-1]
    return all(has(j, model=str, created_at=str, **{field: (str, dict)}) for j in all_lines) and not any(j["done"] for j in all_lines[:-1]) and counted(last)


def counted(j):
    return (j["done"] and j["done_reason"] in ("stop", "length")
            and has(j, total_duration=int, load_duration=int, prompt_eval_count=int, prompt_eval_duration=int, eval_count=int, eval_duration=int))


def responses_stream(a):
    events = a.events()
    types = [e["type"] for e in events]
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    end = events[-1]["response"]
    return (types[0] == "response.created" and types[-1] in ("response.completed", "response.incomplete")
            and rising([e["sequence_number"] for e in events]) and types.count("response.output_item.added") == len(done) >= 1
            and [i["id"] for i in end["output"]] == [i["id"] for i in done] and has(end["usage"], input_tokens=int, output_tokens=int, total_tokens=int)
            and all(i["type"] in ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call") for i in done))


def messages_stream(a):
    events = a.events()
    types = [e["type"] for e in events if e["type"] != "ping"]
    names = [line[7:] for line in a.text.splitlines() if line.startswith("event: ")]
    opened = [e["index"] for e in events if e["type"] == "content_block_start"]
    delta = next(e for e in events if e["type"] == "message_delta")
    return (names == [e["type"] for e in events] and types[0] == "message_start" and types[-2:] == ["message_delta", "message_stop"]
            and has(events[0]["message"]["usage"], input_tokens=int) and opened == list(range(len(opened))) and types.count("content_block_stop") == len(opened)
            and delta["delta"]["stop_reason"] in ("end_turn", "max_tokens", "stop_sequence", "tool_use") and has(delta["usage"], output_tokens=int))


def message(a):
    return (a.json["type"] == "message" and a.json["role"] == "assistant" and isinstance(a.json["content"], list)
            and has(a.json["usage"], input_tokens=int, output_tokens=int))


FORMS = {
    "models": lambda a: a.json["object"] == "list" and all(has(m, id=str) for m in a.json["data"]),
    "chat": chat,
    "chat stream": lambda a: chunks(a, False),
    "chat stream with usage": lambda a: chunks(a, True),
    "text stream": text_stream,
    "embeddings": lambda a: all(has(e, embedding=list, index=int) for e in a.json["data"]),
    "completion stream": completion_stream,
    "ollama version": lambda a: has(a.json, version=str),
    "ollama tags": lambda a: all(has(m, name=str, model=str, size=int, digest=str, details=dict) for m in a.json["models"]),
    "ollama show": lambda a: has(a.json, details=dict, model_info=dict, capabilities=list),
    "ollama chat": lambda a: counted(a.json) and a.json["message"]["role"] == "assistant",
    "ollama chat stream": lambda a: lines(a, "message"),
    "ollama generate stream": lambda a: lines(a, "response"),
    "ollama embed": lambda a: all(isinstance(x, float) for v in a.json["embeddings"] for x in v),
    "responses stream": responses_stream,
    "messages stream": messages_stream,
    "message": message,
    "count tokens": lambda a: has(a.json, input_tokens=int),
}


def right(form, answer):
    try:
        return answer.status == 200 and bool(FORMS[form](answer))
    except (KeyError, IndexError, TypeError, ValueError, StopIteration):
        return False


def main():
    files = sorted(glob.glob(os.path.join(DATA, "*.json")))
    with Server(GIMBAL, "default", check=check) as s:
        for file in files:
            check.begin(os.path.basename(file)[:-5])
            with open(file, encoding="utf-8") as f:
                records = json.load(f)
            for i, r in enumerate(records):
                body = json.dumps(r["body"]).replace('"MODEL"', json.dumps(s.model)) if "body" in r else None
                a = s.ask(r["path"], body, method=r["method"], headers=r.get("headers"))
                check(f"{i}: {r['path']}: {r['answer']}", right(r["answer"], a), a)
        check.begin("claude-code")
        tokens = [s.ask("/v1/messages/count_tokens", {"model": s.model, "messages": [{"role": "user", "content": "Hi"}], "system": system}).json
                  for system in ("Be brief.", [{"type": "text", "text": "x-anthropic-billing-header: cch=" + "1" * n + ";"} for n in (5, 50)]
                                 + [{"type": "text", "text": "Be brief."}])]
        check("the header for accounting is no part of the prompt", tokens[0] == tokens[1], tokens)
        web = s.ask("/v1/responses", {"model": s.model, "input": "Hi", "tools": [{"type": "web_search"}], "max_output_tokens": 1})
        check("a tool that is not offered is noted", "web_search" in web.headers.get("x-gimbal-note", ""), web.headers)
        for path, body in (("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1,
                                             "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
                           ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1,
                                             "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}),
                           ("/v1/responses", {"input": "Hi", "include": ["message.output_text.logprobs"]}),
                           ("/v1/responses", {"input": "Hi", "tools": [{"type": "computer_use_preview"}]})):
            check(f"{path} refuses what it does not do", s.ask(path, {"model": s.model, **body}).status == 400, body)
    print(", ".join(f"{section} {n}" for section, n in check.done.items()))
    return 1 if check.failed or len(files) < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
