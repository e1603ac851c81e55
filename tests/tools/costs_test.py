"""Tests of tools/costs.py."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

COSTS = pathlib.Path(__file__).resolve().parents[2] / "tools/costs.py"

NINJA_LOG = """# ninja log v5
0\t9000\t1\tsrc/CMakeFiles/dunlin.dir/multicast/ring.cpp.o\ta
0\t2000\t1\tsrc/CMakeFiles/dunlin.dir/multicast/ring.cpp.o\tb
0\t3000\t1\ttests/CMakeFiles/multicast_tests.dir/__/together/multicast_tests/tests_multicast_0.cpp.o\tc
0\t4000\t1\tsrc/CMakeFiles/dunlin.dir/__/together/dunlin/src_several_1.cpp.o\te
0\t4000\t1\ttests/conformance_tests\td
0\t4000\t1\ttests/conformance_tests[1]_tests.cmake\td
"""
UNITS = {"multicast_tests/tests_multicast_0": "tests/multicast/a_test.cpp",
         "dunlin/src_several_1": "src/group/a.cpp src/log/b.cpp src/group/sub/c.cpp src/group/d.cpp"}
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
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            result = subprocess.run([sys.executable, COSTS, folder], capture_output=True, text=True)
        rows = (line.split() for line in result.stdout.splitlines())
        return {row[0]: row[1:] for row in rows if row}, result

    def test_adds_up_each_part_by_tree_and_counts_a_step_once(self):
        rows, _ = self.costs({"release/.ninja_log": NINJA_LOG,
                              "all/Testing/Temporary/LastTest.log": TEST_LOG,
                              **{f"release/together/{name}.cpp": "".join(
                                  f'#include "../../../../{source}"\n' for source in sources.split())
                                 for name, sources in UNITS.items()}})
        # release, asan, tsan, all: building and testing of each; and how many tests
        self.assertEqual(rows["multicast"], ["5", "6", "–", "–", "–", "20", "5", "26", "2"])
        self.assertEqual(rows["fabric"], ["4", "1", "–", "–", "–", "–", "4", "1", "12"])
        self.assertEqual(rows["group"][0], "3")
        self.assertEqual(rows["log"][0], "1")
        self.assertEqual(rows["all"], ["13", "6", "–", "–", "–", "20", "13", "26", "14"])

    def test_says_that_nothing_was_built(self):
        _, result = self.costs({})
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("./run test", result.stderr)


if __name__ == "__main__":
    unittest.main()
