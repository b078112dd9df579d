#!/usr/bin/env python3
"""Fails when the public interface (include/gimbal) is no longer what tests/library/interface.txt records.

Usage: interface.py [--update]

A declaration that is gone or changed breaks programs that were written for it, so --update records that only with another minor version of the project
(CMakeLists.txt), as the installed package promises (SameMinorVersion). New declarations are recorded at any time.
clang reads the headers (scripts/setup.sh checks).
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RECORD = os.path.join(ROOT, "tests", "library", "interface.txt")
HIDDEN = {"private", "protected"}


def objects(text):
    """The JSON documents of a text, one behind another."""
    decoder, at = json.JSONDecoder(), 0
    while (at := re.compile(r"[^{]*").match(text, at).end()) < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value


def syntax_tree():
    clang = shutil.which("clang++-19") or shutil.which("clang++")
    if not clang:
        sys.exit("check-interface: clang cannot be found; scripts/setup.sh checks installs it")
    headers = sorted(os.path.basename(h) for h in glob.glob(os.path.join(ROOT, "include", "gimbal", "*.h")))
    done = subprocess.run([clang, "-std=c++20", "-x", "c++", f"-I{os.path.join(ROOT, 'include')}", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang",
                           "-ast-dump-filter=gimbal", "-"], input="".join(f'#include "gimbal/{h}"\n' for h in headers), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"check-interface: clang does not read the headers:\n{done.stderr}")
    return objects(done.stdout)


def default_of(node):
    """The value that a field or an enumerator is given, where it is a plain literal."""
    for inner in node.get("inner", []):
        if "value" in inner and inner["kind"] != "FullComment":
            return f" = {inner['value']}"
        if found := default_of(inner):
            return found
    return ""


def declarations(node, scope=""):
    """One line for each public declaration in `node`."""
    kind, name, access = node["kind"], node.get("name", ""), "public"
    if kind in ("NamespaceDecl", "LinkageSpecDecl"):
        below = f"{scope}{name}::" if name and not node.get("isInline") and name != "v1" else scope
        if name == "detail":
            return
    elif kind in ("CXXRecordDecl", "ClassTemplateDecl"):
        if not node.get("inner") or not (node.get("completeDefinition") or kind == "ClassTemplateDecl") or not name:
            return
        bases = ", ".join(b["type"]["qualType"] for b in node.get("bases", []))
        yield f"{node.get('tagUsed', 'template')} {scope}{name}" + (f" : {bases}" if bases else "")
        below = f"{scope}{name}::"
        access = "private" if node.get("tagUsed") == "class" else "public"
    elif kind == "EnumDecl":
        scoped = f"{scope}{name}::" if node.get("scopedEnumTag") else scope
        value = -1
        for constant in (c for c in node.get("inner", []) if c["kind"] == "EnumConstantDecl"):
            value = int(default_of(constant).removeprefix(" = ") or value + 1)
            yield f"enumerator {scoped}{constant['name']} = {value}"
        return
    else:
        if node.get("isImplicit") or not name:
            return
        kind = re.sub(r"^CXX|Decl$", "", kind).lower()
        if kind in ("field", "var", "function", "method", "constructor", "conversion", "typealias", "typedef", "functiontemplate"):
            of = "" if kind == "functiontemplate" else node.get("type", {}).get("qualType", "")
            static = "static " if node.get("storageClass") == "static" and scope else ""
            gone = " = delete" if node.get("explicitlyDeleted") else ""
            value = default_of(node) if kind in ("field", "var") else ""
            yield f"{kind} {static}{scope}{name}: {of}{value}{gone}"
        return
    for inner in node.get("inner", []):
        if inner["kind"] == "AccessSpecDecl":
            access = inner["access"]
        elif access not in HIDDEN and not inner.get("isImplicit"):
            yield from declarations(inner, below)


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(gimbal VERSION (\d+\.\d+)", file.read())[1]


def main(arguments):
    now = {line for node in syntax_tree() for line in declarations(node)}
    recorded, recorded_for = set(), version()
    if os.path.exists(RECORD):
        with open(RECORD, encoding="utf-8") as file:
            first, *lines = file.read().splitlines()
        recorded, recorded_for = set(lines), first.split()[-1]
    gone, new = sorted(recorded - now), sorted(now - recorded)
    if gone and recorded_for == version():
        print(*(f"gone or changed: {line}" for line in gone), sep="\n")
        sys.exit(f"check-interface: {len(gone)} declarations are no longer what version {recorded_for} has; keep them, or raise the minor version")
    if arguments == ["--update"]:
        with open(RECORD, "w", encoding="utf-8") as file:
            file.write("\n".join([f"The public interface of version {version()}", *sorted(now)]) + "\n")
    elif gone or new:
        print(*(f"new: {line}" for line in new), sep="\n")
        sys.exit("check-interface: record them with scripts/check/interface.py --update")
    print(f"check-interface: {len(now)} declarations, as version {version()} has them")


if __name__ == "__main__":
    main(sys.argv[1:])
