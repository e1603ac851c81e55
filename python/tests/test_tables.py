"""Tables: rows, snapshots, conditions, and members that come and go."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

import dunlin
from dunlin import conditions as c
from partner import PARTNER, needs_partner
from structs import Point, Row

_names = itertools.count()


@dataclass
class Load:
    load: float
    step: np.int32
    big: np.uint64
    costs: dunlin.Array[np.int16, 3]


PROGRAM = """
        import numpy as np
        from dataclasses import dataclass
        @dataclass
        class Load:
            load: float
            step: np.int32
            big: np.uint64
            costs: dunlin.Array[np.int16, 3]
        table = node.table("loads", Load)
        """


@pytest.fixture
def table(node):
    return node.table(f"table-{next(_names)}", Load)


def test_the_own_row_is_what_was_published(table):
    assert len(table) == 1 and table.my_row == 0
    assert table.mine.step == 0 and table.mine.load == 0.0 and list(table.mine.costs) == [0, 0, 0]
    table.update(load=0.5, step=3)
    table.update(costs=[1, 2, 3], big=2**64 - 1)
    mine = table.mine
    assert (mine.load, mine.step, mine.big, list(mine.costs)) == (0.5, 3, 2**64 - 1, [1, 2, 3])
    table.update(replace(mine, step=4))
    assert table[0].step == table[-1].step == 4 and table.mine.big == 2**64 - 1
    with pytest.raises(IndexError):
        table[1]


def test_columns_that_do_not_fit_are_refused(table):
    with pytest.raises(TypeError, match="Load has no field 'other'"):
        table.update(other=1)
    with pytest.raises(OverflowError, match="step: 2147483648 is no i32"):
        table.update(step=2**31)
    assert table.mine.step == 0


def test_rows_begin_with_the_defaults(node):
    @dataclass
    class Started:
        step: int = 7
        name: dunlin.Text[60] = "nobody yet"

    table = node.table("started", Started)
    assert table.mine == Started() and table.snapshot()["name"][0] == b"nobody yet"
    table.update(name="x" * 60)
    table.update(name="y")
    assert table.mine == Started(7, "y")


def test_a_snapshot_is_a_structured_array(table, node):
    table.update(load=0.5, step=3, costs=[4, 5, 6])
    snapshot = table.snapshot()
    assert len(snapshot) == 1 and snapshot.members == [node.name] and snapshot.alive == [True]
    assert snapshot.my_row == 0 and snapshot.view == 1
    assert snapshot["step"].dtype == np.int32 and snapshot["step"][0] == 3
    assert snapshot["costs"].shape == (1, 3) and list(snapshot["costs"][0]) == [4, 5, 6]
    assert snapshot[0]["load"] == 0.5 and snapshot.rows["big"][0] == 0
    column = snapshot["load"]
    del snapshot
    table.update(load=9.0)
    assert column[0] == 0.5  # the column keeps the copy's memory
    assert table.snapshot()["load"][0] == 9.0


def test_pandas_has_the_members_as_index(table, node):
    pandas = pytest.importorskip("pandas")
    table.update(load=0.5, step=3)
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.index) == [node.name]
    assert frame.loc[node.name, "step"] == 3 and frame.loc[node.name, "load"] == 0.5


@pytest.mark.parametrize("condition, truth", [
    (c.all("step") >= 3, True), (c.all("step") > 3, False), (c.any("step") == 3, True),
    (c.any("step") != 3, False), (c.all("load") < 0.75, True), (c.all("load") <= 0.25, False),
    (c.all("costs") >= 1, True), (c.all("costs") >= 2, False), (c.any("costs") == 3, True),
    (c.min("costs") == 1, True), (c.max("costs") == 3, True), (c.sum("costs") == 6, True),
    (c.all("big") == 2**64 - 1, True), (c.all("big") == 2**64 - 2, False), (c.min("big") > -1, True),
    (c.count(c.where("step") >= 3) >= 1, True), (c.count(c.where("step") > 3) >= 1, False),
    (c.mine("step") == c.row(0, "step"), True), (c.all("step") <= c.mine("step"), True),
    ((c.all("step") == 3) & (c.any("load") == 0.5), True), ((c.all("step") == 3) & (c.any("load") > 1), False),
    ((c.all("step") == 4) | (c.any("load") == 0.5), True), (~(c.all("step") == 4), True),
    (c.all("step").others() == 77, True), (c.any("step").others() == 3, False),
    (c.all("step").over([0]).alive() == 3, True), (c.min("step").others() > 1e308, True)])
def test_conditions(table, condition, truth):
    table.update(load=0.5, step=3, big=2**64 - 1, costs=[1, 2, 3])
    if truth:
        return table.wait_until(condition, timeout=60)
    with pytest.raises(dunlin.CallTimeoutError, match="wait_until: the time was up"):
        table.wait_until(condition, timeout=0.01)


def test_conditions_tell_what_is_wrong(table, node):
    assert repr((c.all("step") >= 1) & ~(c.min("load").others() < c.mine("load"))) == \
        "<dunlin condition: (all('step') >= 1) & (~(min('load' of others) < mine.load))>"
    assert repr(c.count(c.where("a") == 1)) == "<dunlin value: count(where('a') == 1)>"
    with pytest.raises(TypeError, match="combine"):
        bool(c.all("step") >= 1)
    with pytest.raises(TypeError, match="where"):
        c.count(c.all("step") >= 1)
    with pytest.raises(ValueError, match="no column 'other'"):
        table.wait_until(c.all("other") >= 1)
    with pytest.raises(TypeError, match="no numbers"):
        node.table("rows", Row).wait_until(c.all("note") == 1)
    with pytest.raises(dunlin.Error, match="row 5"):
        table.wait_until(c.row(5, "step") == 1)


def test_functions_are_conditions(table):
    seen = []

    def far_enough(snapshot):
        seen.append(int(snapshot["step"].max()))
        return seen[-1] >= 5

    def step():
        for number in range(1, 6):
            table.update(step=number)

    thread = threading.Thread(target=step)
    thread.start()
    table.wait_until(far_enough, timeout=60)
    thread.join()
    assert seen[-1] == 5 and seen == sorted(seen)
    with pytest.raises(dunlin.CallTimeoutError, match="wait_until: the time was up"):
        table.wait_until(lambda snapshot: False, timeout=0.01)
    with pytest.raises(ZeroDivisionError):
        table.wait_until(lambda snapshot: 1 / 0)


def test_changes_are_iterated_over(table):
    changes = table.changes()
    assert next(changes)["step"][0] == 0
    table.update(step=1)
    assert next(changes)["step"][0] == 1
    table.update(step=2)
    table.update(step=3)
    assert next(changes)["step"][0] == 3


def test_asyncio_waits_for_conditions(table):
    async def main():
        waiting = [asyncio.ensure_future(table.aio.wait_until(c.all("step") >= 1)),
                   asyncio.ensure_future(table.aio.wait_until(lambda rows: rows["step"][0] >= 1))]
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        table.update(step=1)
        await asyncio.gather(*waiting)
        async for snapshot in table.aio.changes():
            assert snapshot["step"][0] == 1
            break

    asyncio.run(main())


def test_waits_end_with_the_node(group):
    async def main():
        node = dunlin.join(group, timeout=60)
        table = node.table("t", Load)
        waiting = asyncio.ensure_future(table.aio.wait_until(c.all("step") >= 1))
        await asyncio.sleep(0)
        node.close()
        with pytest.raises(dunlin.EndedError):
            await waiting
        for call in (table.snapshot, lambda: table.update(step=1), lambda: table.mine, lambda: len(table)):
            with pytest.raises(dunlin.EndedError):
                call()

    asyncio.run(main())


def test_rows_are_shared_and_survive_a_killed_member(group, start):
    members = [start(PROGRAM + """
        table.update(load=0.25, step=1, costs=[7, 8, 9])
        tell(node.name)
        sys.stdin.readline()
        """, group, founders=3) for _ in range(2)]
    with dunlin.join(group, 3, timeout=60, silence_timeout=0) as node:
        table = node.table("loads", Load)
        table.update(load=0.75, step=2)
        table.wait_until(c.all("step") >= 1, timeout=60)
        rows = table.snapshot()
        others = [member.line() for member in members]
        assert set(rows.members) == {node.name, *others} and len(table) == 3
        assert sorted(rows["load"]) == [0.25, 0.25, 0.75] and rows[rows.my_row]["step"] == 2
        assert (rows["costs"][rows.members.index(others[0])] == [7, 8, 9]).all()
        members[0].kill()
        # The next view has a table without it; the own row goes on.
        table.wait_until(lambda rows: len(rows) == 2, timeout=60)
        table.wait_until(c.all("step") >= 1, timeout=60)
        rows = table.snapshot()
        assert set(rows.members) == {node.name, others[1]} and rows.view == 2 and table.mine.step == 2
        table.update(load=1.5)
        assert table.mine.load == 1.5
        members[1].tell()
        assert members[1].end() == 0


def test_a_row_of_another_class_is_refused(table, node):
    with pytest.raises(dunlin.Error, match="with another row"):
        node.table(table.name, Row)
    with pytest.raises(TypeError, match="expected a dataclass"):
        node.table("t", int)
    with pytest.raises(TypeError, match="point: a row of a table has"):
        node.table("t", Nested)
    with pytest.raises(ValueError, match="text: a text of a row has at most 64 bytes"):
        node.table("t", Long)
    assert repr(table) == f"<dunlin.Table '{table.name}' of Load in group '{node.group}'>"
    assert "<dunlin.Snapshot of 1 rows in view 1>" == repr(table.snapshot())


@dataclass
class Nested:
    point: Point


@dataclass
class Long:
    text: dunlin.Text[65]


@needs_partner
def test_a_row_is_that_of_the_struct(node):
    texts = subprocess.run([PARTNER, "types"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert texts.endswith(node.table("described", Row).layout_text)


@pytest.fixture
def partner(group):
    with subprocess.Popen([PARTNER, "table", group], stdout=subprocess.PIPE, text=True) as its:
        yield its
        its.kill()


@needs_partner
def test_cpp_and_python_share_rows(group, partner):
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        table = node.table("rows", Row)
        table.update(Row(1, 2.5, [5, 6, 7, 8], "y" * 60, "py", True, 2**63))
        table.wait_until(c.all("step") >= 1, timeout=60)
        row = table[1 - table.my_row]
        assert (row.step, row.load, row.tag, row.ready, row.big) == (1, 0.5, "cpp", True, 2**64 - 1)
        assert list(row.parts) == [1, 2, 3, 4]
        assert row.note == "a text of sixty bytes, which takes two lines of a stamped cell"
        assert partner.stdout.readline().split() == ["1", "2.5", "8", "y" * 60, "py", "1", str(2**63)]
        table.update(step=2)
        assert partner.wait() == 0
