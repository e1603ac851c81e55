"""Which sources clang-tidy is given as one text."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tidy  # noqa: E402


class Groups(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / ".clang-tidy").write_text("Checks: all\n")

    def source(self, name, text="int x_{};\n"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(path.stem))
        return path

    def groups(self, flags):
        return [[str(source.relative_to(self.root)) for source in group]
                for group in tidy.groups([*flags], {str(source): texts for source, texts in flags.items()}, self.root)]

    def test_folders_with_the_same_options_are_together(self):
        self.assertEqual(self.groups({self.source("b/two.cpp"): ["-O"], self.source("a/one.cpp"): ["-O"]}),
                         [["a/one.cpp", "b/two.cpp"]])

    def test_other_options_are_another_text(self):
        self.assertEqual(self.groups({self.source("a/one.cpp"): ["-O"], self.source("a/two.cpp"): ["-g"]}),
                         [["a/one.cpp"], ["a/two.cpp"]])

    def test_other_rules_are_another_text(self):
        self.source("b/.clang-tidy", "Checks: more\n")
        self.assertEqual(self.groups({self.source("a/one.cpp"): ["-O"], self.source("b/two.cpp"): ["-O"]}),
                         [["a/one.cpp"], ["b/two.cpp"]])

    def test_a_source_of_two_targets_is_alone(self):
        self.assertEqual(self.groups({self.source(f"a/{name}.cpp"): ["-O", "-g"] for name in ("one", "two")}),
                         [["a/one.cpp"], ["a/two.cpp"]])

    def test_sources_that_declare_one_name_are_apart(self):
        self.assertEqual(self.groups({self.source("a/one.cpp", "int x;\n"): ["-O"],
                                      self.source("b/two.cpp", "int x;\n"): ["-O"]}),
                         [["a/one.cpp"], ["b/two.cpp"]])

    def test_a_text_has_a_bounded_number_of_sources(self):
        sources = {self.source(f"a/s{number}.cpp"): ["-O"] for number in range(2 * tidy.MOST_TOGETHER + 1)}
        self.assertEqual([len(group) for group in self.groups(sources)], [tidy.MOST_TOGETHER, tidy.MOST_TOGETHER, 1])


if __name__ == "__main__":
    unittest.main()
