#!/usr/bin/env python3
"""The numbers of the results are those that were measured: medians, ratios, merging, and the files of bench/results. Needs
neither the peer nor a network."""
import copy
import json
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # no __pycache__ in the checkout
import report  # noqa: E402


def run(engine, number, prompt, generation, file="a-q8_0", threads=2, **more):
    return {"engine": engine, "round": number, "file": file, "bytes": 1000, "threads": threads, "prompt": prompt,
            "generation": generation, "start_seconds": 1.0 if engine == "gimbal" else 2.0, "peak_bytes": 1.5e9,
            "memory_share": 0.9, "others": 0.01, "uses": ["cpu.avx2.mat_mul.q8_0" if engine == "gimbal" else "libggml-cpu-haswell.so"], **more}


def session(runs, date="2026-01-01T00:00:00+00:00", **more):
    return {"format": report.FORMAT, "date": date, "command": "compare.py a.gguf", "runs": runs, "failures": [],
            "machine": {"cpu": "Some CPU", "cores": 2, "flags": ["avx2", "avx512f", "avx512_vnni"]},
            "gimbal": {"version": "gimbal 9"}, "peer": {"engine": "llama.cpp v1", "package": "p", "version": "3"},
            "settings": {"prompt": 512, "generate": 128, "rounds": 3, "cpu_variant": None, "peer_variant": None}, **more}


def three_rounds():
    """Medians 300 and 100 for prompts (ratio 3), 20 and 16 for generation (ratio 1.25)."""
    return [run("gimbal", 0, 300, 20), run("peer", 0, 100, 16), run("gimbal", 1, 330, 30), run("peer", 1, 90, 15),
            run("gimbal", 2, 200, 10), run("peer", 2, 110, 20)]


def row_of(markdown, file):
    """The cells of the row of this file, without the outer bars."""
    rows = [line for line in markdown.splitlines() if line.startswith(f"| {file} ")]
    assert len(rows) == 1, markdown
    return [cell.strip() for cell in rows[0].strip("|").split("|")]


class Figures(unittest.TestCase):
    def test_three_digits(self):
        for value, text in [(1234.6, "1235"), (326.4, "326"), (99.96, "100"), (21.84, "21.8"), (9.996, "10.0"),
                            (9.83, "9.83"), (0.3884, "0.388"), (0.00571, "0.00571"), (0, "0")]:
            self.assertEqual(report.figure(value), text)

    def test_spread_is_the_median_of_any_order(self):
        self.assertEqual(report.spread([30, 10, 20]), "20.0 (10.0 to 30.0)")
        self.assertEqual(report.spread([2, 4]), "3.00 (2.00 to 4.00)")
        self.assertEqual(report.spread([5e9], 1e9), "5.00")


class Tables(unittest.TestCase):
    def test_medians_and_ratios(self):
        cells = row_of(report.render([session(three_rounds())]), "a-q8_0")
        self.assertEqual(cells, ["a-q8_0", "2", "300 (200 to 330)", "100 (90.0 to 110)", "**3.00** (1.82 to 3.67)",
                                 "20.0 (10.0 to 30.0)", "16.0 (15.0 to 20.0)", "**1.25** (0.50 to 2.00)", "90", "1.00 / 2.00",
                                 "1.50 / 1.50"])

    def test_every_row_has_the_columns_of_the_head(self):
        bars = {line.count("|") for line in report.render([session(three_rounds())]).splitlines() if line.startswith("|")}
        self.assertEqual(bars, {12})

    def test_the_order_of_the_runs_does_not_matter(self):
        self.assertEqual(report.render([session(three_rounds())]), report.render([session(three_rounds()[::-1])]))

    def test_the_summary_names_the_worst_row(self):
        runs = three_rounds() + [run("gimbal", 0, 50, 80, file="b-q4_0", threads=1),
                                 run("peer", 0, 100, 20, file="b-q4_0", threads=1)]
        text = report.render([session(runs)])
        self.assertIn("prompt 1.22 times the peer's speed in the geometric mean, lowest 0.50 (b-q4_0, 1 thread)", text)
        self.assertIn("generation 2.24 times the peer's speed in the geometric mean, lowest 1.25 (a-q8_0, 2 threads)", text)

    def test_machine_and_what_ran_are_named(self):
        text = report.render([session(three_rounds())])
        self.assertIn("gimbal's avx2 kernels against the peer's haswell library (its own choice)", text)
        self.assertIn("Some CPU, 2 cores; has avx2, avx512f, avx512_vnni; lacks amx_int8, amx_bf16", text)
        self.assertIn("compare.py a.gguf   # 2026-01-01", text)

    def test_disturbed_rounds_are_told(self):
        self.assertNotIn("Disturbed", report.render([session(three_rounds())]))
        runs = three_rounds()
        runs[3]["others"] = 0.4
        self.assertIn("a-q8_0 with 2 threads (others kept up to 0.40 processors busy)", report.render([session(runs)]))

    def test_a_file_that_failed_is_told(self):
        failures = [{"file": "c-bf16", "threads": 1, "reason": "no such architecture"}]
        text = report.render([session(three_rounds(), failures=failures)])
        self.assertIn("Not measured: c-bf16 with 1 thread: no such architecture", text)


class Merging(unittest.TestCase):
    def test_other_files_join_the_table(self):
        other = session([run("gimbal", 0, 5, 5, file="b-q4_0"), run("peer", 0, 5, 5, file="b-q4_0")], "2026-01-02T00:00:00+00:00")
        text = report.render([other, session(three_rounds())])
        self.assertEqual(text.count("### "), 1)
        self.assertEqual(row_of(text, "b-q4_0")[4], "**1.00**")
        self.assertEqual(row_of(text, "a-q8_0")[4], "**3.00** (1.82 to 3.67)")
        self.assertIn("1 to 3 alternated rounds", text)

    def test_the_latest_session_wins_whole(self):
        later = session([run("gimbal", 0, 400, 40), run("peer", 0, 100, 20)], "2026-02-01T00:00:00+00:00")
        for order in ([session(three_rounds()), later], [later, session(three_rounds())]):
            self.assertEqual(row_of(report.render(order), "a-q8_0")[2:5], ["400", "100", "**4.00**"])

    def test_half_a_row_hides_no_whole_one(self):
        later = session([run("gimbal", 0, 400, 40)], "2026-02-01T00:00:00+00:00")
        self.assertEqual(row_of(report.render([session(three_rounds()), later]), "a-q8_0")[3], "100 (90.0 to 110)")
        self.assertFalse(report.render([later]).startswith("#"))

    def test_another_machine_or_variant_has_its_own_table(self):
        for part, key, value in [("machine", "cpu", "Other CPU"), ("machine", "flags", ["amx_int8"]),
                                 ("settings", "peer_variant", "zen4"), ("settings", "cpu_variant", "avx2"),
                                 ("settings", "prompt", 64)]:
            other = copy.deepcopy(session(three_rounds()))
            other[part][key] = value
            self.assertEqual(report.render([session(three_rounds()), other]).count("### "), 2, key)

    def test_another_format_is_refused(self):
        with self.assertRaisesRegex(ValueError, "format 0"):
            report.render([session(three_rounds(), format=0)])


class Files(unittest.TestCase):
    def test_a_file_of_results_has_all_that_belongs_to_the_table(self):
        data = report.results(next(iter(report.merge([session(three_rounds())]).values())))
        with tempfile.TemporaryDirectory() as folder:
            with open(report.save(folder, "a", data), encoding="utf-8") as file:
                self.assertEqual(json.load(file), data)
        self.assertEqual(data["commands"], ["compare.py a.gguf   # 2026-01-01"])
        self.assertEqual((data["date"], data["commit"]), ("2026-01-01", "gimbal 9"))
        self.assertEqual([len(row) for row in data["rows"]], [len(data["columns"])])

    def test_another_variant_or_length_is_another_file(self):
        names = {report.name_of(session([]))}
        self.assertEqual(names, {"llama.cpp-some-cpu"})
        for key, value in [("cpu_variant", "avx2"), ("prompt", 64)]:
            other = copy.deepcopy(session([]))
            other["settings"][key] = value
            names.add(report.name_of(other))
        self.assertEqual(names, {"llama.cpp-some-cpu", "llama.cpp-some-cpu-avx2", "llama.cpp-some-cpu-64-128"})


class AnEarlierGimbal(unittest.TestCase):
    def test_is_named_as_what_it_is(self):
        runs = three_rounds()
        for one in runs:
            one["uses"] = ["cpu.avx2.mat_mul.q8_0"]
        text = report.render([session(runs, peer={"engine": "gimbal 8"})])
        self.assertIn("against the avx2 kernels of an earlier gimbal", text)
        self.assertIn("Peer: gimbal 8.", text)


if __name__ == "__main__":
    unittest.main()
