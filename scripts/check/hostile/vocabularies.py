"""GGUF files with hostile vocabularies. The rules are those of the document's section about tokenizers."""
from .case import ACCEPT, BOUNDED, REFUSE, Rules
from .gguf import ARRAY, BOOL, F32, I32, STRING, U32, File

rule = Rules("vocabulary", ".gguf", "https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#tokenizer")

KEY = "tokenizer.ggml."
TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["a", "b", "ab", "▁", "▁ab"]
TYPES = [2, 3, 3] + [6] * 256 + [1] * 5


def fields(model="llama"):
    """The keys of a right vocabulary: {name: (type, value)}."""
    out = {"model": (STRING, model), "tokens": (ARRAY, (STRING, TOKENS)), "token_type": (ARRAY, (I32, TYPES)),
           "bos_token_id": (U32, 1), "eos_token_id": (U32, 2), "unknown_token_id": (U32, 0)}
    if model == "llama":
        out["scores"] = (ARRAY, (F32, [0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0]))
    if model == "gpt2":
        out["merges"] = (ARRAY, (STRING, ["a b"]))
    return out


def file_of(keys):
    return File([("general.architecture", STRING, "llama")] + [(KEY + name, *value) for name, value in keys.items()]).build()


def changed(random, **changes):
    """A right vocabulary with some keys changed; None takes one out."""
    keys = fields("gpt2" if "merges" in changes else "llama")
    for name, value in changes.items():
        if value is None:
            keys.pop(name)
        else:
            keys[name] = value
    return file_of(keys)


def with_token(random, token, kind=6):
    at = random.between(3, len(TOKENS) - 1)
    tokens, types = list(TOKENS), list(TYPES)
    tokens[at], types[at] = token, kind
    return changed(random, tokens=(ARRAY, (STRING, tokens)), token_type=(ARRAY, (I32, types)))


@rule("plain", ACCEPT, "tokens, scores and types of the same length")
def _(random):
    return file_of(fields(random.pick(["llama", "gpt2"]))), {"tokens": len(TOKENS)}


@rule("no-types", ACCEPT, "token_type: if present")
def _(random):
    return changed(random, token_type=None), {"tokens": len(TOKENS)}


@rule("no-scores", ACCEPT, "scores: if not present, all tokens have equal probability")
def _(random):
    return changed(random, scores=None), {"tokens": len(TOKENS)}


@rule("lengths", REFUSE, "scores and token_type must have the same length as tokens")
def _(random):
    count = random.pick([0, 1, len(TOKENS) - 1, len(TOKENS) + 1, 100000])
    return changed(random, **random.pick([{"scores": (ARRAY, (F32, [0.0] * count))}, {"token_type": (ARRAY, (I32, [1] * count))}]))


@rule("tokens-missing", REFUSE, "tokens is the list of tokens")
def _(random):
    return changed(random, tokens=random.pick([None, (ARRAY, (STRING, [])), (STRING, "a"), (U32, 7), (ARRAY, (I32, [1, 2, 3]))]))


@rule("types-of-values", REFUSE, "scores: array[float32]; token_type: array[int32]; model: string")
def _(random):
    return changed(random, **random.pick([{"scores": (ARRAY, (STRING, TOKENS))}, {"token_type": (ARRAY, (STRING, TOKENS))},
                                          {"token_type": (U32, 1)}, {"model": (U32, 1)}, {"scores": (BOOL, 1)}]))


@rule("id-outside", REFUSE, "bos_token_id, eos_token_id, unknown_token_id: the id of a token")
def _(random):
    name = random.pick(["bos", "eos", "unknown"])
    return changed(random, **{f"{name}_token_id": random.pick([(U32, len(TOKENS)), (U32, 2**31), (I32, -2), (I32, -2**31), (STRING, "1")])})


@rule("byte-token", BOUNDED, "a token of type 6 is a byte, written <0xNN>; other texts are not mentioned")
def _(random):
    return with_token(random, random.pick([f"<0x-{random.pick('123456789abcdef')}>", "<0xZZ>", "<0x>", "<0x1>", "<0x100>", "<0x+1>",
                                           "<0x 1>", "", "<0x\0\0>", "<0xFFFFFFFF>"]))


@rule("token-type", BOUNDED, "token_type is 1 to 6")
def _(random):
    return with_token(random, random.word(), random.pick([0, 7, 99, -1, 2**31 - 1, -2**31]))


@rule("token-long", BOUNDED, "the length of a token is not limited")
def _(random):
    return with_token(random, random.word() * random.pick([1000, 100000]), random.pick([1, 3, 4, 6]))


@rule("token-twice", BOUNDED, "the document does not say what equal tokens mean")
def _(random):
    return changed(random, tokens=(ARRAY, (STRING, [random.pick(["", "a", "<s>"])] * len(TOKENS))))


@rule("score-odd", BOUNDED, "a score is a float32")
def _(random):
    return changed(random, scores=(ARRAY, (F32, [random.pick([float("nan"), float("inf"), float("-inf"), -0.0, 1e-40])] * len(TOKENS))))


@rule("merges-odd", BOUNDED, "merges: the text of a merge is not described")
def _(random):
    return changed(random, merges=(ARRAY, (STRING, [random.pick(["", " ", "a", "a  b", "no such", " a", "b ", "\0 \0"])
                                                    for _ in range(random.pick([1, 2, 1000]))])))


@rule("names-unknown", BOUNDED, "model and pre: other names may come")
def _(random):
    return changed(random, **random.pick([{"model": (STRING, random.pick(["plamo2", "", "no such", "rwkv", "bert", "t5"]))},
                                          {"merges": (ARRAY, (STRING, ["a b"])), "pre": (STRING, random.pick(["", "no such", "tekken"]))}]))


@rule("random", BOUNDED, "tokens of random bytes")
def _(random):
    count = random.between(1, 60)
    pieces = [b"".join(random.pick([b"a", b"b", b" ", b"<", b">", b"\n", b"\xc4\xa0", b"\xe2\x96\x81", b"\xff", b"\0"])
                       for _ in range(random.below(6))) for _ in range(count)]
    keys = fields(random.pick(["llama", "gpt2"]))
    keys["tokens"] = (ARRAY, (STRING, pieces))
    keys["token_type"] = (ARRAY, (I32, [random.below(8) for _ in pieces]))
    if "scores" in keys:
        keys["scores"] = (ARRAY, (F32, [-float(random.below(5)) for _ in pieces]))
    if "merges" in keys:
        keys["merges"] = (ARRAY, (STRING, [random.pick(pieces) + b" " + random.pick(pieces) for _ in range(random.below(30))]))
    return file_of(keys)
