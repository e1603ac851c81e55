"""Which headers tools/headers_alone.py compiles as one text, and what it finds."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/headers_alone.py"
sys.path.insert(0, str(TOOL.parent))
import headers_alone  # noqa: E402


class Chains(unittest.TestCase):
    def chains(self, headers):
        return headers_alone.chains(headers_alone.read_with(headers))

    def test_each_header_reads_all_that_the_one_before_it_reads(self):
        self.assertEqual(self.chains({"c": ["b", "list"], "b": ["a"], "a": ["vector"]}), [["a", "b", "c"]])

    def test_headers_of_which_neither_reads_the_other_are_apart(self):
        self.assertEqual(self.chains({"a": ["vector"], "b": ["vector", "list"]}), [["a"], ["b"]])

    def test_there_are_as_few_lists_as_can_be(self):
        self.assertEqual(len(self.chains({"a": [], "b": [], "c": ["a", "b"], "d": ["a"]})), 2)

    def test_headers_in_a_circle_are_all_there(self):
        self.assertEqual(sorted(name for chain in self.chains({"a": ["b"], "b": ["a"]}) for name in chain), ["a", "b"])


class Headers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, **headers):
        for name, text in headers.items():
            (self.folder / f"{name}.hpp").write_text(text)
        result = subprocess.run([sys.executable, TOOL, self.folder, "--", "c++", "-std=c++20"],
                                capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def test_headers_that_include_what_they_need_pass(self):
        self.assertEqual(self.run_on(one="#pragma once\n#include <cstddef>\nusing Size = std::size_t;\n",
                                     two="#pragma once\n#include <one.hpp>\ninline Size zero() { return 0; }\n"),
                         (0, "2 headers\n"))

    def test_a_header_that_needs_what_another_includes_is_found(self):
        status, output = self.run_on(one="#pragma once\n#include <cstdint>\nstruct One {};\n",
                                     two="#pragma once\nstruct Two { One one; };\n",
                                     three="#pragma once\n#include <one.hpp>\n#include <two.hpp>\n")
        self.assertEqual(status, 1)
        self.assertIn("two.hpp", output)

    def test_a_header_that_cannot_be_included_twice_is_found(self):
        self.assertEqual(self.run_on(one="struct One {};\n")[0], 1)

    def test_an_include_under_a_condition_is_not_counted_on(self):
        status, output = self.run_on(one="#pragma once\n#include <cstddef>\nusing Size = std::size_t;\n",
                                     two="#pragma once\n#ifdef NEVER\n#include <one.hpp>\n#endif\n"
                                         "inline Size zero() { return 0; }\n")
        self.assertEqual(status, 1)
        self.assertIn("two.hpp", output)

    def test_an_include_behind_a_declaration_is_found(self):
        self.assertEqual(self.run_on(one="#pragma once\nstruct One;\n#include <cstddef>\n"),
                         (1, "one.hpp:3: an #include behind a declaration\n"))


if __name__ == "__main__":
    unittest.main()
