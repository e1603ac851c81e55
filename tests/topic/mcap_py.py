"""Reads and writes MCAP files by the PyPI package mcap, as another program would.

mcap_py.py read FILE                          checks all CRCs, and prints what the file has
mcap_py.py write FILE COMPRESSION TYPE_TEXT   numbers 0 to 19 on topic "numbers", as plain structs of 8 bytes
"""

import struct
import sys

from mcap.reader import make_reader
from mcap.records import Message
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, IndexType, Writer


def read(path):
    with open(path, "rb") as stream:  # from begin to end: the CRCs of chunks and of the data section
        records = list(StreamReader(stream, validate_crcs=True).records)
    streamed = sum(isinstance(one, Message) for one in records)
    with open(path, "rb") as stream:  # by the indexes
        reader = make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        count = 0
        last = 0
        for schema, channel, message in reader.iter_messages():
            assert schema.encoding == "x-dunlin", schema
            assert message.log_time >= last
            last = message.log_time
            count += 1
        for channel in sorted(summary.channels.values(), key=lambda one: one.id):
            of = summary.statistics.channel_message_counts.get(channel.id, 0)
            topic = len(list(reader.iter_messages(topics=[channel.topic])))
            print(f"{channel.topic} {channel.message_encoding} {of} {topic} {sorted(channel.metadata)}")
        assert summary.statistics.message_count == count == streamed
        assert summary.statistics.chunk_count == len(summary.chunk_indexes)
        print(f"{count} messages, {len(summary.schemas)} schemas")


def write(path, compression, type_text):
    chunked = compression != "unchunked"
    kind = CompressionType[compression.upper()] if chunked else CompressionType.NONE
    with open(path, "wb") as stream:
        writer = Writer(stream, chunk_size=100, compression=kind, use_chunking=chunked,
                        index_types=IndexType.ALL if chunked else IndexType.NONE)
        writer.start(library="python")
        schema = writer.register_schema(type_text.split(" ")[0], "x-dunlin", type_text.encode())
        channel = writer.register_channel("numbers", "x-dunlin-plain", schema)
        for number in range(20):
            time_ns = 1_000_000_000 + number * 1_000
            writer.add_message(channel, time_ns, struct.pack("<Q", number), time_ns, number)
        writer.finish()


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(sys.argv[2])
    else:
        write(*sys.argv[2:])
