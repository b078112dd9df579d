"""Tensors in Python: indexing as NumPy's, buffers without copies, errors, memory, threads."""

import gc
import pickle
import random
import sys
import threading
import unittest

import numpy as np

import gimbal as gb


class Indexing(unittest.TestCase):
    def test_random_numbers_of_the_device(self):
        q = gb.open_queue("cpu")
        self.assertEqual(q.seed(), 299792458)
        q.set_seed(2**63 + 5)
        first = gb.normal((3, 5), device=q).tolist()
        self.assertEqual(first, gb.Generator(2**63 + 5, q).normal((3, 5)).tolist())
        self.assertTrue(all(0 <= v < 1 for v in gb.uniform(100, device=q).tolist()))
        q.set_seed(2**63 + 5)
        self.assertEqual(gb.normal((3, 5), device=q).tolist(), first)
        self.assertEqual(gb.uniform(4, gb.f16, device=q).dtype, gb.f16)

    def test_is_that_of_numpy(self):
        a = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)
        x = gb.tensor(a)
        for index in (0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(3, 0, -2), (slice(None), 1), (..., 2), (None, 0), (0, None, ..., slice(1, 3)),
                      (1, 2, 3, 4), (slice(5, 9),), (slice(None), slice(2, 0, -1), -1), (..., None), Ellipsis, ()):
            with self.subTest(index=index):
                got, want = np.asarray(x[index]), a[index]
                self.assertEqual(got.shape, want.shape)
                self.assertTrue((got == want).all())

    def test_by_tensors_and_lists(self):
        a = np.arange(12, dtype=np.float32).reshape(4, 3)
        x = gb.tensor(a)
        self.assertTrue((np.asarray(x[[2, 0, 2]]) == a[[2, 0, 2]]).all())
        self.assertTrue((np.asarray(x[gb.tensor([[0, 1], [3, 2]])]) == a[[[0, 1], [3, 2]]]).all())
        self.assertTrue((np.asarray(x[x[:, 0] > 4]) == a[a[:, 0] > 4]).all())
        with self.assertRaises(gb.IndexError):
            x[[4]]

    # Ids as NumPy takes them, and as they are given here: (of a tensor, of an array).
    def chosen(self, rng, shape):
        index, given, dim = [], [], 0
        common = rng.choice([(), (1,), (3,), (2, 3)])
        while dim < len(shape):
            kind = rng.randrange(7)
            if kind == 0:
                begin = rng.randrange(-shape[dim], shape[dim])
                one = other = slice(begin, None, rng.choice((1, 2, -1)))
            elif kind == 1:
                one = other = rng.randrange(-shape[dim], shape[dim])
            elif kind == 2 and not any(isinstance(i, np.ndarray) for i in index):
                n = rng.randrange(1, len(shape) - dim + 1)
                one = np.array([rng.random() < 0.5 for _ in range(int(np.prod(shape[dim:dim + n])))]).reshape(shape[dim:dim + n])
                other = gb.tensor(one)
                dim += n - 1
            elif kind in (3, 4) and not any(getattr(i, "dtype", None) == bool for i in index):
                own = common[rng.randrange(len(common) + 1):]
                one = np.array([rng.randrange(-shape[dim], shape[dim]) for _ in range(int(np.prod(own)))], np.int64).reshape(own)
                other = rng.choice((gb.tensor(one), one, gb.tensor(one).to(gb.i32)))
            elif kind == 5:
                one = other = None
                dim -= 1
            else:
                one = other = slice(None)
            index.append(one)
            given.append(other)
            dim += 1
            if rng.random() < 0.2:
                break
        return tuple(index), tuple(given)

    def test_any_mixture_is_that_of_numpy(self):
        rng, with_ids = random.Random(7), 0
        for round in range(400):
            a = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)
            x = gb.tensor(a)
            index, given = self.chosen(rng, a.shape)
            with self.subTest(round=round, index=index):
                want = a[index]
                with_ids += any(isinstance(i, np.ndarray) for i in index)
                got = np.asarray(x[given])
                self.assertEqual(got.shape, want.shape)
                self.assertTrue((got == want).all())
                row = want.ndim > 0 and rng.random() < 0.5
                value = np.arange(want.shape[-1], dtype=np.int32) - 100 if row else -1
                a[index] = value
                x[given] = gb.tensor(value) if row else value
                self.assertTrue((np.asarray(x) == a).all())
        self.assertGreater(with_ids, 200)

    def test_ids_write_what_they_choose(self):
        x = gb.zeros((3, 4))
        x[gb.tensor([0, 2])] = 1
        self.assertEqual(x.tolist(), [[1] * 4, [0] * 4, [1] * 4])
        x[x > 0] = 5
        x[:, [0, 3]] = gb.tensor([[7.0, 8.0]])
        self.assertEqual(x.tolist(), [[7, 5, 5, 8], [7, 0, 0, 8], [7, 5, 5, 8]])
        x[[0, 1], [1, 1]] = -1  # element by element
        self.assertEqual(x[:, 1].tolist(), [-1, -1, 5])
        x[[1, 1], 2] = gb.tensor([3.0, 4.0])  # the last stays
        self.assertEqual(x[1, 2].item(), 4)
        self.assertEqual(x[[]].shape, (0, 4))
        x[[]] = 9
        self.assertEqual(x.t()[gb.tensor([3]), 0].tolist(), [8])

    def test_ids_that_choose_nothing_are_errors(self):
        x = gb.zeros((3, 4, 5))
        for index, kind in ((([0, 5], [0, 1]), IndexError), (([0, 1], [0, -5]), IndexError), ((3, [0]), IndexError), (([0, 1], [0, 1, 2]), IndexError),
                            ([1.5], TypeError), ((slice(None), gb.tensor([True, False])), IndexError), ((..., 0, ...), IndexError)):
            with self.subTest(index=index), self.assertRaises(kind):
                x[index]
            with self.subTest(index=index), self.assertRaises(kind):
                x[index] = 1
        self.assertEqual(x.sum().item(), 0)

    def test_writes_through_views(self):
        a = np.zeros((4, 6), np.float32)
        x = gb.tensor(a)
        x[1:3, ::-2] = 7
        a[1:3, ::-2] = 7
        x[0] = gb.arange(6, dtype=gb.f32)
        a[0] = np.arange(6)
        self.assertTrue((np.asarray(x) == a).all())

    def test_out_of_range_is_an_error_of_pythons_own_kind(self):
        x = gb.zeros((2, 3))
        for index in (2, -3, (0, 3), (0, 0, 0)):
            with self.subTest(index=index), self.assertRaises(IndexError):
                x[index]
        with self.assertRaises(ValueError):
            gb.zeros((2, 3)).reshape(7)
        with self.assertRaises(TypeError):
            gb.zeros(3, dtype=gb.i8).exp()


class Buffers(unittest.TestCase):
    def test_numpy_reads_the_same_memory(self):
        x = gb.arange(24, dtype=gb.f32).reshape(4, 6)
        a, view = np.asarray(x), np.asarray(x[1:3, ::-2])
        self.assertEqual(view.__array_interface__["data"][0], a[1:3, ::-2].__array_interface__["data"][0])
        self.assertEqual(view.strides, a[1:3, ::-2].strides)
        with self.assertRaises(ValueError):
            a[0] = 1
        x[0] = 5
        self.assertEqual(a[0, 0], 5)

    def test_arrays_keep_the_memory(self):
        a = np.asarray(gb.full((1000,), 3, dtype=gb.i64))
        gc.collect()
        others = [gb.full((1000,), 4, dtype=gb.i64) for _ in range(8)]
        self.assertTrue((a == 3).all())
        self.assertEqual(len(others), 8)

    def test_every_dtype_of_numpy(self):
        for t in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"):
            a = (np.arange(6) % 3).astype(t).reshape(2, 3)[:, ::-1]
            x = gb.tensor(a)
            self.assertEqual(x.dtype, gb.dtype(t))
            self.assertEqual(np.asarray(x).dtype, a.dtype)
            self.assertTrue((np.asarray(x) == a).all())
        with self.assertRaises(BufferError):
            memoryview(gb.zeros(3, dtype=gb.bf16))
        with self.assertRaises(gb.DTypeError):
            gb.tensor(np.zeros(3, dtype=">f4"))
        with self.assertRaises(gb.DTypeError):
            gb.tensor(object())

    def test_lists(self):
        self.assertEqual(gb.tensor([[1, 2], [3, 4]]).dtype, gb.i64)
        self.assertEqual(gb.tensor([1, 2.5]).tolist(), [1.0, 2.5])
        self.assertEqual(gb.tensor([True, False]).dtype, gb.bool_)
        self.assertEqual(gb.tensor(3).shape, ())
        self.assertEqual(gb.tensor([], dtype=gb.f32).shape, (0,))
        for ragged in ([[1], [2, 3]], [1, [2]], [[1], 2]):
            with self.assertRaises(gb.ShapeError):
                gb.tensor(ragged)


class Shared(unittest.TestCase):
    """Arrays of others without copies."""

    def test_numpy_is_read_in_place(self):
        a = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
        for each in (a, a[:, ::-1], a[1:, :, ::2], a.T, a[0, 1:2], np.float64([3.5]), np.zeros((0, 3), np.int16), a.astype(np.uint8) > 3):
            x = gb.asarray(each)
            self.assertEqual((x.shape, x.read_only or not x.size), (each.shape, True))
            back = np.asarray(x)
            self.assertTrue((back == each).all())
            if each.size:
                self.assertEqual(back.__array_interface__["data"][0], each.__array_interface__["data"][0])
            self.assertTrue((np.asarray(x.copy()) == each).all())
        a[0, 0, 0] = 9  # which the caller should not, but it shows the same memory
        self.assertEqual(gb.asarray(a)[0, 0, 0].item(), 9)

    def test_a_gigabyte_in_and_out_copies_nothing(self):
        a = np.zeros(1 << 28, np.float32)  # pages that are never touched
        queue = gb.open_queue("cpu", memory_limit=1 << 20)
        x = gb.asarray(a, device=queue)
        b = np.asarray(gb.from_dlpack(x, device=queue))
        self.assertEqual(b.__array_interface__["data"][0], a.__array_interface__["data"][0])
        self.assertEqual(gb._gimbal.memory(queue)[2], 0)

    def test_it_keeps_the_memory_and_lets_it_go(self):
        class Watched(np.ndarray):
            ended = 0

            def __del__(self):
                Watched.ended += self.base is None

        a = np.arange(10.0).view(Watched)
        x = gb.asarray(a)[2:]
        base = sys.getrefcount(a.base)
        del a
        gc.collect()
        self.assertEqual(x.tolist(), list(range(2, 10)))
        del x
        gc.collect()
        self.assertGreaterEqual(base, 2)
        owner = bytearray(16)
        x = gb.asarray(owner)
        with self.assertRaises(BufferError):
            owner.append(1)
        del x
        gc.collect()
        owner.append(1)

    def test_it_is_not_written(self):
        x = gb.asarray(np.zeros(4))
        with self.assertRaises(gb.UsageError):
            x[0] = 1
        with self.assertRaises(gb.UsageError):
            x.fill_(1)
        y = x.copy()
        y[0] = 1
        self.assertEqual((x.tolist(), y.tolist()), ([0, 0, 0, 0], [1, 0, 0, 0]))

    def test_copies_where_it_must_or_is_asked_to(self):
        a = np.zeros(9, np.uint8)[1:].view(np.float32)  # not aligned
        self.assertFalse(gb.asarray(a).read_only)
        with self.assertRaises(gb.Error):
            gb.asarray(a, copy=False)
        self.assertFalse(gb.asarray(np.zeros(3), copy=True).read_only)
        self.assertFalse(gb.tensor(np.zeros(3)).read_only)
        self.assertEqual(gb.asarray(np.zeros(3), dtype=gb.f16).dtype, gb.f16)
        for wrong in (lambda: gb.asarray([1, 2], copy=False), lambda: gb.asarray(np.zeros(3), dtype=gb.f16, copy=False)):
            with self.assertRaises(gb.UsageError):
                wrong()

    def test_dlpack_in_both_versions(self):
        class Other:
            """An array of a library that knows one version."""

            def __init__(self, array, version):
                self.array, self.version = array, version

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, **options):
                if self.version == 0 and options:
                    raise TypeError
                return self.array.__dlpack__(**options)

        for t in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"):
            a = (np.arange(12) % 3).reshape(3, 4).astype(t)[:, ::2]
            x = gb.asarray(a)
            # NumPy 1 knows no bools there, and no version.
            for other in (Other(a, 0) if t != "bool" else Other(x, 1), Other(x, 1), Other(x.copy(), 0)):
                y = gb.from_dlpack(other)
                self.assertEqual((y.dtype, y.shape, y.read_only), (gb.dtype(t), (3, 2), True))
                self.assertEqual(np.asarray(y).__array_interface__["data"][0], np.asarray(other.array).__array_interface__["data"][0])
                self.assertTrue((np.asarray(y) == a).all())
        for t in (gb.bf16, gb.f8_e4m3, gb.f8_e5m2):
            x = gb.arange(6, dtype=gb.f32).to(t)
            self.assertEqual(gb.from_dlpack(x).tobytes(), x.tobytes())
        self.assertEqual(gb.zeros(3).__dlpack_device__(), (1, 0))

    def test_dlpack_that_makes_no_sense(self):
        with self.assertRaises(BufferError):
            gb.zeros(3).__dlpack__(stream=1)
        with self.assertRaises(BufferError):
            gb.zeros(3).__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            gb.from_bytes(bytes(34), [32], gb.q8_0).__dlpack__()
        with self.assertRaises(BufferError):
            gb.asarray(np.zeros(3)).__dlpack__()  # of the first version, which has no mark for read-only
        capsule = gb.zeros(3).__dlpack__(max_version=(1, 0))
        gb._gimbal.from_dlpack(capsule, gb.queue_of())
        with self.assertRaises(ValueError):
            gb._gimbal.from_dlpack(capsule, gb.queue_of())  # a second time
        for _ in range(100):
            gb.zeros(1000).__dlpack__(max_version=(1, 0))  # that no consumer takes
        with self.assertRaises(gb.DTypeError):
            gb.from_dlpack(np.zeros(3, np.complex64))


class Values(unittest.TestCase):
    def test_numbers_on_either_side(self):
        x = gb.tensor([1.0, 4.0])
        self.assertEqual((2 ** x).tolist(), [2, 16])
        self.assertEqual((1 - x).tolist(), [0, -3])
        self.assertEqual((gb.tensor([5, -5]) // 2).tolist(), [2, -3])
        self.assertEqual((gb.tensor([5, -5]) * 0.5).dtype, gb.f32)
        self.assertEqual((x > 2).tolist(), [False, True])
        self.assertEqual((gb.tensor([3, -2]) ** 3).tolist(), [27, -8])
        self.assertEqual((2 ** gb.tensor([0, 10, -1])).tolist(), [1, 1024, 0])
        truth = gb.tensor([True, False])
        self.assertEqual((truth & True).tolist(), [True, False])
        self.assertEqual((False | truth).dtype, gb.bool)
        self.assertEqual((truth & 1).dtype, gb.i64)
        self.assertEqual((truth + True).tolist(), [2, 1])
        with self.assertRaises(TypeError):
            x + "1"

    def test_angles(self):
        x = np.linspace(-1, 1, 101, dtype=np.float32)
        for name in ("arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arctanh"):
            with self.subTest(name), np.errstate(divide="ignore"):
                got = np.asarray(getattr(gb.tensor(x), name.replace("arc", "a"))())
                np.testing.assert_allclose(got, getattr(np, name)(x.astype(np.float64)), rtol=3e-7, atol=1e-7)
        np.testing.assert_allclose(np.asarray(gb.tensor(x + 2).acosh()), np.arccosh((x + 2).astype(np.float64)), rtol=3e-7)
        np.testing.assert_allclose(np.asarray(gb.tensor(x).atan2(gb.tensor(x[::-1].copy()))), np.arctan2(x.astype(np.float64), x[::-1]), rtol=3e-7)
        self.assertEqual(gb.tensor([1.5, 2.0]).copysign(gb.tensor([-0.0, 1.0])).tolist(), [-1.5, 2])

    def test_truth_and_numbers(self):
        self.assertEqual(float(gb.tensor([2.5])), 2.5)
        self.assertEqual(int(gb.tensor(7)), 7)
        self.assertFalse(gb.tensor(0))
        with self.assertRaises(gb.ShapeError):
            bool(gb.zeros(2))
        with self.assertRaises(TypeError):
            hash(gb.zeros(2))

    def test_pickles(self):
        for x in (gb.arange(6, dtype=gb.bf16).reshape(2, 3), gb.tensor([True]), gb.zeros((0, 4))):
            y = pickle.loads(pickle.dumps(x))
            self.assertEqual((y.shape, y.dtype, y.tobytes()), (x.shape, x.dtype, x.tobytes()))

    def test_errors_have_reason_and_remedy(self):
        with self.assertRaises(gb.ShapeError) as caught:
            gb.zeros((2, 3)) @ gb.zeros((2, 3))
        self.assertEqual(caught.exception.reason, "shape")
        self.assertIn("the inner dimensions differ (3 and 2)", str(caught.exception))
        with self.assertRaises(gb.DeviceError):
            gb.open_queue("cuda:77")


class Memory(unittest.TestCase):
    def test_ten_thousand_operations_leave_it_equal(self):
        queue = gb.open_queue("cpu")
        x = gb.full((64,), 1, device=queue)
        before = gb._gimbal.memory(queue)[0]
        for _ in range(2500):
            ((x + 1.0) * x).softmax(0)[::-1].sum()
        gc.collect()
        self.assertEqual(gb._gimbal.memory(queue)[0], before)

    def test_threads_have_queues_of_their_own_or_share_one(self):
        results = []

        def work(device):
            x = gb.full((100, 100), 1.5, device=device)
            for _ in range(20):
                x = (x @ x) / 150.0
            results.append(x.tobytes())

        devices = [gb.open_queue("cpu"), gb.open_queue("cpu"), "cpu", "cpu"]
        threads = [threading.Thread(target=work, args=(d,)) for d in devices]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(results), 4)
        self.assertEqual(len(set(results)), 1)


if __name__ == "__main__":
    unittest.main()
