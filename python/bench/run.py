"""Measures the calls of the Python package beside what one would use instead.

usage: run.py [--rounds 11] [--quick] [--only FIGURE ...] [--json FILE] [--calls PROGRAM]

Two processes are a group; the second one only has memory, or, with the program `python_calls` of the build tree, makes
the same calls from C++ in its turns. In each round, all competitors of a figure take turns in this
process, for some 20 ms each, and another one begins. A result is the median over the rounds; a ratio is the median
of the ratios within the rounds. Redis and memcached are started here, at UNIX sockets, if they are installed, with
their clients redis-py and pymemcache; Cyclone DDS, Zenoh and iceoryx2 are measured if their packages are installed.
What is not here is left out, and a line says so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import shared_memory
from typing import IO, Any

import numpy as np

import dunlin
import topics

KB, MB = 1 << 10, 1 << 20
SMALL = {"64 B": 64, "4 KB": 4 * KB}
LARGE = {"2 MB": 2 * MB, "256 MB": 256 * MB}

# A competitor does its operation so many times; it returns the seconds that this took if it knows better than its caller.
Competitor = Callable[[int], "float | None"]

OTHER_MEMBER = """
import sys, dunlin
with dunlin.join(sys.argv[1], 2, timeout=60, silence_timeout=0) as node:
    node.store("bench", memory_bytes=64 << 20)
    node.segments(pool_bytes=int(sys.argv[2]))
    node.queue("bench", capacity=1024, element_bytes=8, host=node.rank)
    print("there", flush=True)
    sys.stdin.read()
"""


class OtherMember:
    """The second process of the group."""

    def __init__(self, group: str, pool_bytes: int, calls: pathlib.Path | None):
        program = [str(calls)] if calls else [sys.executable, "-c", OTHER_MEMBER]
        self.process = subprocess.Popen([*program, group, str(pool_bytes)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.makes_calls = calls is not None

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self.process.stdin is not None and self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def wait_until_ready(self) -> None:
        if self._pipes[1].readline() != "there\n":
            raise SystemExit("the other member has ended")

    def call(self, command: str) -> dict[str, Competitor]:
        """The competitor that makes this call from C++, if the other member can."""
        def run(count: int) -> float:
            told, tells = self._pipes
            told.write(f"{command} {count}\n")
            told.flush()
            if not (nanoseconds := tells.readline()):
                raise SystemExit("the other member has ended")
            return int(nanoseconds) / 1e9
        return {"from C++": run} if self.makes_calls else {}

    def close(self) -> None:
        self._pipes[0].close()
        self.process.wait()


class Figure:
    """What is measured together: the first competitor is the one that the others are compared with."""

    def __init__(self, name: str, competitors: dict[str, Competitor], unit: str, bytes_a_time: int = 0,
                 times: int = 1):
        self.name, self.competitors, self.unit, self.bytes_a_time = name, competitors, unit, bytes_a_time
        self.times = times  # that a competitor does something for a count of 1

    def measure(self, rounds: int, seconds: float) -> dict[str, Any]:
        counts = {name: self.count_for(run, seconds) for name, run in self.competitors.items()}
        names = list(self.competitors)
        times: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(rounds):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                times[name].append(self.time_of(self.competitors[name], counts[name]))
        first = times[names[0]]
        return {"figure": self.name, "unit": self.unit, "rounds": rounds, "results": {
            name: {"value": self.value_of(statistics.median(each)),
                   "p10": self.value_of(sorted(each)[rounds // 10]), "p90": self.value_of(sorted(each)[-1 - rounds // 10]),
                   "ratio": statistics.median(one / other for one, other in zip(each, first))}
            for name, each in times.items()}}

    def value_of(self, seconds: float) -> float:
        if self.unit == "GB/s":
            return self.bytes_a_time / seconds / 1e9
        return self.times / seconds if self.unit == "1/s" else seconds * 1e6

    @staticmethod
    def time_of(run: Competitor, count: int) -> float:
        begin = time.perf_counter()
        took = run(count)
        return (time.perf_counter() - begin if took is None else took) / count

    @classmethod
    def count_for(cls, run: Competitor, seconds: float) -> int:
        count = 1
        while (took := cls.time_of(run, count) * count) < seconds / 2 and count < 1 << 20:
            count *= 2
        return max(1, round(count * seconds / max(took, 1e-9)))


def repeated(call: Callable[[], object]) -> Competitor:
    def run(count: int) -> None:
        for _ in range(count):
            call()
    return run


def awaited(make: Callable[[], Any], at_once: int) -> Competitor:
    """Awaits so many of what `make` makes, `at_once` of them at a time."""
    async def many(count: int) -> None:
        if at_once == 1:
            for _ in range(count):
                await make()
            return
        for _ in range(0, count, at_once):
            for one in [make() for _ in range(at_once)]:
                await one
    return lambda count: asyncio.run(many(count))


@contextlib.contextmanager
def server(arguments: list[str], at: pathlib.Path) -> Iterator[None]:
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:  # until it listens, or has ended
            with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
                probe.connect(str(at))
                break
            if process.poll() is not None:
                raise SystemExit(f"{arguments[0]} has ended")
            time.sleep(0.01)
        yield
    finally:
        process.kill()
        process.wait()


def others(stack: contextlib.ExitStack, folder: pathlib.Path) -> dict[str, tuple[Any, Any]]:
    """The get and the set of each other store that is installed."""
    found: dict[str, tuple[Any, Any]] = {}
    missing = []
    try:
        import redis  # type: ignore[import-not-found,unused-ignore]
        at, program = folder / "redis", shutil.which("redis-server")
        if program is None:
            raise ImportError
        stack.enter_context(server([program, "--port", "0", "--unixsocket", str(at), "--save", "", "--dir", str(folder)], at))
        client = redis.Redis(unix_socket_path=str(at))
        found["redis-py"] = client.get, client.set
    except ImportError:
        missing.append("Redis and redis-py")
    try:
        from pymemcache.client.base import Client  # type: ignore[import-not-found,unused-ignore]
        at, program = folder / "memcached", shutil.which("memcached")
        if program is None:
            raise ImportError
        as_user = ["-u", "root"] if os.geteuid() == 0 else []
        stack.enter_context(server([program, "-s", str(at), "-I", "4m", *as_user], at))
        cache = Client(str(at), no_delay=True)
        found["pymemcache"] = cache.get, cache.set
    except ImportError:
        missing.append("memcached and pymemcache")
    try:
        found["Mooncake"] = mooncake(stack)
    except ImportError:
        missing.append("Mooncake")
    if missing:
        print(f"not here, and so not measured: {', '.join(missing)}", file=sys.stderr)
    return found


def mooncake(stack: contextlib.ExitStack) -> tuple[Any, Any]:
    """The get and the put of Mooncake's store, over TCP of this host, with its master."""
    import mooncake as package  # type: ignore[import-not-found,unused-ignore]
    from mooncake.store import MooncakeDistributedStore  # type: ignore[import-not-found,unused-ignore]
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other_free:
        port, metrics_port = free.getsockname()[1], other_free.getsockname()[1]
    master = subprocess.Popen(
        [pathlib.Path(package.__file__).parent / "mooncake_master", "--rpc_address=127.0.0.1", f"--rpc_port={port}",
         f"--metrics_port={metrics_port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(master.wait)
    stack.callback(master.kill)
    while True:  # until it listens, or has ended
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        if master.poll() is not None:
            raise SystemExit("mooncake_master has ended")
        time.sleep(0.01)
    store = MooncakeDistributedStore()
    if store.setup("127.0.0.1", "P2PHANDSHAKE", 512 * MB, 128 * MB, "tcp", "", f"127.0.0.1:{port}"):
        raise SystemExit("Mooncake's store does not begin")
    stack.callback(store.close)
    puts, known = itertools.count(), set()

    def put(key: str, value: bytes) -> None:  # it never changes a key, so each put is of a new one
        name = f"{key}-{next(puts)}" if key in known else key
        known.add(key)
        if store.put(name, value):
            raise SystemExit("Mooncake's store has not taken a value")

    return store.get, put


def small_figures(node: dunlin.Node, stack: contextlib.ExitStack, stores: dict[str, tuple[Any, Any]],
                  other: OtherMember) -> Iterator[Figure]:
    store = node.store("bench", memory_bytes=64 << 20)
    for name, size in SMALL.items():
        value, buffer = os.urandom(size), bytearray(size)
        key = name.replace(" ", "-")
        store[key] = value
        shared = stack.enter_context(contextlib.closing(shared_memory.SharedMemory(create=True, size=size)))
        stack.callback(shared.unlink)
        memory = shared.buf
        assert memory is not None

        def bare_put(memory: memoryview = memory, value: bytes = value) -> None:
            memory[:] = value

        gets: dict[str, Competitor] = {
            "bare copy": repeated(lambda memory=memory: bytes(memory)),  # type: ignore[misc]
            "get": repeated(lambda key=key: store.get(key)),  # type: ignore[misc]
            **other.call(f"get {key}"),
            "get_into": repeated(lambda key=key, buffer=buffer: store.get_into(key, buffer))}  # type: ignore[misc]
        puts: dict[str, Competitor] = {
            "bare copy": repeated(bare_put),
            "put": repeated(lambda key=key, value=value: store.put(key, value)),  # type: ignore[misc]
            **other.call(f"put {key} {size}")}
        for name_of_it, (its_get, its_set) in stores.items():
            its_set(key, value)
            gets[name_of_it] = repeated(lambda key=key, get=its_get: get(key))  # type: ignore[misc]
            puts[name_of_it] = repeated(lambda key=key, set_=its_set, value=value: set_(key, value))  # type: ignore[misc]
        yield Figure(f"get of {name}", gets, "us")
        yield Figure(f"put of {name}", puts, "us")


def large_figures(node: dunlin.Node, stack: contextlib.ExitStack, other: OtherMember) -> Iterator[Figure]:
    segments = node.segments(pool_bytes=pool_bytes())
    for name, size in LARGE.items():
        mine = np.frombuffer(os.urandom(KB) * (size // KB), dtype=np.uint8).copy()
        shared = stack.enter_context(contextlib.closing(shared_memory.SharedMemory(create=True, size=size)))
        stack.callback(shared.unlink)
        assert shared.buf is not None
        view = np.frombuffer(shared.buf, dtype=np.uint8)
        segment = segments.allocate(size, on=1 - node.rank)
        plain = segments.allocate(size, on=1 - node.rank, coherence="null")
        here = segments.allocate(size, on=node.rank)  # where C++ finds it as far away
        for one in (segment, plain, here):
            one.put(mine)

        def bare_put(view: Any = view, mine: Any = mine) -> None:
            np.copyto(view, mine)

        def bare_get(view: Any = view, mine: Any = mine) -> None:
            np.copyto(mine, view)

        yield Figure(f"get of {name}", {
            "bare copy": repeated(bare_get),
            "get_into": repeated(lambda segment=segment, mine=mine: segment.get_into(mine)),  # type: ignore[misc]
            **other.call(f"get_segment {here.key} {size}"),
            "get_into, coherence null": repeated(lambda plain=plain, mine=mine: plain.get_into(mine))},  # type: ignore[misc]
            "GB/s", size)
        yield Figure(f"put of {name}", {
            "bare copy": repeated(bare_put),
            "put": repeated(lambda segment=segment, mine=mine: segment.put(mine)),  # type: ignore[misc]
            **other.call(f"put_segment {here.key} {size}"),
            "put, coherence null": repeated(lambda plain=plain, mine=mine: plain.put(mine))}, "GB/s", size)  # type: ignore[misc]
        del view, bare_put, bare_get


def await_figures(node: dunlin.Node) -> Iterator[Figure]:
    store = node.store("bench")
    store["awaited"] = bytes(64)
    queue = node.queue("bench", capacity=1024, element_bytes=8, host=1 - node.rank)

    async def nothing() -> None:
        await asyncio.sleep(0)

    def push_and_pop() -> Any:
        popped = queue.aio.pop()
        queue.push(b"x")
        return popped

    yield Figure("awaits a second", {
        "await asyncio.sleep(0)": awaited(nothing, 1),
        "await store.aio.get, one after the other": awaited(lambda: store.aio.get("awaited"), 1),
        "await store.aio.get, 100 at once": awaited(lambda: store.aio.get("awaited"), 100),
        "await queue.aio.pop that waits, with a push": awaited(push_and_pop, 1)}, "1/s")


def topic_figures() -> Iterator[Figure]:
    """Bursts of samples from this process to another one, and a sample back."""
    kinds = [kind for kind, module in topics.MODULES.items() if importlib.util.find_spec(module)]
    if missing := sorted(topics.MODULES.keys() - kinds):
        print(f"not here, and so not measured: {', '.join(missing)}", file=sys.stderr)
    for size in (64, KB):
        with contextlib.ExitStack() as stack:
            group = f"bench{os.getpid()}-{size}"
            pairs = {kind: stack.enter_context(contextlib.closing(topics.Pair(kind, group, size))) for kind in kinds}
            yield Figure(f"samples of {size} B to another process",
                         {kind: pair.run for kind, pair in pairs.items()}, "1/s", times=topics.BURST)


def figures(node: dunlin.Node, stack: contextlib.ExitStack, other: OtherMember) -> Iterator[Figure]:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    yield from small_figures(node, stack, others(stack, folder), other)
    yield from large_figures(node, stack, other)
    yield from await_figures(node)
    yield from topic_figures()


def pool_bytes() -> int:
    """What each member contributes to the segments."""
    return 2 * sum(LARGE.values()) + 8 * MB


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['figure']} ({result['unit']})")
    for name, one in result["results"].items():
        print(f"  {name:45} {one['value']:12,.2f}   p10 {one['p10']:12,.2f}   p90 {one['p90']:12,.2f}"
              f"   {one['ratio']:7.2f} times the first one's time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="a fraction of the work: to see that all runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="FIGURE", help="figures whose names contain these words")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--calls", type=pathlib.Path, help="the program python_calls, which makes the calls from C++")
    options = parser.parse_args()
    if options.quick:
        LARGE.pop("256 MB", None)
        options.rounds = 3
    group = f"bench-{os.getpid()}"
    results = []
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(contextlib.closing(OtherMember(group, pool_bytes(), options.calls)))
        node = stack.enter_context(dunlin.join(group, 2, timeout=60, silence_timeout=0))
        node.store("bench", memory_bytes=64 << 20)
        node.segments(pool_bytes=pool_bytes())
        other.wait_until_ready()
        for figure in figures(node, stack, other):
            if all(word not in figure.name for word in options.only) and options.only:
                continue
            results.append(figure.measure(options.rounds, 0.002 if options.quick else 0.02))
            show(results[-1])
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
