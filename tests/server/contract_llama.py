"""The contract of `gimbal serve` (contract_test.py): llama.cpp's endpoints, over the real model and its worker process."""
import json
import threading

from contract_client import USER, check, gimbal


def llama(s):
    check.begin("llama.cpp")
    prompt = "Once upon a time"
    native = s.ask("/completion", {"prompt": prompt, "temperature": 0, "n_predict": 40, "return_tokens": True}).json
    openai = s.completion(prompt=prompt, max_tokens=40).json
    check("/completion says what /v1/completions says", native["content"] == openai["choices"][0]["text"], native)
    check("its tokens are those of the text", len(native["tokens"]) == native["tokens_predicted"] == 40 and native["stop_type"] == "limit", native)
    check("and make the text", s.ask("/detokenize", {"tokens": native["tokens"]}).json["content"].strip() == native["content"].strip(), native)
    t = native["timings"]
    check("timings", t["prompt_n"] + t["cache_n"] == native["tokens_evaluated"] and t["predicted_n"] == 40 and t["predicted_ms"] > 0 and t["prompt_ms"] > 0, t)
    long = prompt * 6
    first, again = (s.ask("/completion", {"prompt": long, "n_predict": 1}).json for _ in range(2))
    check("what was computed of a prompt is found", again["tokens_cached"] > 0 and again["timings"]["cache_n"] == again["tokens_cached"], (first, again))
    events = s.ask("/completion", {"prompt": prompt, "temperature": 0, "n_predict": 40, "stream": True}).events()
    check("a stream says the same", "".join(e["content"] for e in events) == native["content"], events[:2])
    check("a token in each event but the last", all(len(e["tokens"]) == 1 for e in events[:-1]) and events[-1]["stop"], events[-1])

    ids = [int(i) for i in gimbal("tokenize", "default", "--text", prompt, "--ids").split(",")]
    check("/tokenize is gimbal tokenize", s.ask("/tokenize", {"content": prompt, "add_special": True}).json["tokens"] == ids, ids)
    check("ids as a prompt", s.ask("/completion", {"prompt": ids, "temperature": 0, "n_predict": 40}).json["content"] == native["content"])
    text = s.ask("/apply-template", {"messages": USER}).json["prompt"]
    count = s.ask("/v1/chat/completions/input_tokens", {"messages": USER}).json["input_tokens"]
    check("/apply-template is the prompt of a chat", count == s.chat(max_tokens=1).json["usage"]["prompt_tokens"] and "Tell" in text, (text, count))

    props = s.ask("/props").json
    check("/props", props["total_slots"] == len(s.ask("/slots").json) == 64 and props["default_generation_settings"]["n_ctx"] > 0, props)
    idle = lambda: all(not slot["is_processing"] for slot in s.ask("/slots").json)
    check("no text, no slot is taken", s.until(idle), s.ask("/slots").json)
    answers = []
    ask = lambda: answers.append(s.ask("/completion", {"prompt": prompt, "n_predict": 400, "ignore_eos": True}).json)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads: thread.start()
    busy = s.until(lambda: [slot for slot in s.ask("/slots").json if slot["is_processing"]] or any(not t.is_alive() for t in threads))
    for thread in threads: thread.join()
    check("a slot is a text that is computed", busy is True or busy[0]["n_prompt_tokens"] == len(ids), busy)
    check("each answer has its slot", all(0 <= a["id_slot"] < 64 for a in answers), [a["id_slot"] for a in answers])
    check("and gives it back", s.until(idle), json.dumps(s.ask("/slots").json)[:300])
