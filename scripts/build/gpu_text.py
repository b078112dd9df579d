"""Kernel texts: which there are (kernels.def), and what the C preprocessor makes of one. Shared by gpu_kernels.py,
gpu_modules.py and lint_kernels.py."""
import os
import re
import shutil
import subprocess

ROW = re.compile(r'^\s*SIMT_(KERNEL|FORMATS|BLOCKS)\(\s*(\w+)\s*,\s*(\w+)\s*,\s*"([^"]*)"\s*\)', re.M)
FORMATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tensor/formats.def")
FORMAT = re.compile(r"^GIMBAL_(?:FORMAT|NUMBERS)\(\w+, *(\w+), *(.*)\)$", re.M)

BLOCKS = ("a8_32", "a8_256")  # activations of SIMT_BLOCKS

# Languages in which a kernel with a TREE has a second module, NAME.subgroups, for devices whose sub-groups exchange values; the file is
# empty for the others.
WITH_SUBGROUPS = ("spirv", "opencl")


class Refused(Exception):
    """What is wrong and what to do, for the person who builds."""


def formats():
    """[(name, activations, [-D flags])] of the weight formats, the first of those with the same facts."""
    with open(FORMATS, encoding="utf-8") as f:
        rows = FORMAT.findall(f.read())
    known = {}
    for name, text in rows:
        facts = re.findall(r"\.(\w+) = (\w+)", text)
        flags = tuple(f"-D{field.upper()}" if value == "true" else
                      f"-D{field.upper()}={value}" if value.isdigit() else f"-D{field.upper()}_{value.upper()}" for field, value in facts)
        known.setdefault(flags, (name, dict(facts).get("x", "F32").lower(), list(flags)))
    return list(known.values())


def rows_of(definition):
    """[(name, file, [-D flags])] of a kernels.def."""
    with open(definition, encoding="utf-8") as f:
        text = re.sub(r"//[^\n]*", "", f.read())
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^\s*SIMT_(?:KERNEL|FORMATS|BLOCKS)\b", text, re.M)):
        raise Refused(f'{definition}: a row is not of the form SIMT_KERNEL(name, file, "-DNAME=VALUE ...")')
    rows = []
    for kind, name, file, flags in found:
        if kind == "KERNEL":
            rows.append((name, file, flags.split()))
        else:
            rows.extend((f"{name}_{of}", f"{file}_{x}", facts + flags.split()) for of, x, facts in formats() if kind == "FORMATS" or x in BLOCKS)
    for name, _, flags in rows:
        for flag in flags:
            if not re.fullmatch(r"-D\w+(=\w+)?", flag):
                raise Refused(f"{definition}: {name}: '{flag}' is not of the form -DNAME=WORD")
    names = [row[0] for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"{definition}: two kernels are named {name}")
    return rows


def folder_of(definition):
    return os.path.join(os.path.dirname(os.path.abspath(definition)), "kernels")


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode:
        raise Refused(f"{' '.join(command)}\n{done.stderr or done.stdout}")
    return done.stdout


def preprocess(dialect, name, file, flags, definition, src, more=(), lines=False):
    """The text of a kernel for a dialect header."""
    path = os.path.join(folder_of(definition), file + ".k")
    if not os.path.exists(path):
        raise Refused(f"{definition}: {name} is to be made of {path}, which is not there")
    preprocessor = shutil.which("cpp") or "/usr/bin/cpp"
    return run([preprocessor, "-undef", "-nostdinc", "-Wno-trigraphs", *([] if lines else ["-P"]), "-I", src, "-I", folder_of(definition),
                f'-DKERNEL_HEADER="gpu/dialect/{dialect}.h"', f"-DKERNEL_NAME={name}", *flags, *more, path])
