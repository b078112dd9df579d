#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_forms.inc: the decompositions of characters and their combining classes, from Python's own
Unicode data. The normalisers of published tokenizers (NFC, NFD, NFKC, NFKD) need them. Run it again for a newer Unicode; the
output depends on nothing but Python's version of it. Hangul follows from arithmetic and is left out."""
import os
import unicodedata

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tokenizer/unicode_forms.inc")
HANGUL = range(0xAC00, 0xAC00 + 11172)


def varint(number):
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return out + [number]


def signed(number):
    return varint(number * 2 if number >= 0 else -number * 2 - 1)


def decompositions():
    """By character: (distance to the one before) * 4 + 2 if it also composes + 1 if it is a compatibility decomposition;
    the number of its characters; these, each as the distance to the one before, the first to the character."""
    out, previous, count = [], 0, 0
    for c in range(0x110000):
        text = unicodedata.decomposition(chr(c))
        if not text or c in HANGUL:
            continue
        words = text.split()
        compatible = words[0].startswith("<")
        into = [int(w, 16) for w in words[1 if compatible else 0:]]
        composes = not compatible and len(into) == 2 and unicodedata.normalize("NFC", "".join(map(chr, into))) == chr(c)
        out += varint((c - previous) * 4 + 2 * composes + compatible) + varint(len(into))
        before = c
        for one in into:
            out += signed(one - before)
            before = one
        previous, count = c, count + 1
    return out, count


def classes():
    """Runs of characters of one class other than 0: distance to the end of the run before, length, class."""
    out, previous, c, count = [], 0, 0, 0
    while c < 0x110000:
        value = unicodedata.combining(chr(c))
        if not value:
            c += 1
            continue
        end = c
        while end < 0x110000 and unicodedata.combining(chr(end)) == value:
            end += 1
        out += varint(c - previous) + varint(end - c) + varint(value)
        previous, c, count = end, end, count + 1
    return out, count


def table(name, data, what):
    lines, line = [], "   "
    for byte in data:
        if len(line) + 5 > 110:
            lines.append(line)
            line = "   "
        line += f" {byte},"
    lines.append(line)
    print(f"{name}: {what} in {len(data)} bytes")
    return f"constexpr uint8_t {name}[] = {{  // {what}\n" + "\n".join(lines) + "\n};\n"


with open(OUT, "w", encoding="ascii") as file:
    file.write(f"// table: written by scripts/build/unicode-forms.py from Unicode {unicodedata.unidata_version}; "
               "unicode_forms.cpp reads it.\n// clang-format off\n")
    data, count = decompositions()
    file.write(table("kDecompositions", data, f"{count} characters"))
    data, count = classes()
    file.write(table("kCombiningClasses", data, f"{count} runs"))
    file.write("// clang-format on\n")
