"""Topics: samples between handles, processes and languages; types that fit, and those that do not."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from dataclasses import dataclass, replace

import numpy as np
import pytest

import dunlin
from partner import PARTNER, needs_partner
from structs import Gear, Note, Point, Shape

_names = itertools.count()


@dataclass
class Tick:
    number: int
    value: np.float32 = 0.0


@dataclass
class State:
    name: dunlin.Key[str]
    value: int


def fresh(node, type, **options):
    return node.topic(f"topic-{next(_names)}", type, **options)


def shape(x=1):
    return Shape("red", x, -2, 1.5, [0.25, 0.5, 0.75], True)


def note():
    return Note(text="grüße", data=b"\x00\x01", number=-7, points=[Point(1, 2**64 - 1), Point(-2, 0)],
                samples=np.arange(5.0), names=[["a", "bcdef"], ["", "ö"]], corners=[Point(3, 4), Point(5, 6)],
                words=["one", "", "three"], lists=[[1, 2, 3], []], origin=None,
                triples=[[1, -2, 3], [-128, 127, 0]], gear=Gear.DRIVE, flags=[True, False, True])


def same(one, other) -> bool:
    """Whether two objects of a dataclass have equal fields, arrays included."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one == other


def test_samples_come_in_order(node):
    ticks = fresh(node, Tick)
    for number in range(1000):
        ticks.write(Tick(number, number / 2), timeout=60)
    assert [ticks.next(timeout=60) for _ in range(1000)] == [Tick(n, n / 2) for n in range(1000)]
    assert ticks.take() == []


def test_take_takes_what_has_come(node):
    ticks = fresh(node, Tick)
    for number in range(5):
        ticks.write(Tick(number))
    got = [ticks.next(timeout=60)]
    while len(got) < 5:
        got += ticks.take(most=2)
    assert [tick.number for tick in got] == [0, 1, 2, 3, 4]
    with pytest.raises(dunlin.CallTimeoutError, match="next: the time was up"):
        ticks.next(timeout=0.01)


def test_each_kind_of_field_goes_through(node):
    for sample in (shape(), note()):
        topic = fresh(node, type(sample))
        topic.write(sample, timeout=60)
        assert same(sample, topic.next(timeout=60))


def test_an_optional_struct_goes_through(node):
    topic = fresh(node, Note)
    topic.write(replace(note(), origin=Point(1, 2), number=None), timeout=60)
    got = topic.next(timeout=60)
    assert got.origin == Point(1, 2) and got.number is None and isinstance(got.gear, Gear)


def test_infos_tell_writer_and_position(node):
    ticks = fresh(node, Tick)
    for number in range(3):
        ticks.write(Tick(number), timeout=60)
    got = []
    while len(got) < 3:
        got += ticks.take_with_infos()
    for place, (tick, info) in enumerate(got):
        assert tick.number == place and info.valid and info.member == node.name
        assert info.sequence == place + 1 and info.position == place + 1
        assert info.instance_state == "alive" and info.source_ns <= info.reception_ns
    assert repr(got[0][1]) == f"<dunlin.SampleInfo: number 1 of member '{node.name}'>"


def test_a_plain_type_comes_as_an_array_in_place(node):
    topic = fresh(node, Shape)
    for x in range(10):
        topic.write(shape(x), timeout=60)
    parts = []
    while sum(map(len, parts)) < 10:
        parts.append(topic.take_array(wait=True))
    got = np.concatenate(parts)
    assert got.dtype == dunlin.dtype_of(Shape) == topic.dtype and got.dtype.itemsize == 48
    assert list(got["x"]) == list(range(10)) and (got["color"] == b"red").all()
    assert (got["rgb"] == [0.25, 0.5, 0.75]).all() and got["filled"].all()
    assert parts[0].flags.writeable and parts[0].base is not None
    del topic, parts
    assert got["y"][9] == -2
    with pytest.raises(TypeError, match="take\\(\\) its samples"):
        fresh(node, Note).take_array()
    with pytest.raises(TypeError, match="take\\(\\) such samples"):
        dunlin.dtype_of(Note)


def test_the_views_of_taken_samples_keep_their_memory(group):
    with dunlin.join(group, timeout=60, silence_timeout=0) as node:
        ticks = node.topic("ticks", Tick)
        ticks.write(Tick(7), timeout=60)
        view = ticks.take_array(wait=True)["number"]
        del ticks
    assert view[0] == 7


def test_iteration_ends_with_the_node(group):
    with dunlin.join(group, timeout=60, silence_timeout=0) as node:
        ticks = node.topic("ticks", Tick)
        for number in range(3):
            ticks.write(Tick(number), timeout=60)
        got = []
        for tick in ticks:
            got.append(tick.number)
            if tick.number == 1:
                break  # the third sample waits for the next iteration
        for tick in ticks:
            got.append(tick.number)
            node.close()
        assert got == [0, 1, 2]
    with pytest.raises(dunlin.EndedError):
        ticks.write(Tick(1))


def test_asyncio_writes_and_reads(node):
    ticks = fresh(node, Tick)

    async def main():
        async def write():
            for number in range(200):
                await ticks.aio.write(Tick(number))

        writing = asyncio.ensure_future(write())
        got = []
        async for tick in ticks:
            got.append(tick.number)
            if len(got) == 200:
                break
        await writing
        assert got == list(range(200))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ticks.aio.next(), 0.01)
        await ticks.aio.write(Tick(7))
        assert (await ticks.aio.next()).number == 7

    asyncio.run(main())


def test_a_reliable_reader_holds_the_writer_back(node):
    ticks = fresh(node, Tick, reliable=True, max_unread=4, ring_bytes=1024)
    written = 0
    with pytest.raises(dunlin.CallTimeoutError, match="write: the time was up"):
        for written in range(10_000):
            ticks.write(Tick(written), timeout=0.2)
    got = []
    while not got or got[-1] != written - 1:
        got.append(ticks.next(timeout=60).number)
    assert got == list(range(written))


def test_a_reader_that_may_lose_samples_loses_them(node):
    ticks = fresh(node, Tick, max_unread=4)
    for number in range(20):
        ticks.write(Tick(number), timeout=60)
    got = [ticks.next(timeout=60).number]
    while len(got) + ticks.lost_samples < 20:
        got += [tick.number for tick in ticks.take()]
    assert got[:4] == [0, 1, 2, 3] and got == sorted(set(got))


def test_history_keeps_the_last_of_each_instance(node):
    states = fresh(node, State, history=1)
    states.wait_for_readers(1, timeout=60)
    for value in range(10):
        states.write(State("a", value), timeout=60)
        states.write(State("b", -value), timeout=60)
    got = {}
    while got.get("a") != 9 or got.get("b") != -9:
        for state in states.take():
            got[state.name] = state.value
    assert got == {"a": 9, "b": -9}


def test_instances_end(node):
    states = fresh(node, State)
    states.write(State("a", 1), timeout=60)
    states.dispose(State("a", 0), timeout=60)
    got = []
    while len(got) < 2:
        got += states.take_with_infos()
    (first, first_info), (end, end_info) = got
    assert first == State("a", 1) and first_info.valid
    assert end.name == "a" and not end_info.valid and end_info.instance_state == "disposed"
    assert end_info.instance == first_info.instance
    assert "end of an instance" in repr(end_info)
    states.dispose(State("b", 0), timeout=60)
    states.write(State("c", 2), timeout=60)
    assert states.next(timeout=60) == State("c", 2)  # next() and take() skip the ends


def test_late_readers_get_stored_samples(group, start):
    member = start("""
        from dataclasses import dataclass
        @dataclass
        class State:
            name: dunlin.Key[str]
            value: int
        states = node.topic("states", State, level="volatile_storage", stored=1)
        for value in range(10):
            states.write(State("a", value), timeout=60)
        tell("written")
        sys.stdin.readline()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        assert member.line() == "written"
        states = node.topic("states", State, level="volatile_storage", stored=1, durability="transient",
                            writes=False)
        assert states.next(timeout=60) == State("a", 9)
        member.tell()
        assert member.end() == 0


def test_a_member_with_another_type_is_refused_with_a_sentence(group, start):
    member = start("""
        from dataclasses import dataclass
        @dataclass
        class Tick:
            number: int
            value: float
        sys.stdin.readline()
        ticks = node.topic("ticks", Tick)
        try:
            ticks.write(Tick(1, 2.0), timeout=60)
        except dunlin.RefusedError as error:
            tell(str(error).splitlines()[0])
        try:
            ticks.next(timeout=60)
        except dunlin.RefusedError as error:
            tell(str(error).splitlines()[0])
        sys.stdin.readline()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        ticks = node.topic("ticks", Tick)
        ticks.wait_for_readers(1, timeout=60)
        member.tell()
        for _ in range(2):
            refused = member.line()
            assert refused.endswith("is refused, because its type is another one: the topic has "
                                    "'value f32 @8' where this member has 'value f64 @8'")
        assert "is refused" in ticks.why_unmatched
        member.tell()
        assert member.end() == 0


def test_one_process_has_a_topic_with_one_type(node):
    ticks = fresh(node, Tick)
    assert node.topic(ticks.name, Tick).type_text == ticks.type_text
    with pytest.raises(dunlin.Error, match="with another type"):
        node.topic(ticks.name, State)


def test_policies_that_do_not_fit_are_told(node):
    topic = fresh(node, Tick, durability="transient")
    while not topic.why_unmatched:
        with pytest.raises(dunlin.CallTimeoutError):
            topic.next(timeout=0.001)
    assert "durability" in topic.why_unmatched and topic.matched_readers == 0


def test_readers_and_writers_only(node):
    name = f"topic-{next(_names)}"
    ticks = node.topic(name, Tick, writes=False)
    with pytest.raises(dunlin.RefusedError, match="writes=False"):
        ticks.write(Tick(1))
    with pytest.raises(dunlin.RefusedError, match="reads=False"):
        fresh(node, Tick, reads=False).take()


@pytest.mark.parametrize("field, value, error, text", [
    ("x", "one", TypeError, "x: 'one' is no i32"), ("x", 2**31, OverflowError, "x: 2147483648 is no i32"),
    ("x", 1.5, TypeError, "x: 1.5 is no i32"), ("color", "r" * 17, ValueError, "at most 16 fit"),
    ("color", 5, TypeError, "expected str"), ("rgb", [1, 2], ValueError, "shape \\(3,\\)"),
    ("rgb", np.zeros(3, complex), TypeError, "[Cc]annot cast"), ("size", None, TypeError, "is no f64")])
def test_values_that_do_not_fit_are_refused(node, field, value, error, text):
    topic = fresh(node, Shape)
    with pytest.raises(error, match=text):
        topic.write(replace(shape(), **{field: value}))


def test_types_that_do_not_fit_are_refused(node):
    @dataclass
    class Odd:
        field: dict

    with pytest.raises(TypeError, match="Odd.field.*a topic has no type for"):
        fresh(node, Odd)
    with pytest.raises(TypeError, match="expected a dataclass"):
        fresh(node, int)
    with pytest.raises(TypeError, match="expected a Tick, not structs.Shape"):
        fresh(node, Tick).write(shape())
    with pytest.raises(ValueError, match="level is 'unordered', 'atomic'"):
        fresh(node, Tick, level="some")
    with pytest.raises(TypeError, match="from 1 on"):
        dunlin.Text[0]


def test_a_topic_tells_its_state(node):
    topic = node.topic("described", Tick)
    assert repr(topic) == f"<dunlin.Topic 'described' of Tick in group '{node.group}'>"
    assert topic.type_text == "Tick final plain 16\nnumber i64 @0\nvalue f32 @8\n"
    topic.wait_for_readers(1, timeout=60)
    topic.wait_for_writers(1, timeout=60)
    assert topic.matched_readers == topic.matched_writers == 1 and topic.why_unmatched == ""


# --- with C++ -------------------------------------------------------------------------------------


class Partner:
    def __init__(self, what: str, group: str):
        self.process = subprocess.Popen([PARTNER, what, group], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def tell(self, what: str) -> None:
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> int:
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        return code


@pytest.fixture
def partner(group):
    its = Partner("echo", group)
    yield its
    if its.process.poll() is None:
        its.process.kill()
        its.end()


@needs_partner
def test_types_are_those_of_the_structs(node):
    texts = subprocess.run([PARTNER, "types"], stdout=subprocess.PIPE, text=True, check=True).stdout
    made = fresh(node, Shape).type_text + fresh(node, Note).type_text
    assert texts.startswith(made)


@needs_partner
def test_cpp_reads_what_python_writes_and_the_reverse(group, partner):
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        assert partner.line() == "ready"
        topics = [node.topic("shapes/in", Shape), node.topic("shapes/out", Shape, writes=False),
                  node.topic("notes/in", Note), node.topic("notes/out", Note, writes=False)]
        for topic in (topics[0], topics[2]):
            topic.wait_for_readers(2, timeout=60)
        for topic in (topics[1], topics[3]):
            topic.wait_for_writers(1, timeout=60)
        topics[0].write(shape(41), timeout=60)
        partner.tell("shape")
        assert same(topics[1].next(timeout=60), shape(42))
        topics[2].write(note(), timeout=60)
        partner.tell("note")
        assert same(topics[3].next(timeout=60), note())
        partner.tell("end")
        assert partner.end() == 0
