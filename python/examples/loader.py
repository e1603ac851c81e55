"""A data set in a shared segment, from which the workers of a loader take their batches.

    python loader.py [--rows 10000] [--workers 2] [--by torch|multiprocessing]

The process that owns the data puts them into a segment once. A `SharedRows` is what others have: it is pickled as the
names of the group and of the segment, and a worker that uses it joins by itself. With torch, it is the data set of a
`torch.utils.data.DataLoader`; where there is no torch, processes of multiprocessing do the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import dunlin

ROW = np.dtype((np.float32, 256))


class SharedRows:
    """The rows of a segment, as a sequence that goes to other processes."""

    def __init__(self, group: str, segment: str, rows: int):
        self.group, self.name, self.rows = group, segment, rows
        self._segment: dunlin.Segment | None = None
        self._node: dunlin.Node | None = None

    def __getstate__(self) -> tuple[str, str, int]:
        return self.group, self.name, self.rows

    def __setstate__(self, state: tuple[str, str, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    @property
    def segment(self) -> dunlin.Segment:
        if self._segment is None:
            self._node = dunlin.join(self.group, may_found=False, timeout=60)
            self._segment = self._node.segments("rows", pool_bytes=0).find(self.name)
        return self._segment

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> np.ndarray:
        if not 0 <= row < self.rows:
            raise IndexError(row)
        values = np.empty(256, dtype=np.float32)
        self.segment.get_into(values, row * values.nbytes)
        return values

    def __getitems__(self, rows: list[int]) -> list[np.ndarray]:
        return [self[row] for row in rows]


_dataset: SharedRows


def _begin_worker(dataset: SharedRows) -> None:
    global _dataset
    _dataset = dataset


def _batch(rows: list[int]) -> np.ndarray:
    return np.stack(_dataset.__getitems__(rows))


def batches_by_torch(dataset: SharedRows, batch_size: int, workers: int) -> Iterator[Any]:
    """The rows in a random order, in batches that the workers of a DataLoader put together."""
    from torch.utils.data import DataLoader  # type: ignore[import-not-found,unused-ignore]
    yield from DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers,
                          multiprocessing_context="spawn")


def batches_by_multiprocessing(dataset: SharedRows, batch_size: int, workers: int) -> Iterator[Any]:
    """The rows in a random order, in batches that worker processes put together."""
    order = np.random.default_rng().permutation(len(dataset)).tolist()
    parts = [order[i:i + batch_size] for i in range(0, len(order), batch_size)]
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(workers, _begin_worker, (dataset,)) as pool:
        yield from pool.imap_unordered(_batch, parts)
        pool.close()
        pool.join()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--by", choices=["torch", "multiprocessing"],
                        default="torch" if importlib.util.find_spec("torch") else "multiprocessing")
    options = parser.parse_args()
    batches = batches_by_torch if options.by == "torch" else batches_by_multiprocessing
    group = f"loader-{os.getpid()}"
    values = np.repeat(np.arange(options.rows, dtype=np.float32)[:, None], 256, axis=1)
    with dunlin.join(group, timeout=60) as node:
        segment = node.segments("rows", pool_bytes=values.nbytes + (1 << 20)).allocate(
            values.nbytes, name="train", coherence="null")  # nobody changes it any more
        segment.put(values)
        dataset = SharedRows(group, "train", options.rows)
        seen = np.concatenate([np.asarray(batch) for batch in batches(dataset, 256, options.workers)])
    assert (np.sort(seen[:, 0]) == values[:, 0]).all() and (seen == seen[:, :1]).all()
    print(f"{len(seen)} rows came from {options.workers} workers by {options.by}")


if __name__ == "__main__":
    main()
