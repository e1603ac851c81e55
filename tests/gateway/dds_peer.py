"""A DDS application made with the PyPI package cyclonedds: a writer and a reader of one topic.

dds_peer.py DOMAIN TOPIC TYPE [POLICY...]

Each line of standard input is a command: `write JSON`, `dispose JSON`, `unregister JSON` of the writer, which is made by
the first of them; `read`, which makes the reader; `matched N`, which is answered when each of these has an
equal in N other participants; `end`. What the reader takes is printed: `sample JSON`, `disposed KEY`, `no_writers KEY`.
"""

import dataclasses
import json
import os
import select
import sys
from dataclasses import dataclass, field
from typing import Optional

from cyclonedds.core import DDSException, InstanceState, Policy, Qos, SampleState, ViewState
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, final, key
from cyclonedds.idl.types import array, int8, int32, int64, sequence, uint32, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
@final
class Ship(IdlStruct, typename="Ship"):
    name: str
    key("name")
    x: int32 = 0
    y: int32 = 0


@dataclass
@final
class Position(IdlStruct, typename="fleet::Position"):
    ship: uint32
    key("ship")
    number: uint32 = 0


@dataclass
@final
class Setting(IdlStruct, typename="Setting"):
    key: int32 = 0  # a member of that name, and no key
    value: int32 = 0


@dataclass
@final
class Keyless(IdlStruct, typename="Ship"):
    x: int32 = 0


# Two types of one name, which applications ask each other for. Such members end Cyclone DDS 0.10.2.
@dataclass
@final
class Bytes(IdlStruct, typename="Ship"):
    name: str
    key("name")
    x: uint8 = 0
    y: int8 = 0


@dataclass
@final
class MoreBytes(IdlStruct, typename="Ship"):
    name: str
    key("name")
    x: uint8 = 0
    z: array[uint8, 4] = field(default_factory=lambda: [0] * 4)


@dataclass
@final
class Part(IdlStruct, typename="Part"):
    id: int64 = 0
    tags: sequence[str] = field(default_factory=list)


@dataclass
@final
class Mixed(IdlStruct, typename="Mixed"):
    a: uint8
    key("a")
    id: int64
    key("id")
    b: bool = False
    f: float = 0.0
    grid: array[int32, 6] = field(default_factory=lambda: [0] * 6)
    words: sequence[str] = field(default_factory=list)
    rows: sequence[sequence[int32]] = field(default_factory=list)
    parts: sequence[Part] = field(default_factory=list)
    one: Part = field(default_factory=Part)
    two: array[Part, 2] = field(default_factory=lambda: [Part(), Part()])


@dataclass
@appendable
class Note(IdlStruct, typename="Note"):
    id: int32
    key("id")
    page: Optional[int64] = None
    text: Optional[str] = None
    numbers: Optional[sequence[int32]] = None


NESTED = {"one": Part, "parts": Part, "two": Part}
POLICIES = {
    "reliable": [Policy.Reliability.Reliable(duration(seconds=5))],
    "best_effort": [Policy.Reliability.BestEffort],
    "transient_local": [Policy.Durability.TransientLocal, Policy.DurabilityService(0, Policy.History.KeepLast(8), 100, 100, 100)],
    "persistent": [Policy.Durability.Persistent],
    "keep_all": [Policy.History.KeepAll],
    "exclusive": [Policy.Ownership.Exclusive],
    "coherent": [Policy.PresentationAccessScope.Topic(coherent_access=True, ordered_access=False)],
    "no_dispose": [Policy.WriterDataLifecycle(autodispose=False)],
}


def made(kind, values):
    def nested(name, value):
        of = NESTED.get(name)
        if of is None or not isinstance(value, (dict, list)):
            return value
        return of(**value) if isinstance(value, dict) else [of(**one) for one in value]

    return kind(**{name: nested(name, value) for name, value in values.items()})


def say(*words):
    # In one piece, also where Python buffers nothing: who listens may do so late.
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def count(matched):
    """How many it returns; the package fails if there is one more behind its first look at their number."""
    try:
        return len(matched())
    except (DDSException, IndexError):
        return 0


def main(domain, topic_name, kind_name, *names):
    kind = globals()[kind_name]
    participant = DomainParticipant(int(domain))
    policies = [policy for name in names if name in POLICIES for policy in POLICIES[name]]
    partitions = [name[len("partition="):] for name in names if name.startswith("partition=")]
    if partitions:
        policies.append(Policy.Partition(partitions))
    topic = Topic(participant, topic_name, kind)
    writer = reader = None
    awaited = 0
    pending = b""
    say("ready")
    while True:
        ready, _, _ = select.select([0], [], [], 0.005)
        if ready:
            got = os.read(0, 65536)
            if not got:
                return
            pending += got
        while b"\n" in pending:
            line, pending = pending.split(b"\n", 1)
            verb, _, rest = line.decode().partition(" ")
            if verb == "end":
                return
            if verb == "matched":
                awaited = int(rest)
            elif verb == "read":
                reader = DataReader(participant, topic, qos=Qos(*policies))
            else:
                if writer is None:
                    writer = DataWriter(participant, topic, qos=Qos(*policies))
                if verb == "write":
                    writer.write(made(kind, json.loads(rest)))
                elif verb == "dispose":
                    writer.dispose(made(kind, json.loads(rest)))
                elif verb == "unregister":
                    writer.unregister_instance(made(kind, json.loads(rest)))
                elif verb != "writer":
                    raise SystemExit(f"{verb} is no command")
        if awaited and (writer is None or count(writer.get_matched_subscriptions) >= awaited) and (
                reader is None or count(reader.get_matched_publications) >= awaited):
            awaited = 0
            say("matched")
        for sample in reader.take(N=100) if reader else []:
            if sample.sample_info.valid_data:
                say("sample", json.dumps(dataclasses.asdict(sample), sort_keys=True))
                continue
            keys = {name: getattr(sample.key_sample, name)
                    for name in ("name", "ship", "id") if hasattr(sample.key_sample, name)}
            state = sample.sample_info.instance_state
            disposed = state == InstanceState.NotAliveDisposed
            say("disposed" if disposed else "no_writers", json.dumps(keys))


if __name__ == "__main__":
    main(*sys.argv[1:])
