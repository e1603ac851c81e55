"""Tests of tools/costs.py."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

COSTS = pathlib.Path(__file__).resolve().parents[2] / "tools/costs.py"

NINJA_LOG = """# ninja log v5
0\t9000\t1\tsrc/CMakeFiles/dunlin.dir/Unity/unity_src_multicast_1_cxx.cxx.o\ta
0\t2000\t1\tsrc/CMakeFiles/dunlin.dir/Unity/unity_src_multicast_1_cxx.cxx.o\tb
0\t3000\t1\ttests/CMakeFiles/multicast_tests.dir/Unity/unity_tests_multicast_2_cxx.cxx.o\tc
0\t4000\t1\ttests/conformance_tests\td
0\t4000\t1\ttests/conformance_tests[1]_tests.cmake\td
"""
TEST_LOG = """1/3 Testing: multicast.Ring
Test time =   5.50 sec
2/3 Testing: thread: multicast.Epoch.Ends
Test time =  20.00 sec
3/3 Testing: conformance.Sim
[==========] Running 12 tests from 1 test suite.
Test time =   1.00 sec
"""


class Costs(unittest.TestCase):
    def costs(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True)
                path.write_text(text, encoding="utf-8")
            result = subprocess.run([sys.executable, COSTS, folder], capture_output=True, text=True)
        rows = (line.split() for line in result.stdout.splitlines())
        return {row[0]: row[1:] for row in rows if row}, result

    def test_adds_up_each_part_by_tree_and_counts_a_step_once(self):
        rows, _ = self.costs({"release/.ninja_log": NINJA_LOG,
                              "all/Testing/Temporary/LastTest.log": TEST_LOG})
        # release, asan, tsan, all: building and testing of each; and how many tests
        self.assertEqual(rows["multicast"], ["5", "6", "–", "–", "–", "20", "5", "26", "2"])
        self.assertEqual(rows["fabric"], ["4", "1", "–", "–", "–", "–", "4", "1", "12"])
        self.assertEqual(rows["all"], ["9", "6", "–", "–", "–", "20", "9", "26", "14"])

    def test_says_that_nothing_was_built(self):
        _, result = self.costs({})
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("./run test", result.stderr)


if __name__ == "__main__":
    unittest.main()
