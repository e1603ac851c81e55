"""Shared state between processes and hosts at the speed of memory.

    import dunlin

    with dunlin.join("rack7", members=3) as node:
        store = node.store("blocks", copies=2)
        store["k"] = b"..."
        print(store["k"])

`docs/python.md` explains everything; each class and method has its own text.
"""

from __future__ import annotations

import atexit
import logging
import sys
import weakref
from collections.abc import MutableMapping
from typing import Sequence

from . import _core, _objects, _store, _tables, _topics, conditions
from ._core import (
    Entry, Map, Memory, Node, Queue, SampleInfo, Segment, Segments, Snapshot, Store, Table, Topic,
    Transaction, View, __version__,
)
from ._topics import dtype_of
from ._types import Array, Key, Text
from .errors import (
    AbandonedError, CallTimeoutError, ConflictError, EndedError, Error, ExistsError, LockError,
    LostError, NoRoomError, NotFoundError, OverloadedError, RefusedError, TooLongError,
)

__all__ = [
    "AbandonedError", "Array", "CallTimeoutError", "ConflictError", "EndedError", "Entry", "Error",
    "ExistsError", "Key", "LockError", "LostError", "Map", "Memory", "NoRoomError", "Node",
    "NotFoundError", "OverloadedError", "Queue", "RefusedError", "SampleInfo", "Segment", "Segments",
    "Snapshot", "Store", "Table", "Text", "TooLongError", "Topic", "Transaction", "View", "__version__",
    "conditions", "dtype_of", "join",
]

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    # A free-threaded Python turns its lock on again for a module like this one, unless it is told not to.
    raise ImportError("dunlin is not safe without the GIL: start Python without -X gil=0 and PYTHON_GIL=0")

_log = logging.getLogger("dunlin")
_log.addHandler(logging.NullHandler())
_nodes: weakref.WeakSet[Node] = weakref.WeakSet()


def join(
    group: str,
    members: int = 1,
    *,
    names: Sequence[str] = (),
    name: str = "",
    may_found: bool = True,
    network: str = "",
    rendezvous: str = "",
    secret: str = "",
    secret_file: str = "",
    device: str = "",
    encrypt: bool = False,
    listen: str = "",
    contacts: Sequence[str] = (),
    most_members: int = 64,
    timeout: float = 10.0,
    silence_timeout: float | None = None,
    wait: str = "adaptive",
    spin_us: int = 50,
) -> Node:
    """Join the group of that name if it runs; else found it together with the others.

    Returns once this process is a member. Raises `Error`, which says who is missing, after `timeout`
    seconds. A signal whose handler raises (Ctrl-C) ends the wait.

    `members`: how many members found the group; all give the same number. `names`: in its place,
    their names, of which `name` is one. `may_found=False`: only join a group that runs. `network`:
    "shm" (processes of this host; the default), "tcp", "verbs", "ofi" or "auto"; all but "shm" need
    `rendezvous` ("host:port") and `secret` or `secret_file`. `listen`, `contacts`: between hosts, the
    addresses at which later members find this one, and this one finds others. `silence_timeout`:
    after so many seconds without a sign of life, a member counts as failed; 0: never. `wait`: how the
    node's thread waits: "adaptive", "spin" or "block".
    """
    node = _core.join(group, members, list(names), name, may_found, network, rendezvous, secret,
                      secret_file, device, encrypt, listen, list(contacts), most_members, timeout,
                      silence_timeout, wait, spin_us)
    _nodes.add(node)
    _log.info("joined group %r as %r: %r", group, node.name, node.view)
    return node


@atexit.register
def _close_nodes() -> None:
    # A member that only vanishes would be a failure to the others.
    for node in list(_nodes):
        if not node.ended:
            node.close()


MutableMapping.register(Store)
_store.extend()
_objects.extend()
_tables.extend()
_topics.extend()
