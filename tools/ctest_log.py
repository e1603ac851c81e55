"""What ctest's log, LastTest.log, says of each test that ran."""
import collections
import re

# A suite of Google Test says how many tests it has; anything else is one. A suite in a suite does not count.
LINE = re.compile(r"^(?:\d+/\d+ Testing: (?P<name>.*)|\[==========\] Running (?P<tests>\d+) tests? from.*|"
                  r"Test time =\s+(?P<seconds>[\d.]+) sec)$", re.MULTILINE)

Ran = collections.namedtuple("Ran", "name tests seconds")  # 0 seconds: it has not ended


def ran(log):
    """Of each test of ctest, in the order of the log: its name, how many tests it has, and its seconds."""
    found, name, tests, seconds = [], None, 0, 0.0
    for line in LINE.finditer(log):
        if line["name"] is not None:
            if name is not None:
                found.append(Ran(name, tests or 1, seconds))
            name, tests, seconds = line["name"], 0, 0.0
        elif line["tests"] is not None:
            tests = tests or int(line["tests"])
        else:
            seconds = float(line["seconds"])
    if name is not None:
        found.append(Ran(name, tests or 1, seconds))
    return found
