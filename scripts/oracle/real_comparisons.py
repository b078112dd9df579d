"""What real.py compares of one model, beside llama.cpp: token ids, answers, drafts, perplexity and speed. Each comparison gives a
sentence for the page, and what is wrong."""
import array
import collections
import json
import math
import os
import statistics
import struct
import subprocess
import sys

import tokenization
from real_text import QUESTIONS, say

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "compare")]
import gguf_file  # noqa: E402
import install  # noqa: E402
from install import Problem  # noqa: E402
import measure  # noqa: E402

WINDOW, WINDOWS = 512, 16
ANSWER, CONTEXT = 32, 1024
# The peer's answers do not depend on the number of threads in a way that matters here, and one thread waits for no other on a busy machine.
OUR_THREADS, PEER_THREADS = 2, 1
PROMPT_TOKENS, GENERATED_TOKENS, ROUNDS = 256, 64, 3
PERPLEXITY_TOLERANCE = 0.005
# Two logits closer than this many times the mean difference of the engines' logits at that place are a tie: the rule of the golden files.
TIE = 4
# Drafts: tokens of each answer, bytes of the texts that they are about, and how many of each kind.
DRAFTED_ANSWER, DRAFTED_TEXT, DRAFTED_EACH = 160, 1200, 5


class Ours:
    def __init__(self, program, path):
        self.program, self.path = program, path

    def call(self, command, *options, data=None, model=True):
        done = subprocess.run([self.program, command, *([self.path] if model else []), *options], input=data, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=measure.environment(), check=False)
        if done.returncode != 0:
            raise Problem(f"gimbal {command}: " + done.stderr.decode(errors="replace").strip())
        return done.stdout

    def json(self, command, *options, **more):
        return json.loads(self.call(command, *options, "--json", **more))

    def ids(self, text, special):
        return self.json("tokenize", "--file", "-", "--no-bos", *([] if special else ["--no-special"]), data=text)["tokens"]

    def last_logits(self, tokens):
        numbers = array.array("f")
        numbers.frombytes(self.call("logits", "--tokens", ",".join(map(str, tokens)), "--positions", "last", "-o", "-", "--quiet",
                                    "--backend", "cpu", "--ctx", str(CONTEXT), "-t", str(OUR_THREADS)))
        return numbers


def ask_peer(peer, path, mode, context, data, *more, **environment):
    done = subprocess.run([install.program(peer, os.path.join(HERE, "peer.cpp")), peer.all_libraries, mode, path, str(context),
                           str(PEER_THREADS), *more], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, **environment, "LD_LIBRARY_PATH": peer.all_libraries})
    if done.returncode != 0:
        raise Problem("llama.cpp: " + done.stderr.decode(errors="replace").strip())
    return done.stdout


def tokens_data(*lists):
    return b"".join(struct.pack(f"<{len(ids) + 1}i", len(ids), *ids) for ids in lists)


def compare_tokens(ours, answers, pieces):
    """Ids of every piece as a user's text, and with control tokens recognised."""
    wrong, ids = [], 0
    for piece, case in zip(pieces, answers.cases):
        for special, theirs in ((False, case["ids"]), (True, case["ids_parse"])):
            found = ours.ids(piece.data, special)
            ids += len(found)
            if found != theirs:
                at = next((i for i, (a, b) in enumerate(zip(found, theirs)) if a != b), min(len(found), len(theirs)))
                wrong.append(f"{piece.name}: from id {at} on gimbal has {found[at:at + 4]}, llama.cpp {theirs[at:at + 4]}")
    size = sum(len(p.data) for p in pieces)
    text = f"{size / 1e6:.2f} MB in {len(pieces)} texts, {ids:,} ids: " + ("all equal" if not wrong else f"{len(wrong)} lists differ")
    return text, wrong


def prompts(ours, peer, vocabulary):
    """What the questions become through the template: (their ids by the peer, a note)."""
    rendered, note = [], ""
    template = gguf_file.read_metadata(ours.path).get("tokenizer.chat_template")
    for question in QUESTIONS:
        variables = {"messages": [{"role": "user", "content": question}], "add_generation_prompt": True}
        rendered.append(ours.json("render-template", "--model", ours.path, "--input", "-", data=json.dumps(variables).encode(),
                                  model=False)["prompt"])
    if template is None:
        note = "the file has no template; gimbal's for its vocabulary"
    else:
        count = struct.unpack_from("<Q", template, 4)[0]
        expected = render_beside(template[12:12 + count].decode(), vocabulary)
        if rendered != expected:
            raise Problem("the template's renderings are not jinja2's: " + repr(next((a, b) for a, b in zip(rendered, expected) if a != b)))
        note = "the file's own template, rendered as jinja2 does"
    answers = tokenization.Answers(peer, ours.path, [text.encode() for text in rendered])
    out = []
    for case in answers.cases:
        ids = case["ids_parse"]
        if answers.head["add_bos"] and ids[:1] != [answers.head["bos"]]:
            ids = [answers.head["bos"], *ids]
        out.append(ids)
    return out, note


RENDER = """
import json, sys
from jinja2 import sandbox
given = json.load(sys.stdin)
place = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
template = place.from_string(given["template"])
json.dump([template.render(messages=[{"role": "user", "content": q}], add_generation_prompt=True, **given["tokens"])
           for q in given["questions"]], sys.stdout)
"""


def render_beside(template, tokens):
    """The questions' prompts by Python's jinja2, which Debian packages for its own Python."""
    done = subprocess.run(["/usr/bin/python3", "-c", RENDER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          input=json.dumps({"template": template, "questions": QUESTIONS, "tokens": tokens}).encode())
    if done.returncode != 0:
        raise Problem("jinja2 (`scripts/setup.sh checks` installs it): " + done.stderr.decode(errors="replace").strip().splitlines()[-1])
    return json.loads(done.stdout)


def special_texts(path):
    """bos_token and eos_token as templates know them."""
    metadata = gguf_file.read_metadata(path)
    out = {"bos_token": "", "eos_token": ""}
    if "tokenizer.ggml.tokens" in metadata:
        pieces = gguf_file.strings(metadata["tokenizer.ggml.tokens"])
        for name in ("bos", "eos"):
            if raw := metadata.get(f"tokenizer.ggml.{name}_token_id"):
                out[name + "_token"] = pieces[struct.unpack_from("<I", raw, 4)[0]].decode()
    return out


def compare_answers(ours, peer):
    """gimbal answers by itself; llama.cpp says, token by token, what it would have written there."""
    given, note = prompts(ours, peer, special_texts(ours.path))
    answers, wrong = [], []
    for question, ids in zip(QUESTIONS, given):
        found = ours.json("run", "--chat", "-p", question, "--greedy", "-n", str(ANSWER), "--backend", "cpu", "--ctx", str(CONTEXT), "-t",
                          str(OUR_THREADS), "--quiet")
        if found["prompt_tokens"] != len(ids):
            wrong.append(f"{question}: gimbal's prompt has {found['prompt_tokens']} tokens, llama.cpp's {len(ids)}")
        answers.append([*found["tokens"], *([-1] if found["finish"] == "stop-token" else [])])
    data = ask_peer(peer, ours.path, "judge", CONTEXT, tokens_data(*(ids for pair in zip(given, answers) for ids in pair)))
    width, = struct.unpack_from("<i", data)
    at, steps, apart, parted = 4, 0, [], set()  # apart: where the two differ, how far in mean differences
    for number, (ids, answer) in enumerate(zip(given, answers)):
        for step in range(len(answer)):
            best, theirs, above = struct.unpack_from("<iif", data, at)
            at += 12
            steps += 1
            if best == theirs:
                continue
            row = array.array("f", data[at:at + 4 * width])
            at += 4 * width
            mine = ours.last_logits(ids + answer[:step])
            noise = sum(abs(a - b) for a, b in zip(mine, row)) / width
            gap = mine[theirs] - mine[best]
            parted.add(number)
            apart.append(max(above, gap) / noise)
            if gap < 0 or apart[-1] > TIE:
                wrong.append(f"{QUESTIONS[number]}: at token {step} gimbal wrote {theirs}, {gap:.3f} above {best}, which llama.cpp "
                             f"has {above:.3f} above it; mean difference of the logits {noise:.3f}")
    if at != len(data):
        raise Problem("llama.cpp answered more than was asked")
    text = f"{len(QUESTIONS) - len(parted)} of {len(QUESTIONS)} the same to the end, {steps - len(apart)} of {steps} tokens"
    if apart:
        text += f"; {sum(a <= TIE for a in apart)} of the other {len(apart)} are ties (logits apart at most {max(apart):.1f} times the " \
                "engines' mean difference)"
    return f"{text}. {note[0].upper()}{note[1:]}", wrong


def draft_prompts(pieces):
    """{kind of work: prompts}. What is asked about code and texts is answered largely with their own words."""
    def texts(kind):
        return [piece.data[:DRAFTED_TEXT].decode("utf-8", "ignore") for piece in pieces if piece.name == kind][::3][:DRAFTED_EACH]

    return {"chat": QUESTIONS[::4][:DRAFTED_EACH],
            "code editing": ["Write this code again, with a comment above each function:\n\n" + text for text in texts("code")],
            "summaries": ["Summarise this text:\n\n" + text for text in texts("documentation")]}


def compare_drafts(ours, pieces):
    """Answers with drafts and without, by the kind of work: how many drafts were kept, and that the answer is the same."""
    parts, wrong = [], []
    for kind, asked in draft_prompts(pieces).items():
        counts = collections.Counter()
        for prompt in asked:
            call = ("run", "--chat", "-p", prompt, "--greedy", "-n", str(DRAFTED_ANSWER), "--backend", "cpu", "--ctx", str(CONTEXT), "-t",
                    str(OUR_THREADS), "--quiet")
            plain, drafted = ours.json(*call), ours.json(*call, "--draft", "auto")
            counts.update({key: drafted["draft"][key] for key in ("steps", "tokens", "drafted", "accepted")})
            source = drafted["draft"]["from"]
            if plain["tokens"] != drafted["tokens"]:
                wrong.append(f"{kind}: with drafts the answer to {prompt[:40]!r} is another one")
        kept = f"{100 * counts['accepted'] / counts['drafted']:.0f} % of {counts['drafted']} kept" if counts["drafted"] else "none drafted"
        parts.append(f"{kind} {kept}, {counts['tokens'] / counts['steps']:.2f} tokens a step")
    return f"from {source}: " + "; ".join(parts) + ("" if wrong else ". The answers are the same as without"), wrong


def windows_of(ours, peer, pieces, folder, most=WINDOWS):
    """A file with the beginning of every fourth piece, and its tokens in windows as `gimbal perplexity` cuts them."""
    text = b"\n\n".join(piece.data[:2000].decode("utf-8", "ignore").encode() for piece in pieces[::4])
    answers = tokenization.Answers(peer, ours.path, [text])
    ids, windows = answers.cases[0]["ids"], []
    count = min(most, len(ids) // WINDOW)
    # gimbal reads a text, not ids: the shortest one that has so many windows.
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(ours.ids(text[:middle].decode("utf-8", "ignore").encode(), False)) < count * WINDOW:
            low = middle + 1
        else:
            high = middle
    text = text[:low].decode("utf-8", "ignore").encode()
    path = os.path.join(folder, "text")
    with open(path, "wb") as file:
        file.write(text)
    ids = tokenization.Answers(peer, ours.path, [text]).cases[0]["ids"]
    if answers.head["add_bos"]:  # of the text, and then in place of each window's first token
        ids = [answers.head["bos"], *ids]
    for i in range(len(ids) // WINDOW):
        window = ids[i * WINDOW:(i + 1) * WINDOW]
        windows.append([answers.head["bos"], *window[1:]] if answers.head["add_bos"] else window)
    return path, windows


def peer_losses(peer, model, windows, *cache, **environment):
    """Of each scored token. `cache`: the format of keys and values, by default the peer's own."""
    data = ask_peer(peer, model, "losses", WINDOW, tokens_data(*windows), *cache, **environment)
    losses, at = [], 0
    while at < len(data):
        n, = struct.unpack_from("<i", data, at)
        losses += struct.unpack_from(f"<{n}f", data, at + 4)
        at += 4 + 4 * n
    return losses


def compare_perplexity(ours, peer, pieces, folder):
    path, windows = windows_of(ours, peer, pieces, folder)
    found = ours.json("perplexity", "-f", path, "--ctx", str(WINDOW), "--backend", "cpu", "-t", str(OUR_THREADS), "--quiet")
    losses = peer_losses(peer, ours.path, windows)
    if len(losses) != found["tokens_scored"]:
        raise Problem(f"gimbal scored {found['tokens_scored']} tokens, llama.cpp {len(losses)}")
    theirs = math.exp(sum(losses) / len(losses))
    off = found["perplexity"] / theirs - 1
    text = f"{found['perplexity']:.4f} and {theirs:.4f}, {100 * off:+.3f} % ({found['tokens_scored']} tokens in {found['windows']} windows)"
    return text, [] if abs(off) <= PERPLEXITY_TOLERANCE else [f"perplexity differs by {100 * off:.3f} %"]


def compare_speed(ours, peer, threads):
    """Rows of a table, and how busy others kept the machine."""
    runs = collections.defaultdict(list)
    measure.warm(ours.path)
    measure.alternate([measure.Gimbal(ours.program, None), measure.PackagedPeer(peer, None)], ours.path, threads, ROUNDS, PROMPT_TOKENS,
                      GENERATED_TOKENS, 1, 1, lambda engine, _, numbers, __: runs[engine].append(numbers))
    middle = {engine: {key: statistics.median(run[key] for run in found)
                       for key in ("prompt", "generation", "start_seconds", "peak_bytes", "others")} for engine, found in runs.items()}
    rows = [f"| prompt of {PROMPT_TOKENS}, tok/s | {{:.0f}} | {{:.0f}} |", f"| generation of {GENERATED_TOKENS}, tok/s | {{:.1f}} | {{:.1f}} |",
            "| start to the first token, s | {:.2f} | {:.2f} |", "| peak memory, MB | {:.0f} | {:.0f} |"]
    keys = [("prompt", 1), ("generation", 1), ("start_seconds", 1), ("peak_bytes", 1e6)]
    table = ["| | gimbal | llama.cpp |", "|---|---|---|"]
    table += [row.format(*(middle[e][key] / unit for e in ("gimbal", "peer"))) for row, (key, unit) in zip(rows, keys)]
    return table, max(run["others"] for found in runs.values() for run in found)


def compare(path, program, peer, pieces, folder, threads):
    """(the model's part of the page, what is wrong)"""
    ours, name = Ours(program, path), os.path.basename(path).removesuffix(".gguf")
    known = ours.json("info")
    if not known["supported"]:
        raise Problem(f"gimbal cannot run it: {known['unsupported_reason']}")
    lines, wrong = [], []
    tokens = tokenization.Answers(peer, path, [piece.data for piece in pieces])
    for title, part in (("token ids", lambda: compare_tokens(ours, tokens, pieces)), ("greedy answers", lambda: compare_answers(ours, peer)),
                        ("drafts", lambda: compare_drafts(ours, pieces)),
                        ("perplexity", lambda: compare_perplexity(ours, peer, pieces, folder))):
        text, different = part()
        say(f"{name}: {title}: {text}")
        for line in different[:20]:
            say(f"  {line}")
        lines.append(f"- {title}: {text}")
        wrong += different
    if threads:
        table, others = compare_speed(ours, peer, threads)
        lines += ["", *table, "", f"Medians of {ROUNDS} rounds, {threads} thread{'s' * (threads > 1)} each. " + (
            "The machine was quiet." if others < 0.1 else
            f"Measured under load: others kept up to {others:.1f} of the {os.cpu_count()} processors busy, so these figures are not reliable.")]
        say(f"{name}: " + "; ".join(table[2:]))
    return lines, wrong
