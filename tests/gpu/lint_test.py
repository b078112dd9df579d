#!/usr/bin/env python3
"""scripts/build/lint_kernels.py finds each kind of defect, once, at its line, and nothing in sound texts."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts/build"))
import lint_kernels  # noqa: E402
import gpu_text  # noqa: E402
import tempfile  # noqa: E402

HEAD = """#define LANES 16
#define BUFFERS(IN, OUT) IN(0, f32, x) OUT(1, f32, y)
#define PARAMS(P) P(u32, count)
#define SHARED(S) S(f32, partial, 16)
#include KERNEL_HEADER
"""
FIRST_LINE = HEAD.count("\n") + 1


def findings(body, head=HEAD):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "kernels"))
        with open(os.path.join(folder, "kernels", "text.k"), "w", encoding="utf-8") as f:
            f.write(head + body)
        with open(os.path.join(folder, "kernels.def"), "w", encoding="utf-8") as f:
            f.write('SIMT_KERNEL(text, text, "")\n')
        return [(line, sentence) for _, line, sentence in lint_kernels.lint(os.path.join(folder, "kernels.def"))]


# (what is wrong in MAIN, the beginning of the finding)
IN_MAIN = [
    ("VAR(f32, v) = P.count > 1u ? 1.0f : 2.0f;", "WGSL has no a ? b : c"),
    ("VAR(u32, i) = 0u; y[i++] = 1.0f;", "WGSL has no ++"),
    ("VAR(u32, i) = 4u; i--;", "WGSL has no --"),
    ("y[0u] = *x;", "pointers are not in WGSL and GLSL ('*')"),
    ("y[0u] = x[(&count)];", "pointers are not in WGSL and GLSL ('&')"),
    ("y[0u] = P->count;", "pointers are not in WGSL and GLSL ('->')"),
    ("VAR(f32, v) = pair.x;", "'pair.x': vectors and structs"),
    ("y[0u] = 1.0;", "'1.0': floats are written"),
    ("y[0u] = 1f;", "'1f': floats are written"),
    ("y[0u] = 1e5;", "'1e5': floats are written"),
    ("LET(u32, i) = P.count + 1U;", "'1U': whole numbers"),
    ("LET(u32, i) = P.count + 017u;", "'017u': C reads this as octal"),
    ("LET(u32, i) = P.count >> 4;", "'>> 4': WGSL shifts by u32 only"),
    ("LET(u32, i) = P.count + (-1u);", "'-1u': WGSL has no negative u32"),
    ("LET(f32, v) = (f32)P.count;", "a conversion is written F32(x)"),
    ("LET(f32, v) = f32(P.count);", "a conversion is written F32(x)"),
    ("LET(f32, v) = BITS_TO_F32(0x7f800000u);", "WGSL refuses constants that are infinite"),
    ("VAR(f32, v) = 0;", "v is f32, but 0 is i32"),
    ("VAR(i32, v) = 0u;", "v is i32, but 0u is u32"),
    ("VAR(u32, v) = 0.0f;", "v is u32, but 0.0f is f32"),
    ("VAR(f32, v); v = 1.0f;", "v has no first value"),
    ("VAR(float, v) = 1.0f;", "'float' is not"),
    ("VAR(f32, filter) = 1.0f;", "'filter' is a word of"),
    ("VAR(f32, input) = 1.0f;", "'input' is a word of GLSL"),
    ("VAR(f32, half) = 1.0f;", "'half'"),
    ("VAR(f32, a__b) = 1.0f;", "'a__b': names with __"),
    ("LET(f32, a) = x[0u]; LET(f32, b) = x[1u]; y[0u] = a - (a - b);", "'a' is subtracted from what it was added to"),
    ("LET(f32, a) = x[0u]; LET(f32, b) = x[1u]; y[0u] = (b - a) + a;", "'a' is subtracted from what it was added to"),
    ("LET(f32, a) = x[0u]; LET(f32, b) = x[1u]; LET(f32, sum) = b + a; y[0u] = sum - b;", "'b' is subtracted from what it was added to"),
    ("LET(u32, i) = P.count & 1u + 2u;", "'&' and '+' mixed"),
    ("LET(u32, i) = P.count << 1u + 2u;", "'<<' and '+' mixed"),
    ("LET(bool, b) = P.count & 1u == 1u;", "'&' and '==' mixed"),
    ("LET(u32, i) = P.count & 1u | 2u;", "'&' and '|' mixed"),
    ("LET(u32, i) = P.count << 1u << 2u;", "two operators '<<' and '<<' in a row"),
    ("LET(bool, b) = P.count > 1u && P.count < 4u || P.count == 9u;", "'&&' and '||' mixed"),
    ("if (P.count > 1u) y[0u] = 1.0f;", "WGSL wants braces after if"),
    ("if (P.count > 1u) { y[0u] = 1.0f; } else y[0u] = 2.0f;", "WGSL wants braces after else"),
    ("for (VAR(u32, i) = 0u; i < 4u; i += 1u) y[i] = 1.0f;", "WGSL wants braces after for"),
    ("for (VAR(u32, i) = 0u; i < 4u; i += 1u, y[i] = 1.0f) { }", "WGSL has no comma operator"),
    ("LET(u32, n) = 4u; if (n) { y[0u] = 1.0f; }", "conditions are bool"),
    ("switch (P.count) { }", "'switch' is not in every language"),
    ("const u32 n = 4u;", "'const' is not in every language"),
    ("if (LANE < 4u) { BARRIER; }", "BARRIER where not all lanes"),
    ("LET(u32, i) = LANE + 1u; if (i < 4u) { BARRIER; }", "BARRIER where not all lanes"),
    ("if (x[0u] > 1.0f) { BARRIER; }", "BARRIER where not all lanes"),
    ("if (P.count > 1u) { if (LANE == 0u) { y[0u] = 1.0f; } else { BARRIER; } }", "BARRIER where not all lanes"),
    ("VAR(u32, n) = 0u; if (LANE == 1u) { n = 2u; } for (VAR(u32, i) = 0u; i < n; i += 1u) { BARRIER; }", "BARRIER where not all lanes"),
    ("if (LANE < 4u) { TREE_16(f32, all, PLUS, x[0u], partial); }", "TREE where not all lanes"),
    ("if (LANE > 3u) { return; } TREE_16(f32, all, PLUS, x[0u], partial);", "TREE after a return of some lanes"),
    ("if (LANE > 3u) { return; } BARRIER;", "BARRIER after a return of some lanes"),
    ("for (VAR(u32, i) = 0u; i < 4u; i += 1u) { BARRIER; if (LANE == i) { break; } }", "BARRIER where not all lanes"),
    ("LET(u32, n) = (P.count;", "'(' is not closed"),
]

SOUND = [
    "LET(f32, a) = x[0u]; LET(f32, b) = x[1u]; y[0u] = (a + (a + b)) + FMA(a, b, a - b);",
    "LET(f32, a) = x[0u]; LET(f32, b) = x[1u]; LET(f32, sum) = b + a; y[0u] = (a * (a - b)) - (sum * a);",
    "VAR(f32, sum) = -1.0f; for (VAR(u32, i) = LANE; i < P.count; i += 16u) { sum += x[(4u * i) + LANE]; } y[0u] = -sum * 2.0e-3f;",
    "partial[LANE] = 1.0f; BARRIER; if ((LANE == 0u) && (P.count > 3u)) { y[0u] = partial[1u]; } else if (LANE == 1u) { y[1u] = 2.0f; }",
    "LET(u32, row) = GROUP_X; if (I32(row) < STEP_ROWS) { for (VAR(u32, i) = 0u; i < P.count; i += 4u) { BARRIER; } }",
    "LET(bool, ok) = (P.count & 1u) == 1u; if (ok) { y[0u] = SELECT(!ok, 1.0f, -2.5f); } y[1u] = BITS_TO_F32(~P.count);",
    "LET(f32, v) = x[LANE]; if (P.count > 1u) { TREE_8(f32, all, PLUS, v, partial); y[LANE] = all; BARRIER; }",
    "LET_UNIFORM(f32, all, partial[0u]); if (all > 0.5f) { BARRIER; }",
    "ARRAY(f32, own, 4); own[0u] = 1.0f; LET(u32, w) = ((P.count >> 4u) & 15u) | (P.count << 3u); y[w] = own[w & 3u];",
    "VAR(u32, n) = P.count; while (n > 0u) { n = n - 1u; if (n == 7u) { break; } BARRIER; }",
]


class Lint(unittest.TestCase):
    def test_defects_in_main(self):
        for body, sentence in IN_MAIN:
            with self.subTest(body):
                found = findings(f"MAIN\n{body}\nEND_MAIN\n")
                self.assertTrue(found, "nothing was found")
                self.assertTrue(any(s.startswith(sentence) for _, s in found), found)
                self.assertEqual({line for line, _ in found}, {FIRST_LINE + 1})

    def test_sound_texts(self):
        for body in SOUND:
            with self.subTest(body):
                self.assertEqual(findings(f"MAIN\n{body}\nEND_MAIN\n"), [])

    def test_functions(self):
        for body, sentence in [
                ("return x[0u];", "'x' in a FUNCTION"), ("return F32(LANE);", "'LANE' in a FUNCTION"), ("return F32(P.count);", "'P' in a FUNCTION"),
                ("BARRIER; return 1.0f;", "'BARRIER' in a FUNCTION"), ("TREE_16(f32, all, PLUS, v, rest); return all;", "'TREE' in a FUNCTION"), ("v = 2.0f; return v;", "'v' is an argument")]:
            with self.subTest(body):
                found = findings(f"FUNCTION(f32, f, ARG(f32, v)) BEGIN\n{body}\nEND\nMAIN\ny[0u] = f(1.0f);\nEND_MAIN\n")
                self.assertEqual([(line, s.startswith(sentence)) for line, s in found], [(FIRST_LINE + 1, True)], found)
        self.assertEqual(findings("FUNCTION(f32, f, ARG(f32, x)) BEGIN\nreturn x;\nEND\nMAIN\ny[0u] = f(1.0f);\nEND_MAIN\n"), [])
        found = findings("FUNCTION(f32, mix, ARG(f32, v)) BEGIN\nreturn v;\nEND\nMAIN\ny[0u] = mix(1.0f);\nEND_MAIN\n")
        self.assertEqual(len(found), 1)
        self.assertIn("'mix' is a function of", found[0][1])

    def test_names_of_buffers(self):
        found = findings("MAIN\ny[0u] = 1.0f;\nEND_MAIN\n", HEAD.replace("f32, x", "f32, buffer"))
        self.assertEqual(len(found), 1)
        self.assertIn("'buffer' is a word of GLSL", found[0][1])

    def test_macros_are_reported_where_they_are_used(self):
        found = findings("#define ONE(v) \\\n  (v)++\nMAIN\nVAR(u32, i) = 0u;\nONE(i);\nEND_MAIN\n")
        self.assertEqual([line for line, _ in found], [FIRST_LINE + 4])

    def test_headers_that_do_not_fit_are_refused(self):
        import gpu_kernels
        for head, sentence in [(HEAD.replace("OUT(1", "OUT(2"), "numbered from 0"), (HEAD.replace("P(u32, count)", ""), "1 to 24 PARAMS"),
                               (HEAD.replace("LANES 16", "LANES 512"), "LANES is 512"), (HEAD.replace("partial, 16", "partial, 5000"), "more than 16384 bytes"),
                               (HEAD.replace("f32, x", "f64, x"), "'f64' is not a type"),
                               (HEAD.replace("#define LANES 16\n", ""), "LANES is not defined"), ("", "no #include KERNEL_HEADER")]:
            with self.subTest(sentence), tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "kernels"))
                with open(os.path.join(folder, "kernels", "text.k"), "w", encoding="utf-8") as f:
                    f.write(head + "MAIN\nEND_MAIN\n")
                with self.assertRaises(gpu_text.Refused) as refused:
                    gpu_kernels.facts_of(("text", "text", []), os.path.join(folder, "kernels.def"), os.path.join(ROOT, "src"))
                self.assertIn(sentence, str(refused.exception))

    def test_trees_that_do_not_fit_are_refused(self):
        import gpu_kernels
        for lanes, words, tree, sentence in [(16, 16, "TREE_64", "TREE_64 in groups of 16 lanes"), (48, 48, "TREE_16", "needs a power of two"),
                                             (32, 16, "TREE_8", "partial has 16"), (16, 16, "TREE_16", None)]:
            with self.subTest(tree), tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "kernels"))
                head = HEAD.replace("LANES 16", f"LANES {lanes}").replace("partial, 16", f"partial, {words}")
                with open(os.path.join(folder, "kernels", "text.k"), "w", encoding="utf-8") as f:
                    f.write(head + f"MAIN\n{tree}(f32, all, PLUS, x[LANE], partial);\nEND_MAIN\n")
                row = ("text", "text", []), os.path.join(folder, "kernels.def"), os.path.join(ROOT, "src")
                if sentence is None:
                    self.assertTrue(gpu_kernels.facts_of(*row)["trees"])
                    continue
                with self.assertRaises(gpu_text.Refused) as refused:
                    gpu_kernels.facts_of(*row)
                self.assertIn(sentence, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
