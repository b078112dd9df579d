"""Finds the places of a C++ source where a small defect fits, and writes the source with all of them. A number chooses one at run time.

Needs tree-sitter and tree-sitter-cpp from PyPI.
"""
import os
import re

import tree_sitter
import tree_sitter_cpp

# Every changed source includes this. GIMBAL_MUTANT chooses a defect; the file GIMBAL_MUTANT_TRACE has a byte for each one that was reached.
HEADER = r"""
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <type_traits>
namespace drawn {
inline const int chosen = [] { const char* n = std::getenv("GIMBAL_MUTANT"); return n ? std::atoi(n) : 0; }();
inline unsigned char* const reached = [] {
  const char* path = std::getenv("GIMBAL_MUTANT_TRACE");
  const int file = path ? open(path, O_RDWR) : -1;
  void* at = file < 0 ? MAP_FAILED : mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
}();
inline bool on(int id) {
  if (reached) reached[id] = 1;
  return chosen == id;
}
constexpr bool in_code(int id) { return std::is_constant_evaluated() ? false : on(id); }
}  // namespace drawn
"""
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+"}
NEVER_BELOW = {"template_argument_list", "enumerator", "static_assert_declaration", "preproc_def", "preproc_function_def", "preproc_if",
               "attribute_declaration", "attribute_specifier", "bitfield_clause", "array_declarator", "alignas_qualifier", "noexcept",
               "requires_clause", "concept_definition", "decltype", "preproc_include", "template_parameter_list", "preproc_ifdef"}
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def of(node):
    return node.text.decode("utf-8", "replace")


class Site:
    def __init__(self, node, before, after, what):
        """The new source has `before`, the original text and `after`; `what` describes the defect."""
        self.begin, self.end, self.before, self.after, self.what = node.start_byte, node.end_byte, before, after, what
        self.line, self.text, self.id, self.path = node.start_point[0] + 1, " ".join(of(node).split())[:160], 0, ""


def constant(node):
    """Inside the initializer of a constexpr or of a constant of a namespace."""
    while node:
        if node.type == "declaration" and re.match(r"(inline |static )*(constexpr|constinit)\b", of(node)):
            return True
        if node.type == "function_definition":
            return False
        node = node.parent
    return False


def site_of(node, rng):
    kind = node.type
    if kind == "binary_expression":
        operator = of(node.child_by_field_name("operator"))
        left, right = of(node.child_by_field_name("left")), of(node.child_by_field_name("right"))
        if operator in OTHER:
            changed = f"{left} {OTHER[operator]} {right}"
        elif operator in ("&&", "||"):
            changed = rng.choice([left, right])
            return Site(node, f"(drawn::in_code(ID) ? static_cast<bool>({changed}) : (", "))", f"only {' '.join(changed.split())}")
        else:
            return None
        return Site(node, f"(drawn::in_code(ID) ? ({changed}) : (", "))", f"{operator} becomes {OTHER[operator]}")
    if kind in ("true", "false"):
        changed = "false" if kind == "true" else "true"
        return Site(node, f"(drawn::in_code(ID) ? {changed} : ", ")", f"{changed}")
    if kind == "number_literal" and re.fullmatch(r"[0-9][0-9']*[uUlLzZ]*", of(node)):
        changed = re.sub(r"^[0-9']+", lambda m: str(int(m[0].replace("'", "")) + 1), of(node))
        return Site(node, f"(drawn::in_code(ID) ? {changed} : ", ")", f"{of(node)} becomes {changed}")
    if kind == "unary_expression" and of(node).startswith("!"):
        return Site(node, f"(drawn::in_code(ID) ? static_cast<bool>({of(node)[1:]}) : ", ")", "without the !")
    if kind == "condition_clause":
        value = node.child_by_field_name("value")
        if value is None or node.child_by_field_name("initializer") or value.type in ("declaration", "condition_declaration"):
            return None
        changed = "false" if node.parent.type == "while_statement" else rng.choice(["true", "false"])
        return Site(value, f"(drawn::in_code(ID) ? {changed} : static_cast<bool>(", "))", f"always {changed}")
    if kind in ("expression_statement", "break_statement", "continue_statement") and len(of(node)) > 1:
        return Site(node, "{ if (!drawn::in_code(ID)) { ", " } }", "left out")
    if kind == "call_expression" and of(node.child_by_field_name("function")) in ("std::min", "std::max"):
        name = of(node.child_by_field_name("function"))
        changed = "std::max" if name == "std::min" else "std::min"
        return Site(node, f"(drawn::in_code(ID) ? {changed}{of(node.child_by_field_name('arguments'))} : ", ")", f"{changed}")
    return None


def sites_of(path, rng):
    with open(path, "rb") as file:
        text = file.read()
    found = []

    def walk(node):
        if node.type in NEVER_BELOW:
            return
        if node.type == "case_statement":
            for child in node.children:
                if child != node.child_by_field_name("value"):
                    walk(child)
            return
        site = site_of(node, rng)
        if site and not constant(node):
            found.append(site)
        for child in node.children:
            walk(child)

    walk(PARSER.parse(text).root_node)
    return text, found


def write_mutated(path, text, sites, header):
    """Returns [(begin, end, site)] in the new text. A nested change is in the branch without the outer change."""
    out, spans, at = bytearray(f'#include "{header}"\n'.encode()), [], 0
    inserts = []
    for order, site in enumerate(sorted(sites, key=lambda s: (s.begin, -s.end))):
        inserts.append((site.begin, 1, order, site, site.before))
        inserts.append((site.end, 0, -order, site, site.after))
    starts = {}
    for where, opens, _, site, piece in sorted(inserts, key=lambda i: i[:3]):
        out += text[at:where]
        at = where
        if opens:
            starts[site.id] = len(out)
        out += piece.replace("ID", str(site.id)).encode()
        if not opens:
            spans.append((starts[site.id], len(out), site))
    out += text[at:]
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == out:
                return spans
    with open(path, "wb") as file:
        file.write(out)
    return spans
