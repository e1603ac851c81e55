"""Tests of tools/unchanged.py and of tools/tidy.py, whose clang-tidy is a script here."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import unchanged  # noqa: E402

# Finds fault with "bad"; reads the source and src/header.hpp, and says so as clang does.
TIDY = r"""#!/usr/bin/env python3
import pathlib, sys
if "--version" in sys.argv:
    sys.exit(print("version 1"))
source = pathlib.Path([a for a in sys.argv if a.endswith(".cpp")][0])
folder = pathlib.Path(__file__).parent.parent / "src"
header = folder / "header.hpp"
listed = [a for a in sys.argv if "dunlin-tidy." in a][0].split("=", 1)[1]
pathlib.Path(listed).write_text(f"{header}\n")
with open(folder / "analysed", "a") as log:
    print(source.name, file=log)
if "bad" in source.read_text() + header.read_text():
    sys.exit("a finding")
"""


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "project"
        self.root.mkdir()
        self.cache = self.root.parent / "cache"

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        hour_ago = time.time() - 3600
        os.utime(path, (hour_ago, hour_ago))
        return path


class Passed(InFolder):
    def passed(self, root=None):
        return unchanged.Passed(self.cache, root or self.root)

    def test_is_known_until_a_file_changes_and_again_once_it_is_as_before(self):
        header = self.write("header.hpp", "one")
        self.passed().remember("key", [header], time.time())
        self.assertTrue(self.passed().has_passed("key"))
        self.assertFalse(self.passed().has_passed("another key"))
        self.write("header.hpp", "two")
        self.assertFalse(self.passed().has_passed("key"))
        self.passed().remember("key", [header], time.time())
        self.write("header.hpp", "one")
        self.assertTrue(self.passed().has_passed("key"))
        header.unlink()
        self.assertFalse(self.passed().has_passed("key"))

    def test_holds_in_another_clone(self):
        self.passed().remember(self.passed().key(f"-I{self.root}/include"),
                               [self.write("include/header.hpp", "one")], time.time())
        clone = self.root.parent / "clone"
        self.root.rename(clone)
        self.assertTrue(self.passed(clone).has_passed(self.passed(clone).key(f"-I{clone}/include")))

    def test_is_not_remembered_of_a_file_that_changed_meanwhile(self):
        header = self.write("header.hpp", "one")
        began = time.time()
        os.utime(header, (began + 1, began + 1))
        self.passed().remember("key", [header], began)
        self.assertFalse(self.passed().has_passed("key"))

    def test_is_forgotten_after_a_month_without_use(self):
        self.passed().remember("key", [self.write("header.hpp", "one")], time.time())
        for record in self.cache.glob("*/*/*"):
            os.utime(record, (0, 0))
        self.passed().forget_old()
        self.assertFalse(self.passed().has_passed("key"))


class Tidy(InFolder):
    def setUp(self):
        super().setUp()
        for tool in ("tools/tidy.py", "tools/unchanged.py", "tools/packing.py"):
            self.write(tool, (TOOLS.parent / tool).read_text(encoding="utf-8"))
        self.write("bin/clang-tidy", TIDY).chmod(0o755)
        self.write(".clang-tidy", "Checks: all")
        self.write("src/header.hpp", "")
        self.sources = [self.write(f"src/{name}.cpp", "// good") for name in ("one", "two")]
        self.configure("-O1")

    def configure(self, *flags):
        """The sources' flags, or those of all of them."""
        entries = [{"file": str(source), "command": f"c++ {flag} {source}", "directory": "."}
                   for source, flag in zip(self.sources, flags * 2)]
        self.write("build/compile_commands.json", json.dumps(entries))

    def tidy(self):
        """(the exit status, which sources were analysed)"""
        log = self.root / "src/analysed"
        log.unlink(missing_ok=True)
        result = subprocess.run(
            [sys.executable, self.root / "tools/tidy.py", "--build-dir", self.root / "build",
             "--clang-tidy", self.root / "bin/clang-tidy", *self.sources],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)}, capture_output=True, text=True)
        analysed = sorted(log.read_text().split()) if log.exists() else []
        return result.returncode, analysed, result.stdout + result.stderr

    def test_analyses_what_is_new_and_nothing_twice(self):
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))
        self.assertEqual(self.tidy()[:2], (0, []))

    def test_analyses_what_has_changed_or_whose_header_rules_or_options_have(self):
        self.tidy()
        self.write("src/one.cpp", "// better")
        self.assertEqual(self.tidy()[:2], (0, ["one.cpp"]))
        self.write("src/header.hpp", "// more")
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))
        self.write(".clang-tidy", "Checks: some")
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))
        self.write("src/.clang-tidy", "Checks: more")
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))
        self.configure("-O2")
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))
        self.write("bin/clang-tidy", TIDY.replace("version 1", "version 2"))
        (self.root / "bin/clang-tidy").chmod(0o755)
        self.assertEqual(self.tidy()[:2], (0, ["together.cpp"]))

    def test_analyses_alone_what_has_other_options_or_declares_the_same_names(self):
        self.configure("-O1", "-O2")
        self.assertEqual(self.tidy()[:2], (0, ["one.cpp", "two.cpp"]))
        self.configure("-O1")
        for source in self.sources:
            self.write(f"src/{source.name}", "void same() {}\n")
        self.assertEqual(self.tidy()[:2], (0, ["one.cpp", "two.cpp"]))

    def test_analyses_what_has_findings_until_it_has_none(self):
        self.write("src/two.cpp", "// bad")
        status, analysed, output = self.tidy()
        self.assertEqual((status, analysed), (1, ["one.cpp", "together.cpp", "two.cpp"]))
        self.assertIn("a finding", output)
        self.assertIn("findings in src/two.cpp", output)
        self.assertEqual(self.tidy()[:2], (1, ["two.cpp"]))
        self.write("src/header.hpp", "bad")
        self.assertEqual(self.tidy()[:2], (1, ["one.cpp", "together.cpp", "two.cpp"]))


if __name__ == "__main__":
    unittest.main()
