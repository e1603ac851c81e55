"""Nodes in the manner of ROS: publishers, subscriptions, timers, and spin().

    python robot.py [--scans 50]

A `RobotNode` is the node of one process. Its callbacks are coroutines, of which one event loop runs one at a time. Three
processes are a robot: the lidar publishes a scan at each tick of a timer, the driver turns away from what a scan shows
to be near, and the base integrates the commands and publishes where it is. The types of the topics are those of C++
structs of the same names, so each node could as well be a C++ program.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import multiprocessing
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any

import numpy as np

import dunlin

BEAMS = 36


@dataclass
class Scan:
    number: int
    ranges: Annotated[np.ndarray, dunlin.Array(np.float32, BEAMS)]  # in metres, counter-clockwise from straight ahead


@dataclass
class Twist:
    scan: int        # the scan that the command answers
    linear: float    # metres a scan
    angular: float   # radians a scan


@dataclass
class Pose:
    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0
    scan: int = 0    # the last one that the pose contains


class RobotNode:
    """The node of one process: publishers, subscriptions and timers by name. Call it inside an event loop."""

    def __init__(self, robot: str, name: str, nodes: list[str]):
        self.name = name
        self._node = dunlin.join(robot, names=nodes, name=name, timeout=60)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()

    def __enter__(self) -> RobotNode:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._node.close()

    def publisher(self, topic: str, type: type) -> Any:
        """What `await publisher.aio.write(sample)` publishes, all subscribers get, in one order."""
        return self._node.topic(topic, type, reads=False, reliable=True)

    def subscribe(self, topic: str, type: type, callback: Callable[[Any], Awaitable[None]]) -> None:
        """Awaits `callback(sample)` for each sample that comes."""
        samples = self._node.topic(topic, type, writes=False, reliable=True)

        async def take() -> None:
            async for sample in samples:
                await callback(sample)

        self._tasks.append(asyncio.create_task(take()))

    def every(self, seconds: float, callback: Callable[[], Awaitable[None]]) -> None:
        """Awaits `callback()` at each tick of a timer."""
        async def tick() -> None:
            while True:
                await asyncio.sleep(seconds)
                await callback()

        self._tasks.append(asyncio.create_task(tick()))

    def stop(self) -> None:
        """Ends spin()."""
        self._stopped.set()

    async def spin(self) -> None:
        """Lets the callbacks run until one of them calls stop(), or raises."""
        stopped = asyncio.create_task(self._stopped.wait())
        ended, _ = await asyncio.wait([stopped, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in [stopped, *self._tasks]:
            task.cancel()
        for task in ended:
            task.result()  # raises what a callback raised


async def lidar(node: RobotNode, scans: int) -> None:
    """A wall stands one metre ahead of the robot, and comes no nearer."""
    scan_topic = node.publisher("scan", Scan)
    angles = np.linspace(0, 2 * np.pi, BEAMS, endpoint=False)
    ranges = np.where(np.cos(angles) > 0.1, 1 / np.maximum(np.cos(angles), 0.1), 10.0).astype(np.float32)
    number = 0

    async def publish() -> None:
        nonlocal number
        if number < scans:
            number += 1
            await scan_topic.aio.write(Scan(number, ranges))

    async def watch(pose: Pose) -> None:
        if pose.scan == scans:
            node.stop()

    node.subscribe("pose", Pose, watch)
    await scan_topic.aio.wait_for_readers(1)
    node.every(0.001, publish)
    await node.spin()


async def driver(node: RobotNode, scans: int) -> None:
    """Turns while something is within two metres ahead."""
    commands = node.publisher("command", Twist)

    async def answer(scan: Scan) -> None:
        await commands.aio.wait_for_readers(1)
        is_near = scan.ranges.min() < 2
        await commands.aio.write(Twist(scan.number, 0.0 if is_near else 0.1, math.pi / 100 if is_near else 0.0))

    async def watch(pose: Pose) -> None:
        if pose.scan == scans:
            node.stop()

    node.subscribe("pose", Pose, watch)
    node.subscribe("scan", Scan, answer)
    await node.spin()


async def base(node: RobotNode, scans: int) -> None:
    """Integrates the commands."""
    poses = node.publisher("pose", Pose)
    pose = Pose()

    async def move(command: Twist) -> None:
        await poses.aio.wait_for_readers(2)
        pose.heading += command.angular
        pose.x += command.linear * math.cos(pose.heading)
        pose.y += command.linear * math.sin(pose.heading)
        pose.scan = command.scan
        await poses.aio.write(pose)
        if pose.scan == scans:
            print(f"after {pose.scan} scans: x {pose.x:.2f}, y {pose.y:.2f}, heading {math.degrees(pose.heading):.0f}")
            node.stop()

    node.subscribe("command", Twist, move)
    await node.spin()


def run(robot: str, name: str, scans: int) -> None:
    async def main() -> None:
        with RobotNode(robot, name, list(NODES)) as node:
            await NODES[name](node, scans)

    asyncio.run(main())


NODES: dict[str, Callable[[RobotNode, int], Awaitable[None]]] = {"lidar": lidar, "driver": driver, "base": base}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scans", type=int, default=50)
    options = parser.parse_args()
    robot = f"robot-{os.getpid()}"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=run, args=(robot, name, options.scans)) for name in NODES]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(max(abs(process.exitcode or 0) for process in processes))


if __name__ == "__main__":
    main()
