#!/usr/bin/env python3
"""passed.py: the digest sees every source, flag and compiler; only a line of this level and digest skips a
test, only where the lock is to be obeyed; and a level's line leaves the others alone."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).with_name("passed.py")
SOURCES = ("gpu/a.cu", "gpu/emu/b.cpp", "ref/num/a.h", "conformance/checks/a.c", "conformance/mutants/a.def",
           "vectors/a.json", "tests/gpu/mutants.txt", "tests/ref/a.c", "ci/gpu", "tests/random.h", "tests/scale.h",
           "tests/CMakeLists.txt", "CMakePresets.json", "CMakeLists.txt")
TEST = (sys.executable, "-c", "print('it ran'); raise SystemExit(3)")


class Lock(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        for name in (*SOURCES, "gpu/README.md", "docs/a.c"):
            self.put(name, name)
        self.flags = "-O3"
        self.program("cc", "cc (Vendor) 12.2.0")
        self.program("level", "v3")
        self.lock = self.root / "tests/gpu/passed.lock"

    def put(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def program(self, name, says):
        self.put(name, f"#!/bin/sh\necho '{says}'\n")
        (self.root / name).chmod(stat.S_IRWXU)

    def call(self, *words, obey=True):
        facts = ("--source", self.root, "--level", self.root / "level", "--compiler", self.root / "cc",
                 f"--flags={self.flags}")
        env = {k: v for k, v in os.environ.items() if k != "ASSAY_PASSED_LOCK"}
        return subprocess.run([sys.executable, PROGRAM, *facts, *words], capture_output=True, text=True,
                              env={**env, **({"ASSAY_PASSED_LOCK": "obey"} if obey else {})})

    def digest(self):
        return self.call("digest").stdout

    def write(self, *levels):
        return self.call("write", self.digest().strip(), *levels)

    def test_every_source_counts(self):
        seen = {self.digest()}
        for name in SOURCES:
            self.put(name, "changed")
            seen.add(self.digest())
        (self.root / "gpu/a.cu").rename(self.root / "gpu/c.cu")
        seen.add(self.digest())
        self.put("ref/new.c", "")
        seen.add(self.digest())
        self.assertEqual(len(seen), len(SOURCES) + 3)

    def test_flags_and_compiler_count_and_prose_does_not(self):
        first = self.digest()
        self.put("gpu/README.md", "changed")
        self.put("docs/a.c", "changed")
        self.lock.write_text("# nothing\n")
        self.flags = " -O3  "
        self.assertEqual(self.digest(), first)
        self.program("cc", "gcc (Vendor) 12.2.0")  # the same by another name
        self.assertEqual(self.digest(), first)
        self.program("cc", "cc (Vendor) 12.2.1")
        second = self.digest()
        self.flags = "-O2"
        self.assertEqual(len({first, second, self.digest()}), 3)

    def test_what_passed_is_skipped_at_its_level_alone(self):
        self.assertEqual(self.write("v3").returncode, 0)
        done = self.call("run", "--", *TEST)
        self.assertEqual(done.returncode, 77)
        self.assertIn("skipped: passed at level v3 on 20", done.stdout)
        self.assertIn(self.digest()[:16], done.stdout)
        self.assertNotIn("it ran", done.stdout)
        self.program("level", "v4")
        done = self.call("run", "--", *TEST)
        self.assertEqual(done.returncode, 3)
        self.assertIn("it ran", done.stdout)
        self.assertIn("a deep run is due", done.stdout)

    def test_nothing_is_written_of_sources_that_changed_during_the_run(self):
        before = self.digest().strip()
        self.put("gpu/a.cu", "changed")
        self.assertNotEqual(self.call("write", before, "v3").returncode, 0)
        self.assertFalse(self.lock.exists())

    def test_a_change_runs_it_again(self):
        self.write("v3")
        self.put("ref/num/a.h", "changed")
        done = self.call("run", "--", *TEST)
        self.assertEqual(done.returncode, 3)
        self.assertIn("a deep run is due", done.stdout)

    def test_without_the_wish_the_lock_is_not_obeyed(self):
        self.write("v3")
        self.assertEqual(self.call("run", "--", *TEST, obey=False).returncode, 3)

    def test_no_lock_skips_nothing(self):
        self.assertEqual(self.call("run", "--", *TEST).returncode, 3)

    def test_levels_are_written_in_order_each_alone(self):
        self.write("v3")
        old = self.lock.read_text().splitlines()[-1]
        self.put("gpu/a.cu", "changed")
        self.write("baseline")
        lines = [line for line in self.lock.read_text().splitlines() if line[0] != "#"]
        self.assertEqual([line.split()[0] for line in lines], ["baseline", "v3"])
        self.assertEqual(lines[1], old)
        self.assertEqual(lines[0].split()[1], self.digest().strip())
        self.assertNotEqual(self.write("v5").returncode, 0)
        self.assertNotEqual(self.write().returncode, 0)

    def test_a_line_that_is_none_is_an_error(self):
        for text in ("v3 abc\n", "v5 abc 2026-01-01\n", "v3 a 2026-01-01\nv3 a 2026-01-01\n"):
            self.lock.write_text(text)
            self.assertEqual(self.call("run", "--", *TEST).returncode, 1, text)


if __name__ == "__main__":
    unittest.main()
