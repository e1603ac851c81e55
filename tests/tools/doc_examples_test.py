"""The tool that checks the documents' examples notices what it is there for."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
from doc_examples import PageError, check, parse  # noqa: E402

COMPILER = ["c++", "-std=c++20"]


def page(comment, code, before=""):
    return f"# Page\n\n{before}\n<!-- compile: {comment} -->\n```cpp\n{code}\n```\n"


class DocExamples(unittest.TestCase):
    def refused(self, text, *parts):
        with self.assertRaises(PageError) as caught:
            check(text, "page.md", COMPILER)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_runs_programs_and_counts_them(self):
        self.assertEqual(check(page("program", "int main() { return 0; }"), "page.md", COMPILER), 1)

    def test_refuses_a_block_that_nobody_announced(self):
        self.refused("text\n```cpp\nint x;\n```\n", "page.md:2:", "no '<!-- compile")

    def test_refuses_an_announcement_without_a_block(self):
        self.refused("<!-- compile: program -->\nSome text.\n", "page.md:2:")

    def test_refuses_an_announcement_that_it_cannot_understand(self):
        self.refused(page("sketch", "int x;"), "page.md:4:", "cannot understand")

    def test_names_the_line_of_the_page_that_does_not_compile(self):
        self.refused(page("snippet", "int x = 1;\nint y = nothing;"), "page.md:7:", "nothing")

    def test_notices_a_program_that_fails(self):
        self.refused(page("program", "int main() { return 3; }"), "exit status 3")

    def test_notices_one_failing_copy_among_several(self):
        code = ('#include <cstdio>\n#include <unistd.h>\n'
                'int main() { return std::fopen("/dev/null", "r") ? 4 : 0; }')
        self.refused(page("program, 2 at once", code), "exit status 4\n\nexit status 4")

    def test_snippets_see_the_setup_and_the_headers_before_them(self):
        setup = "<!-- compile setup:\nextern int hidden;\n-->\n"
        text = page("header", "struct Row { int load; };", setup)
        text += page("snippet", "Row row{hidden};")
        self.assertEqual(check(text, "page.md", COMPILER), 2)

    def test_snippets_do_not_see_later_headers(self):
        text = page("header", "struct Row {};") + page("snippet", "Line line;") + page("header", "struct Line {};")
        self.refused(text, "snippet: ", "page.md:13:")

    def test_of_several_snippets_the_one_that_does_not_compile_is_named(self):
        text = page("snippet", "int x = 1;") + page("snippet", "int y = nothing;") + page("snippet", "int x = 2;")
        with self.assertRaises(PageError) as caught:
            check(text, "page.md", COMPILER)
        self.assertEqual(str(caught.exception).count(": snippet: "), 1)
        self.assertIn("page.md:13:", str(caught.exception))

    def test_leaves_alone_what_gives_a_reason(self):
        self.assertEqual(check(page("none, a sketch", "not C++"), "page.md", COMPILER), 0)
        self.refused(page("none", "not C++"), "takes a reason")

    def test_looks_for_parts_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.cpp").write_text("int f() {\n  int x = 1;\n\n  return x;\n}\n")
            part = page("part of a.cpp", "int x = 1;\n\nreturn x;")
            self.assertEqual(check(part, "page.md", COMPILER, folder=folder), 1)
            for wrong in [page("part of a.cpp", "int x = 1;\nreturn x;"),
                          page("part of b.cpp", "int x = 1;")]:
                with self.assertRaises(PageError) as caught:
                    check(wrong, "page.md", COMPILER, folder=folder)
                self.assertIn("page.md:6:", str(caught.exception))

    def test_ignores_other_languages(self):
        self.assertEqual(parse("```sh\n./run test\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
