"""Which tests tools/outcome.py finds skipped and failed in ctest's log."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import outcome  # noqa: E402

LOG = """1/3 Test: address: fabric.Frame
Output:
[ RUN      ] Frame.IsWhole
[       OK ] Frame.IsWhole (0 ms)
[ RUN      ] Frame.NeedsADevice
/src/frame_test.cpp:84: Skipped
no device here:
ask for one

[  SKIPPED ] Frame.NeedsADevice (12 ms)
[ RUN      ] Frame.NeedsADeviceToo/3
/src/frame_test.cpp:98: Skipped
no device here:
ask for one

[  SKIPPED ] Frame.NeedsADeviceToo/3, where GetParam() = 7 (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Frame.NeedsADevice
[  SKIPPED ] Frame.NeedsADeviceToo/3
2/3 Test: table.Cell
[ RUN      ] Cell.IsAWord
[       OK ] Cell.IsAWord (0 ms)
3/3 Test: table.Late.Death
/src/late_test.cpp:1: Skipped


[  SKIPPED ] Late.Death (0 ms)
"""


class Skipped(unittest.TestCase):
    def test_are_listed_once_with_their_reasons_also_in_a_suite_that_passed(self):
        self.assertEqual(
            dict(outcome.skipped(LOG)),
            {
                ("address: fabric", "no device here: ask for one"): [
                    "Frame.NeedsADevice",
                    "Frame.NeedsADeviceToo/3",
                ],
                ("table", "no reason was given"): ["Late.Death"],
            },
        )


FAILING_LOG = """1/3 Testing: address: fabric.Frame
1/3 Test: address: fabric.Frame
Command: "fabric_tests"
Output:
----------------------------------------------------------
2/7 Test: a line that a test printed
<end of output>
Test time =   0.01 sec
----------------------------------------------------------
Test Failed.
2/3 Testing: table.Cell
2/3 Test: table.Cell
Output:
----------------------------------------------------------
good
<end of output>
Test Passed.
"""


class Failed(unittest.TestCase):
    def test_are_listed_with_what_they_printed_and_without_where_they_never_ran(self):
        self.assertEqual(
            list(outcome.failed(FAILING_LOG, ["table.Gone", "address: fabric.Frame"]).items()),
            [("address: fabric.Frame", ["2/7 Test: a line that a test printed"]), ("table.Gone", [])],
        )

    def test_of_a_suite_show_only_the_tests_that_failed_or_never_ended(self):
        suite = ["[==========] Running 3 tests from 1 test suite.", "[ RUN      ] Cell.IsAWord",
                 "[       OK ] Cell.IsAWord (0 ms)", "[ RUN      ] Cell.IsRead", "cell_test.cpp:3: Failure",
                 "[  FAILED  ] Cell.IsRead (1 ms)", "[ RUN      ] Cell.Ends", "a signal"]
        self.assertEqual(outcome.telling(suite), suite[3:])
        self.assertEqual(outcome.telling(["no suite", "at all"]), ["no suite", "at all"])
        self.assertEqual(outcome.failures_in(suite), 1)
        self.assertEqual(outcome.failures_in([]), 1)


class Count(unittest.TestCase):
    def test_counts_each_test_of_a_suite_and_one_for_anything_else(self):
        self.assertEqual(outcome.count("1/2 Testing: table.Cell\nOutput:\n"
                                       "[==========] Running 7 tests from 1 test suite.\n"
                                       "[==========] Running 2 tests from 1 test suite.\n"
                                       "2/2 Testing: lint.format\nOutput:\nfine\n"), 8)


if __name__ == "__main__":
    unittest.main()
