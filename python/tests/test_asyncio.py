"""Calls that asyncio awaits."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading

import numpy as np
import pytest

import dunlin

_names = itertools.count()


def run_by_uvloop(main):
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    uvloop.run(main())


def run_by_anyio(main):
    anyio = pytest.importorskip("anyio", reason="anyio is not installed")
    anyio.run(main)


@pytest.fixture(params=[lambda main: asyncio.run(main()), run_by_uvloop, run_by_anyio], ids=["asyncio", "uvloop", "anyio"])
def run(request):
    """Runs a coroutine function by each of the libraries whose event loops are those of asyncio."""
    return request.param


def test_calls_are_awaited(node, run):
    store = node.store(f"awaited-{next(_names)}")

    async def main():
        await store.aio.put("key", b"value")
        assert await store.aio.get("key") == b"value"
        assert await store.aio.get("other", 5) == 5
        assert await store.aio.erase("key") and await store.aio.count() == 0
        await store.aio.put_many({f"{i}": b"x" for i in range(1000)})
        assert await store.aio.get_many(["1", "999", "1000"]) == [b"x", b"x", None]
        assert len([key async for key, _ in store.aio.items()]) == 1000
        got = await asyncio.gather(*[store.aio.get(f"{i}") for i in range(100)])
        assert got == [b"x"] * 100

    run(main)


def test_a_call_that_waits_lets_others_run(node, run):
    queue = node.queue("awaited", capacity=16)

    async def main():
        popped = asyncio.ensure_future(queue.aio.pop())
        steps = []

        async def steps_of_another():
            for step in range(3):
                steps.append(step)
                await asyncio.sleep(0)

        await steps_of_another()
        assert steps == [0, 1, 2] and not popped.done()
        assert await queue.aio.push(b"element")
        assert await popped == b"element"

    run(main)


def test_many_calls_wait_at_once(node, run):
    queue = node.queue("crowd", capacity=1024)

    async def main():
        pops = [asyncio.ensure_future(queue.aio.pop()) for _ in range(200)]
        await asyncio.gather(*[queue.aio.push(b"%d" % i) for i in range(200)])
        assert sorted(await asyncio.gather(*pops), key=int) == [b"%d" % i for i in range(200)]

    run(main)
    assert threading.active_count() == 1  # no thread for a call


def test_a_cancelled_call_is_given_up(node, run):
    queue = node.queue("cancelled", capacity=16)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(queue.aio.pop(), 0.01)
        while queue.push(b"kept", timeout=0) and queue.pop(timeout=0) is None:
            await asyncio.sleep(0)  # the call that is given up had been there first
        await queue.aio.push(b"next")
        assert await queue.aio.pop() == b"next"

    run(main)


def test_a_call_is_cancelled_while_it_ends(start, group, monkeypatch):
    monkeypatch.setenv("MALLOC_PERTURB_", "165")  # memory that is freed has no calls any more
    member = start("""
        import asyncio, threading
        queue = node.queue("ending", capacity=1024)
        going = True
        def push():
            while going:
                queue.push(b"element", timeout=0)
        async def pop():
            for _ in range(6000):
                popped = [queue.aio.pop() for _ in range(4)]
                popped = [one for one in popped if isinstance(one, asyncio.Future)]
                for one in popped:
                    one.cancel()
                await asyncio.sleep(0)
        pushers = [threading.Thread(target=push) for _ in range(2)]
        for one in pushers: one.start()
        asyncio.run(pop())
        going = False
        for one in pushers: one.join()
        node.close()
        tell("done")
        """, group, founders=1)
    assert member.line() == "done"
    assert member.end() == 0


def test_failures_are_raised_where_they_are_awaited(node):
    store = node.store("awaited")
    segments = node.segments(pool_bytes=64 << 20)

    async def main():
        with pytest.raises(dunlin.TooLongError):
            await store.aio.put("key", bytes(2 << 20))
        with pytest.raises(dunlin.NotFoundError):
            await segments.aio.find("nothing")
        refused = store.aio.put("key", bytes(2 << 20))  # ends at once, and raises where it is awaited
        with pytest.raises(dunlin.TooLongError):
            await refused
        refused = store.aio.put("key", bytes(2 << 20))
        with pytest.raises(dunlin.TooLongError):
            await asyncio.wait_for(refused, 60)

    asyncio.run(main())


def test_segments_are_awaited_with_their_buffers(node):
    segments = node.segments(pool_bytes=64 << 20)

    async def main():
        values = np.arange(1 << 16)
        segment = await segments.aio.allocate(values.nbytes)
        await segment.aio.put(values)
        got = np.zeros_like(values)
        await segment.aio.get_into(got)
        assert (got == values).all()
        await segment.aio.release()

    asyncio.run(main())


def test_each_loop_has_its_own_calls(node):
    queue = node.queue("loops", capacity=16)

    async def exchange():
        popped = asyncio.ensure_future(queue.aio.pop())
        await asyncio.sleep(0)
        await queue.aio.push(b"x")
        return await popped

    for _ in range(3):
        assert asyncio.run(exchange()) == b"x"


def test_calls_under_way_end_with_the_node(group):
    async def main():
        node = dunlin.join(group)
        popped = asyncio.ensure_future(node.queue("empty", capacity=4).aio.pop())
        await asyncio.sleep(0)
        node.close()
        with pytest.raises(dunlin.EndedError):
            await popped

    asyncio.run(main())


def test_a_call_that_waits_needs_a_loop(node):
    with pytest.raises(RuntimeError, match="no running event loop"):
        node.queue("nobody", capacity=4).aio.pop()


def test_trio_is_named_as_not_working(node):
    trio = pytest.importorskip("trio", reason="trio is not installed")
    queue = node.queue("trio", capacity=4)

    async def main():
        with pytest.raises(RuntimeError, match="of asyncio or uvloop, and not trio's"):
            await queue.aio.pop()

    trio.run(main)


def test_calls_of_a_closed_loop_may_end_later(node):
    segments = node.segments(pool_bytes=64 << 20)

    async def leave_under_way():
        for _ in range(50):
            segments.aio.find("nothing")  # nobody awaits it, and the loop closes

    for _ in range(20):
        asyncio.run(leave_under_way())


def test_a_waiting_pop_asks_no_member_that_is_stopped(start, group):
    host = start("""
        queue = node.queue("far", capacity=16, host=node.rank)
        tell("there")
        sys.stdin.read()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        queue = node.queue("far", capacity=16, host=1 - node.rank)
        assert host.line() == "there"
        queue.push(b"first")  # the queue's memory is known here, and mapped
        assert queue.pop() == b"first"
        host.kill(signal.SIGSTOP)

        async def main():
            for _ in range(20):
                popped = queue.aio.pop()
                await queue.aio.push(b"element")
                assert await popped == b"element"

        try:
            asyncio.run(main())
        finally:
            host.kill(signal.SIGCONT)
    assert host.end() == 0
