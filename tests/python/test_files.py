"""Files of tensors: hostile ones by their verdicts, NumPy's own, and those that gimbal writes."""

import hashlib
import json
import os
import tempfile
import unittest

import numpy as np

import gimbal as gb

import golden


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_hostile_files_have_their_verdicts(self):
        folder = os.path.join(golden.FOLDER, "hostile")
        with open(os.path.join(folder, "verdicts.json")) as file:
            cases = json.load(file)["cases"]
        n = 0
        for case in cases:
            path = os.path.join(folder, case["file"])
            if os.path.isdir(path) or not case["file"].endswith((".safetensors", ".npy", ".npz", ".gguf")):
                continue
            n += 1
            with self.subTest(case["file"], why=case["why"]):
                try:
                    got = gb.load(path)
                except gb.Error as e:
                    self.assertNotEqual(case["verdict"], "accept", str(e))
                    continue
                self.assertNotEqual(case["verdict"], "refuse")
                got = got if isinstance(got, dict) else {"": got}
                for want in case.get("tensors", []):
                    x = got[want["name"]]
                    self.assertEqual([x.dtype.name, list(x.shape)], [want["dtype"], want["dims"]])
                    self.assertEqual(hashlib.sha256(x.tobytes()).hexdigest(), want["sha256"])
        self.assertGreater(n, 20)

    def test_arrays_of_numpy(self):
        a = np.arange(24, dtype=np.float16).reshape(2, 3, 4)
        for each in (a, np.asfortranarray(a), a[:, ::-1], np.zeros((0, 3)), np.float64(3)):
            np.save(self.path("x.npy"), each)
            x = gb.load(self.path("x.npy"))
            self.assertEqual(x.shape, np.shape(each))
            self.assertTrue((np.asarray(x) == each).all())
        np.savez_compressed(self.path("x.npz"), first=a, second=a[0] > 3)
        both = gb.load(self.path("x.npz"))
        self.assertEqual(sorted(both), ["first", "second"])
        self.assertTrue((np.asarray(both["second"]) == (a[0] > 3)).all())

    def test_mapped_files_are_not_copied(self):
        a = np.arange(1 << 16, dtype=np.float32)
        np.save(self.path("x.npy"), a)
        queue = gb.open_queue("cpu")
        x = gb.load(self.path("x.npy"), queue, mapped=True)
        self.assertEqual((x.read_only, queue.memory()["live"]), (True, 0))
        self.assertTrue((np.asarray(x) == a).all())
        self.assertFalse(np.asarray(x).flags.writeable)
        self.assertEqual((x + 1).sum().item(), a.sum(dtype=np.float64) + a.size)
        with self.assertRaises(gb.Error):
            x[0] = 1
        os.truncate(self.path("x.npy"), 4096)
        with self.assertRaisesRegex(gb.Error, "x.npy"):
            x.sum().item()

    def test_what_is_written_is_read_again(self):
        tensors = {"a": gb.arange(6, dtype=gb.bf16).reshape(2, 3), "b.weight": gb.tensor([[True], [False]]), "none": gb.zeros((0, 2)), "one": gb.tensor(7)}
        gb.save(self.path("x.safetensors"), tensors)
        again = gb.load(self.path("x.safetensors"))
        self.assertEqual({n: (t.shape, t.dtype, t.tobytes()) for n, t in again.items()}, {n: (t.shape, t.dtype, t.tobytes()) for n, t in tensors.items()})
        x = gb.arange(6, dtype=gb.f64).reshape(3, 2)
        gb.save(self.path("x.npy"), x.t())
        self.assertTrue((np.load(self.path("x.npy")) == np.asarray(x).T).all())
        for path, what in (("x.bin", tensors), ("x.npy", tensors)):
            with self.assertRaises(gb.Error):
                gb.save(self.path(path), what)
        with self.assertRaises(gb.Error):
            gb.load(self.path("missing.safetensors"))


if __name__ == "__main__":
    unittest.main()
