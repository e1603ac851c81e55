"""Parameters that one process publishes, and many use.

    python parameters.py [--readers 2] [--steps 5]

A trainer puts the parameters of each step into one segment. Each reader has a queue, in which it waits for the number
of the next step, and then copies the newest parameters into an array of its own. A reader that is slow skips steps: it
never sees a half of one step and a half of another.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os

import numpy as np

import dunlin

PARAMETERS = 1 << 18  # float32: 1 MB


def parameters_of(step: int) -> np.ndarray:
    return np.full(PARAMETERS, step, dtype=np.float32)


def train(node: dunlin.Node, readers: int, steps: int) -> None:
    segments = node.segments(pool_bytes=PARAMETERS * 4 * 2)
    published = segments.allocate(PARAMETERS * 4, on=node.rank, coherence="version")
    notes = [node.queue(f"steps for {rank}", capacity=64, element_bytes=16, host=rank)
             for rank in range(1, readers + 1)]
    for step in range(1, steps + 1):
        published.put(parameters_of(step))
        for note in notes:
            note.push(published.key.to_bytes(8, "little") + step.to_bytes(8, "little"))
    ended = node.queue("ended", capacity=64)
    for _ in range(readers):
        print((ended.pop() or b"").decode(), flush=True)


def read(node: dunlin.Node, steps: int) -> None:
    segments = node.segments(pool_bytes=0)
    notes = node.queue(f"steps for {node.rank}", capacity=64, element_bytes=16, host=node.rank)
    mine = np.empty(PARAMETERS, dtype=np.float32)
    step = 0
    while step < steps:
        note = notes.pop() or b""
        if int.from_bytes(note[8:], "little") <= step:
            continue  # an earlier copy was as new
        segments.at(int.from_bytes(note[:8], "little")).get_into(mine)
        assert (mine == mine[0]).all() and mine[0] > step
        step = int(mine[0])
    node.queue("ended", capacity=64).push(f"reader {node.rank} has step {step}".encode())


def member(group: str, readers: int, steps: int) -> None:
    with dunlin.join(group, readers + 1, timeout=60) as node:
        if node.rank == 0:
            train(node, readers, steps)
        else:
            read(node, steps)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    group = f"parameters-{os.getpid()}"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=member, args=(group, options.readers, options.steps))
                 for _ in range(options.readers + 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(process.exitcode or 0 for process in processes))


if __name__ == "__main__":
    main()
