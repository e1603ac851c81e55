"""Topics of several packages between two processes, for run.py.

usage: topics.py PACKAGE NAME BYTES    the other process of a pair: answers each burst by one sample

A pair sends bursts of samples one way; the receiver answers each burst by one sample. Each package waits for samples as
its users do: dunlin, Zenoh and Cyclone DDS in a blocking call, iceoryx2, whose receive() never waits, in a loop that
yields.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

BURST = 100


@dataclass
class Blob:
    data: bytes


class Dunlin:
    def __init__(self, name: str, size: int, is_sender: bool):
        import dunlin
        self.node = dunlin.join(name, 2, timeout=60, silence_timeout=0)
        there, back = (self.node.topic(which, Blob, reliable=True, reads=reads, writes=not reads, ring_bytes=4 << 20)
                       for which, reads in (("there", not is_sender), ("back", is_sender)))
        self.sent, self.taken = (there, back) if is_sender else (back, there)
        self.sample = Blob(bytes(size))
        self.sent.wait_for_readers(1)
        self.taken.wait_for_writers(1)

    def send(self) -> None:
        self.sent.write(self.sample)

    def take(self, count: int) -> None:
        while count > 0:
            got = self.taken.take(most=count) or [self.taken.next()]
            count -= len(got)

    def close(self) -> None:
        self.node.close()


class CycloneDds:
    def __init__(self, name: str, size: int, is_sender: bool):
        os.environ["CYCLONEDDS_URI"] = (
            '<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>'
            "</General><Discovery><Peers><Peer address='127.0.0.1'/></Peers>"
            "<ParticipantIndex>auto</ParticipantIndex></Discovery>")
        core, types = (importlib.import_module(f"cyclonedds.{name}") for name in ("core", "idl.types"))
        domain, idl, pub, sub, topic = (importlib.import_module(f"cyclonedds.{name}")
                                        for name in ("domain", "idl", "pub", "sub", "topic"))
        self.minute = importlib.import_module("cyclonedds.util").duration(seconds=60)
        blob: Any = dataclass(type("Blob", (idl.IdlStruct,), {
            "__annotations__": {"data": types.sequence[types.uint8]}, "__module__": __name__}, typename="Blob"))
        qos = core.Qos(core.Policy.Reliability.Reliable(self.minute), core.Policy.History.KeepAll)
        self.participant = domain.DomainParticipant(0)
        topics = [topic.Topic(self.participant, f"{name}_{which}".replace("-", "_"), blob, qos=qos)
                  for which in ("there", "back")]
        there, back = topics if is_sender else reversed(topics)
        self.writer = pub.DataWriter(self.participant, there, qos=qos)
        self.reader = sub.DataReader(self.participant, back, qos=qos)
        self.sample = blob(bytes(size))
        self.waits = core.WaitSet(self.participant)
        self.condition = core.ReadCondition(
            self.reader, core.SampleState.Any | core.ViewState.Any | core.InstanceState.Any)
        self.waits.attach(self.condition)
        while not (self.writer.get_matched_subscriptions() and self.reader.get_matched_publications()):
            os.sched_yield()

    def send(self) -> None:
        self.writer.write(self.sample)

    def take(self, count: int) -> None:
        while count > 0:
            got = self.reader.take(N=count)
            count -= len(got)
            if not got:
                self.waits.wait(self.minute)

    def close(self) -> None:
        del self.waits, self.condition, self.writer, self.reader, self.participant


class Zenoh:
    def __init__(self, name: str, size: int, is_sender: bool):
        import zenoh  # type: ignore[import-not-found,unused-ignore]
        config = zenoh.Config()
        config.insert_json5("scouting/multicast/enabled", "false")
        address = f'["unixsock-stream/{tempfile.gettempdir()}/{name}"]'
        config.insert_json5("listen/endpoints", "[]" if is_sender else address)
        config.insert_json5("connect/endpoints", address if is_sender else "[]")
        self.session = zenoh.open(config)
        there, back = (f"{name}/there", f"{name}/back") if is_sender else (f"{name}/back", f"{name}/there")
        self.publisher = self.session.declare_publisher(there, congestion_control=zenoh.CongestionControl.BLOCK,
                                                        reliability=zenoh.Reliability.RELIABLE, express=False)
        self.subscriber = self.session.declare_subscriber(back, zenoh.handlers.FifoChannel(4 * BURST))
        self.sample = bytes(size)
        while not self.publisher.matching_status.matching:
            os.sched_yield()

    def send(self) -> None:
        self.publisher.put(self.sample)

    def take(self, count: int) -> None:
        for _ in range(count):
            bytes(self.subscriber.recv().payload)

    def close(self) -> None:
        self.session.close()


class Iceoryx2:
    def __init__(self, name: str, size: int, is_sender: bool):
        import iceoryx2  # type: ignore[import-not-found,unused-ignore]
        self.its = iceoryx2
        self.size = size
        iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
        self.node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        there, back = ("there", "back") if is_sender else ("back", "there")
        payload = ctypes.c_uint8 * size

        def service(which: str) -> Any:
            return (self.node.service_builder(iceoryx2.ServiceName.new(f"{name}/{which}")).publish_subscribe(payload)
                    .enable_safe_overflow(False).subscriber_max_buffer_size(2 * BURST)
                    .history_size(0).open_or_create())

        self.sent, self.taken = service(there), service(back)
        self.publisher = self.sent.publisher_builder().create()
        self.subscriber = self.taken.subscriber_builder().create()
        self.sample = payload()
        while self.sent.dynamic_config.number_of_subscribers < 1:
            os.sched_yield()

    def send(self) -> None:
        self.publisher.send_copy(self.sample)

    def take(self, count: int) -> None:
        while count > 0:
            sample = self.subscriber.receive()
            if sample is None:
                os.sched_yield()
                continue
            bytes(sample.payload().contents)
            sample.delete()
            count -= 1

    def close(self) -> None:
        del self.publisher, self.subscriber, self.sent, self.taken, self.node


CLASSES: dict[str, Any] = {"dunlin": Dunlin, "cyclonedds": CycloneDds, "zenoh": Zenoh, "iceoryx2": Iceoryx2}


#: The module that each needs.
MODULES = {"dunlin": "dunlin", "cyclonedds": "cyclonedds", "zenoh": "zenoh", "iceoryx2": "iceoryx2"}


class Pair:
    """This process sends, and another one takes."""

    def __init__(self, kind: str, name: str, size: int):
        self.other = subprocess.Popen([sys.executable, __file__, kind, name, str(size)], stdin=subprocess.PIPE)
        self.its = CLASSES[kind](name, size, True)

    def run(self, count: int) -> None:
        """Sends so many bursts."""
        for _ in range(count):
            for _ in range(BURST):
                self.its.send()
            self.its.take(1)

    def close(self) -> None:
        self.other.kill()  # it waits for a burst
        self.other.wait()
        assert self.other.stdin is not None
        self.other.stdin.close()
        self.its.close()


def main() -> None:
    kind, name, size = sys.argv[1:]
    its = CLASSES[kind](name, int(size), False)
    while True:
        its.take(BURST)
        its.send()


if __name__ == "__main__":
    main()
