#!/usr/bin/env python3
"""Finds in kernel texts what one of the targets would refuse or compile into something else, so that it is found here and not on
somebody's GPU. Says file:line, what is wrong, and what to write instead. docs/kernel-dialect.md has the rules with their reasons.

Usage: lint_kernels.py [KERNELS.DEF]...      (default: src/gpu/kernels.def)

The texts are read after the C preprocessor, once for each kernel, so a macro's defect is reported where the macro is used.
"""
import concurrent.futures
import os
import re
import sys

import lint_names
from gpu_text import Refused, preprocess, rows_of

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src")
TOKEN = re.compile(r"""(?P<number>0[xX][0-9a-fA-F]+[uUfFlL]*|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[uUfFlLhH]*)
                     |(?P<name>[A-Za-z_]\w*)
                     |(?P<text>"[^"\n]*"|'[^'\n]*')
                     |(?P<sign><<=|>>=|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]@\#\\])""", re.X)
DECLARES = {"VAR", "LET", "ARRAY", "TABLE", "ARG", "FUNCTION"}
OPERATOR_CLASS = {**dict.fromkeys(("+", "-", "*", "/", "%"), "arithmetic"), **dict.fromkeys(("<<", ">>"), "shift"), "&": "&", "|": "|", "^": "^",
                  **dict.fromkeys(("<", ">", "<=", ">=", "==", "!="), "comparison"), "&&": "&&", "||": "||"}
MIXABLE = [{"arithmetic", "comparison", "&&"}, {"arithmetic", "comparison", "||"}]
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
BARRIERS = {"FACT_BARRIER": "BARRIER", "FACT_TREE": "TREE"}  # where all lanes of a group must come: what is written
INSTEAD_OF_WORD = {
    **dict.fromkeys(("float", "int", "uint", "unsigned", "char", "short", "long", "double", "half", "void", "size_t", "uchar", "ushort"),
                    "the types are f32, u32, i32 and bool"),
    **dict.fromkeys(("const", "static", "inline", "volatile", "restrict", "register", "auto", "var", "let"), "declare with LET, VAR, ARRAY or TABLE"),
    **dict.fromkeys(("switch", "case", "default", "do", "goto"), "write if, for or while: the languages differ here"),
    **dict.fromkeys(("struct", "union", "typedef", "enum", "sizeof", "class"), "there are scalars and arrays only"),
    **dict.fromkeys(("true", "false"), ""),
}


class Token:
    __slots__ = ("text", "kind", "file", "line")

    def __init__(self, text, kind, file, line):
        self.text, self.kind, self.file, self.line = text, kind, file, line


def tokens_of(text):
    """Of what `cpp` printed with line markers; tokens of the dialect's own headers are left out."""
    out, file, line = [], "", 0
    for row in text.split("\n"):
        marker = re.match(r'# (\d+) "([^"]*)"', row)
        if marker:
            line, file = int(marker.group(1)), marker.group(2)
            continue
        for found in TOKEN.finditer(row):
            out.append(Token(found.group(), found.lastgroup, file, line))
        line += 1
    return out


class Lint:
    """One kernel. findings: {(file, line, sentence)}."""

    def __init__(self, text):
        self.findings = set()
        tokens = tokens_of(text)
        begin = next(i for i, t in enumerate(tokens) if t.text == "FACTS_BEGIN")
        end = next(i for i, t in enumerate(tokens) if t.text == "FACTS_END")
        parts, part = [], []
        for t in tokens[begin + 1:end]:
            if t.text == "|":
                parts.append(part)
                part = []
            else:
                part.append(t)
        parts.append(part)
        header = Token("", "", next((t.file for t in tokens[end + 1:] if "/gpu/dialect/" not in t.file), ""), 1)
        self.buffers = self.third(parts[2], 4, 3, header)
        self.params = self.third(parts[3], 2, 1, header)
        self.shared = self.third(parts[4], 3, 1, header)
        self.tokens = [t for t in tokens[end + 1:] if "/gpu/dialect/" not in t.file]
        self.match = self.brackets()

    def third(self, part, words, which, at):
        names, item = [], []
        for t in part + [None]:
            if t is None or t.text == ";":
                if len(item) == words:
                    names.append(item[which].text)
                    self.check_name(item[which].text, at)
                item = []
            else:
                item.append(t)
        return names

    def say(self, at, sentence):
        self.findings.add((at.file, at.line, sentence))

    def brackets(self):
        """{index of an opening bracket: that of its end}, and the other way round."""
        stack, match = [], {}
        for i, t in enumerate(self.tokens):
            if t.text in "([{" and t.kind == "sign":
                stack.append(i)
            elif t.text in ")]}" and t.kind == "sign":
                if not stack or self.tokens[stack[-1]].text + t.text not in ("()", "[]", "{}"):
                    self.say(t, f"'{t.text}' closes nothing")
                    return match
                match[i] = stack[-1]
                match[stack.pop()] = i
        for i in stack:
            self.say(self.tokens[i], f"'{self.tokens[i].text}' is not closed")
        return match

    def text_at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def run(self):
        self.words()
        self.declarations()
        self.operators()
        self.algebra()
        self.statements()
        self.functions()
        self.barriers()
        return self.findings

    # ---- single tokens -------------------------------------------------------------------------------------
    def words(self):
        for i, t in enumerate(self.tokens):
            before, after = self.text_at(i - 1), self.text_at(i + 1)
            operand_before = before in (")", "]") or (i and self.tokens[i - 1].kind in ("name", "number") and before != "return")
            if t.text == "?":
                self.say(t, "WGSL has no a ? b : c: write SELECT(a, b, c)")
            elif t.text in ("++", "--"):
                self.say(t, f"WGSL has no {t.text} in expressions: write `i {t.text[0]}= 1u`")
            elif t.text == "->" or (t.text in ("*", "&") and not operand_before):
                self.say(t, f"pointers are not in WGSL and GLSL ('{t.text}'): index an array")
            elif t.kind == "text":
                self.say(t, "text and characters are no type of the dialect: write a number")
            elif t.text == "." and before != "P":
                self.say(t, f"'{before}.{after}': vectors and structs are not in the dialect; only P has members")
            elif t.kind == "number":
                self.number(t, i, before)
            elif t.kind == "name":
                if INSTEAD_OF_WORD.get(t.text):
                    self.say(t, f"'{t.text}' is not in every language: {INSTEAD_OF_WORD[t.text]}")
                elif t.text in ("f32", "u32", "i32") and after in ("(", ")") and before != ",":
                    if after == "(" or before == "(":
                        self.say(t, f"a conversion is written {t.text.upper()}(x)")
                elif t.text == "BITS_TO_F32" and i + 2 < len(self.tokens) and self.tokens[i + 2].kind == "number":
                    value = int(self.text_at(i + 2).rstrip("uU"), 0)
                    if value >> 23 & 255 == 255:
                        self.say(t, "WGSL refuses constants that are infinite or no number: use a large finite one, -3.0e38f")

    def number(self, t, i, before):
        text = t.text
        is_hex = text[:2].lower() == "0x"
        is_float = not is_hex and re.search(r"[.eE]|[fF]$", text)
        if is_float and not re.fullmatch(r"(\d+\.\d*|\.\d+|\d+[eE][+-]?\d+|\d+\.\d*[eE][+-]?\d+)f", text):
            self.say(t, f"'{text}': floats are written with point and f, like 1.0f (else OpenCL C computes in double, and GLSL refuses 1f)")
        elif not is_float and re.search(r"[lLhHU]", text[2:] if is_hex else text):
            self.say(t, f"'{text}': whole numbers are 1 (i32) or 1u (u32)")
        elif not is_float and not is_hex and re.fullmatch(r"0\d+u?", text):
            self.say(t, f"'{text}': C reads this as octal and WGSL refuses it")
        elif not is_float and before in ("<<", ">>", "<<=", ">>=") and not text.endswith("u"):
            self.say(t, f"'{before} {text}': WGSL shifts by u32 only: write {text}u")
        elif text.endswith("u") and before == "-" and self.text_at(i - 2) in ("(", ",", "=", "return", "["):
            self.say(t, f"'-{text}': WGSL has no negative u32: write 0u - {text}, or an i32")

    # ---- what is declared ----------------------------------------------------------------------------------
    def check_name(self, name, at, function=False):
        if name in lint_names.RESERVED:
            self.say(at, f"'{name}' is a word of {lint_names.RESERVED[name]}: choose another name")
        elif function and name in lint_names.BUILTIN_FUNCTIONS:
            self.say(at, f"'{name}' is a function of {lint_names.BUILTIN_FUNCTIONS[name]}: choose another name")
        elif "__" in name or name.startswith(("_", "gl_")) or name.endswith("_"):
            self.say(at, f"'{name}': names with __, with _ at an end or with gl_ in front belong to the languages and the dialect")

    def declarations(self):
        for i, t in enumerate(self.tokens):
            if t.text not in DECLARES or self.text_at(i + 1) != "(" or i + 1 not in self.match:
                continue
            kind, name, close = self.text_at(i + 2), self.text_at(i + 4), self.match[i + 1]
            if kind not in ("f32", "u32", "i32", "bool"):
                self.say(t, f"'{kind}' is not a type of the dialect: f32, u32, i32, bool")
            self.check_name(name, self.tokens[i + 4], t.text == "FUNCTION")
            if t.text not in ("VAR", "LET"):
                continue
            if self.text_at(close + 1) != "=":
                self.say(t, f"{name} has no first value: WGSL makes it 0, the others anything")
                continue
            value, after = self.tokens[close + 2], self.text_at(close + 3)
            if value.kind == "number" and after == ";":
                is_float = value.text.endswith("f") and not value.text.startswith("0x")
                given = "f32" if is_float else "u32" if value.text.endswith("u") else "i32"
                if given != kind:
                    self.say(value, f"{name} is {kind}, but {value.text} is {given}: write the literal in its type")

    # ---- expressions ---------------------------------------------------------------------------------------
    def operators(self):
        """At one level of brackets, and between = , ; only operators that all languages order alike."""
        levels = [{}]  # of each open bracket: {class: first token of it}
        for i, t in enumerate(self.tokens):
            if t.kind != "sign":
                if t.text == "return":
                    levels[-1] = {}
                continue
            if t.text in "([{":
                levels.append({})
            elif t.text in ")]}":
                if len(levels) > 1:
                    levels.pop()
                if t.text == "}":
                    levels[-1] = {}
            elif t.text in ASSIGNMENTS or t.text in (";", ","):
                levels[-1] = {}
            elif t.text in OPERATOR_CLASS:
                previous = self.tokens[i - 1]
                if not (previous.text in (")", "]") or (previous.kind in ("name", "number") and previous.text != "return")):
                    continue  # a sign, not an operator
                level, mine = levels[-1], OPERATOR_CLASS[t.text]
                if mine in level and mine in ("shift", "comparison"):
                    self.say(t, f"two operators '{level[mine].text}' and '{t.text}' in a row: put one in parentheses")
                for other, first in level.items():
                    if other != mine and not any({other, mine} <= allowed for allowed in MIXABLE):
                        self.say(t, f"'{first.text}' and '{t.text}' mixed: WGSL refuses it without parentheses, and people misread it")
                level.setdefault(mine, t)

    def algebra(self):
        """a - (a - b), also over a LET: WGSL lets a compiler make b of it, and lose what the rounding was."""
        floats = {self.text_at(i + 4) for i, t in enumerate(self.tokens) if t.text in ("VAR", "LET", "ARG") and self.text_at(i + 2) == "f32"}

        def bare(i):
            return self.text_at(i) in floats and self.text_at(i - 1) not in ("*", "/") and self.text_at(i + 1) not in ("*", "/")

        def terms(begin, end):
            """{name: its sign} of a sum; nothing for another expression."""
            inside = range(begin, end)
            sound = all(self.text_at(i) in ("+", "-") if (i - begin) % 2 else bare(i) for i in inside)
            return {self.text_at(i): -1 if i > begin and self.text_at(i - 1) == "-" else 1 for i in inside if bare(i)} if sound else {}

        sums = {}
        for i, t in enumerate(self.tokens):
            if t.text == "LET" and self.text_at(i + 2) == "f32" and self.text_at(i + 6) == "=":
                end = next(k for k in range(i, len(self.tokens)) if self.text_at(k) == ";")
                sums[self.text_at(i + 4)] = terms(i + 7, end)

        def side(i):
            """What is added at i: (the name, if it is one; the sum that it stands for)."""
            if bare(i):
                return self.text_at(i), sums.get(self.text_at(i), {})
            group = sorted((i, self.match[i])) if self.text_at(i) in ("(", ")") and i in self.match else None
            if not group or self.tokens[group[0] - 1].kind == "name" and self.text_at(group[0] - 1) != "return":
                return None, {}
            return None, terms(group[0] + 1, group[1])

        for i, t in enumerate(self.tokens):
            if t.text in ("+", "-") and 0 < i < len(self.tokens) - 1:
                (left, left_sum), (right, right_sum) = side(i - 1), side(i + 1)
                sign = 1 if t.text == "+" else -1
                for name, inside in ((left, right_sum), (right, left_sum)):
                    if inside.get(name) == -sign:
                        self.say(t, f"'{name}' is subtracted from what it was added to: WGSL's compilers leave both out, and the rounding "
                                    "with them: use FMA, or ROUND_EVEN")

    # ---- statements ----------------------------------------------------------------------------------------
    def statements(self):
        bools = {self.text_at(i + 4) for i, t in enumerate(self.tokens) if t.text in ("VAR", "LET", "ARG") and self.text_at(i + 2) == "bool"}
        for i, t in enumerate(self.tokens):
            if t.text == "else" and self.text_at(i + 1) not in ("{", "if"):
                self.say(t, "WGSL wants braces after else")
            if t.text not in ("if", "for", "while") or self.text_at(i + 1) != "(" or i + 1 not in self.match:
                continue
            open_, close = i + 1, self.match[i + 1]
            if self.text_at(close + 1) != "{":
                self.say(t, f"WGSL wants braces after {t.text} (...)")
            inner = self.tokens[open_ + 1:close]
            if t.text == "for":
                depth = 0
                for x in inner:
                    depth += (x.text in "([" and x.kind == "sign") - (x.text in ")]" and x.kind == "sign")
                    if x.text == "," and not depth:
                        self.say(x, "WGSL has no comma operator in for (...)")
            elif len(inner) == 1 and inner[0].text not in bools | {"true", "false"}:
                self.say(t, f"conditions are bool in WGSL and GLSL: compare '{inner[0].text}' with something")

    def functions(self):
        outside = set(self.buffers) | set(self.shared) | {"P", "LANE", "GROUP_X", "GROUP_Y", "GROUP_Z", "STEP_ROWS", "STEP_OUT_ROWS", *BARRIERS}
        i = 0
        while i < len(self.tokens):
            if self.tokens[i].text != "FUNCTION" or i + 1 not in self.match:
                i += 1
                continue
            own, arguments = set(), set()
            while i < len(self.tokens) and self.text_at(i) != "END":
                t = self.tokens[i]
                if t.text in ("ARG", "VAR", "LET", "ARRAY") and self.text_at(i + 1) == "(":
                    own.add(self.text_at(i + 4))
                    if t.text == "ARG":
                        arguments.add(self.text_at(i + 4))
                elif t.kind == "name" and t.text in outside - own:
                    name = BARRIERS.get(t.text, t.text)
                    self.say(t, f"'{name}' in a FUNCTION: OpenCL C, CUDA and HIP know it in MAIN only: pass the value, or make it a macro")
                elif t.text in arguments and self.text_at(i + 1) in ASSIGNMENTS:
                    self.say(t, f"'{t.text}' is an argument, which WGSL does not let change: copy it to a VAR")
                i += 1

    # ---- barriers ------------------------------------------------------------------------------------------
    def barriers(self):
        """What differs between lanes: LANE, what is read from memory, and what is computed from these or where only some lanes come."""
        start = next((i for i, t in enumerate(self.tokens) if t.text == "MAIN"), len(self.tokens))
        differs = {"LANE"} | set(self.buffers) | set(self.shared)
        partial = {}  # of the index of a block's {: whether only some lanes come there
        for _ in range(3):  # loops carry it back to their beginning
            blocks, returned = [], None
            for i in range(start, len(self.tokens)):
                t = self.tokens[i]
                only_some = any(partial.get(b) for b in blocks)
                if t.text in ("if", "for", "while") and i + 1 in self.match:
                    close = self.match[i + 1]
                    some = any(x.text in differs for x in self.tokens[i + 2:close] if x.kind == "name")
                    if t.text == "if" and self.text_at(i - 1) == "else":
                        some = some or partial.get(self.match.get(i - 2), False)
                    partial[close + 1] = some or partial.get(close + 1, False)
                elif t.text == "else" and self.text_at(i + 1) == "{":
                    partial[i + 1] = partial.get(self.match.get(i - 1), False)
                elif t.text == "{":
                    blocks.append(i)
                elif t.text == "}" and blocks:
                    blocks.pop()
                elif t.text in BARRIERS and only_some:
                    self.say(t, f"{BARRIERS[t.text]} where not all lanes of a group come: the condition around it depends on LANE or on what was read "
                                "from memory (conditions over GROUP_X, P, STEP_ROWS and LET_UNIFORM are fine)")
                elif t.text in BARRIERS and returned:
                    self.say(t, f"{BARRIERS[t.text]} after a return of some lanes (line {returned.line}): put the work in an if instead")
                elif t.text == "return" and only_some:
                    returned = t
                elif t.text in ("break", "continue") and only_some:
                    loops = [b for b in blocks if self.text_at(self.match.get(b - 1, 0) - 1) in ("for", "while")]
                    partial[loops[-1] if loops else -1] = True  # some lanes leave it earlier
                elif t.text in ASSIGNMENTS:
                    self.assignment(i, differs, only_some)

    def assignment(self, i, differs, partial):
        name = None
        if self.text_at(i - 1) == ")" and i - 1 in self.match and self.text_at(self.match[i - 1] - 1) == "FACT_UNIFORM":
            return  # LET_UNIFORM: the same for all lanes, whatever it is read from
        if self.text_at(i - 1) == ")" and i - 1 in self.match and self.text_at(self.match[i - 1] - 1) in ("VAR", "LET"):
            name = self.text_at(self.match[i - 1] + 3)
            partial = False  # its scope ends with the block
        elif i and self.tokens[i - 1].kind == "name":
            name = self.text_at(i - 1)
        if name is None:
            return
        end, depth = i + 1, 0
        while end < len(self.tokens) and not (self.text_at(end) == ";" or depth < 0):
            depth += (self.text_at(end) in ("(", "[")) - (self.text_at(end) in (")", "]"))
            end += 1
        if partial or any(t.text in differs for t in self.tokens[i + 1:end] if t.kind == "name"):
            differs.add(name)


def lint_text(text):
    return Lint(text).run()


def lint(definition):
    rows = rows_of(definition)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(lambda row: preprocess("host", *row, definition, SOURCE, lines=True), rows))
    findings = set()
    for text in texts:
        findings |= lint_text(text)
    return sorted(findings)


def main(arguments):
    definitions = arguments or [os.path.join(SOURCE, "gpu/kernels.def")]
    wrong = 0
    for definition in definitions:
        try:
            for file, line, sentence in lint(definition):
                print(f"{os.path.relpath(file)}:{line}: {sentence}")
                wrong = 1
        except Refused as e:
            print(f"lint_kernels: {e}", file=sys.stderr)
            return 2
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
