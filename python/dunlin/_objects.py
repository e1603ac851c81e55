"""The objects of a node beside the store."""

from __future__ import annotations

from typing import Any

from . import _core


def _segments(self: _core.Node, name: str = "space", *, pool_bytes: int = 1 << 20) -> _core.Segments:
    """The shared segments of that name. `pool_bytes`: the memory that this member contributes."""
    return self._segments(name, pool_bytes)


def _map(
    self: _core.Node,
    name: str,
    *,
    key: type = bytes,
    value: type = bytes,
    slots: int,
    key_bytes: int = 64,
    value_bytes: int = 256,
    grow_to: int = 0,
    pool_bytes: int = 0,
) -> Any:
    """The hash map of that name, whose options are equal at all members.

    `key`: bytes or int (an unsigned 64-bit one); `value`: bytes, int or float. A map of int to float is
    the same as a C++ `HashMap<std::uint64_t, double>`, and bytes are `std::string`. `slots`: in each
    member's part, some 1.3 for each key; `grow_to`: it grows up to so many. `key_bytes`,
    `value_bytes`: the longest key and value, if they are bytes; more than 4,000 need `pool_bytes`.
    """
    kinds = {bytes: "bytes", int: "int", float: "float"}
    if key not in (bytes, int) or value not in kinds:
        raise TypeError("a map's key is bytes or int, and its value bytes, int or float")
    return _core.make_map(self, name, kinds[key], kinds[value], slots, key_bytes, value_bytes, grow_to,
                          pool_bytes)


def _queue(
    self: _core.Node, name: str, *, capacity: int, element_bytes: int = 256, host: int = 0
) -> _core.Queue:
    """The queue of that name, whose options are equal at all members.

    `capacity`: elements; `element_bytes`: the longest one; `host`: the rank of the member that has it.
    """
    return _core.make_queue(self, name, capacity, element_bytes, host)


def _memory(self: _core.Node, shape: int | tuple[int, ...], dtype: Any = "float64") -> _core.Memory:
    """An array of zeros in memory that the node's fabric has registered.

    `shape`: a length, or a tuple of them. `dtype`: a name ("bool", "int8" to "int64", "uint8" to "uint64",
    "float16", "bfloat16", "float32", "float64"), a numpy dtype or scalar type, or a dtype of torch. Raises
    ValueError for another one. `segment.get_into(memory)` and `segment.put(memory)` use it in place.
    """
    name = str(dtype).removeprefix("torch.")
    if isinstance(dtype, type):
        name = {bool: "bool", int: "int64", float: "float64"}.get(dtype, dtype.__name__)
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    return _core.make_memory(self, list(lengths), name.removesuffix("_"))


def _get(self: _core.Segment, bytes: int, offset: int = 0) -> bytes:
    """A copy of so many bytes from `offset` on."""
    buffer = bytearray(bytes)
    self.get_into(buffer, offset)
    return memoryview(buffer).toreadonly().tobytes()


def extend() -> None:
    """Give the classes of the library these methods."""
    _core.Node.segments = _segments
    _core.Node.map = _map
    _core.Node.queue = _queue
    _core.Node.memory = _memory
    _core.Segment.get = _get
