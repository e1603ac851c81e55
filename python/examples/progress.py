"""The progress of several workers as a pandas DataFrame.

    python progress.py [--workers 3] [--steps 20]

Each worker of an experiment owns a row of a table, and publishes its loss after each step; nobody asks anybody. Any
member has all rows in its own memory: here the first one waits until all have done half of their steps, and then until
all are done, and looks at the rows with pandas.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from dataclasses import dataclass
from typing import Annotated

import numpy as np

import dunlin
from dunlin import conditions as c


@dataclass
class Progress:
    loss: float = float("inf")
    rate: np.float32 = np.float32(0)
    model: Annotated[str, dunlin.Text(16)] = ""
    step: int = 0  # behind what belongs to it: who sees the step, sees that, too
    reports: int = 0


def work(group: str, workers: int, steps: int) -> None:
    with dunlin.join(group, workers, timeout=60) as node:
        table = node.table("progress", Progress)
        model = "large" if node.rank % 2 else "small"
        table.update(rate=np.float32(0.1 / (node.rank + 1)), model=model)
        for step in range(1, steps + 1):
            table.update(loss=(node.rank + 1) / step, step=step)
        if node.rank == 0:
            half = (steps + 1) // 2
            table.wait_until(c.all("step") >= half)
            assert (table.to_pandas()["step"] >= half).all()
            table.wait_until(c.all("step") == steps)
            print(table.to_pandas().groupby("model")["loss"].min().round(3).to_string())
            table.update(reports=1)
        table.wait_until(c.sum("reports") == 1)  # who leaves takes its row away


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    group = f"progress-{os.getpid()}"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=work, args=(group, options.workers, options.steps))
                 for _ in range(options.workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(abs(process.exitcode or 0) for process in processes))


if __name__ == "__main__":
    main()
