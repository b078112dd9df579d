"""Recorded functions, custom operations, quantized tensors and linear algebra in Python."""

import gc
import threading
import unittest
import weakref

import numpy as np

import gimbal as gb


def same(got, want):
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()


class Recorded(unittest.TestCase):
    def setUp(self):
        g = gb.Generator(1)
        self.x, self.w, self.b = g.normal((5, 8)), g.normal((8, 3)), g.normal((3,))

    def test_has_the_bits_of_the_calls(self):
        def layer(x, w):
            return (x @ w + self.b).gelu().softmax(-1), x.sum(0)

        f = gb.record(layer)
        for x in (self.x, self.x * 2, self.x[::-1, :], self.x[:2]):
            for got, want in zip(f(x, self.w), layer(x, self.w)):
                self.assertTrue(same(got, want))

    def test_as_a_decorator_with_one_result(self):
        calls = []

        @gb.record
        def scaled(x):
            """Twice."""
            calls.append(x.shape)
            return x * 2 if x.shape[0] > 3 else x * 3

        self.assertEqual(scaled.__doc__, "Twice.")
        self.assertTrue(same(scaled(self.x), self.x * 2))
        self.assertTrue(same(scaled(self.x), self.x * 2))
        self.assertTrue(same(scaled(self.b), self.b * 3))
        self.assertEqual(calls, [(5, 8), (3,)])

    def test_plan_and_reasons_before_anything_runs(self):
        f = gb.record(lambda x, w: ((x @ w).exp() + 1).sum())
        plan, operations = f.plan(self.x, self.w), f.explain(self.x, self.w)
        self.assertEqual(plan["operations"], 4)
        self.assertEqual(plan["arguments"], 4 * (40 + 24))
        self.assertEqual([o["op"] for o in operations], ["product", "map", "map", "reduce"])
        self.assertTrue(all(o["kernel"].startswith("cpu.") and o["why"] for o in operations))
        self.assertIn("product", str(operations))
        self.assertIn("4 operations", str(plan))
        self.assertEqual(sum(line["runs"] for line in f.receipt()), 0)
        f(self.x, self.w)
        self.assertEqual(sum(line["runs"] for line in f.receipt()), 4)

    def test_reading_a_value_is_an_error_that_says_so(self):
        for reads in (lambda x: x if x.sum().item() > 0 else -x, lambda x: x + np.asarray(x), lambda x: x + float(x[0, 0]), lambda x: gb.tensor(x.tolist())):
            with self.assertRaisesRegex((gb.Error, BufferError), "recorded"):
                gb.record(reads)(self.x)
        gb.record(self.shown)(self.x)
        self.assertIn("recorded", self.text)

    def shown(self, x):
        self.text = repr(x)
        return x

    def test_exceptions_of_the_function_come_out(self):
        def fails(x):
            raise KeyError("mine")

        f = gb.record(fails)
        for _ in range(2):
            with self.assertRaisesRegex(KeyError, "mine"):
                f(self.x)
        with self.assertRaises(gb.ShapeError):
            gb.record(lambda x: x @ x)(self.x)
        with self.assertRaises(gb.UsageError):
            gb.record(lambda x: 3)(self.x)
        with self.assertRaises(gb.DTypeError):
            f(3)

    def test_ids_are_checked_at_each_run(self):
        f = gb.record(lambda x, ids: x.index_select(ids, 0))
        self.assertTrue(same(f(self.x, gb.tensor([4, 0])), self.x[[4, 0]]))
        with self.assertRaises(gb.IndexError):
            f(self.x, gb.tensor([5, 0]))
        self.assertTrue(same(f(self.x, gb.tensor([1, 1])), self.x[[1, 1]]))

    def test_outside_tensors_are_read_and_not_written(self):
        state = gb.zeros(3)
        f = gb.record(lambda x: x + state)
        f(self.b)
        state.fill_(1)
        self.assertTrue(same(f(self.b), self.b + 1))

        def writes(x):
            state[0] = 5
            return x

        with self.assertRaises(gb.UsageError):
            gb.record(writes)(self.b)

        def own(x):
            y = x.copy()
            y[0] = 5
            return y

        self.assertEqual(gb.record(own)(self.b)[0].item(), 5)

    def test_ends_with_its_last_reference(self):
        queue = gb.open_queue("cpu")
        with gb.device(queue):
            state = gb.ones((64, 64))
            f = gb.record(lambda x: x @ state)
            f(gb.ones((2, 64)))
            gone = weakref.ref(f)
            del f, state
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(queue.memory()["live"], 0)

    def test_threads_share_one(self):
        f = gb.record(lambda x: (x * 2).softmax(-1).sum(0))
        wrong = []

        def work(seed):
            for i in range(20):
                x = gb.Generator(seed * 100 + i).normal((4 + i % 3, 6))
                if not same(f(x), (x * 2).softmax(-1).sum(0)):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class CustomOps(unittest.TestCase):
    def test_over_arrays_without_copies(self):
        twice = gb.custom_op("twice", cpu=lambda x, y: np.multiply(x, 2, out=y), reference=lambda x: 2 * x)
        for x in (gb.arange(12, dtype=gb.f32).reshape(3, 4), gb.arange(12, dtype=gb.i32).reshape(3, 4).T[::-1], gb.tensor(2.5)):
            self.assertTrue(same(twice(x), x * 2))
        self.assertEqual(twice.verify()["cases"], 10)
        queue = gb.open_queue("cpu", threads=2)
        with gb.device(queue):
            twice(gb.ones(3))
        self.assertEqual(queue.receipt()["cpu.custom.twice"], 1)

    def test_of_another_form(self):
        def count(x, low, y):
            y[...] = (x > low).sum(-1)

        above = gb.custom_op("above", inputs=2, cpu=count, output=lambda x, low: (gb.i64, x[1][:-1]))
        x = gb.Generator(3).normal((4, 100))
        self.assertEqual(above(x, gb.tensor(0.5)).tolist(), (np.asarray(x) > 0.5).sum(-1).tolist())
        with self.assertRaises(gb.ShapeError):
            above(x)

    def test_in_place(self):
        def add(x, to):
            to += x

        op = gb.custom_op("add_in_place", inputs=2, cpu=add, in_place=True)
        x = gb.zeros((2, 3))
        op(x[:, ::2], gb.ones((2, 2)))
        self.assertEqual(x.tolist(), [[1, 0, 1], [1, 0, 1]])

    def test_in_a_recorded_function(self):
        cube = gb.custom_op("cube", cpu=lambda x, y: np.power(x, 3, out=y))
        f = gb.record(lambda x: cube(x + 1).sum())
        x = gb.Generator(4).normal((30,))
        self.assertTrue(same(f(x), cube(x + 1).sum()))
        self.assertEqual(f.explain(x)[1]["kernel"], "cpu.custom.cube")

    def test_errors_come_out(self):
        def fails(x, y):
            raise ValueError("mine")

        op = gb.custom_op("fails", cpu=fails)
        for _ in range(2):
            with self.assertRaisesRegex(gb.Error, "custom op 'fails': ValueError: mine"):
                op(gb.ones(2))
        kept = []
        with self.assertRaisesRegex(gb.Error, "kept one of its arrays"):
            gb.custom_op("keeps", cpu=lambda x, y: kept.append(x))(gb.ones(2))
        wrong = gb.custom_op("wrong", cpu=lambda x, y: np.multiply(x, 2, out=y), reference=lambda x: 3 * x)
        with self.assertRaisesRegex(gb.Error, "expected"):
            wrong.verify()
        with self.assertRaisesRegex(gb.Error, "uses tensors of the queue"):
            gb.custom_op("nested", cpu=lambda x, y: gb.ones(3).sum())(gb.ones(2))
        with self.assertRaisesRegex(gb.Error, "no form in NumPy"):
            wrong(gb.ones(2, dtype=gb.bf16))
        with self.assertRaisesRegex(gb.Error, "no implementation of 'text' for cpu:0: it has a kernel text for GPUs"):
            gb.custom_op("text", kernel="STORE(y, at, 2.0f * LOAD(x, at))")(gb.ones(2))
        with self.assertRaisesRegex(gb.UsageError, "needs a function"):
            gb.custom_op("neither")
        with self.assertRaises(gb.UsageError):
            gb.custom_op("Name", cpu=fails)

    def test_other_threads_use_the_device_meanwhile(self):
        slow = gb.custom_op("slow", cpu=lambda x, y: np.sin(x, out=y))
        x, done = gb.ones(100), []

        def work():
            for _ in range(50):
                (x + 1).tolist()
                repr(gb.arange(3))
            done.append(True)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        for _ in range(50):
            slow(x)
        for t in threads:
            t.join(60)
        self.assertEqual(done, [True, True])


class Quantized(unittest.TestCase):
    def test_every_format_is_near(self):
        x = gb.Generator(5).normal((4, 512))
        for name in ("q4_0", "q8_0", "q4_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"):
            with self.subTest(name=name):
                q = x.to(name)
                self.assertEqual(q.dtype.name, name)
                self.assertLess(float(((q.to(gb.f32) - x).sqr().mean() / x.sqr().mean()).sqrt()), 0.15)
                self.assertTrue(same(gb.record(lambda x, name=name: x.to(name))(x), q))

    def test_importance_lowers_the_error_where_it_is_high(self):
        x = gb.Generator(6).normal((8, 256))
        importance = gb.tensor([100.0 if i % 4 == 0 else 0.01 for i in range(256)])  # within each group
        plain, weighted = x.to(gb.q4_k), gb.quantize(x, gb.q4_k, importance)
        error = [float((q.to(gb.f32) - x)[:, ::4].sqr().sum()) for q in (plain, weighted)]
        self.assertLess(error[1], 0.7 * error[0])
        for bad in (importance[:-1], -importance, importance * float("nan"), importance.to(gb.f64)):
            with self.assertRaises(gb.Error):
                gb.quantize(x, gb.q4_k, bad)
        with self.assertRaises(gb.ShapeError):
            x[:, 1:].to(gb.q4_k)

    def test_experts(self):
        g = gb.Generator(7)
        x, w, ids = g.normal((3, 256)), g.normal((4, 5, 256)), gb.tensor([[0, 3], [2, 2], [1, 0]])
        for weights in (w, w.to(gb.q8_0), w.to(gb.q4_k)):
            y = gb.linear_indexed(x, weights, ids)
            for row in range(3):
                for slot in range(2):
                    want = gb.linear(x[row], weights[ids[row, slot].item()])
                    self.assertTrue(same(y[row, slot], want))
        with self.assertRaises(gb.IndexError):
            gb.linear_indexed(x, w, ids + 2)


class LinearAlgebra(unittest.TestCase):
    def test_as_numpy(self):
        random = np.random.default_rng(8)
        for dims in ((1, 1), (5, 5), (40, 40), (3, 20, 20)):
            a = random.normal(size=dims)
            spd = a @ np.swapaxes(a, -1, -2) + dims[-1] * np.eye(dims[-1])
            b = random.normal(size=(*dims[:-1], 7))
            for dtype, bound in ((gb.f64, 1e-12), (gb.f32, 1e-4)):
                with self.subTest(dims=dims, dtype=dtype):
                    l = gb.cholesky(gb.tensor(spd, dtype))
                    want = np.linalg.cholesky(spd)
                    self.assertLess(np.abs(np.asarray(l) - want).max() / np.abs(want).max(), bound)
                    x = gb.solve_triangular(l, gb.tensor(b, dtype))
                    self.assertLess(np.abs(np.asarray(x) - np.linalg.solve(want, b)).max(), bound * 10)
                    x = gb.solve_triangular(l.mT, gb.tensor(b, dtype), upper=True)
                    self.assertLess(np.abs(np.asarray(x) - np.linalg.solve(np.swapaxes(want, -1, -2), b)).max(), bound * 10)

    def test_qr_as_numpy_but_for_signs(self):
        random = np.random.default_rng(9)
        for dims in ((1, 1), (6, 6), (30, 4), (4, 30), (300, 280), (2, 7, 5)):
            a = random.normal(size=dims)
            q, r = (np.asarray(t) for t in gb.qr(gb.tensor(a, gb.f64)))
            want_q, want_r = np.linalg.qr(a)
            signs = np.sign(np.diagonal(r, axis1=-2, axis2=-1)) * np.sign(np.diagonal(want_r, axis1=-2, axis2=-1))
            self.assertLess(np.abs(q - want_q * signs[..., None, :]).max(), 1e-10)
            self.assertLess(np.abs(r - want_r * signs[..., :, None]).max(), 1e-10)
            self.assertTrue((np.tril(r, -1) == 0).all())

    def test_misuse(self):
        for bad in (gb.eye(3) * -1, gb.zeros((2, 2)), gb.full((2, 2), float("nan"))):
            with self.assertRaisesRegex(gb.UsageError, "positive definite"):
                gb.cholesky(bad)
        with self.assertRaises(gb.ShapeError):
            gb.cholesky(gb.ones((2, 3)))
        with self.assertRaises(gb.DTypeError):
            gb.qr(gb.ones((2, 3), dtype=gb.i32))
        with self.assertRaises(gb.ShapeError):
            gb.solve_triangular(gb.eye(3), gb.ones(4))


if __name__ == "__main__":
    unittest.main()
