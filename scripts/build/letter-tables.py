#!/usr/bin/env python3
"""Writes src/tokenizer/letter_tables.inc: how characters map to lower case, and to the first character of their
canonical decomposition, from Python's own Unicode data. WordPiece's normalisation needs these two, as llama.cpp and
Hugging Face define them. Run it again for a newer Unicode; the output depends on nothing but Python's version of it."""
import os
import unicodedata

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tokenizer/letter_tables.inc")
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def varint(number):
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return out + [number]


def runs(pairs):
    """(first, count, stride, constant, target): characters `first + i * stride` map to `target`, where constant, or to
    `target + i * stride`."""
    at = 0
    while at < len(pairs):
        first, target = pairs[at]
        best = (1, 1, 0)
        for stride in (1, 2):
            for constant in (0, 1):
                count = 1
                while at + count < len(pairs) and pairs[at + count] == (
                        first + count * stride, target + (0 if constant else count * stride)):
                    count += 1
                best = max(best, (count, -stride, constant))
        count, stride, constant = best[0], abs(best[1]), best[2]
        yield first, count, stride, constant, target
        at += count


def encode(mapping):
    out, previous = [], 0
    for first, count, stride, constant, target in runs(sorted(mapping.items())):
        out += varint((first - previous) * 2 + (count > 1))
        if count > 1:
            out += varint((count - 2) * 4 + (stride - 1) * 2 + constant)
        distance = target - first
        out += varint(distance * 2 if distance >= 0 else -distance * 2 - 1)
        previous = first + (count - 1) * stride
    return out


def table(name, function):
    mapping = {c: function(c) for c in CHARACTERS if function(c) != c}
    data = encode(mapping)
    lines, line = [], "   "
    for byte in data:
        if len(line) + 5 > 110:
            lines.append(line)
            line = "   "
        line += f" {byte},"
    lines.append(line)
    print(f"{name}: {len(mapping)} characters in {len(data)} bytes")
    return f"constexpr uint8_t {name}[] = {{  // {len(mapping)} characters\n" + "\n".join(lines) + "\n};\n"


with open(OUT, "w", encoding="ascii") as file:
    file.write(f"// Written by scripts/build/letter-tables.py from Unicode {unicodedata.unidata_version}; "
               "letter_map.cpp reads it.\n// clang-format off\n")
    file.write(table("kLowerCase", lambda c: ord(chr(c).lower()[0])))
    file.write(table("kFirstOfDecomposition", lambda c: ord(unicodedata.normalize("NFD", chr(c))[0])))
    file.write("// clang-format on\n")
