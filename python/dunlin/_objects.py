"""The objects of a node beside the store."""

from __future__ import annotations

from . import _core


def _segments(self: _core.Node, name: str = "space", *, pool_bytes: int = 1 << 20) -> _core.Segments:
    """The shared segments of that name. `pool_bytes`: the memory that this member contributes."""
    return self._segments(name, pool_bytes)


def _get(self: _core.Segment, bytes: int, offset: int = 0) -> bytes:
    """A copy of so many bytes from `offset` on."""
    buffer = bytearray(bytes)
    self.get_into(buffer, offset)
    return memoryview(buffer).toreadonly().tobytes()


def extend() -> None:
    """Give the classes of the library these methods."""
    _core.Node.segments = _segments
    _core.Segment.get = _get
