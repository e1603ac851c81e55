"""The dataclasses of the structs that tests/python/partner.cpp has."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

import numpy as np

import dunlin


@dataclass
class Shape:
    color: dunlin.Key[dunlin.Text[16]]
    x: np.int32
    y: np.int32
    size: float
    rgb: Annotated[np.ndarray, dunlin.Array(np.float32, 3)]
    filled: bool


class Gear(enum.IntEnum):
    PARK = 0
    DRIVE = 1


@dataclass
class Point:
    x: np.int16
    y: np.uint64
    dunlin_name = "robot::Point"


@dataclass
class Note:
    text: str
    data: bytes
    number: int | None
    points: list[Point]
    samples: dunlin.Array[np.float64]
    names: dunlin.Array[dunlin.Text[5], 2, 2]
    corners: dunlin.Array[Point, 2]
    words: list[str]
    lists: dunlin.Array[dunlin.Array[np.uint16], 2]
    origin: Point | None
    triples: list[dunlin.Array[np.int8, 3]]
    gear: Gear
    flags: dunlin.Array[bool, 3]
    dunlin_name = "robot::Note"
    dunlin_extensibility = "appendable"


@dataclass
class Row:
    step: np.int32 = 0
    load: float = 0.0
    parts: dunlin.Array[np.float32, 4] = (0.0, 0.0, 0.0, 0.0)
    note: dunlin.Text[64] = ""
    tag: dunlin.Text[3] = ""
    ready: bool = False
    big: np.uint64 = 0
