"""Requests of the three APIs, plain and streamed, and what became of them."""
import dataclasses
import http.client
import json
import threading

from fronts import KEY


@dataclasses.dataclass
class Kind:
    """One kind of request: where it goes, its body, and how text, end and error look in that API."""
    name: str
    path: str
    body: dict
    stream: bool
    text_of: object    # JSON of a plain answer or of an event -> text
    end: str           # what a whole stream has in its end
    is_error: object   # JSON -> whether it is an error of this API


def kinds(model, tokens):
    chat = {"model": model, "messages": [{"role": "user", "content": "Tell me of a dog."}], "temperature": 0, "max_tokens": tokens, "ignore_eos": True}
    completion = {"model": model, "prompt": "Once upon a time", "temperature": 0, "max_tokens": tokens, "ignore_eos": True}
    message = {"model": model, "messages": [{"role": "user", "content": "Tell me of a cat."}], "temperature": 0, "max_tokens": tokens}
    ollama = {"model": model, "prompt": "Tell me of a boat.", "options": {"temperature": 0, "num_predict": tokens}}

    def openai_error(j):
        return isinstance(j.get("error"), dict) and {"message", "type", "param", "code"} <= set(j["error"])

    def anthropic_error(j):
        return j.get("type") == "error" and {"type", "message"} <= set(j["error"])

    def ollama_error(j):
        return isinstance(j.get("error"), str)

    return [
        Kind("chat, streamed", "/v1/chat/completions", dict(chat, stream=True), True,
             lambda j: "".join(c["delta"].get("content") or "" for c in j.get("choices", [])), "data: [DONE]", openai_error),
        Kind("completion", "/v1/completions", completion, False, lambda j: j["choices"][0]["text"], "", openai_error),
        Kind("message, streamed", "/v1/messages", dict(message, stream=True), True,
             lambda j: j["delta"].get("text", "") if j["type"] == "content_block_delta" else "", "message_stop", anthropic_error),
        Kind("message", "/v1/messages", message, False, lambda j: j["content"][0]["text"], "", anthropic_error),
        Kind("generate, streamed", "/api/generate", ollama, True, lambda j: j.get("response", ""), '"done":true', ollama_error),
        Kind("generate", "/api/generate", dict(ollama, stream=False), False, lambda j: j["response"], "", ollama_error),
    ]


@dataclasses.dataclass
class Outcome:
    """`what`: whole; error (of its API: with a status, or an event of a stream); cut (some of the answer, then a broken connection); lost (not a byte, and no error
    of its API)."""
    kind: Kind
    what: str
    text: str = ""
    detail: str = ""
    chunks: int = 0


def text_of_stream(kind, raw):
    """Text of all whole events in these bytes."""
    text = ""
    for line in raw.decode(errors="replace").split("\n")[:-1]:
        line = line.removeprefix("data: ")
        if line.startswith("{") and not kind.is_error(event := json.loads(line)):
            text += kind.text_of(event)
    return text


def error_of_stream(kind, raw):
    """The error event of its API that a stream ends with, or nothing."""
    events = [line.removeprefix("data: ") for line in raw.decode(errors="replace").split("\n") if line.removeprefix("data: ").startswith("{")]
    return events[-1] if events and kind.is_error(json.loads(events[-1])) else ""


def ask(address, port, kind, seconds=60):
    """Asks once, never again: retries are the balancer's."""
    connection = http.client.HTTPConnection(address, port, timeout=seconds)
    raw, chunks, status = b"", 0, 0
    try:
        connection.request("POST", kind.path, json.dumps(kind.body),
                           {"Content-Type": "application/json", "Authorization": "Bearer " + KEY})
        answer = connection.getresponse()
        status = answer.status
        while piece := answer.read1(65536):
            raw, chunks = raw + piece, chunks + 1
        if answer.length:  # read1 does not say that it ended too early
            raise http.client.IncompleteRead(b"", answer.length)
    except (OSError, http.client.HTTPException) as e:
        if kind.stream and raw:
            return Outcome(kind, "cut", text_of_stream(kind, raw), repr(e), chunks)
        return Outcome(kind, "lost", "", f"{e!r} after status {status} and {len(raw)} bytes")
    finally:
        connection.close()
    if status != 200:
        try:
            right = kind.is_error(json.loads(raw))
        except ValueError:
            right = False
        return Outcome(kind, "error" if right else "lost", "", f"{status} {raw[:200]!r}")
    if not kind.stream:
        return Outcome(kind, "whole", kind.text_of(json.loads(raw)))
    if said := error_of_stream(kind, raw):
        return Outcome(kind, "error", text_of_stream(kind, raw), said, chunks)
    whole = kind.end in raw[-400:].decode(errors="replace")
    return Outcome(kind, "whole" if whole else "lost", text_of_stream(kind, raw), "" if whole else "ended without its end and without an error", chunks)


class Load:
    """Clients that ask without pause until they are told to end."""

    def __init__(self, address, port, all_kinds, clients):
        self.outcomes, self.ended = [], threading.Event()

        def client(number):
            while not self.ended.is_set():
                self.outcomes.append(ask(address, port, all_kinds[number % len(all_kinds)]))
                number += 1

        self.threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def end(self):
        """Lets every request end; what became of all of them."""
        self.ended.set()
        for thread in self.threads:
            thread.join(120)
            if thread.is_alive():
                raise SystemExit("a request has had no end for two minutes")
        return self.outcomes
