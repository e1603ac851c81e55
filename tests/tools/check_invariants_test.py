"""Tests of tools/check_invariants.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))

import check_invariants  # noqa: E402

PREFIXES = {"GRP", "MC"}


def problems(**files):
    texts = [(name.replace("_", "."), text.split("\n")) for name, text in files.items()]
    return list(check_invariants.problems_of(texts, PREFIXES))


def unheld(files, exceptions=()):
    texts = [(name, text.split("\n")) for name, text in files.items()]
    return list(check_invariants.unheld_in(texts, exceptions))


PAGE = {"docs/a.md": "- **GRP-C1** One."}


class CheckInvariants(unittest.TestCase):
    def test_is_content_with_a_definition_in_a_source_and_one_in_a_page(self):
        self.assertEqual(
            problems(a_hpp="///  MC-R1  A position.", b_md="- **MC-R1** Why.", c_cpp="// MC-R1: here"),
            [],
        )

    def test_finds_a_second_definition_in_a_page(self):
        self.assertEqual(
            problems(a_md="- **GRP-C1** One.", b_md="\n- **GRP-C1** Another."),
            ["b.md:2: GRP-C1 is defined at a.md:1, too"],
        )

    def test_finds_a_second_definition_in_a_source(self):
        self.assertEqual(
            problems(a_hpp="///  MC-R1  One.", b_cpp="///  MC-R1  Another."),
            ["b.cpp:1: MC-R1 is defined at a.hpp:1, too"],
        )

    def test_finds_a_name_that_is_defined_nowhere(self):
        self.assertEqual(
            problems(a_cpp='  DUNLIN_ASSERT(ok, "MC-R9: no");', b_md="| MC-R9 | a table cites |"),
            ["a.cpp:1: MC-R9 is cited, and defined nowhere"],
        )

    def test_finds_an_unknown_prefix(self):
        self.assertEqual(
            problems(a_md="- **XY-C1** One."),
            ["a.md:1: XY-C1 has a prefix that CONTRIBUTING.md does not list"],
        )

    def test_takes_names_without_a_letter_if_they_have_a_prefix_of_ours(self):
        self.assertEqual(problems(a_md="CRC-32 and AES-128"), [])
        self.assertEqual(problems(a_md="GRP-7 holds"), ["a.md:1: GRP-7 is cited, and defined nowhere"])
        self.assertEqual(
            problems(a_hpp="///  GRP-1  One.", b_hpp="///  GRP-1  Another."),
            ["b.hpp:1: GRP-1 is defined at a.hpp:1, too"],
        )
        self.assertEqual(
            problems(a_md="- **XY-1** One."),
            ["a.md:1: XY-1 has a prefix that CONTRIBUTING.md does not list"],
        )

    def test_takes_a_sentence_that_begins_with_a_name_for_no_definition(self):
        self.assertEqual(
            problems(a_md="- **GRP-C1** One.", b_hpp="/// GRP-C1 and what follows.\n/// GRP-C1: x"),
            [],
        )

    def test_finds_an_invariant_that_no_assertion_and_no_test_names(self):
        found = unheld(PAGE | {"src/a.hpp": "///  GRP-C1  One.", "docs/b.md": "GRP-C1 again"})
        self.assertEqual(len(found), 1)
        self.assertIn("docs/a.md:1: GRP-C1 is held by nothing", found[0])

    def test_is_content_with_a_test_that_names_it(self):
        self.assertEqual(unheld(PAGE | {"tests/a_test.cpp": "/// GRP-C1 says so."}), [])

    def test_is_content_with_an_assertion_whose_sentence_begins_with_it(self):
        for assertion in (
            'DUNLIN_ASSERT(a < b, "GRP-C1: less");',
            'DUNLIN_ASSERT_ALWAYS(of(a) &&\n    b,\n    "GRP-C1: both");',
        ):
            self.assertEqual(unheld(PAGE | {"src/a.cpp": assertion}), [])

    def test_takes_neither_a_comment_nor_another_sentence_for_an_assertion(self):
        for text in (
            "// GRP-C1",
            'throw Error("GRP-C1: no");',
            'DUNLIN_ASSERT(a, "so it is");\nthrow Error("GRP-C1: no");',
            'DUNLIN_ASSERT(a, "GRP-C10: another");',
        ):
            self.assertEqual(len(unheld(PAGE | {"src/a.cpp": text})), 1, text)

    def test_lets_exceptions_pass_as_long_as_they_are_some(self):
        exceptions = (("a reason", "GRP-C1"),)
        self.assertEqual(unheld(PAGE, exceptions), [])
        self.assertEqual(
            unheld(PAGE | {"tests/a_test.cpp": "GRP-C1"}, exceptions),
            ["EXCEPTIONS: GRP-C1 is held by tests/a_test.cpp: it is no exception any more"],
        )
        self.assertEqual(
            unheld({}, exceptions), ["EXCEPTIONS: GRP-C1 is defined in no page of docs/"]
        )


if __name__ == "__main__":
    unittest.main()
