"""Tests of tools/check_counters.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))

import check_counters  # noqa: E402

SOURCE = 'SharedCounter gets = all.add("store.gets");\n'
HEADER = "| counter `store.` | of stores |\n| --- | --- |\n"
PAGE = HEADER + "| `gets` | calls |\n"


def problems(source, page):
    return list(check_counters.problems_of([("src/a.hpp", source)], page))


class CheckCounters(unittest.TestCase):
    def test_is_content_with_a_row_for_each_counter(self):
        self.assertEqual(problems(SOURCE, PAGE), [])

    def test_finds_a_counter_without_a_row(self):
        for more in (
            'SharedCounter puts = all.add("store.puts");',
            'SharedCounter puts = all.add_level("store.puts", CounterUnit::bytes);',
            'SharedCounter puts =\n    level("store.puts");',
            'words(all.add_words("store.puts", 4, CounterKind::level))',
            'pages_.add({.words = 4},\n           "store.puts", labels);',
        ):
            found = problems(SOURCE + more, PAGE)
            self.assertEqual(len(found), 1, more)
            self.assertIn("store.puts has no row in docs/top.md", found[0])
            self.assertTrue(found[0].startswith(f"src/a.hpp:{2 + more.count(chr(10))}: "), found)

    def test_takes_neither_comments_nor_includes_nor_other_sources_for_some(self):
        self.assertEqual(problems(SOURCE + '/// "store.puts" is one.', PAGE), [])
        self.assertEqual(problems('#include "store.hpp"\n' + SOURCE, PAGE), [])
        self.assertEqual(problems('open("store.puts");', ""), [])

    def test_finds_a_row_without_a_counter(self):
        self.assertEqual(
            problems(SOURCE, PAGE + "| `puts` | calls |"),
            ["docs/top.md:4: store.puts has a row, and no source adds such a counter"],
        )

    def test_finds_a_second_row(self):
        self.assertEqual(
            problems(SOURCE, PAGE + "\n" + PAGE),
            ["docs/top.md:7: store.gets has a row at docs/top.md:3, too"],
        )

    def test_reads_all_names_of_the_first_cell_and_none_of_the_second(self):
        source = SOURCE + 'SharedCounter puts = all.add("store.puts");'
        self.assertEqual(
            problems(source, HEADER + "| `gets`, `puts`, HIT PERCENT | as `erases` |"), []
        )

    def test_tells_layers_apart(self):
        page = PAGE + "\n| counter `relay.` | |\n| --- | --- |\n| `gets` | |\n"
        self.assertEqual(problems(SOURCE + 'all.add("relay.gets");', page), [])
        self.assertEqual(len(problems(SOURCE, page)), 1)

    def test_reads_no_other_tables(self):
        self.assertEqual(problems(SOURCE, PAGE + "\n| option | |\n| --- | --- |\n| `puts` | |"), [])


if __name__ == "__main__":
    unittest.main()
