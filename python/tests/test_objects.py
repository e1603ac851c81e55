"""Segments, maps and queues."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import threading
import time

import numpy as np
import pytest

import dunlin

_names = itertools.count()


@pytest.fixture(scope="module")
def segments(node):
    return node.segments(pool_bytes=64 << 20)


def test_an_array_goes_through_a_segment(segments):
    values = np.random.default_rng(2).normal(size=(512, 1024))
    segment = segments.allocate(values.nbytes, name="weights")
    assert segment.put(values) >= 1
    got = np.empty_like(values)
    segments.find("weights").get_into(got)
    assert (got == values).all()
    part = np.empty(1024)
    segment.get_into(part, offset=values[3].nbytes * 3)
    assert (part == values[3]).all()
    assert segment.get(16) == values.tobytes()[:16]
    assert segments.at(segment.key) == segment and segment != segment.key
    assert repr(segment) == f"<dunlin.Segment {segment.key}>"
    segment.release()
    with pytest.raises(dunlin.NotFoundError):
        segment.get(8)


def test_segments_say_what_is_wrong(segments):
    with pytest.raises(dunlin.NotFoundError):
        segments.find("nothing")
    with pytest.raises(ValueError, match="coherence is"):
        segments.allocate(8, coherence="some")
    segment = segments.allocate(8, name="small")
    with pytest.raises(dunlin.TooLongError):
        segment.put(np.zeros(2))
    with pytest.raises(dunlin.ExistsError):
        segments.allocate(8, name="small")
    with pytest.raises(dunlin.NoRoomError):
        segments.allocate(1 << 30)


def test_a_lock_belongs_to_the_block(segments):
    segment = segments.allocate(8)
    with segment:
        with pytest.raises(dunlin.LockError):
            segment.lock(timeout=0.01)
    assert segment.lock() is False
    segment.unlock()
    with pytest.raises(dunlin.LockError):
        segment.unlock()


def test_the_lock_of_a_killed_process_is_recovered(group, start):
    member = start("""
        segments = node.segments(pool_bytes=0)
        sys.stdin.readline()
        segments.find("counter").lock()
        tell("locked")
        sys.stdin.readline()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        segment = node.segments().allocate(8, name="counter", on=node.rank)
        member.tell()
        assert member.line() == "locked"
        member.kill()
        assert segment.lock() is True
        segment.unlock()


# Has the lock until it is told to give it back, says when the other member has it, and then takes it again.
HOLDER = """
    segments = node.segments(pool_bytes=0)
    sys.stdin.readline()
    segment = segments.find("counter")
    segment.lock()
    tell("locked")
    sys.stdin.readline()
    segment.unlock()
    while True:
        try:
            segment.lock(timeout=0.5)
            segment.unlock()
        except dunlin.CallTimeoutError:
            break
    tell("taken")
    sys.stdin.readline()
    tell(segment.lock(timeout=5))
    node.close()
    """


def test_an_interrupted_lock_that_was_taken_goes_back(group, start):
    holder = start(HOLDER, group, founders=2)

    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        holder.tell()
        assert holder.line() == "taken"
        raise Interrupted

    def wait():
        segment.lock()

    def interrupt_once_it_waits(thread):
        # The thread shows this line to others only where it has let the GIL go: in the call.
        while (frame := sys._current_frames()[thread]).f_code is not wait.__code__ or (
                frame.f_lineno == wait.__code__.co_firstlineno):
            time.sleep(0.001)
        signal.pthread_kill(thread, signal.SIGUSR1)

    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        segment = node.segments().allocate(8, name="counter", on=node.rank)
        holder.tell()
        assert holder.line() == "locked"
        before = signal.signal(signal.SIGUSR1, interrupt)
        interrupter = threading.Thread(target=interrupt_once_it_waits, args=[threading.get_ident()])
        try:
            interrupter.start()
            with pytest.raises(Interrupted):
                wait()
        finally:
            interrupter.join()
            signal.signal(signal.SIGUSR1, before)
        holder.tell()
        assert holder.line() == "False"
        assert holder.end() == 0


def test_a_cancelled_lock_that_was_taken_goes_back(group, start):
    holder = start(HOLDER, group, founders=2)

    async def main():
        lock = asyncio.ensure_future(segment.aio.lock())
        await asyncio.sleep(0)
        holder.tell()
        assert holder.line() == "taken"  # the loop has not heard of it
        lock.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lock
        await asyncio.sleep(0)

    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        segment = node.segments().allocate(8, name="counter", on=node.rank)
        holder.tell()
        assert holder.line() == "locked"
        asyncio.run(main())
        holder.tell()
        assert holder.line() == "False"
        assert holder.end() == 0


@pytest.mark.parametrize("key, value, pairs", [
    (bytes, bytes, [(b"a", b"1"), (b"b", b"")]), (bytes, int, [(b"a", 1), (b"b", 2**64 - 1)]),
    (bytes, float, [(b"a", 1.5), (b"b", -0.0)]), (int, bytes, [(1, b"1"), (2**64 - 1, b"")]),
    (int, int, [(1, 2), (3, 4)]), (int, float, [(1, 2.5), (3, 4.5)])])
def test_a_map_of_each_kind(node, key, value, pairs):
    its_map = node.map(f"map-{next(_names)}", key=key, value=value, slots=100)
    for k, v in pairs:
        assert its_map.insert(k, v) and not its_map.insert(k, v)
        assert its_map.find(k) == v
        assert not its_map.assign(k, pairs[0][1])
        assert its_map.find(k) == pairs[0][1]
        assert its_map.erase(k) and not its_map.erase(k)
        assert its_map.find(k) is None and its_map.find(k, 7) == 7


def test_a_map_adds(node):
    counts = node.map("counts", value=int, slots=100)
    assert counts.add("word", 2) == 2 and counts.add(b"word", 3) == 5


def test_a_map_refuses_other_types(node):
    with pytest.raises(TypeError, match="bytes or int"):
        node.map("wrong", key=list, slots=10)
    with pytest.raises(dunlin.TooLongError):
        node.map("short", slots=10, key_bytes=4).insert(b"12345", b"")


def test_a_queue_is_first_in_first_out(node):
    queue = node.queue("tasks", capacity=3, element_bytes=16)
    assert queue.pop(timeout=0) is None
    for element in (b"1", b"", b"3"):
        assert queue.push(element, timeout=0)
    assert not queue.push(b"4", timeout=0)
    assert [queue.pop() for _ in range(3)] == [b"1", b"", b"3"]
    assert queue.pop(timeout=0.01) is None
    with pytest.raises(dunlin.TooLongError):
        queue.push(bytes(17))


def test_ctrl_c_ends_a_wait(group, start):
    member = start("""
        queue = node.queue("empty", capacity=4)
        try:
            tell("waiting")
            queue.pop()
        except KeyboardInterrupt:
            tell("interrupted", queue.push(b"still works"), queue.pop())
        node.close()
        """, group, founders=1)
    assert member.line() == "waiting"
    member.kill(signal.SIGINT)
    assert member.line() == "interrupted True b'still works'"
    assert member.end() == 0
