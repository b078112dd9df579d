#!/usr/bin/env python3
"""Metal as src/backends/metal knows it, beside Apple's own headers.

There is no Mac here: the backend compiles against declarations of our own (stubs/). metal-cpp is Apple's C++ interface to Metal; each of its functions
sends one message, so its headers name all selectors with their types. PyPI's mlx-metal carries them.

Usage: apple_headers_test.py [HEADERS, default: build/apple-headers-rig]
Compares: selectors, kinds of results and parameters, values of constants, members of structures, functions.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
STUBS = (os.path.join(HERE, "stubs", "Foundation", "Foundation.h"), os.path.join(HERE, "stubs", "Metal", "Metal.h"))
PROGRAMS = os.path.join(TOP, "src", "backends", "metal", "programs.mm")
# Messages that the language's runtime defines for each object.
OF_EVERY_OBJECT = {"alloc", "init", "dealloc", "retain", "release", "autorelease"}
# Classes under names of ours: programs.mm declares setters by itself.
OTHER_NAMES = {"GimbalArithmetic": "MTLCompileOptions"}
# In Apple's documentation of NSString, but not in metal-cpp.
NOT_IN_METAL_CPP = {("NSString", "initWithBytes:length:encoding:")}
NUMBERS = {"unsigned long": "u64", "long": "i64", "uintptr_t": "u64", "intptr_t": "i64", "UInteger": "u64", "NSUInteger": "u64", "uint64_t": "u64", "Integer": "i64", "NSInteger": "i64", "uint8_t": "u8",
           "BOOL": "bool", "bool": "bool", "void": "void", "SEL": "selector"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"//[^\n]*", "", file.read())


class Kinds:
    """What a type is to a caller's registers: a number, a pointer, or a structure of these."""

    def __init__(self):
        self.known = dict(NUMBERS)

    def of(self, text):
        text = re.sub(r"\b(const|class|struct|oneway|std::|NS::|MTL::)", "", text).strip()
        if text.endswith("*") or text.startswith("id") or text in ("instancetype", "ObjectType"):
            return "pointer"
        return self.known.get(text, f"unknown type {text}")


def structure(kinds, members):
    """ "NSUInteger width, height;" as a list of names and kinds."""
    found = []
    for kind, names in re.findall(r"([\w:]+)\s+([\w, ]+);", members):
        found += [f"{name.strip()} {kinds.of(kind)}" for name in names.split(",")]
    return "{" + ", ".join(found) + "}"


def constants(body, before):
    """The values of an enumeration; each may name those in front of it."""
    values, following = {}, 0
    for part in filter(None, (p.strip() for p in body.split(","))):
        name, _, value = (s.strip() for s in part.partition("="))
        value = re.sub(r"(?<=\d)[uUlL]+\b", "", value)
        values[name] = eval(value, {"__builtins__": {}}, {**before, **values}) if value else following
        following = values[name] + 1
    return values


class Declared:
    """What the backend is compiled against."""

    def __init__(self, texts):
        self.kinds, self.messages, self.values, self.structures, self.functions = Kinds(), {}, {}, {}, set()
        for text in texts:
            for members, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text, re.DOTALL):
                self.structures[name] = self.kinds.known[name] = structure(self.kinds, members)
            for kind, name in re.findall(r"typedef (\w+) (\w+);", text):
                self.kinds.known[name] = self.kinds.of(kind)
            for body in re.findall(r"enum \{(.*?)\};", text, re.DOTALL):
                self.values.update(constants(body, self.values))
            self.functions |= set(re.findall(r'extern "C" .*?(\w+)\(', text))
            for name, body in re.findall(r"@(?:protocol|interface) (\w+)(.*?)@end", text, re.DOTALL):
                self.add(OTHER_NAMES.get(name, name), body)

    def add(self, owner, body):
        for kind, words in re.findall(r"^[-+] \(([^)]*)\)([^;]*);", body, re.MULTILINE):
            parameters = re.findall(r"(\w+):\s*\(((?:[^()])*)\)", words)
            selector = "".join(name + ":" for name, _ in parameters) or words.strip()
            self.messages[owner, selector] = [self.kinds.of(k) for k in (kind, *(p for _, p in parameters))]
        for attributes, kind, names in re.findall(r"@property(?:\(([^)]*)\))? ([\w<>]+[ *]+)([\w, *]+);", body):
            for name in (n.strip(" *") for n in names.split(",")):
                pointer = "*" if "*" in names else ""
                self.messages[owner, name] = [self.kinds.of(kind.strip() + pointer)]
                if "readonly" not in attributes:
                    self.messages[owner, f"set{name[0].upper()}{name[1:]}:"] = ["void", self.kinds.of(kind.strip() + pointer)]


class Apples:
    """What metal-cpp has."""

    def __init__(self, folder):
        self.kinds, self.messages, self.values, self.structures, self.bases = Kinds(), {}, {}, {}, {}
        selectors, texts = {}, []
        for library in ("Foundation", "Metal"):
            prefix = {"Foundation": "NS", "Metal": "MTL"}[library]
            for file in sorted(os.listdir(os.path.join(folder, library))):
                text = read(os.path.join(folder, library, file))
                texts.append((prefix, text))
                selectors.update(re.findall(r'PRIVATE_DEF_SEL\((\w+),\s*"([^"]+)"\)', text))
        for prefix, text in texts:
            for kind, name, body in re.findall(r"_(?:NS|MTL)_(?:ENUM|OPTIONS)\(([\w:]+), (\w+)\)\s*\{(.*?)\}", text, re.DOTALL):
                self.kinds.known[name] = self.kinds.of(kind)
                if not re.search(r"[^\w\s=,|<>()-]", body):
                    self.values.update((prefix + n, v) for n, v in constants(body, {n.removeprefix(prefix): v for n, v in self.values.items()}).items())
            for name, kind in re.findall(r"using (\w+) = ([^;]+);", text):
                self.kinds.known[name] = self.kinds.of(kind)
            for name, body in re.findall(r"struct (\w+)\s*\{(.*?)\n\} _(?:NS|MTL)_PACKED;", text, re.DOTALL):
                fields = "".join(line for line in body.splitlines() if "(" not in line)
                self.structures[prefix + name] = self.kinds.known[name] = structure(self.kinds, fields)
            for name, base in re.findall(r"class (\w+) : public (?:NS::)?(?:Referencing|Copying|SecureCoding)<\w+(?:, ([\w:]+))?>", text):
                self.bases[prefix + name] = base.replace("::", "").replace("Object", "NSObject").replace("NSNS", "NS") or "NSObject"
        self.functions = set(re.findall(r'extern "C" .*?(\w+)\(', "".join(text for _, text in texts)))
        send = re.compile(r"_INLINE\s+([^;{}]*?)\s*(NS|MTL)::(\w+)::\w+\(([^{}]*?)\)(?: const)?\s*\{\s*(?:return )?(?:NS::)?Object::sendMessage(?:Safe)?<[^;]*?"
                          r"_PRIVATE_SEL\((\w+)\)[^;]*;\s*\}")
        for _, text in texts:
            for kind, prefix, owner, parameters, accessor in send.findall(text):
                kinds = [self.kinds.of(p if p.strip().endswith("*") else re.sub(r"\w+$", "", p.strip())) for p in parameters.split(",") if p.strip()]
                self.messages.setdefault((prefix + owner, selectors.get(accessor, accessor)), []).append([self.kinds.of(kind), *kinds])

    def forms(self, owner, selector):
        while owner:
            if (owner, selector) in self.messages:
                return self.messages[owner, selector]
            owner = self.bases.get(owner)
        return []


def faults(declared, apples):
    for (owner, selector), kinds in declared.messages.items():
        if selector in OF_EVERY_OBJECT or selector == "respondsToSelector:" or owner == "NSAutoreleasePool":
            continue
        forms = apples.forms(owner, selector)
        if (owner, selector) in NOT_IN_METAL_CPP:
            if forms:
                yield f"{owner} {selector} is in metal-cpp now"
        elif not forms:
            yield f"{owner} has no {selector}"
        elif kinds not in forms:
            yield f"{owner} {selector}: here {kinds}, there {forms}"
    for name, value in declared.values.items():
        if apples.values.get(name) != value:
            yield f"{name}: here {value}, there {apples.values.get(name)}"
    for name, members in declared.structures.items():
        if apples.structures.get(name) != members:
            yield f"{name}: here {members}, there {apples.structures.get(name)}"
    for name in declared.functions - apples.functions:
        yield f"there is no function {name}"


def declarations():
    texts = [read(file) for file in (*STUBS, PROGRAMS)]
    values = re.search(r"kSafe = (\d+), kPrecise = (\d+);", texts[-1])
    texts[-1] += f"enum {{ MTLMathModeSafe = {values[1]}, MTLMathFloatingPointFunctionsPrecise = {values[2]} }};"
    return texts


# One wrong word each, which the comparison must find.
MISTAKES = (("setBytes:(const void*)bytes length:(NSUInteger)length", "setBytes:(const void*)bytes size:(NSUInteger)length"),
            ("range:(NSRange)range", "range:(NSUInteger)range"),
            ("- (void)commit;", "- (void)submit;"),
            ("BOOL hasUnifiedMemory", "NSUInteger hasUnifiedMemory"),
            ("MTLCommandBufferStatusError = 5", "MTLCommandBufferStatusError = 6"),
            ("MTLResourceStorageModePrivate = 2 << 4", "MTLResourceStorageModePrivate = 2"),
            ("NSUInteger width, height, depth;", "NSUInteger width, depth, height;"),
            ("MTLCopyAllDevices(void)", "MTLAllDevices(void)"),
            ("setMathMode:(NSInteger)mode", "setMathsMode:(NSInteger)mode"),
            ("MTLMathModeSafe = 0", "MTLMathModeSafe = 1"))


def main(arguments):
    folder = arguments[0] if arguments else os.path.join(TOP, "build", "apple-headers-rig")
    if not os.path.isdir(os.path.join(folder, "Metal")):
        print("skipped: Apple's headers are absent: scripts/setup.sh gpu")
        return 77
    apples, texts = Apples(folder), declarations()
    declared = Declared(texts)
    found = list(faults(declared, apples))
    for right, wrong in MISTAKES:
        if not any(right in text for text in texts):
            found.append(f"the mistake '{wrong}' has no place any more")
        elif not list(faults(Declared([text.replace(right, wrong) for text in texts]), apples)):
            found.append(f"the mistake '{wrong}' is not found")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"apple_headers: {len(declared.messages)} messages, {len(declared.values)} constants, {len(declared.structures)} structures, "
          f"{len(declared.functions)} functions, {len(MISTAKES)} mistakes; {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
