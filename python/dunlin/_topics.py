"""The topics of a node."""

from __future__ import annotations

from typing import Any, AsyncIterator, Iterator

from . import _core, _types
from .errors import EndedError


def _topic(
    self: _core.Node,
    name: str,
    type: type,
    *,
    reads: bool = True,
    writes: bool = True,
    level: str = "atomic",
    stored: int | None = None,
    max_stored: int = 8192,
    max_bytes: int = 0,
    max_age: float | None = None,
    ring_bytes: int = 1 << 20,
    order: str = "",
    reliable: bool = False,
    durability: str = "volatile",
    history: int | None = None,
    max_unread: int = 4096,
    deadline: float | None = None,
    lease: float | None = None,
    lifespan: float | None = None,
    ownership: str = "shared",
    strength: int = 0,
    minimum_separation: float = 0.0,
    drop_slow_after: float | None = None,
) -> _core.Topic:
    """The topic of that name, whose samples are objects of the dataclass `type`.

    The fields are int (64 bits), float, bool, numpy's scalars, `IntEnum` (32 bits), str, bytes,
    `dunlin.Text[n]`, `dunlin.Array[np.float32, n]`, lists, `... | None`, and dataclasses of these. The
    type is that of the C++ struct of the same name with the same members: `dunlin_name` of the class
    gives it another name, and `dunlin_extensibility = "appendable"` lets members add fields at its end.
    Numbers come as int and float. A member with another type is refused (`why_unmatched`); a second
    call gives the same topic, and ignores the options. Times are in seconds; None: no limit.

    `reads`, `writes`: False: this member only writes, or reads. Equal at all members: `level`
    ("unordered", "atomic", "volatile_storage" or "logged"); `stored`, `max_stored`, `max_bytes`, `max_age`:
    what "volatile_storage" and "logged" keep for late readers: samples of each instance (None: all) and
    in all, bytes (0: no limit), seconds; `ring_bytes` of each writer; `order`: topics that name one
    order have one order of their samples together.

    The reader's: `history`: how many samples of each instance wait to be taken at most, the oldest go
    first; None: all, and what comes beyond `max_unread` is lost, or, if `reliable`, holds the writers back.
    `durability`: "transient" and "persistent" ask for the stored samples. `minimum_separation` of
    samples of one instance. `drop_slow_after`: a reader that has held writers back for so long gets
    no more samples. The writer's: `lifespan` of its samples, `strength` if `ownership="exclusive"`.
    Both: `deadline` between samples of an instance, `lease` of a writer that is silent.
    """
    description = _types.struct_of(type)
    return _core.make_topic(self, name, description, _types.dtype_if_plain(description), {
        "reads": reads, "writes": writes, "level": level, "stored": stored, "max_stored": max_stored,
        "max_bytes": max_bytes, "max_age": max_age, "ring_bytes": ring_bytes, "order": order,
        "reliable": reliable, "durability": durability, "history": history, "max_unread": max_unread,
        "deadline": deadline, "lease": lease, "lifespan": lifespan, "ownership": ownership,
        "strength": strength, "minimum_separation": minimum_separation,
        "drop_slow_after": drop_slow_after,
    })


def _iterate(self: _core.Topic) -> Iterator[Any]:
    """Take the samples as they come, one after the other; ends with the node."""
    while True:
        try:
            sample = self.next()
        except EndedError:
            return
        yield sample


async def _iterate_async(self: _core.Topic) -> AsyncIterator[Any]:
    """Take the samples as they come, one after the other; ends with the node."""
    while True:
        try:
            sample = await self.aio.next()
        except EndedError:
            return
        yield sample


def dtype_of(type: type) -> Any:
    """The numpy dtype with the memory of a dataclass as a topic's type, which is that of the C++ struct.

    Raises TypeError for a type that is not plain: with str, bytes, lists or optional fields.
    """
    dtype = _types.dtype_of(_types.struct_of(type))
    if dtype is None:
        raise TypeError(f"{type.__name__} has str, bytes, lists or optional fields: take() such samples")
    return dtype


def extend() -> None:
    """Give the classes of the library these methods."""
    _core.Node.topic = _topic
    _core.Topic.__iter__ = _iterate
    _core.Topic.__aiter__ = _iterate_async
