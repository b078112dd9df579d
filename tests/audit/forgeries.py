"""Forgeries of certificates (docs/audit.md), and the word that an audit must have for each."""
import copy
import hashlib
import json
import struct

CUT = 'cut off'  # of errors: a part of their message


def digest(tokens):
    return hashlib.sha256(b"".join(struct.pack("<i", t) for t in tokens)).hexdigest()


def other_token(token):
    return 300 if token != 300 else 301


def other_digit(text, at):
    return text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]


def plain(c):
    """Its tokens come from sampling that depends on the settings, and nothing but a limit ends it."""
    t = c["text"]
    return (not c["grammar"] and not t["greedy"] and t["temperature"] > 0.5 and t["mirostat"] == 0 and t["adaptive_target"] < 0
            and c["answer"]["finish"] == "length" and len(c["answer"]["tokens"]) >= 40)


def anyone(c):
    return len(c["answer"]["tokens"]) >= 4


class Forgery:
    """`change(certificate, random)` forges a copy in place, and may return the place where it must be found. `words`: the subjects that an audit may
    name; of the text of an error, a part."""

    def __init__(self, name, words, change, fits=anyone, options=()):
        self.name, self.words, self.change, self.fits, self.options = name, words, change, fits, options


def another_model(c, r):
    c["model"]["sha256"] = other_digit(c["model"]["sha256"], r.randrange(64))


def another_cache(c, r):
    c["settings"]["cache_type"] = "bf16" if c["settings"]["cache_type"] != "bf16" else "f16"


def hotter(c, r):
    c["text"].update(temperature=c["text"]["temperature"] + 4 + r.random(), top_p=1.0, min_p=0.0, top_k=0)


def another_seed(c, r):
    c["text"]["seed"] += 1 + r.randrange(1000)


def a_token(c, r):
    at = r.randrange(len(c["answer"]["tokens"]))
    c["answer"]["tokens"][at] = other_token(c["answer"]["tokens"][at])
    return at


def text_inserted(c, r):
    at = r.randrange(1, len(c["answer"]["tokens"]))
    c["answer"]["tokens"].insert(at, other_token(c["answer"]["tokens"][at]))
    rows = c["logits"]["rows"]
    c["logits"]["rows"] = rows[:8 * at] + rows[8 * at:8 * at + 8] + rows[8 * at:]
    return at


def cut_at_the_end(c, r):
    n = r.randrange(1, len(c["answer"]["tokens"]))
    c["answer"].update(tokens=c["answer"]["tokens"][:n], finish="length")
    c["logits"]["rows"] = c["logits"]["rows"][:8 * n]


def ended_early(c, r):
    n = r.randrange(1, len(c["answer"]["tokens"]))
    c["answer"].update(tokens=c["answer"]["tokens"][:n], finish="stop-token")
    c["logits"]["rows"] = c["logits"]["rows"][:8 * (n + 1)]
    return n


def a_row(c, r):
    at = r.randrange(len(c["answer"]["tokens"]))
    c["logits"]["rows"] = other_digit(c["logits"]["rows"], 8 * at + r.randrange(8))
    return at


def the_chain(c, r):
    c["logits"]["chain"] = other_digit(c["logits"]["chain"], r.randrange(64))


def the_grammar(c, r):
    c["grammar"] = "root ::= [0-9]+"


def another_prompt(c, r):
    at = r.randrange(1, len(c["prompt"]["tokens"]))
    c["prompt"]["tokens"][at] = other_token(c["prompt"]["tokens"][at])
    c["prompt"]["sha256"] = digest(c["prompt"]["tokens"])
    return 0


def prompt_alone(c, r):
    c["prompt"]["tokens"][0] = other_token(c["prompt"]["tokens"][0])


def an_adapter(c, r):
    c["model"]["adapters"].append({"sha256": "0" * 64, "scale": 1.0})


def the_rotation(c, r):
    c["settings"]["rope"] = [{"key": "freq_base", "text": "", "number": 5000.0 + r.randrange(1000)}]


def the_limit(c, r):
    c["text"]["max_tokens"] = r.randrange(1, len(c["answer"]["tokens"]))
    return c["text"]["max_tokens"]


def the_signed(c, r):
    c["made"]["seconds"] += 1


FORGERIES = [
    Forgery("another model", ["model"], another_model),
    Forgery("another quantization", ["logits"], lambda c, r: None),  # audited with another file under the same digest
    Forgery("another cache format", ["logits"], another_cache),
    Forgery("another temperature", ["token", "end"], hotter, plain),
    Forgery("another seed", ["token", "end"], another_seed, plain),
    Forgery("a token changed", ["token"], a_token),
    Forgery("text inserted", ["token"], text_inserted),
    Forgery("tokens removed at the end", ["chain"], cut_at_the_end, plain),
    Forgery("an earlier end", ["end"], ended_early, plain),
    Forgery("a forged row", ["logits"], a_row),
    Forgery("a forged chain", ["chain"], the_chain),
    Forgery("a certificate cut off", [CUT], None),
    Forgery("another grammar", ["token", "end"], the_grammar, lambda c: anyone(c) and c["text"]["max_tokens"] != 0),
    Forgery("another prompt", ["logits"], another_prompt),
    Forgery("a prompt without its digest", ["prompt whose digest"], prompt_alone),
    Forgery("an adapter", ["adapters"], an_adapter),
    Forgery("another rotation", ["logits"], the_rotation),
    Forgery("another limit", ["end"], the_limit, plain),
    Forgery("changed after signing", ["signature"], the_signed, lambda c: "signature" in c),
    Forgery("another signer", ["signature"], lambda c, r: None, lambda c: "signature" in c, ["--key", "0" * 64]),
]


def forged(kind, certificate, random):
    """The forged text, and the place where it must be found; None: any."""
    text = json.dumps(certificate)
    if kind.change is None:
        return text[:random.randrange(1, len(text) - 1)], None
    copied = copy.deepcopy(certificate)
    place = kind.change(copied, random)
    if "signature" in copied and "signature" not in kind.words:
        del copied["signature"]  # else it would be found by that
    return json.dumps(copied), place
