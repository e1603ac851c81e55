"""Calls that asyncio awaits."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import dunlin


def test_calls_are_awaited(node):
    store = node.store("awaited")

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

    asyncio.run(main())


def test_failures_are_raised_where_they_are_awaited(node):
    store = node.store("awaited")
    segments = node.segments(pool_bytes=64 << 20)

    async def main():
        with pytest.raises(dunlin.TooLongError):
            await store.aio.put("key", bytes(2 << 20))
        with pytest.raises(dunlin.NotFoundError):
            await segments.aio.find("nothing")

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
