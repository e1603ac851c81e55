"""Which sources clang-tidy is given as one text."""
import json
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
                for _, group in tidy.groups([*flags], {str(source): texts for source, texts in flags.items()}, self.root)]

    def test_folders_with_the_same_options_are_together(self):
        self.assertEqual(self.groups({self.source("b/two.cpp"): ["-O"], self.source("a/one.cpp"): ["-O"]}),
                         [["a/one.cpp", "b/two.cpp"]])

    def test_other_options_are_another_text(self):
        self.assertEqual(self.groups({self.source("a/one.cpp"): ["-O"], self.source("a/two.cpp"): ["-g"]}),
                         [["a/one.cpp"], ["a/two.cpp"]])

    def test_a_source_that_is_not_compiled_has_the_options_of_most_in_the_nearest_folder(self):
        flags = {self.source(f"{name}.cpp"): [option] for name, option in
                 (("a/b/one", "-g"), ("a/b/two", "-O"), ("a/b/three", "-O"), ("a/x", "-g"), ("a/y", "-g"))}
        self.source("a/b/absent.cpp")
        self.source("a/c/absent.cpp")
        flags |= {self.root / "a/b/absent.cpp": [], self.root / "a/c/absent.cpp": []}
        self.assertEqual(self.groups(flags), [["a/b/absent.cpp", "a/b/three.cpp", "a/b/two.cpp"],
                                              ["a/b/one.cpp", "a/c/absent.cpp", "a/x.cpp", "a/y.cpp"]])

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
        sizes = [len(group) for group in self.groups(sources)]
        self.assertEqual((len(sizes), sum(sizes)), (3, 2 * tidy.MOST_TOGETHER + 1))
        self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_more_folders_of_system_headers_are_no_other_options(self):
        (self.root / "compile_commands.json").write_text(json.dumps([
            {"file": "a.cpp", "command": f"c++ {folders} -O -o {number}.o -c a.cpp", "directory": "."}
            for number, folders in enumerate(("-isystem /usr/include/x", "", "-DOTHER"))]))
        self.assertEqual(tidy.commands(self.root),
                         {"a.cpp": ["c++ -isystem /usr/include/x -O -o -c", "c++ -DOTHER -O -o -c"]})


class Parts(unittest.TestCase):
    def run_on(self, sources, bad_alone=(), bad_together=(), found_in=""):
        """The results, and which texts were analysed."""
        texts = []

        def analyse(text):
            texts.append(text)
            bad = set(text) & set(bad_alone) or (len(text) > 1 and set(bad_together) <= set(text))
            return ("x.cpp:1:1: error: found" if bad else None), [f"{text}.hpp"]

        result = tidy.analyse_all([*sources], analyse, lambda sources: (
            *analyse("".join(sources)), [source for source in sources if source in found_in]))
        return {source: output for source, output, _, _ in result}, texts

    def test_a_clean_text_is_analysed_once(self):
        self.assertEqual(self.run_on("abcd", bad_together="x"), (dict.fromkeys("abcd"), ["abcd"]))

    def test_what_only_the_text_has_does_not_count(self):
        found, texts = self.run_on("abcd", bad_together="ad")
        self.assertEqual((found, texts), (dict.fromkeys("abcd"), ["abcd", "ab", "cd"]))

    def test_the_sources_with_findings_are_apart_from_the_others(self):
        found, texts = self.run_on("abcd", bad_together="ad", found_in="d")
        self.assertEqual((found, texts), (dict.fromkeys("abcd"), ["abcd", "abc", "d"]))

    def test_a_finding_is_found_in_its_source(self):
        found, texts = self.run_on("abcd", bad_alone="c", bad_together="x")
        self.assertEqual([source for source, output in found.items() if output], ["c"])
        self.assertEqual(texts, ["abcd", "ab", "cd", "c", "d"])


if __name__ == "__main__":
    unittest.main()
