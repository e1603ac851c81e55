"""Blocks of a language model's cache, which several workers share.

    python cache_blocks.py [--workers 3] [--blocks 32]

A worker that has computed the keys and values of a block of tokens keeps them for the others: the bytes in a segment of
fixed size, and the place of the block in a store, under a hash of all tokens up to the end of the block. So a prompt
that begins as another one did is computed from the first new block on. The free segments are a queue, and the used
ones another, from which a worker that finds no free one takes the oldest.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import struct

import numpy as np

import dunlin

BLOCK_TOKENS = 16
BLOCK_BYTES = 256 << 10


class BlockCache:
    """The cache of a group; each member contributes so many blocks."""

    def __init__(self, node: dunlin.Node, blocks: int):
        capacity = 1 << 12  # of all members' blocks
        self.places = node.store("places", memory_bytes=8 << 20)
        self.free = node.queue("free blocks", capacity=capacity, element_bytes=8)
        self.used = node.queue("used blocks", capacity=capacity, element_bytes=32)
        self.segments = node.segments("blocks", pool_bytes=(blocks + 1) * (BLOCK_BYTES + 4096))
        for _ in range(blocks):
            segment = self.segments.allocate(BLOCK_BYTES, on=node.rank)
            self.free.push(struct.pack("<Q", segment.key))

    def get(self, prefix: bytes, block: np.ndarray) -> bool:
        """Copies the block of that prefix; False: nobody has it."""
        place = self.places.get(prefix)
        if place is None:
            return False
        key, version = struct.unpack("<QQ", place)
        # A get is of one put, and says of which: of a later one if the segment has a new block meanwhile.
        return bool(self.segments.at(key).get_into(block) == version)

    def put(self, prefix: bytes, block: np.ndarray) -> None:
        """Keeps a block for all, in place of the oldest one if there is no room."""
        number = self.free.pop(timeout=0)
        while number is None:
            oldest = self.used.pop(timeout=0)
            if oldest is None:
                return  # other workers are at all blocks
            place = self.places.pop(oldest, None)
            number = None if place is None else place[:8]
        key, = struct.unpack("<Q", number)
        version = self.segments.at(key).put(block)
        if self.places.insert(prefix, struct.pack("<QQ", key, version)):
            self.used.push(prefix)
        else:  # another worker has computed it at the same time
            self.free.push(number)


def prefixes(tokens: list[int]) -> list[bytes]:
    """For each whole block of the prompt, the hash of all tokens up to its end."""
    found, so_far = [], hashlib.sha256()
    for begin in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        so_far.update(struct.pack(f"<{BLOCK_TOKENS}I", *tokens[begin:begin + BLOCK_TOKENS]))
        found.append(so_far.digest())
    return found


def compute(prefix: bytes) -> np.ndarray:
    """Stands for the model: a block that depends on all tokens up to its end."""
    seed = int.from_bytes(prefix[:8], "little")
    return np.random.default_rng(seed).random(BLOCK_BYTES // 4, dtype=np.float32)


def serve(cache: BlockCache, prompts: list[list[int]]) -> tuple[int, int]:
    """How many blocks of these prompts were taken from the cache, and how many were computed."""
    taken = computed = 0
    block = np.empty(BLOCK_BYTES // 4, dtype=np.float32)
    for tokens in prompts:
        for prefix in prefixes(tokens):
            if cache.get(prefix, block):
                taken += 1
                assert (block == compute(prefix)).all()
            else:
                computed += 1
                cache.put(prefix, compute(prefix))
    return taken, computed


def work(group: str, workers: int, blocks: int, number: int) -> None:
    with dunlin.join(group, workers, timeout=60) as node:
        cache = BlockCache(node, blocks)
        system = list(range(64))  # with which all prompts begin
        prompts = [system + [number + 7 * i] * 32 for i in range(8)]
        results = node.queue("results", capacity=64, element_bytes=16)
        leave, left = node.queue("leave", capacity=64), node.queue("left", capacity=64)
        results.push(struct.pack("<QQ", *serve(cache, prompts)))
        if node.rank == 0:
            all_of_them = [struct.unpack("<QQ", results.pop() or b"") for _ in range(workers)]
            taken, computed = (sum(column) for column in zip(*all_of_them))
            print(f"{taken} blocks were in the cache, {computed} were computed", flush=True)
            for _ in range(workers - 1):
                leave.push(b"")
            for _ in range(workers - 1):
                left.pop()  # this member has the queues
        else:
            leave.pop()  # nobody takes blocks away with it before all are ready
            left.push(b"")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=32, help="what each worker contributes")
    options = parser.parse_args()
    group, workers = f"cache-{os.getpid()}", options.workers
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=work, args=(group, workers, options.blocks, i)) for i in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(process.exitcode or 0 for process in processes))


if __name__ == "__main__":
    main()
