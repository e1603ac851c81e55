"""The tables of a node."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, AsyncIterator, Callable, Iterator

from . import _core, _types
from .conditions import Condition
from .errors import CallTimeoutError, EndedError


def _initial_of(type: type) -> Any:
    """An object of the defaults, if each field has one; else None, and rows begin with zeros."""
    missing = dataclasses.MISSING
    if all(field.default is not missing or field.default_factory is not missing
           for field in dataclasses.fields(type)):
        return type()
    return None


def _table(self: _core.Node, name: str, type: type) -> _core.Table:
    """The table of that name, whose rows are objects of the dataclass `type`.

    The fields are int (64 bits), float, bool, numpy's scalars, `IntEnum` (32 bits), `dunlin.Text[n]`, and
    `dunlin.Array[np.float32, n]` of these: the row of the C++ struct of plain members with the same
    names. Rows begin with the defaults of the class if each field has one, else with zeros. Members
    with another row exchange nothing. Give the fields in the order in which they shall become
    visible: the data before what announces them.
    """
    description = _types.struct_of(type)
    return _core.make_table(self, name, description, _initial_of(type))


def _update(self: _core.Table, row: Any = None, /, **columns: Any) -> None:
    """Publish columns of the own row to all members, in the order given; or a whole row.

    `table.update(load=0.7, step=1)`: a member that sees the step sees the load. `table.update(Row(...))`
    publishes all columns in the order of the class. Never waits for other members: one that is
    behind gets the newest values later.
    """
    if row is not None:
        columns = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)} | columns
    self._publish(list(columns), list(columns.values()))


def _wait_until(
    self: _core.Table,
    condition: Condition | Callable[[_core.Snapshot], Any],
    timeout: float | None = None,
) -> None:
    """Wait until a condition is true; raises CallTimeoutError after `timeout` seconds.

    A condition of `dunlin.conditions` is evaluated by the node's thread in each of its polls, without the
    GIL: it misses nothing that stays true. A function gets a `Snapshot`, and this thread calls it, at
    first and after each change; it must only look at the snapshot, and may miss what is true only for
    a short time. So let a condition, once true, stay true. What the function raises ends the wait.
    """
    if isinstance(condition, Condition):
        return self._wait_until(condition._spec, timeout=timeout)
    end = None if timeout is None else time.monotonic() + timeout
    snapshot = self.snapshot()
    while not condition(snapshot):
        left = None if end is None else max(end - time.monotonic(), 0.0)
        try:
            snapshot = self.next_change(snapshot, timeout=left)
        except CallTimeoutError as error:
            error.args = ("wait_until: the time was up",)
            raise


async def _aio_wait_until(
    self: Any, condition: Condition | Callable[[_core.Snapshot], Any]
) -> None:
    """Wait until a condition is true, as `Table.wait_until()` does; the event loop calls a function."""
    if isinstance(condition, Condition):
        return await self._wait_until(condition._spec)
    snapshot = await self.next_change(None)
    while not condition(snapshot):
        snapshot = await self.next_change(snapshot)


def _changes(self: _core.Table) -> Iterator[_core.Snapshot]:
    """Iterate over snapshots: the first one at once, and one after each change; ends with the node.

    Changes that come while the program works on a snapshot are one change.
    """
    snapshot = None
    while True:
        try:
            snapshot = self.next_change(snapshot)
        except EndedError:
            return
        yield snapshot


async def _aio_changes(self: Any) -> AsyncIterator[_core.Snapshot]:
    """Iterate over snapshots, as `Table.changes()` does."""
    snapshot = None
    while True:
        try:
            snapshot = await self.next_change(snapshot)
        except EndedError:
            return
        yield snapshot


def _to_pandas(self: _core.Table) -> Any:
    """The rows as a pandas DataFrame: see `Snapshot.to_pandas()`."""
    return self.snapshot().to_pandas()


# --- snapshots ------------------------------------------------------------------------------------


def _rows(self: _core.Snapshot) -> Any:
    """The rows as a structured numpy array, which is the memory of the snapshot."""
    import numpy
    if self._dtype is None:
        self._dtype = _snapshot_dtype(self)
    memory: Any = self
    dtype: Any = self._dtype
    return numpy.frombuffer(memory, dtype)


def _snapshot_dtype(self: _core.Snapshot) -> Any:
    import numpy
    description: Any = self._description
    dtype = _types.dtype_of(description)
    return numpy.dtype({"names": dtype.names, "formats": [dtype[name] for name in dtype.names],
                        "offsets": [dtype.fields[name][1] for name in dtype.names],
                        "itemsize": self._stride})


def _getitem(self: _core.Snapshot, which: Any) -> Any:
    """A column by its name, or a row by its number."""
    return self.rows[which]


def _snapshot_to_pandas(self: _core.Snapshot) -> Any:
    """The rows as a pandas DataFrame: a row for each member, whose name is the index.

    A column of arrays has the arrays as objects; text is str.
    """
    import pandas
    columns = {}
    for name in self.rows.dtype.names:
        values = self.rows[name]
        if values.dtype.kind == "S":
            columns[name] = [value.decode(errors="surrogateescape") for value in values.ravel()] \
                if values.ndim == 1 else list(values)
        else:
            columns[name] = values if values.ndim == 1 else list(values)
    return pandas.DataFrame(columns, index=pandas.Index(self.members, name="member"))


def extend() -> None:
    """Give the classes of the library these methods."""
    _core.Node.table = _table
    _core.Table.update = _update
    _core.Table.wait_until = _wait_until
    _core.Table.changes = _changes
    _core.Table.to_pandas = _to_pandas
    _core.AsyncTable.wait_until = _aio_wait_until
    _core.AsyncTable.changes = _aio_changes
    _core.Snapshot.rows = property(_rows)  # type: ignore[assignment]
    _core.Snapshot.__getitem__ = _getitem
    _core.Snapshot.to_pandas = _snapshot_to_pandas
