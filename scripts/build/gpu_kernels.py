#!/usr/bin/env python3
"""Turns kernel texts (src/gpu/kernels/*.k, listed in a kernels.def) into what a build needs. The texts become a
target's language by the C preprocessor alone; this only calls it, the target's compiler and its checker.

  gpu_kernels.py rows   DEF                           its kernels, a line each, as cmake/gpu.cmake reads them
  gpu_kernels.py facts  DEF SRC HEADER JSON           the argument structs for the host; what each kernel binds
  gpu_kernels.py module LANGUAGE NAME DEF SRC OUT     one kernel for one target: see gpu_modules.py
  gpu_kernels.py table  LANGUAGE JSON FOLDER FUNCTION OUT [packed]   the table of KernelCode, as C++ (and .incbin beside it)
"""
import json
import os
import re
import sys

import gpu_text
from gpu_text import Refused, folder_of, preprocess, rows_of

# Symbols of data, in ELF and in Apple's Mach-O, which puts _ before names of C and knows .private_extern for hidden.
ASSEMBLY_WORDS = """#ifdef __APPLE__
#define NAME(n) _##n
.macro HIDDEN_ name
.globl \\name
.private_extern \\name
.endm
#define HIDDEN(n) HIDDEN_ n
.section __TEXT,__const
#else
#define NAME(n) n
.macro HIDDEN_ name
.globl \\name
.hidden \\name
.endm
#define HIDDEN(n) HIDDEN_ n
.section .note.GNU-stack,"",%progbits
.section .rodata
#endif
"""

C_TYPES = {"u32": "uint32_t", "i32": "int32_t", "f32": "float"}
MOST_BINDINGS, MOST_PARAM_BYTES, MOST_SHARED_BYTES = 8, 96, 16384
MATRIX_SHARED_BYTES = 49152  # what every GPU with matrix units has


def items(text, words):
    out = [tuple(item.split()) for item in text.split(";") if item.strip()]
    for item in out:
        if len(item) != words:
            raise Refused(f"'{' '.join(item)}' has not {words} words")
    return out


def facts_of(row, definition, src):
    name, file, flags = row
    where = f"{os.path.join(folder_of(definition), file + '.k')} ({name})"
    text = preprocess("host", name, file, flags, definition, src)
    found = re.search(r"FACTS_BEGIN (.*?) FACTS_END(.*)", text, re.S)
    if not found:
        raise Refused(f"{where}: there is no #include KERNEL_HEADER after LANES, BUFFERS and PARAMS")
    parts = found.group(1).split("|")
    for macro, part in zip(("LANES", "BUFFERS", "PARAMS"), parts[1:4]):
        if macro in part:
            raise Refused(f"{where}: {macro} is not defined before #include KERNEL_HEADER")
    try:
        lanes = int(eval(parts[1], {"__builtins__": {}}))  # an expression of numbers
        buffers, params, shared = items(parts[2], 4), items(parts[3], 2), items(parts[4], 3)
        if not all(count.isdigit() for _, _, count in shared):
            raise Refused("the sizes of SHARED must be plain numbers")
    except (Refused, SyntaxError, NameError, TypeError) as e:
        raise Refused(f"{where}: LANES, BUFFERS, PARAMS or SHARED cannot be read: {e}") from e
    if not 1 <= lanes <= 256:
        raise Refused(f"{where}: LANES is {lanes}; every target has 1 to 256")
    if not 1 <= len(buffers) <= MOST_BINDINGS or [b[1] for b in buffers] != [str(i) for i in range(len(buffers))]:
        raise Refused(f"{where}: BUFFERS must be 1 to {MOST_BINDINGS}, numbered from 0 in order; found {parts[2].strip()}")
    if not params or 4 * len(params) > MOST_PARAM_BYTES:
        raise Refused(f"{where}: there must be 1 to {MOST_PARAM_BYTES // 4} PARAMS; found {len(params)}")
    for kind in [b[2] for b in buffers] + [p[0] for p in params] + [s[0] for s in shared]:
        if kind not in C_TYPES:
            raise Refused(f"{where}: '{kind}' is not a type of the dialect (f32, u32, i32)")
    most = MATRIX_SHARED_BYTES if "-DMATRIX_UNITS" in row[2] else MOST_SHARED_BYTES
    if 4 * sum(int(count) for _, _, count in shared) > most:
        raise Refused(f"{where}: SHARED takes more than {most} bytes, which is all that {'such devices' if most > MOST_SHARED_BYTES else 'WebGPU'} promise")
    trees = re.findall(r"FACT_TREE\((\d+), (\w+)\)", found.group(2))
    for over, memory in trees:
        words = next((int(s[2]) for s in shared if s[1] == memory), 0)
        if lanes & (lanes - 1) or lanes < int(over):
            raise Refused(f"{where}: TREE_{over} in groups of {lanes} lanes: it needs a power of two, {over} or more")
        if words < lanes:
            raise Refused(f"{where}: TREE_{over} wants an array of SHARED with a word for each of {lanes} lanes; {memory} has {words}")
    return {"name": name, "file": file, "trees": bool(trees), "lanes": lanes, "bindings": len(buffers), "params": params,
            "writable": sum(1 << int(b[1]) for b in buffers if b[0] == "out"), "barriers": bool(trees) or "FACT_BARRIER" in found.group(2)}


def write_if_changed(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def command_rows(definition):
    for name, file, flags in rows_of(definition):
        print(name, file, *flags)


def command_facts(definition, src, header, out):
    import concurrent.futures  # not where one module is built: there are hundreds
    rows = rows_of(definition)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        facts = list(pool.map(lambda row: facts_of(row, definition, src), rows))
    structs = {}
    text = "// Generated by scripts/build/gpu_kernels.py from the PARAMS of the kernel texts.\n#pragma once\n#include <cstdint>\n\n"
    text += "namespace gimbal::gpu {\n\n"
    for fact in facts:
        known = structs.setdefault(fact["file"], fact)
        if known["params"] != fact["params"]:
            raise Refused(f"{fact['file']}.k: {known['name']} and {fact['name']} have different PARAMS; one file has one struct")
        if known is fact:
            members = "".join(f"  {C_TYPES[kind]} {name} = 0;\n" for kind, name in fact["params"])
            text += f"struct {fact['file']}_params {{\n{members}}};\n\n"
    write_if_changed(header, text + "}  // namespace gimbal::gpu\n")
    write_if_changed(out, json.dumps(facts, indent=1) + "\n")


def command_table(language, facts_file, folder, function, out, packed=""):
    with open(facts_file, encoding="utf-8") as f:
        facts = json.load(f)
    declarations, table_rows, assembly = "", "", ""
    shared_module = language.startswith("amdgcn-")
    modules = {}  # of a module's symbol: its file
    for fact in facts:
        name = fact["name"]
        rest = f"{fact['lanes']}, {fact['bindings']}, {fact['writable']:#x}, {4 * len(fact['params'])}"
        if language == "emulator":
            declarations += (f"namespace emulated::{name} {{\nextern const uint32_t shared_bytes;\nvoid fast(Lane&);\n"
                             f"void checked(Lane&);\n}}\n")
            symbol = f"compiled_{name}"
            table_rows += f"    {{\"{name}\", bytes_of({symbol}), {rest}}},\n"
            modules[symbol] = f"{{emulated::{name}::fast, emulated::{name}::checked, emulated::{name}::shared_bytes, " \
                              f"{'true' if fact['barriers'] else 'false'}}}"
        else:
            stem = "all" if shared_module else name
            symbol = re.sub(r"\W", "_", f"{function}_{stem}")
            modules[symbol] = os.path.join(folder, stem)
            subgroups = "{}"
            if fact["trees"] and language in gpu_text.WITH_SUBGROUPS:
                more = f"{symbol}_subgroups"
                modules[more] = os.path.join(folder, f"{name}.subgroups")
                subgroups = f"{{{more}, {more}_end}}"
            more = ["true" if fact["trees"] else "false", subgroups, "true" if packed else "false"]
            while more and more[-1] in ("false", "{}"):  # what KernelCode says itself
                more.pop()
            rest += "".join(f", {word}" for word in more)
            table_rows += f"    {{\"{name}\", {{{symbol}, {symbol}_end}}, {rest}}},\n"
    text = f"// Generated by scripts/build/gpu_kernels.py: the kernels for {language}.\n#include \"gpu/modules.h\"\n"
    if language == "emulator":
        text += "#include \"gpu/dialect/emulator_lane.h\"\n\nnamespace gimbal::emulator {\n" + declarations
        text += "namespace {\nstd::span<const uint8_t> bytes_of(const Compiled& c) {\n"
        text += "  return {reinterpret_cast<const uint8_t*>(&c), sizeof c};\n}\n"
        for symbol, value in modules.items():
            text += f"const Compiled {symbol} = {value};\n"
        text += "}  // namespace\n}  // namespace gimbal::emulator\n"
    else:
        text += "\nextern \"C\" {\n" + "".join(f"extern const uint8_t {s}[], {s}_end[];\n" for s in modules) + "}\n"
        assembly = ASSEMBLY_WORDS + "".join(
            f"HIDDEN(NAME({s}))\nHIDDEN(NAME({s}_end))\n.balign 16\nNAME({s}):\n.incbin \"{path}\"\nNAME({s}_end):\n.byte 0\n"
            for s, path in modules.items())
        write_if_changed(os.path.splitext(out)[0] + ".S", assembly)
    using = "  using namespace gimbal::emulator;\n" if language == "emulator" else ""
    text += f"\nnamespace gimbal::gpu {{\nstd::span<const KernelCode> {function}();  // where modules.h does not know it\n"
    text += f"std::span<const KernelCode> {function}() {{\n{using}"
    text += f"  static const KernelCode table[] = {{\n{table_rows}  }};\n  return table;\n}}\n}}  // namespace gimbal::gpu\n"
    write_if_changed(out, text)


def command_module(language, name, definition, src, out):
    import gpu_modules  # only where a target is built
    rows = rows_of(definition)
    chosen = rows if name == "all" else [row for row in rows if row[0] == name]
    if not chosen:
        raise Refused(f"{definition}: there is no kernel {name}")
    gpu_modules.build(language, chosen, definition, src, out)


def main(arguments):
    commands = {"rows": command_rows, "facts": command_facts, "table": command_table, "module": command_module}
    if not arguments or arguments[0] not in commands:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        commands[arguments[0]](*arguments[1:])
    except Refused as e:
        print(f"gpu_kernels: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
