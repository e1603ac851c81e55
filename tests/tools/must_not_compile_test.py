"""What tools/must_not_compile.py takes for a refusal of a mistake."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/must_not_compile.py"
sys.path.insert(0, str(TOOL.parent))
import must_not_compile  # noqa: E402

HEADER = """#pragma once
template <class T>
struct Cell {
  static_assert(sizeof(T) == 1, "an entry is a byte");
};
"""
MISTAKE = """// must say: {says}
#include "cell.hpp"
struct Thing {{ {members} }};
#ifdef MISTAKE
Cell<{type}> cell;
#endif
"""


class Refused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "cell.hpp").write_text(HEADER)

    def mistake(self, name, says="an entry is a byte", members="int x;", kind="Thing"):
        path = self.folder / f"{name}.cpp"
        path.write_text(MISTAKE.format(says=says, members=members, type=kind))
        return str(path)

    def run_on(self, *paths):
        result = subprocess.run([sys.executable, TOOL, *paths, "--", "c++", "-std=c++20", f"-I{self.folder}"],
                                capture_output=True, text=True)
        return result.returncode, result.stderr

    def test_mistakes_that_are_refused_in_the_promised_words_pass(self):
        self.assertEqual(self.run_on(self.mistake("one"), self.mistake("two")), (0, ""))

    def test_an_error_that_two_files_share_counts_for_both(self):
        self.assertEqual(self.run_on(self.mistake("one", kind="int"), self.mistake("two", kind="int")), (0, ""))

    def test_a_mistake_that_compiles_is_named_beside_one_that_does_not(self):
        status, output = self.run_on(self.mistake("one"), self.mistake("two", members="char x;"))
        self.assertEqual((status, output.splitlines()),
                         (1, [f"{self.folder}/two.cpp: compiles with -DMISTAKE"]))

    def test_another_file_does_not_say_what_one_promised(self):
        status, output = self.run_on(self.mistake("one"), self.mistake("two", says="an entry is a number"))
        self.assertEqual(status, 1)
        self.assertIn("two.cpp: is refused, but not with ['an entry is a number']", output)
        self.assertNotIn("one.cpp: ", output.splitlines()[0])

    def test_a_file_without_a_promise_is_refused(self):
        path = self.folder / "none.cpp"
        path.write_text("#ifdef MISTAKE\nint x\n#endif\n")
        self.assertIn("none.cpp: there is no '// must say: ' line", self.run_on(self.mistake("one"), str(path))[1])


class Errors(unittest.TestCase):
    def test_an_error_has_what_is_said_before_it_and_after_it(self):
        output = """In file included from a.cpp:1:
h.hpp: In instantiation of 'struct Cell<A>':
a.cpp:5:9:   required from here
h.hpp:4:3: error: one
    4 |   text
h.hpp:4:3: note: about it
h.hpp:5:3: error: two, in the same instantiation
b.cpp:7:1: error: three
"""
        self.assertEqual([(("a.cpp" in error), ("b.cpp" in error)) for error in must_not_compile.errors_of(output)],
                         [(True, False), (True, False), (False, True)])


if __name__ == "__main__":
    unittest.main()
