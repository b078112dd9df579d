"""Tests of `gimbal pull` (pull_test.py): what networks, disks and users interrupt."""
import os
import re
import resource
import signal
import subprocess

from pull_case import GIMBAL, LARGE, Case, sha


class Faults(Case):
    def test_parts_come_in_parallel(self):
        self.files.slow = 0.01
        _, err = self.pull_one("--connections", "4")
        self.assertNotIn("resumed", err)
        ranges = [h["Range"] for h in self.files.headers_of("blob")]
        large = {r for r in ranges if int(r.split("-")[1]) - int(r[6:].split("-")[0]) > 1 << 20}
        self.assertEqual(len(large), 4, ranges)
        self.assertFalse(any("Range" in h for h in self.hub.headers_of("/api/")), "the list of files is asked for as a whole")
        self.assertWhole(self.blob())

    def test_a_cut_connection_is_made_anew(self):
        self.files.cuts = [300000, 0, 200000]
        self.pull_one("--connections", "2")
        self.assertWhole(self.blob())
        self.assertEqual(self.files.cuts, [])

    def test_cut_often_it_arrives_while_each_try_brings_something(self):
        self.files.cuts = 8 * [200000]
        self.pull_one("--connections", "1")
        self.assertWhole(self.blob())
        self.assertEqual(self.files.cuts, [])

    def test_a_part_of_a_file_of_another_size(self):
        large = []

        def second(h):  # is the first that lies: the address is right, the file behind it is another one
            big = re.fullmatch(r"bytes=(\d+)-(\d+)", h.headers.get("Range", ""))
            if big and int(big[2]) - int(big[1]) > 1 << 20:
                large.append(h.path)
                self.files.lie_about_length = 7 if len(large) > 1 else 0
            return False

        self.files.refuse, self.files.cuts = second, [300000]
        _, err = self.pull_one("--connections", "1", code=1)
        self.assertIn("sends another part of the file than requested", err)

    def test_cut_again_and_again_it_keeps_the_part_and_resumes(self):
        self.files.cuts = [2000000] + 20 * [0]
        _, err = self.pull_one("--connections", "1", code=1)
        self.assertIn("is requested again", err)
        self.assertIn("the partial download is kept", err)
        self.assertTrue(os.path.exists(self.part()))
        self.files.cuts, before = [], self.files.served
        _, err = self.pull_one()
        self.assertIn("is resumed: ", err)
        self.assertLess(self.files.served - before, len(LARGE) - 2000000 + (2 << 20))
        self.assertWhole(self.blob())

    def test_wrong_length(self):
        self.files.lie_about_length = 7
        _, err = self.pull_one(code=1)
        self.assertIn(str(len(LARGE) + 7), err)
        self.assertIn(str(len(LARGE)), err)
        self.assertFalse(os.path.exists(self.blob()))

    def test_another_length_than_was_announced(self):
        self.hub.announced_more = 5
        _, err = self.pull_one(code=1)
        self.assertIn(f"has {len(LARGE)} bytes at {self.files.url}, where {len(LARGE) + 5} were announced", err)
        self.assertFalse(os.path.exists(self.blob()) or os.path.exists(self.part()))

    def test_wrong_contents(self):
        self.files.flip = len(LARGE) - 5
        _, err = self.pull_one(code=1)
        self.assertIn("wrong contents, and was removed", err)
        self.assertIn(sha(LARGE), err)
        self.assertFalse(os.path.exists(self.blob()) or os.path.exists(self.part()) or os.path.exists(self.part() + ".json"))
        self.files.flip = None
        self.pull_one()
        self.assertWhole(self.blob())

    def test_no_room(self):
        limit = 3 << 20
        _, err = self.pull_one("--connections", "1", code=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertIn("cannot write", err)
        self.assertIn("the partial download is kept", err)
        before = self.files.served
        _, err = self.pull_one("--connections", "1")
        self.assertIn("is resumed: ", err)
        self.assertLess(self.files.served - before, len(LARGE) - limit // 2 + (1 << 20))
        self.assertWhole(self.blob())

    def test_a_disk_that_is_too_small(self):
        os.mkdir(os.path.join(self.home, "small"))
        script = 'mount -t tmpfs -o size=3m none small && exec "$0" pull hf.co/Org/Tiny-GGUF'
        ways = ["--mount"], ["--user", "--map-root-user", "--mount"]
        way = next((w for w in ways if subprocess.run(["unshare", *w, "sh", "-c", "mount -t tmpfs none small"], cwd=self.home, stderr=subprocess.DEVNULL,
                                                      check=False).returncode == 0), None)
        if not way:
            self.assertNotIn("CI", os.environ, "no file system can be mounted here")
            self.skipTest("no file system can be mounted here")
        done = subprocess.run(["unshare", *way, "sh", "-c", script, GIMBAL], env={**self.environment, "HF_HOME": os.path.join(self.home, "small")}, cwd=self.home,
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"not enough disk space for tiny-Q4_K_M.gguf: .* more are needed, and '.*/small/.*' has ")
        self.assertIn("HF_HOME", done.stderr)
        self.assertLess(self.files.served, 3 << 20, "the header alone was asked for")

    def test_a_cache_that_cannot_be_written(self):
        with open(os.path.join(self.home, "file"), "w"):
            pass
        _, err = self.pull_one(code=1, environment={"HF_HOME": os.path.join(self.home, "file")})
        self.assertRegex(err, "cannot create .*Not a directory")
        self.assertIn("HF_HOME", err)

    def test_killed_it_goes_on(self):
        self.files.slow = 0.02
        process = self.start("pull", "hf.co/Org/Tiny-GGUF", "--connections", "2")
        self.wait_for_part(process, 2 << 20)
        process.kill()
        process.communicate()
        self.assertFalse(os.path.exists(self.blob()))
        self.files.slow, before = 0, self.files.served
        _, err = self.pull_one()
        self.assertIn("is resumed: ", err)
        self.assertLess(self.files.served - before, len(LARGE) - (1 << 20) + (1 << 20))
        self.assertWhole(self.blob())

    def test_interrupted_it_says_how_to_go_on(self):
        self.files.slow = 0.02
        process = self.start("pull", "hf.co/Org/Tiny-GGUF", "--connections", "1")
        self.wait_for_part(process, 1 << 20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("the partial download is kept", err)
        self.assertIn("run the same command again to resume", err)
        self.assertTrue(os.path.exists(self.part()))

    def test_a_server_without_ranges(self):
        self.files.ranges = False
        _, err = self.pull_one()
        self.assertIn("only as a whole", err)
        self.assertWhole(self.blob())
        _, err = self.gimbal("plan", "hf.co/Org/Tiny-GGUF:Q8_0", code=3)
        self.assertIn("does not support range requests", err)

    def test_an_address_that_expires_is_asked_for_again(self):
        seen = []

        def expired(h):
            big = re.fullmatch(r"bytes=(\d+)-(\d+)", h.headers.get("Range", ""))
            if not big or int(big[2]) - int(big[1]) < 1 << 20 or len(seen) > 1:
                return False
            seen.append(h.path)
            if len(seen) == 1:  # the first one is cut short, the second one refused
                self.files.cuts = [1500000]
            return len(seen) == 2

        self.files.refuse = expired
        self.pull_one("--connections", "1")
        self.assertWhole(self.blob())
        self.assertEqual(len(self.hub.headers_of("resolve")), 3, "for the header, for the file, and once more")

    def test_two_at_once(self):
        self.files.slow = 0.2  # until the second one waits
        first = self.start("pull", "hf.co/Org/Tiny-GGUF")
        self.wait_for_part(first, 1)
        second = self.start("pull", "hf.co/Org/Tiny-GGUF")
        self.assertTrue(any("waiting for it" in line for line in second.stderr))
        self.files.slow = 0
        out, err = second.communicate(timeout=300)
        self.assertEqual(second.returncode, 0, err)
        self.assertWhole(out.strip())
        out, _ = first.communicate(timeout=300)
        self.assertEqual(first.returncode, 0)
        self.assertLess(self.files.served, 2 * len(LARGE))
        self.assertWhole(out.strip())
