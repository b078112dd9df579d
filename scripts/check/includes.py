#!/usr/bin/env python3
"""Finds names that a file of src/ uses without including their header. The compiler cannot: it sees a layer as one file, with all its includes.

Usage: includes.py [ROOT]       check the checkout at ROOT (default: the one this script is in)
       includes.py --self-test  check the checker, on small bad trees

It reads text and compiles nothing. A name counts where headers of src/ declare it at the level of a namespace (types, and functions that a
file calls), or where the standard library has it (STANDARD). One of its headers must be among the file's includes, or among theirs.
"""
import functools
import os
import re
import sys

from layers import INCLUDE, ROOT, judge, sources_under

# Header: names of namespace std that come from it. A name may come from several.
STANDARD = {
    "algorithm": "all_of any_of none_of find_if find_if_not sort stable_sort nth_element partial_sort lower_bound upper_bound equal_range binary_search "
                 "copy_if copy_n fill_n remove_if unique reverse rotate transform max_element min_element clamp merge replace generate is_sorted push_heap pop_heap",
    "array": "array", "atomic": "atomic atomic_bool atomic_flag atomic_thread_fence memory_order_relaxed memory_order_acquire memory_order_release",
    "bit": "bit_cast countl_zero countr_zero popcount has_single_bit bit_ceil bit_width rotl rotr endian", "bitset": "bitset",
    "charconv": "from_chars to_chars chars_format", "chrono": "chrono", "condition_variable": "condition_variable condition_variable_any",
    "cmath": "sqrt exp log log2 pow fabs floor ceil round nearbyint isnan isfinite isinf tanh sin cos fma erf lround llround ldexp frexp",
    "cstring": "memcpy memmove memset memcmp strlen strcmp strncmp strchr strstr strerror", "deque": "deque", "exception": "exception_ptr current_exception",
    "filesystem": "filesystem", "fstream": "ifstream ofstream fstream", "functional": "function hash less greater plus bind ref cref",
    "list": "list", "map": "map multimap less", "unordered_map": "unordered_map unordered_multimap", "unordered_set": "unordered_set", "set": "set multiset less",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared enable_shared_from_this addressof",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex", "shared_mutex": "shared_mutex shared_lock",
    "numeric": "accumulate iota gcd lcm partial_sum", "optional": "optional nullopt make_optional", "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution normal_distribution", "span": "span", "sstream": "stringstream ostringstream istringstream",
    "string": "string to_string stoi stol stoul stod getline u32string wstring", "string_view": "string_view",
    "system_error": "error_code system_error generic_category", "thread": "thread this_thread jthread", "future": "future promise async",
    "tuple": "tuple make_tuple tie", "variant": "variant get_if holds_alternative visit monostate", "vector": "vector", "iostream": "cout cerr cin",
    "regex": "regex smatch regex_match regex_search", "typeindex": "type_index", "utility": "exchange", "limits": "numeric_limits", "numbers": "numbers",
}
# The standard says or implies these: the header brings the names of the others. libstdc++ and libc++ agree.
BRINGS = {"string": ["string_view"], "thread": ["chrono"], "mutex": ["chrono", "system_error"], "condition_variable": ["mutex", "chrono", "system_error"],
          "shared_mutex": ["chrono"], "chrono": ["string"], "filesystem": ["string", "chrono", "system_error"], "functional": ["utility"],
          "queue": ["deque", "vector"], "sstream": ["string"], "fstream": ["string"], "iostream": ["string"], "regex": ["string", "vector"],
          "math.h": ["cmath"], "string.h": ["cstring"], "future": ["mutex", "thread"], "map": ["utility"], "memory": ["utility"], "vector": ["utility"],
          "array": ["utility"], "optional": ["utility"], "variant": ["utility"], "tuple": ["utility"], "algorithm": ["utility"], "unordered_map": ["utility"]}

# Functions that are also the system's, or that a template finds by its argument.
ELSEWHERE = {"read", "write", "row", "fields"}

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
TYPE = re.compile(r"^(?:template ?<.*> ?)?(?:class|struct|enum class|union) (?:\[\[.*?\]\] )?(\w+)(?: final)?(?: ?:[^;{]*)? ?\{|^(?:template ?<.*> ?)?using (\w+) =", re.M)
FORWARD = re.compile(r"\b(?:class|struct|enum class|enum|union|using|typename|concept) (?:\[\[.*?\]\] )?(\w+)")
ENUMERATORS = re.compile(r"\benum (?:class )?\w*(?: ?: ?[\w: ]+)? ?\{([^}]*)\}")
FUNCTION = re.compile(r"^(?!return|else|using|typedef|#|namespace|struct |class )[A-Za-z_][\w:<>,&* \[\]]*[ &*>](\w+)\([^;{}]*[;{]", re.M)
CALL = re.compile(r"(?<![\w.>:~])(\w+)\(|(?<![\w:])gimbal::(\w+)\(")
WORD = re.compile(r"(?:(?<!\w)gimbal::|(?<![\w.>:]))([A-Z]\w+)")
STANDARD_NAME = re.compile(r"\bstd::(\w+)")


class Tree:
    """The files below src/ and include/ of a checkout, their includes and their names. A file is known by the name that others include."""

    def __init__(self, root):
        self.place, self.text, self.direct = {}, {}, {}
        for folder in ("src", "include"):
            for place in sources_under(root, folder):
                self.place[os.path.relpath(place, folder)] = place
        for path, place in self.place.items():
            with open(os.path.join(root, place), encoding="utf-8") as file:
                text = file.read()
            includes = [match.group(2) for match in map(INCLUDE.match, text.split("\n")) if match]
            self.direct[path] = [(self.resolve(path, name), name) for name in includes]
            self.text[path] = COMMENT_OR_TEXT.sub(lambda match: "\n" * match.group().count("\n") or " ", text)
        self.types, self.functions = {}, {}
        for path, text in self.text.items():
            if path.endswith(".h"):
                for match in TYPE.finditer(text):
                    self.types.setdefault(match.group(1) or match.group(2), set()).add(path)
                for match in FUNCTION.finditer(text):
                    self.functions.setdefault(match.group(1), set()).add(path)

    def resolve(self, path, name):
        """The included file, or None for a header of the system and for a generated one."""
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        return next((one for one in (beside, os.path.normpath(name)) if one in self.place), None)

    @functools.lru_cache(maxsize=None)
    def closure(self, path):
        """(files of src/, headers of the system) that the file reads, itself among them; a generated file has an unknown text."""
        ours, theirs, todo = {path}, set(), [path]
        while todo:
            for target, name in self.direct.get(todo.pop(), []):
                if target is None:
                    theirs |= {name, *BRINGS.get(name, [])}
                elif target not in ours:
                    ours.add(target)
                    todo.append(target)
        return ours, theirs

    def missing(self, path):
        """(line, message) of each name that the file uses without an include."""
        ours, theirs = self.closure(path)
        text = self.text[path]
        here = set()
        for one in ours:
            here |= set(FORWARD.findall(self.text[one]))
            here |= {word for body in ENUMERATORS.findall(self.text[one]) for word in re.findall(r"\w+", body)}
        found = []

        def report(position, message):
            found.append((text.count("\n", 0, position) + 1, message))

        seen = set()
        for match in STANDARD_NAME.finditer(text):
            name = match.group(1)
            headers = [header for header, names in STANDARD_NAMES.items() if name in names]
            if headers and name not in seen and not theirs.intersection(headers):
                report(match.start(), f"uses std::{name} without <{headers[0]}>")
            seen.add(name)
        for match in WORD.finditer(text):
            name = match.group(1)
            if name in seen or name in here:
                continue
            seen.add(name)
            headers = self.types.get(name)
            if headers and not headers & ours and not re.search(rf"[\w>&*] {name}(?: =|[\[{{;,)>])", text):
                report(match.start(), f'uses {name} without "{min(headers)}"')
        for match in CALL.finditer(text):
            name = match.group(1) or match.group(2)
            headers = self.functions.get(name)
            if not headers or headers & ours or name in seen or name in ELSEWHERE:
                continue
            seen.add(name)
            # A variable, a function or a macro of that name in a file that it reads is what it means.
            if not re.search(rf"\b{name}\b(?!\()|[\w>&*] [&*]*{name}\(|define {name}\b", "\n".join(map(self.text.get, ours))):
                report(match.start(), f'calls {name}() without "{min(headers)}"')
        return found


STANDARD_NAMES = {header: set(names.split()) for header, names in STANDARD.items()}

# Kernels are made of headers that one file of each variant or language includes in order; backends are compiled file by file.
APART = ("backends/", "gpu/dialect/")


def check(root):
    """(missing includes, as lines of text; number of files)"""
    tree = Tree(root)
    paths = [path for path in sorted(tree.text) if path.endswith((".cpp", ".h")) and not path.startswith(APART)]
    return [f"{tree.place[path]}:{line}: {message}" for path in paths for line, message in tree.missing(path)], len(paths)


def self_test():
    good = {
        "src/base/result.h": "#pragma once\n#include <string>\n// std::vector\nstruct Error {\n  std::string message;\n};\nint code_of(const Error& e);\n",
        "src/base/file.h": '#include "base/result.h"\nenum class Mode { Read, Write };\nusing Name = std::string;\n',
        "src/base/file.cpp": '#include "file.h"\nMode mode = Mode::Read;\nName name;\nstd::string_view text = "Graph";\nint x = code_of({});\n',
        "src/ops/graph.h": "struct Graph {\n};\nint nodes(int x);\n",
        "src/ops/count.cpp": "int count(int nodes) { return nodes; }\nstruct Graph;\nGraph* g;\n",
        "src/backends/cpu/kernel.h": "std::vector<Graph> in_order;\n",
        "include/gimbal/error.h": "namespace gimbal {\nclass Public {\n};\n}\n",
        "src/ops/shown.cpp": "#include <gimbal/error.h>\ngimbal::Public shown;\n",
    }
    cases = [
        ("a class", {"src/base/a.cpp": "// why\nGraph g;\n"}, 'src/base/a.cpp:2: uses Graph without "ops/graph.h"'),
        ("a class of the public headers", {"src/base/a.cpp": "gimbal::Public g;\n"}, 'without "gimbal/error.h"'),
        ("an alias", {"src/ops/a.cpp": "Name n;\n"}, 'uses Name without "base/file.h"'),
        ("a function", {"src/ops/a.cpp": '#include "ops/graph.h"\nint y = code_of({});\n'}, 'calls code_of() without "base/result.h"'),
        ("the standard library", {"src/ops/a.cpp": "/* two\nlines */ std::vector<int> v;\n"}, "src/ops/a.cpp:2: uses std::vector without <vector>"),
        ("a header", {"src/ops/a.h": "std::map<int, int> m;\n"}, "src/ops/a.h:1: uses std::map without <map>"),
        ("an include of another file", {"src/ops/a.cpp": "#include <map>\nstd::set<int> s;\n"}, "uses std::set without <set>"),
    ]
    return judge(check, good, cases, f"check-includes: {len(cases)} gaps found, the good tree accepted")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found, count = check(os.path.abspath(arguments[0]) if arguments else ROOT)
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    print(f"check-includes: {count} files, no missing include")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
