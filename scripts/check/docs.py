#!/usr/bin/env python3
"""Keeps the Markdown pages in order: lines of at most 160 characters, links that lead somewhere, sources that exist, no paths of one
machine, and generated parts that agree with their source.

Usage: docs.py              check all pages of the checkout
       docs.py --update     write the generated parts anew
       docs.py --wrap PAGE  lay out paragraphs with lines that are too long (tables and code stay as they are)
       docs.py --self-test  check the checker, on small bad trees

A generated part stands between `<!-- generated: KIND ARGUMENTS -->` and `<!-- end of generated -->`:

  layers                 the table of layers, from src/layers.txt
  results NAME [COLUMNS] [medians]
                         the table of bench/results/NAME.json; COLUMNS such as 1-5,8 chooses some; medians leaves out what stands in brackets

A file of bench/results has a machine, a date, the commands that gave the numbers, columns and rows, and is shown on a page.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LONGEST, WIDTH = 160, 120
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
MACHINE = re.compile(r"(?<![\w.])/(tmp|work|root|home/\w+)/[\w.]+")
SOURCE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|cpp|def|inc|py|sh|cmake|toml|k))`")
BELOW = ("", "src", "src/backends/cpu", "src/gpu", "tests")  # where a page may start a path, beside its own folder
GENERATED = re.compile(r"(<!-- generated: ([^>]*?) -->\n)(.*?)(<!-- end of generated -->)", re.S)
ITEM = re.compile(r"(\s*)([-*+]|\d+\.) +")
LAYER = re.compile(r"([a-z]+):([a-z_/. ]*)\|(.*)")
NEEDED = ("machine", "date", "commands", "columns", "rows")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def pages(root):
    """All Markdown files of the project, without those of others in tests/data; those that Git ignores count only where there is no Git."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            check=False, text=True).stdout.split("\n")
    if not any(listed):
        listed = [os.path.relpath(os.path.join(parent, name), root) for parent, folders, names in os.walk(root) for name in names
                  if name.endswith(".md") and not re.search(r"/(build|node_modules)(/|$)", parent)]
    return sorted(path for path in set(listed) if path and not path.startswith("tests/data/") and os.path.exists(os.path.join(root, path)))


def prose(text):
    """(line number, line) outside of code blocks."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, line


def anchors(text):
    """The names that GitHub gives to the headings of a page."""
    names = {}
    for _, line in prose(text):
        if line.startswith("#"):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip())
            name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            names[name] = names.get(name, -1) + 1
    return {name if n == 0 else f"{name}-{n}" for name, count in names.items() for n in range(count + 1)}


def check_links(root, page, text):
    found = []
    for number, line in prose(text):
        for target in LINK.findall(CODE.sub("", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            where = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(root, where)):
                found.append((number, f"links to {target}: there is no {where}"))
            elif anchor and where.endswith(".md") and anchor not in anchors(read(root, where)):
                found.append((number, f"links to {target}: {where} has no heading of that name"))
    return found


def check_sources(root, page, text):
    return [(number, f"names {path}, which does not exist") for number, line in prose(text) for path in SOURCE.findall(line)
            if not any(os.path.exists(os.path.join(root, below, path)) for below in (*BELOW, os.path.dirname(page)))]


def layers_table(root):
    lines = ["| layer | builds on | holds |", "|---|---|---|"]
    for line in read(root, "src/layers.txt").split("\n"):
        if match := LAYER.fullmatch(line):
            name, below, holds = (part.strip() for part in match.groups())
            files = sorted(os.path.basename(part) for part in below.split() if "/" in part)
            direct = [part for part in below.split() if "/" not in part] + (["of `device` " + ", ".join(files)] if files else [])
            lines += row_lines(["`backends/<name>`" if name == "backends" else f"`{name}`", ", ".join(direct), holds])
    return "\n".join(lines)


def row_lines(cells):
    """A row of a table; continued in rows below where it is too long."""
    widths = [len(cell) for cell in cells]
    least = [max(map(len, cell.split()), default=0) for cell in cells]
    while sum(widths) + 3 * len(cells) + 1 > LONGEST:
        narrower = [i for i in range(len(cells)) if widths[i] > least[i]]
        if not narrower:
            break
        widths[max(narrower, key=lambda i: widths[i])] -= 1
    columns = [textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) if cell else [""] for cell, width in zip(cells, widths)]
    return ["| " + " | ".join(parts) + " |" for parts in itertools.zip_longest(*columns, fillvalue="")]


def chosen(text, count):
    """Indexes of the columns that such as 1-5,8 means."""
    numbers = [part.partition("-") for part in text.split(",")] if text else [("1", "-", str(count))]
    return [n - 1 for first, dash, last in numbers for n in range(int(first), int(last if dash else first) + 1)]


def results_table(root, page, name, columns="", medians=""):
    path = f"bench/results/{name}.json"
    data = json.loads(read(root, path))
    lacks = [key for key in NEEDED if not data.get(key)]
    if lacks:
        raise ValueError(f"{path} lacks {', '.join(lacks)}")
    take = chosen(columns, len(data["columns"]))
    numeric = [all(re.match(r"[\d*.<(-]|$", str(row[i])) for row in data["rows"]) for i in range(len(data["columns"]))]
    lines = row_lines([data["columns"][i] for i in take]) + ["|" + "|".join("--:" if numeric[i] else "---" for i in take) + "|"]
    for row in data["rows"]:
        lines += row_lines([re.sub(r" \([^)]*\)", "", str(row[i])) if medians else str(row[i]) for i in take])
    link = os.path.relpath(path, os.path.dirname(page))
    when = data["date"] + (f", commit {data['commit']}" if data.get("commit") else "")
    for text in [*data.get("notes", []), f"{data['machine']}; {when}. [Commands and data]({link})."]:
        lines += ["", textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(lines)


def updated(root, page, text):
    def part(match):
        kind, *arguments = match.group(2).split()
        table = layers_table(root) if kind == "layers" else results_table(root, page, *arguments)
        return f"{match.group(1)}\n{table}\n\n{match.group(4)}"
    return GENERATED.sub(part, text)


def check(root):
    """Faults as text, and the number of pages."""
    found, shown = [], ""
    for page in pages(root):
        text = read(root, page)
        shown += text
        faults = [(number, f"has {len(line)} characters, at most {LONGEST} are allowed (--wrap lays out paragraphs)")
                  for number, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST]
        faults += [(number, f"names {match.group(0)}, a path of one machine")
                   for number, line in enumerate(text.split("\n"), 1) if (match := MACHINE.search(line))]
        faults += check_links(root, page, text) + check_sources(root, page, text)
        try:
            if updated(root, page, text) != text:
                faults.append((1, "has a generated part that differs from its source; run scripts/check/docs.py --update"))
        except (OSError, ValueError, TypeError, IndexError) as error:
            faults.append((1, f"has a generated part that cannot be made: {error}"))
        found += [f"{page}:{number}: {message}" for number, message in faults]
    folder = os.path.join(root, "bench", "results")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not re.search(rf"generated: results {re.escape(name.removesuffix('.json'))}[ >]", shown):
            found.append(f"bench/results/{name}:1: is shown on no page; put '<!-- generated: results {name.removesuffix('.json')} -->' where it belongs")
    return found, len(pages(root))


def wrapped(text):
    """Paragraphs and list items that have a line beyond the limit, laid out anew."""
    out, block, code = [], [], False

    def flush():
        if not any(len(line) > LONGEST for line in block) or block[0].lstrip().startswith(("|", "#", "<!--")):
            out.extend(block)
        else:
            lead = re.match(r"\s*", block[0]).group(0)
            match = ITEM.match(block[0])
            hang = " " * len(match.group(0)) if match else lead
            words = " ".join(line.strip() for line in block)
            words = re.sub(r" (?=([-+*>#|=]|\d+[.)])( |$))", "\0", words)  # none of these may begin a line
            filled = textwrap.fill(words, WIDTH, initial_indent=lead, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
            out.extend(filled.replace("\0", " ").split("\n"))
        block.clear()

    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        if fence or code or not line.strip() or line.lstrip().startswith(("|", "#", "<!--")):
            flush()
            out.append(line)
            code = code != fence
        else:
            if ITEM.match(line):
                flush()
            block.append(line)
    flush()
    return "\n".join(out)


def self_test():
    good = {
        "src/layers.txt": "# x\nbase: | files\ndevice: base | the contract\n",
        "bench/results/a.json": json.dumps({"machine": "M", "date": "2026-01-01", "commands": ["x"], "columns": ["file", "tok/s"], "rows": [["q", "5"]]}),
        "docs/a.md": "# A page\n\n## Some `words`, here\n\n[b](b.md#b-1), [up](../README.md), [web](https://x.y/z)\n```\n[no](link)\n```\n"
                     "<!-- generated: layers -->\n<!-- end of generated -->\n<!-- generated: results a 1-2 -->\n<!-- end of generated -->\n",
        "docs/b.md": "# B\n# B\n[a](a.md#some-words-here)\n",
        "README.md": "# Read\n",
    }

    def faults(files, update=True):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                if update and path == "docs/a.md":
                    text = updated(root, path, text)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return check(root)[0]

    cases = [
        ("a long line", {"docs/b.md": good["docs/b.md"] + "x" * 161}, "has 161 characters"),
        ("a link to nothing", {"README.md": "[x](docs/c.md)\n"}, "there is no docs/c.md"),
        ("a link to no heading", {"README.md": "[x](docs/a.md#words)\n"}, "has no heading"),
        ("a source that does not exist", {"README.md": "`device/abi.h` and `src/layers.txt`\n"}, "names device/abi.h"),
        ("a path of one machine", {"README.md": "`/tmp/models/x.gguf`\n"}, "a path of one machine"),
        ("results without a command", {"bench/results/a.json": good["bench/results/a.json"].replace('["x"]', "[]")}, "lacks commands"),
        ("results on no page", {"bench/results/b.json": good["bench/results/a.json"]}, "bench/results/b.json:1: is shown on no page"),
    ]
    wrong = [f"the good tree: {fault}" for fault in faults(good)]
    for name, files, said in cases:
        try:
            found = faults({**good, **files})
        except ValueError as error:
            found = [str(error)]
        if not any(said in fault for fault in found):
            wrong.append(f"{name}: expected '{said}', found {found}")
    if not any("differs from its source" in fault for fault in faults(good, update=False)):
        wrong.append("a generated part that is out of date was accepted")
    laid = wrapped("* " + "word " * 50 + "\n\n| " + "x " * 90 + "|\n").split("\n")
    if max(map(len, laid[:3])) > WIDTH or not laid[1].startswith("  word") or laid[-2] != "| " + "x " * 90 + "|":
        wrong.append(f"--wrap gave {laid}")
    print("\n".join(wrong) or f"check-docs: {len(cases) + 2} bad trees refused, the good one accepted")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments == ["--update"] or arguments[:1] == ["--wrap"] and len(arguments) > 1:
        for page in arguments[1:] or pages(ROOT):
            text = read(ROOT, page)
            new = updated(ROOT, page, text) if arguments == ["--update"] else wrapped(text)
            if new != text:
                with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                    file.write(new)
                print(f"check-docs: wrote {page}")
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    found, count = check(ROOT)
    print("\n".join([*found, f"check-docs: {count} pages, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
