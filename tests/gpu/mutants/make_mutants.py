#!/usr/bin/env python3
"""Makes kernels with one wrong word each, for the test that shows that conformance catches such a word.

  make_mutants.py KERNELS_DEF MUTANTS FOLDER    writes FOLDER/kernels.def, FOLDER/kernels/*.k and FOLDER/mutants.inc

A text and all that it includes become one file, in which a mutation of MUTANTS (see there) replaces one place. The
unchanged text of every mutated kernel is made as well: it must pass.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/build"))
import gpu_text  # noqa: E402

INCLUDE = re.compile(r'^#include\s+(\S+)\s*$', re.M)


def flat(folder, name, heads=None):
    """A text with its includes in place, but for KERNEL_HEADER."""
    heads = heads if heads is not None else {}
    path = os.path.join(folder, name)
    if not os.path.exists(path):  # of src/, as compilers look for it
        path = os.path.join(os.path.dirname(os.path.dirname(folder)), name)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    heads.update(re.findall(r'^#define\s+(\w+_TEXT)\s+"([^"]+)"', text, re.M))
    return INCLUDE.sub(lambda m: m.group(0) if m.group(1) == "KERNEL_HEADER"
                       else flat(folder, heads.get(m.group(1), m.group(1)).strip('"'), heads), text)


def main(definition, mutants, out):
    rows = {name: (file, " ".join(flags)) for name, file, flags in gpu_text.rows_of(definition)}
    folder = os.path.join(os.path.dirname(os.path.abspath(definition)), "kernels")
    with open(mutants, encoding="utf-8") as f:
        entries = [line.rstrip("\n").split(" ;; ") for line in f if line.strip() and not line.startswith("#")]
    files, table, listed = {}, [], []

    def add(name, kernel, text, words):
        file, flags = rows[kernel]
        files[name + ".k"] = text
        table.append(f'SIMT_KERNEL({name}, {name}, "{flags}")')
        row = words[0]
        note = " -> ".join(words[1:]).replace("\\", "\\\\").replace('"', '\\"')
        listed.append(f'MUTANT("{name}", "{kernel}", "{row}", "{note}")')

    for kernel, row in sorted({(e[0], e[1]) for e in entries}):
        add(f"same_{kernel}", kernel, flat(folder, rows[kernel][0] + ".k"), [row])
    for i, (kernel, row, old, new) in enumerate(entries):
        text = flat(folder, rows[kernel][0] + ".k")
        if old == new or old not in text:
            sys.exit(f"{mutants}: {kernel} has no '{old}': the texts have changed, change the mutation too")
        add(f"wrong{i}_{kernel}", kernel, text.replace(old, new, 1), [row, old, new])
    files["../kernels.def"] = "\n".join(table) + "\n"
    files["../mutants.inc"] = "\n".join(listed) + "\n"
    os.makedirs(os.path.join(out, "kernels"), exist_ok=True)
    for name, text in files.items():
        path = os.path.join(out, "kernels", name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                if f.read() == text:
                    continue
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
