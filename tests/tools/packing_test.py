"""Which sources can be one text for clang-tidy (tools/packing.py)."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import packing  # noqa: E402


def inside(text, namespace="dunlin"):
    return f"namespace {namespace} {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n\n}}  // namespace {namespace}\n"


class Units(unittest.TestCase):
    def are_apart(self, one, other):
        return len(packing.units(9, [one, other])) == 2

    def test_one_name_in_one_namespace_keeps_sources_apart(self):
        self.assertTrue(self.are_apart(inside("struct Row final : Base {"), inside("constexpr int Row = 1;")))
        self.assertFalse(self.are_apart(inside("struct Row final {"), inside("struct Line final {")))
        self.assertFalse(self.are_apart(inside("struct Row {", "dunlin::a"), inside("struct Row {", "dunlin::b")))

    def test_functions_of_one_name_with_other_parameters_are_together(self):
        one = inside("void measure(int rounds,\n             long bytes) {")
        self.assertFalse(self.are_apart(one, inside("void measure(const Effort& effort) {")))
        self.assertTrue(self.are_apart(one, inside("int measure(int times, long words = 1) {")))

    def test_functions_whose_name_is_a_value_are_apart(self):
        self.assertTrue(self.are_apart(inside("void measure(int rounds) {\n  run(measure);\n}"),
                                       inside("void measure(long rounds) {")))

    def test_what_one_calls_and_the_other_hides_keeps_them_apart(self):
        self.assertTrue(self.are_apart(inside("void check(int x) {"), inside("void use() { check(1); }")))
        self.assertFalse(self.are_apart(inside("void check(int x) {"), inside("void use() { it.check(1); }")))
        self.assertFalse(self.are_apart(inside("void check(int x) {"), inside("void use() { a::check(1); }")))
        self.assertFalse(self.are_apart("namespace dunlin {\n\nvoid check(int x) {\n}\n\n}  // namespace dunlin\n",
                                        inside("void use() { check(1); }")))

    def test_names_in_raw_strings_are_none(self):
        self.assertFalse(self.are_apart(inside('auto a = R"(\nExamples:\n)";'), inside('auto b = R"(\nExamples:\n)";')))

    def test_other_using_directives_keep_sources_apart(self):
        self.assertTrue(self.are_apart("using namespace a;\n", "using namespace b;\n"))

    def test_functions_of_c_are_declarations(self):
        text = 'extern "C" int LLVMFuzzerTestOneInput(const char* data) {\n'
        self.assertTrue(self.are_apart(text, text))

    def test_programs_are_together(self):
        program = "#include <list>\n\nstruct Row {};\n\nint main() {}\n"
        self.assertFalse(self.are_apart(program, program))


class Text(unittest.TestCase):
    def test_begins_with_the_includes_of_all(self):
        text = packing.one_text(["#include <list>\nint a;\n", "#include <list>\n#include <map>\nint b;\n"])
        self.assertEqual([line for line in text.splitlines() if line],
                         ["#include <list>", "#include <map>", "int a;", "int b;"])

    def test_knows_the_source_of_each_line(self):
        sources = ["#include <list>\nint a;\n", "#include <list>\n#include <map>\nint b;\nint c;"]
        lines = packing.one_text(sources).splitlines()
        self.assertEqual([(line, packing.source_of_line(sources, number)) for number, line in enumerate(lines, 1) if line],
                         [("#include <list>", None), ("#include <map>", 1), ("int a;", 0),
                          ("int b;", 1), ("int c;", 1)])

    def test_leaves_includes_where_they_depend_on_something(self):
        source = "int a;\n#ifdef X\n#include <list>\n#endif\n"
        self.assertEqual(packing.one_text([source]), source + "\n")

    def test_gives_each_program_a_namespace(self):
        program = "#include <list>\nint main() {}\n"
        self.assertEqual(packing.one_text([program, program]).split(),
                         "#include <list> namespace program_0 { int main() {} } "
                         "namespace program_1 { int main() {} }".split())


if __name__ == "__main__":
    unittest.main()
