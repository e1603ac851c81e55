"""What a store has beside the calls of the library: made of these calls."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Iterable, Iterator, Mapping

from . import _core


def _store(
    self: _core.Node,
    name: str = "store",
    *,
    copies: int = 1,
    memory_bytes: int = 64 << 20,
    expected_keys: int = 0,
    homes: int = 0,
    cache_bytes: int = 1 << 20,
    evicts: bool = False,
) -> _core.Store:
    """The key-value store of that name; a second call gives the same store, and ignores the options.

    `copies`: how many members hold each key, 1 or 2; all give the same number. `memory_bytes`: what
    this member contributes. `expected_keys`: for how many keys the index is laid out; 0: one for each
    256 bytes. `homes`: members with ranks below it hold keys; 0: all do. `cache_bytes`: this member's
    cache of locations. `evicts`: a full member erases keys that were not used for long.
    """
    return self._store(name, copies, memory_bytes, expected_keys, homes, cache_bytes, evicts)


def _pairs(pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    items = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    return [key for key, _ in items], [value for _, value in items]


def _put_many(
    self: _core.Store, pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], ttl: float | None = None
) -> None:
    """Put all of these keys and values; many puts are under way at once, in any order."""
    self._put_many(*_pairs(pairs), ttl)


def _items(self: _core.Store) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over all keys, as bytes, and values of all members, by a scan."""
    cursor = 0
    while True:
        cursor, entries = self.scan(cursor)
        yield from entries  # type: ignore[misc]  # the values were asked for, so none is None
        if cursor == 0:
            return


def _keys(self: _core.Store) -> Iterator[bytes]:
    """Iterate over all keys of all members, as bytes, by a scan."""
    cursor = 0
    while True:
        cursor, entries = self.scan(cursor, values=False)
        yield from (key for key, _ in entries)
        if cursor == 0:
            return


def _values(self: _core.Store) -> Iterator[bytes]:
    """Iterate over all values of all members, by a scan."""
    return (value for _, value in _items(self))


def _update(
    self: _core.Store, key: str | bytes, function: Callable[[bytes | None], bytes | None]
) -> bytes | None:
    """Give the key the value that `function` makes of the former one, as one step.

    `function` gets None if the key is absent, and is called again if another member has changed the
    key meanwhile. Returns the new value; if `function` returns None, nothing changes.
    """
    while True:
        entry = self.entry(key)
        value = function(None if entry is None else entry.value)
        if value is None:
            return None
        if self.compare_and_set(key, 0 if entry is None else entry.version, value) is not None:
            return value


def _pop(self: _core.Store, key: str | bytes, *default: Any) -> Any:
    """Erase the key, and return its value; `default`, or KeyError, if the key is absent."""
    value = self.get(key)
    if value is not None and self.erase(key):
        return value
    if default:
        return default[0]
    raise KeyError(key)


async def _aio_get_many(self: Any, keys: Iterable[str | bytes]) -> list[bytes | None]:
    """The values of these keys, in their order; all gets are under way at once."""
    return [await call for call in [self.get(key) for key in keys]]


async def _aio_put_many(
    self: Any, pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], ttl: float | None = None
) -> None:
    """Put all of these keys and values; all puts are under way at once."""
    keys, values = _pairs(pairs)
    for call in [self.put(key, value, ttl) for key, value in zip(keys, values)]:
        await call


async def _aio_items(self: Any) -> AsyncIterator[tuple[bytes, bytes]]:
    """Iterate over all keys, as bytes, and values of all members, by a scan."""
    cursor = 0
    while True:
        cursor, entries = await self.scan(cursor)
        for entry in entries:
            yield entry
        if cursor == 0:
            return


def extend() -> None:
    """Give the classes of the library these methods."""
    _core.Node.store = _store
    _core.Store.put_many = _put_many
    _core.Store.items = _items
    _core.Store.keys = _keys
    _core.Store.values = _values
    _core.Store.__iter__ = _keys
    _core.Store.update_value = _update
    _core.Store.pop = _pop
    _core.AsyncStore.get_many = _aio_get_many
    _core.AsyncStore.put_many = _aio_put_many
    _core.AsyncStore.items = _aio_items
