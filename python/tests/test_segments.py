"""Segments."""

from __future__ import annotations

import numpy as np
import pytest

import dunlin


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
    assert segments.at(segment.key) == segment and repr(segment) == f"<dunlin.Segment {segment.key}>"
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
        node.segments(pool_bytes=0).find("counter").lock()
        tell("locked")
        sys.stdin.readline()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        segment = node.segments().allocate(8, name="counter", on=node.rank)
        assert member.line() == "locked"
        member.kill()
        assert segment.lock() is True
        segment.unlock()
