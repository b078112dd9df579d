"""The attackers' own files: public proofs of concept against other engines, rebuilt from their descriptions; none of their code is here.

Each has the number of its report, the address of the description, what it did there, the kind of file and the verdict that the rules give."""
import json
import struct

from . import vocabularies
from .case import ACCEPT, BOUNDED, REFUSE
from .gguf import ARRAY, F32, I32, STRING, U32, File, Tensor, text

ALL = []
ADVISORY = "https://github.com/ggml-org/llama.cpp/security/advisories/"
LLAMA = "https://github.com/ggml-org/llama.cpp/"
CVE = "https://nvd.nist.gov/vuln/detail/"


class Attack:
    def __init__(self, name, source, did, kind, verdict, data, **facts):
        self.name, self.source, self.did, self.kind, self.verdict, self.facts = name, source, did, kind, verdict, facts
        self.data = data.encode() if isinstance(data, str) else data
        ALL.append(self)


def with_dims(dims, kind=0, data=b"\0" * 64, more=()):
    """A file whose last tensor lies about its size."""
    tensors = [*more, Tensor("a", [1], 0)]
    file = File([("general.architecture", STRING, "llama")], tensors)
    tensors[-1].dims, tensors[-1].kind, tensors[-1].data = dims, kind, data
    return file.build()


def header(tensors, entries, rest=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + rest


def aligned(kind, value):
    file = File([("general.architecture", STRING, "llama"), ("general.alignment", kind, value)], [Tensor("a", [8], 0)])
    return file.build()


def gguf(name, source, did, data, verdict=REFUSE):
    Attack(name, source, did, "gguf", verdict, data)


# The sizes of tensors.
gguf("CVE-2025-53630", ADVISORY + "GHSA-vgg9-87g3-85w8", "the sum of the tensors' sizes wrapped, so the buffer was small and tensors lay behind it",
     with_dims([2**61 - 8], data=bytes(64), more=[Tensor("b", [2**4], 0)]))
gguf("GHSA-vgg9-87g3-85w8", ADVISORY + "GHSA-vgg9-87g3-85w8", "the same sum, with four tensors of 2^62 bytes",
     b"".join([header(4, 0)] + [text(f"t{i}") + struct.pack("<IQIQ", 1, 2**60, 0, i * 2**62) for i in range(4)]) + bytes(64))
gguf("CVE-2026-27940", ADVISORY + "GHSA-3p4r-fq3f-q74v", "the size of the table of tensors wrapped, so the buffer was small and fread() wrote behind it",
     header(2**64 // 368 + 2, 0, text("a") + struct.pack("<IQIQ", 1, 1, 0, 0) + bytes(64)))
gguf("llama.cpp-15711", LLAMA + "issues/15711", "a number of tensors whose table could be counted, but not its overhead: the product wrapped",
     header(2**63 // 96, 0, text("a") + struct.pack("<IQIQ", 1, 1, 0, 0) + bytes(64)))
gguf("CVE-2026-33298", ADVISORY + "GHSA-96jg-mvhq-q7q7", "the number of a tensor's bytes wrapped: exabytes took 4 MB",
     with_dims([2**32, 2**30 + 1, 1024, 1], data=bytes(4096)))
gguf("llama.cpp-24759", LLAMA + "pull/24759", "rounding a size of almost 2^64 up gave 0, so the next tensor's buffer was also this one's",
     with_dims([2**62 - 1], more=[Tensor("b", [8], 0)]))
gguf("llama.cpp-26979", LLAMA + "pull/26979", "the same, with three dimensions whose product is 2^64 - 16 bytes", with_dims([4, 2**30 - 1, 2**30 + 1, 1]))
gguf("CVE-2024-21802", "https://talosintelligence.com/vulnerability_reports/TALOS-2024-1914", "n_dims was no smaller than 5, and the dimensions were written behind their array",
     header(1, 0, text("a") + struct.pack("<I", 100) + struct.pack("<100Q", *[1] * 100) + struct.pack("<IQ", 0, 0) + bytes(64)))
gguf("CVE-2024-21825", "https://talosintelligence.com/vulnerability_reports/TALOS-2024-1912", "an array of 2^61 strings: the size of its table wrapped",
     header(0, 1, text("a.b") + struct.pack("<IIQ", ARRAY, STRING, 2**60 + 1) + text("x") * 40))
gguf("CVE-2024-21836", "https://talosintelligence.com/vulnerability_reports/TALOS-2024-1915", "the number of tensors times the size of one wrapped",
     header(2**61, 0, text("a") + struct.pack("<IQIQ", 1, 1, 0, 0) * 4))
gguf("CVE-2024-23496", "https://talosintelligence.com/vulnerability_reports/TALOS-2024-1913", "the length of a string plus one wrapped to 0, and the string was read there",
     header(0, 1, struct.pack("<Q", 2**64 - 1) + b"a" * 200))
gguf("CVE-2024-23605", "https://talosintelligence.com/vulnerability_reports/TALOS-2024-1916", "the number of entries times the size of one wrapped",
     header(0, 2**60 + 1, text("a.b") + struct.pack("<II", U32, 1) * 20))
gguf("CVE-2026-7482", "https://www.cyera.com/research/bleeding-llama-critical-unauthenticated-memory-leak-in-ollama",
     "Ollama quantized a tensor that is larger than the file, and the memory behind it went into the new model", with_dims([1_000_000], kind=1, data=bytes(32)))
gguf("CVE-2024-39720", CVE + "CVE-2024-39720", "Ollama parsed a file of 4 bytes and ended by a segmentation fault", b"GGUF")
gguf("ollama-17042", "https://github.com/ollama/ollama/issues/17042", "a length of the header was allocated before a byte of it was read",
     header(0, 1, text("general.name") + struct.pack("<IQ", STRING, 2**40)))
gguf("ollama-16136", "https://github.com/ollama/ollama/pull/16136", "the number of an array's elements became a negative int, and Go panicked",
     header(0, 1, text("a") + struct.pack("<IIQ", ARRAY, U32, 2**64 - 1)))
gguf("stable-diffusion.cpp-1397", "https://github.com/leejet/stable-diffusion.cpp/issues/1397", "a key of 2^48 bytes was allocated", header(0, 1, struct.pack("<Q", 2**48 - 1)))
gguf("ds4-545", "https://github.com/antirez/ds4/pull/545", "the table of 2^32 entries was allocated from a file of 24 bytes", header(0, 2**32))
gguf("gguf-py-27188", LLAMA + "pull/27188", "a list of 2^63 elements in 43 bytes kept the reader busy without end",
     header(0, 1, text("abc") + struct.pack("<IIQ", ARRAY, 0, 2**63))[:43])
gguf("gguf-rs-15", "https://github.com/zackshen/gguf/issues/15", "the product of the dimensions wrapped to 1", with_dims([2**64 - 1, 2, 1, 1]))

# The alignment, keys and types.
gguf("llama.cpp-26318", LLAMA + "pull/26318", "an alignment of another type than uint32 ended the process by an assertion", aligned(STRING, "32"))
gguf("llama.cpp-26318-i32", LLAMA + "pull/26318", "the same, an alignment below 0", aligned(I32, -32))
gguf("llama.cpp-24997", LLAMA + "pull/24997", "an alignment of 0x80000000 wrapped on machines of 32 bits, and sought to any place", aligned(U32, 2**31))
gguf("ggml-1516", "https://github.com/ggml-org/ggml/pull/1516", "an alignment of 2^30 made gigabytes of a small file", aligned(U32, 2**30))
gguf("alignment-0", LLAMA + "pull/19856", "an alignment of 0 divided by zero", aligned(U32, 0))
gguf("llama.cpp-24884", LLAMA + "issues/24884", "an empty key ended the process by an assertion", header(0, 1, text("") + struct.pack("<IB", 0, 1)))
gguf("type-negative", LLAMA + "pull/19856", "a tensor's type below 0 was an index", with_dims([8], kind=2**31 + 5))
gguf("array-without-size", "https://github.com/kekzl/imp/pull/532", "elements of an unknown type had no bytes, and 2^60 of them were read",
     header(0, 1, text("a.b") + struct.pack("<IIQ", ARRAY, 77, 2**60)))

# Vocabularies.
Attack("CVE-2025-49847", ADVISORY + "GHSA-8wwf-w4qm-gpqr", "the length of a token's text became a negative int32, and the text was copied behind the buffer; "
       "2 GB of text in the report, here as much as a file of this kind has", "vocabulary", BOUNDED,
       vocabularies.file_of({**vocabularies.fields(), "tokens": (ARRAY, (STRING, vocabularies.TOKENS[:-1] + ["a" * 3_000_000]))}))
Attack("lmstudio-2289-plamo2", "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2289", "a byte token <0x-1> wrote the id of a token before its table", "vocabulary",
       REFUSE, vocabularies.file_of({"model": (STRING, "plamo2"), "tokens": (ARRAY, (STRING, [f"<0x{i:02X}>" for i in range(255)] + ["<0x-1>"])),
                                     "token_type": (ARRAY, (I32, [6] * 256))}))
Attack("lmstudio-2289-llama", "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2289", "the same token in a vocabulary that gimbal reads", "vocabulary", BOUNDED,
       vocabularies.file_of({**vocabularies.fields(), "tokens": (ARRAY, (STRING, vocabularies.TOKENS[:3] + ["<0x-1>"] + vocabularies.TOKENS[4:]))}))
Attack("llama.cpp-24885", LLAMA + "issues/24885", "two equal tokens ended the process by an assertion", "vocabulary", BOUNDED,
       vocabularies.file_of({**vocabularies.fields(), "tokens": (ARRAY, (STRING, ["same"] * len(vocabularies.TOKENS)))}))
Attack("llama.cpp-24885-bos", LLAMA + "issues/24885", "a vocabulary that adds a BOS which it does not name ended the process by an assertion", "vocabulary", BOUNDED,
       vocabularies.file_of({name: value for name, value in {**vocabularies.fields(), "add_bos_token": (7, 1)}.items() if name != "bos_token_id"}))
Attack("llama.cpp-20735", LLAMA + "pull/20735", "scores and types were read behind their shorter lists", "vocabulary", REFUSE,
       vocabularies.file_of({**vocabularies.fields(), "scores": (ARRAY, (F32, [0.0])), "token_type": (ARRAY, (I32, [1]))}))

# Models whose hyperparameters lie. The first are pictures' and sound's (mmproj), which gimbal does not read: it says so.
LMSTUDIO = "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2289"


def model(name, source, did, architecture, **keys):
    entries = [("general.architecture", STRING, architecture)] + [(f"{architecture}.{key.replace('__', '.')}", U32, value) for key, value in keys.items()]
    Attack(name, source, did, "model", REFUSE, File(entries, [Tensor("token_embd.weight", [64, 32], 0), Tensor("output_norm.weight", [64], 0)]).build())


model("lmstudio-2289-step3vl", LMSTUDIO, "a scale factor of 0 divided by zero (llama.cpp #27225)", "clip", vision__projector__scale_factor=0, vision__patch_size=14)
model("lmstudio-2289-granite", LMSTUDIO, "a chunk of 65537: its square wrapped, and was written (llama.cpp #27223)", "clip", audio__chunk_size=65537)
model("lmstudio-2289-dots", LMSTUDIO, "a picture of 46340^2 pixels: an index wrapped (llama.cpp #27224)", "clip", vision__image_min_pixels=46340**2)
model("lmstudio-2289-minicpmv", LMSTUDIO, "more than 1024 patches: written behind a list on the stack (llama.cpp #27166)", "clip", vision__image_size=2**16, vision__patch_size=1)
model("llama.cpp-24085", LLAMA + "issues/24085", "no heads: the width of one was a division by zero", "llama", block_count=1, embedding_length=64,
      feed_forward_length=64, context_length=64, attention__head_count=0, attention__head_count_kv=0)

# Templates.
for number, (source_, payload) in enumerate([
        (CVE + "CVE-2024-34359", "{% for x in ().__class__.__base__.__subclasses__() %}{% if 'warning' in x.__name__ %}"
         "{{ x()._module.__builtins__['__import__']('os').popen('touch /tmp/owned').read() }}{% endif %}{% endfor %}"),
        ("https://kb.cert.org/vuls/id/915947", "{{ cycler.__init__.__globals__.os.popen('touch /tmp/owned').read() }}"),
        (CVE + "CVE-2024-56326", "{% set f = '{0.__class__.__init__.__globals__}'.format %}{{ [1]|map(f)|list }}{{ f(n) }}")]):
    Attack(["CVE-2024-34359", "CVE-2026-5760", "CVE-2024-56326"][number], source_, "a model's chat template ran code of its own in the process that rendered it",
           "template", REFUSE, payload)
Attack("haystack-9402", "https://github.com/deepset-ai/haystack/issues/9402", "two loops kept the renderer busy for minutes", "template", BOUNDED,
       "{% for i in range(25000) %}{% for j in range(25000) %}x{% endfor %}{% endfor %}")
Attack("GHSA-7rxv-5jhh-j6xx-template", ADVISORY + "GHSA-7rxv-5jhh-j6xx", "a template made 2^31 tokens of a short text, whose number became a negative int "
       "(also CVE-2025-52566)", "template", BOUNDED, "{% for i in range(99999) %}{% for j in range(99999) %}{{ messages[0].content * 1000 }}{% endfor %}{% endfor %}")

# Grammars and schemas.
Attack("llama.cpp-26600", LLAMA + "issues/26600", "60,000 groups in a grammar used up the stack of the server", "grammar", BOUNDED, "root ::= " + "(" * 60000 + '"a"' + ")" * 60000)
Attack("llama.cpp-18988", LLAMA + "issues/18988", "a repetition of what may be empty recursed without end", "grammar", BOUNDED, 'root ::= ("a"* )*\n')
Attack("llama.cpp-26602", LLAMA + "pull/26602", "a chain of rules used up the stack", "grammar", BOUNDED,
       "root ::= r1\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(1, 5000)) + 'r5000 ::= "a"\n')
Attack("llama.cpp-4492", LLAMA + "issues/4492", "a grammar with a fault ended the server by a segmentation fault", "grammar", REFUSE, 'root ::= "route" : x')
Attack("llama.cpp-25283", LLAMA + "issues/25283", "a schema that nests deeply used up the stack", "schema", BOUNDED, '{"items":' * 20000 + "{}" + "}" * 20000)
Attack("llama.cpp-22606", LLAMA + "pull/22606", "a pattern that begins with a count was read before its first item", "schema", REFUSE,
       json.dumps({"type": "object", "properties": {"s": {"type": "string", "pattern": "^+[a-z]$"}}}))
Attack("llama.cpp-22606-groups", LLAMA + "pull/22606", "groups of a pattern used up the stack", "schema", BOUNDED,
       json.dumps({"type": "string", "pattern": "^" + "(" * 50000 + "a" + ")" * 50000 + "$"}))
Attack("CVE-2025-48944", CVE + "CVE-2025-48944", "vLLM's worker ended at a type or pattern that is none", "schema", REFUSE, json.dumps({"type": "something", "pattern": "("}))


# Requests: sent to a server with the model that is built into gimbal; `status`: the answers that are right.
def request(name, source, did, path, body, status, **facts):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    Attack(name, source, did, "http", REFUSE if 200 not in status else ACCEPT if status == [200] else BOUNDED, head + data, status=status, **facts)


CHAT = {"model": "stories260K", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
TEXT = {"model": "stories260K", "prompt": "a", "max_tokens": 1}
OLLAMA = "https://www.oligo.security/blog/more-models-more-probllms"

for number_ in (-1, -2**31, 2**31, -10**12):
    request(f"CVE-2026-21869 ({number_})", CVE + "CVE-2026-21869", "a negative n_discard moved the context before its buffer", "/completion",
            {"prompt": "a", "n_predict": 1, "n_discard": number_, "n_keep": number_}, [200, 400])
request("llama.cpp-24017-dry", LLAMA + "pull/24017", "a negative dry_allowed_length wrapped in the sampler", "/completion",
        {"prompt": "a", "n_predict": 1, "dry_multiplier": 1, "dry_allowed_length": -5}, [200, 400])
request("CVE-2026-34756", "https://aithreatalert.com/cve/CVE-2026-34756", "vLLM made as many texts as `n` asked for, and ran out of memory", "/v1/completions",
        {**TEXT, "n": 2_000_000_000}, [400])
request("CVE-2025-48944-http", CVE + "CVE-2025-48944", "vLLM's worker ended at a type that is none", "/v1/chat/completions",
        {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "something", "pattern": "("}}}], "tool_choice": "required"}, [400])
request("llama.cpp-26600-http", LLAMA + "issues/26600", "60,000 groups in a grammar used up the stack of the server", "/completion",
        {"prompt": "hi", "n_predict": 1, "grammar": "root ::= " + "(" * 60000 + '"a"' + ")" * 60000}, [400])
request("llama.cpp-22606-http", LLAMA + "pull/22606", "a pattern that begins with a count ended the server", "/v1/chat/completions",
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "string", "pattern": "^+[a-z]$"}}}}, [400])
request("CVE-2025-61620", CVE + "CVE-2025-61620", "a template in the request kept vLLM busy or ate its memory", "/v1/chat/completions",
        {**CHAT, "chat_template": "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}"}, [400])
request("CVE-2024-39721", OLLAMA, "Ollama read /dev/random as a model's description without end", "/api/create",
        {"name": "x", "model": "x", "path": "/dev/random", "modelfile": "FROM /dev/random"}, [400, 404, 405, 501])
request("CVE-2024-39722", OLLAMA, "Ollama's push told by its error whether a file exists", "/api/push", {"name": "../../../../etc/passwd", "insecure": True}, [400, 404, 405, 501])
request("CVE-2024-39719", OLLAMA, "Ollama's create told by its error whether a file exists", "/api/create", {"name": "x", "path": "/etc/passwd"}, [400, 404, 405, 501])
request("CVE-2024-37032", CVE + "CVE-2024-37032", "Ollama wrote a file at the path that stood in place of a digest", "/api/pull",
        {"name": "http://127.0.0.1:9/rogue/../../../../etc/ld.so.preload", "insecure": True}, [400, 403, 404, 501])
request("CVE-2026-7020", "https://aithreatalert.com/cve/CVE-2026-7020", "a digest with ../ named a file elsewhere", "/api/blobs/sha256:../../../../etc/passwd", b"x", [400, 404, 405])
request("CVE-2026-7482-create", "https://www.cyera.com/research/bleeding-llama-critical-unauthenticated-memory-leak-in-ollama",
        "Ollama quantized an uploaded file whose tensors lie", "/api/create",
        {"model": "leak", "files": {"a.gguf": "sha256:" + "0" * 64}, "quantize": "Q4_K_M"}, [400, 404, 405, 501])
request("json-deep", "https://nvd.nist.gov/vuln/detail/CVE-2025-57809", "XGrammar recursed as deeply as its grammar", "/v1/completions",
        b'{"model":"stories260K","prompt":' + b"[" * 100000 + b"]" * 100000 + b"}", [400])
request("CVE-2026-22773", CVE + "CVE-2026-22773", "a picture of 1 x 1 ended vLLM; gimbal takes no pictures yet, and says so", "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {
            "url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="}}]}]}, [400])
Attack("CVE-2025-48956", CVE + "CVE-2025-48956", "vLLM kept a header of any size in memory", "http", REFUSE,
       b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"a" * 8_000_000 + b"\r\n\r\n", status=[400, 431])
Attack("CVE-2024-28224", CVE + "CVE-2024-28224", "a page whose name was bound to 127.0.0.1 used Ollama (DNS rebinding)", "http", REFUSE,
       b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n", status=[403])
