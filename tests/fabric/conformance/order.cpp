#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"
#include "support/rounds.hpp"

/// FAB-F1: put, then signal; signals to one peer arrive in order.
namespace dunlin::conformance {

namespace {

struct Shape {
  std::size_t bytes;
  std::size_t target_shift;
  std::size_t source_shift;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::size_t bytes :
       {1U, 2U, 7U, 8U, 9U, 31U, 63U, 64U, 65U, 127U, 256U, 1000U, 4096U, 10'240U, 70'001U}) {
    for (const std::size_t target : {0U, 1U, 8U, 60U}) {
      for (const std::size_t source : {0U, 5U}) all.push_back({bytes, target, source});
    }
  }
  return all;
}

constexpr std::size_t kFlag = 0;
constexpr std::size_t kAck = 64;
constexpr std::size_t kData = 128;
constexpr std::size_t kBoxBytes = 1 << 17;

/// A stream of numbered messages through a ring of slots: put the slot, write the count; the
/// reader acknowledges, so that no slot is overwritten while it is looked at.
struct Stream {
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kSlotBytes = 200;
  static constexpr std::size_t kBytes = kData + kSlots * kSlotBytes;

  std::uint64_t messages;
  std::uint64_t written = 0;
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;
  std::array<std::array<std::byte, kSlotBytes>, kSlots> source{};
  // What write() takes from must stay as it is as well, where nothing goes inline.
  std::array<std::uint64_t, kSlots> counts{};
  Parcel parcel{};
  std::uint64_t ack = 0;
  Completion ack_done{};

  /// Put up to one slot and its announcement; in one batch, where there is room.
  bool write_some(Fabric& fabric, Rank to, const Shared& box, std::size_t base) {
    const Rank self = fabric.rank();
    if (!parcel.post(fabric)) return false;
    if (written == messages) return box.load(self, base + kAck) == messages;
    if (written - box.load(self, base + kAck) == kSlots) return false;
    const std::size_t slot = written++ % kSlots;
    fill_pattern(source[slot], written);
    counts[slot] = written;
    parcel.fill(
        {put(to, box.id(self), base + kData + slot * kSlotBytes, source[slot].data(), kSlotBytes),
         dunlin::write(to, box.id(self), base + kFlag, &counts[slot], 8)});
    parcel.post(fabric);
    return false;
  }

  bool check_some(Fabric& fabric, Rank from, const Shared& box, std::size_t base) {
    const Rank self = fabric.rank();
    const std::uint64_t arrived = box.load(self, base + kFlag);
    for (; checked < arrived; ++checked) {
      const std::byte* slot = box.memory(self) + base + kData + (checked % kSlots) * kSlotBytes;
      if (!has_pattern({slot, kSlotBytes}, checked + 1)) ++wrong;
    }
    if (ack != checked && ack_done.finished()) {
      const std::uint64_t before = std::exchange(ack, checked);
      const Operation send_line = dunlin::write(from, box.id(self), base + kAck, &ack, 8);
      if (!fabric.post(send_line.notify(ack_done)).all()) ack = before;
    }
    return checked == messages && ack == messages && ack_done.finished();
  }
};

}  // namespace

TEST_P(Order, WhoSeesTheSignalSeesThePutOfAnySizeAndAlignment) {
  start(2);
  const Shared box = share("box", kBoxBytes);
  const std::vector<Shape> todo = shapes();
  std::vector<std::byte> source(kBoxBytes);
  std::uint64_t flag = 0;
  std::uint64_t ack = 0;
  Parcel parcel;
  std::vector<std::size_t> wrong;

  const Program writer = [&] {
    if (!parcel.post(node(0)) || box.load(0, kAck) != flag) return false;
    if (flag == todo.size()) return true;
    const Shape& shape = todo[flag++];
    const std::span bytes(source.data() + shape.source_shift, shape.bytes);
    fill_pattern(bytes, flag);
    parcel.fill({put(1, box.id(0), kData + shape.target_shift, bytes.data(), bytes.size()),
                 write(1, box.id(0), kFlag, &flag, 8)});
    parcel.post(node(0));
    return false;
  };
  const Program reader = [&] {
    if (ack == todo.size()) return true;
    if (box.load(1, kFlag) != ack + 1) return false;
    const Shape& shape = todo[ack];
    if (!has_pattern({box.memory(1) + kData + shape.target_shift, shape.bytes}, ack + 1)) {
      wrong.push_back(shape.bytes);
    }
    // The flag will not change before the acknowledgement is there, so neither does its source.
    ++ack;
    if (!node(1).post(write(0, box.id(1), kAck, &ack, 8)).all()) --ack;
    return false;
  };
  run("all shapes have arrived", {writer, reader});
  EXPECT_EQ(wrong, std::vector<std::size_t>{});
}

TEST_P(Order, HoldsWhileAStreamIsInFlight) {
  start(2);
  const Shared box = share("box", Stream::kBytes);
  Stream stream{.messages = test::rounds(3'000)};
  run("the stream has arrived", {[&] { return stream.write_some(node(0), 1, box, 0); },
                                 [&] { return stream.check_some(node(1), 0, box, 0); }});
  EXPECT_EQ(stream.wrong, 0U);
}

TEST_P(Order, HoldsForEachOfSeveralSendersAtOnce) {
  constexpr std::uint32_t kSenders = 3;
  start(kSenders + 1);
  const Shared box = share("box", kSenders * Stream::kBytes);
  std::array<Stream, kSenders> streams{Stream{.messages = test::rounds(800)},
                                       Stream{.messages = test::rounds(800)},
                                       Stream{.messages = test::rounds(800)}};
  const auto base = [](Rank sender) { return (sender - 1) * Stream::kBytes; };
  const auto sender = [&](Rank r) {
    return [&, r] { return streams[r - 1].write_some(node(r), 0, box, base(r)); };
  };
  const Program reader = [&] {
    bool all = true;
    for (Rank r = 1; r <= kSenders; ++r) {
      all = streams[r - 1].check_some(node(0), r, box, base(r)) && all;
    }
    return all;
  };
  run("all streams have arrived", {reader, sender(1), sender(2), sender(3)});
  for (const Stream& stream : streams) EXPECT_EQ(stream.wrong, 0U);
}

TEST_P(Order, HoldsFromOneSenderToSeveralPeers) {
  start(3);
  const Shared box = share("box", 2 * Stream::kBytes);
  Stream one{.messages = test::rounds(1'000)};
  Stream two{.messages = test::rounds(1'000)};
  const Program sender = [&] {
    const bool first = one.write_some(node(0), 1, box, 0);
    const bool second = two.write_some(node(0), 2, box, Stream::kBytes);
    return first && second;
  };
  run("both streams have arrived",
      {sender, [&] { return one.check_some(node(1), 0, box, 0); },
       [&] { return two.check_some(node(2), 0, box, Stream::kBytes); }});
  EXPECT_EQ(one.wrong, 0U);
  EXPECT_EQ(two.wrong, 0U);
}

TEST_P(Order, HoldsAcrossRegions) {
  start(2);
  const Shared data = share("data", 4096);
  const Shared flag = share("flag", 64);
  std::array<std::byte, 4096> source{};
  for (std::uint64_t round = 1; round <= 50; ++round) {
    fill_pattern(source, round);
    post(0, put(1, data.id(0), 0, source.data(), source.size()));
    post(0, write(1, flag.id(0), 0, &round, 8));
    until("the flag is raised", [&] { return flag.load(1, 0) == round; });
    ASSERT_TRUE(has_pattern({data.memory(1), source.size()}, round));
  }
}

TEST_P(Order, ALaterWriteIsNeverSeenBeforeAnEarlierOne) {
  const std::uint64_t kRounds = test::rounds(4'000);
  constexpr std::size_t kFirst = 0;
  constexpr std::size_t kSecond = 4096;
  start(2);
  const Shared box = share("box", 8192);
  std::vector<std::uint64_t> source(kRounds + 1);
  std::iota(source.begin(), source.end(), 0);
  std::uint64_t round = 1;
  std::size_t half = 0;
  std::uint64_t overtaken = 0;
  const Program writer = [&] {
    if (round > kRounds) return true;
    const std::size_t offset = half == 0 ? kFirst : kSecond;
    if (!node(0).post(write(1, box.id(0), offset, &source[round], 8)).all()) return false;
    if (half == 1) ++round;
    half = 1 - half;
    return false;
  };
  const Program reader = [&] {
    const std::uint64_t second = box.load(1, kSecond);
    const std::uint64_t first = box.load(1, kFirst);
    if (first < second) ++overtaken;
    return second == kRounds;
  };
  run("the last write has arrived", {writer, reader});
  EXPECT_EQ(overtaken, 0U);
}

TEST_P(Order, AWriteNeverGoesBack) {
  const std::uint64_t kRounds = test::rounds(4'000);
  start(2);
  const Shared box = share("box", 64);
  std::vector<std::uint64_t> source(kRounds + 1);
  std::iota(source.begin(), source.end(), 0);
  std::uint64_t written = 0;
  std::uint64_t last = 0;
  std::uint64_t went_back = 0;
  run("the last value has arrived",
      {[&] {
         if (written < kRounds &&
             node(0).post(write(1, box.id(0), 0, &source[written + 1], 8)).all()) {
           ++written;
         }
         return written == kRounds;
       },
       [&] {
         const std::uint64_t now = box.load(1, 0);
         if (now < last) ++went_back;
         last = now;
         return now == kRounds;
       }});
  EXPECT_EQ(went_back, 0U);
}

TEST_P(Order, MessagesArriveInOrderAndWhole) {
  const std::uint64_t kMessages = test::rounds(2'000);
  start(2);
  std::uint64_t heard = 0;
  std::uint64_t wrong = 0;
  const auto size_of = [](std::uint64_t i) { return (i * 37) % (kMaxMessageBytes + 1); };
  node(1).receive(3, [&](Rank from, std::span<const std::byte> message) {
    ++heard;
    if (from != 0 || message.size() != size_of(heard) || !has_pattern(message, heard)) ++wrong;
  });
  std::uint64_t sent = 0;
  std::array<std::byte, kMaxMessageBytes> buffer{};
  run("all messages are heard", {[&] {
                                   if (sent == kMessages) return true;
                                   const std::span message(buffer.data(), size_of(sent + 1));
                                   fill_pattern(message, sent + 1);
                                   if (node(0).send(1, 3, message) == Refusal::none) ++sent;
                                   return false;
                                 },
                                 [&] { return heard == kMessages; }});
  EXPECT_EQ(wrong, 0U);
}

TEST_P(Order, AHandlerSeesEverythingPostedBeforeItsMessage) {
  constexpr std::uint64_t kRounds = 300;
  start(2);
  const Shared box = share("box", kBoxBytes);
  std::array<std::byte, 5000> source{};
  std::uint64_t heard = 0;
  std::uint64_t wrong = 0;
  node(1).receive(0, [&](Rank, std::span<const std::byte> message) {
    std::uint64_t round = 0;
    std::memcpy(&round, message.data(), 8);
    if (!has_pattern({box.memory(1) + kData, source.size()}, round)) ++wrong;
    if (box.load(1, 0) != round || box.load(1, 8) != round) ++wrong;
    heard = round;
  });
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    fill_pattern(source, round);
    post(0, put(1, box.id(0), kData, source.data(), source.size()));
    post(0, write(1, box.id(0), 0, &round, 8));
    post(0, fetch_add(1, box.id(0), 8, 1, nullptr));
    send(0, 1, 0, std::as_bytes(std::span(&round, 1)));
    until("the message is heard", [&] { return heard == round; });
  }
  EXPECT_EQ(wrong, 0U);
}

TEST_P(Order, WhoSeesAnAtomicSeesThePutBeforeIt) {
  constexpr std::uint64_t kRounds = 300;
  start(2);
  const Shared box = share("box", kBoxBytes);
  std::array<std::byte, 700> source{};
  std::uint64_t posted = 0;
  std::uint64_t seen_rounds = 0;
  std::uint64_t wrong = 0;
  std::uint64_t ack = 0;
  Parcel parcel;
  run("all rounds are seen",
      {[&] {
         if (!parcel.post(node(0)) || box.load(0, kAck) != posted) return false;
         if (posted == kRounds) return true;
         fill_pattern(source, ++posted);
         const std::uint64_t before = posted - 1;
         parcel.fill({put(1, box.id(0), kData + 3, source.data(), source.size()),
                      posted % 2 == 0
                          ? fetch_add(1, box.id(0), kFlag, 1, nullptr)
                          : compare_swap(1, box.id(0), kFlag, before, posted, nullptr)});
         parcel.post(node(0));
         return false;
       },
       [&] {
         if (box.load(1, kFlag) == seen_rounds + 1) {
           ++seen_rounds;
           if (!has_pattern({box.memory(1) + kData + 3, source.size()}, seen_rounds)) ++wrong;
         }
         if (ack != seen_rounds) {
           const std::uint64_t before = ack;
           ack = seen_rounds;
           if (!node(1).post(write(0, box.id(1), kAck, &ack, 8)).all()) ack = before;
         }
         return ack == kRounds;
       }});
  EXPECT_EQ(wrong, 0U);
}

/// Signals of three kinds, numbered: a write of its number, an atomic that counts, a message.
/// By STR-S1 a stream applies entries in the order in which they were posted.
TEST_P(Order, SignalsOfAllKindsKeepTheirOrderAmongEachOther) {
  const std::uint64_t kSignals = test::rounds(3'000);
  constexpr std::size_t kWritten = 0;
  constexpr std::size_t kCounted = 512;
  start(2);
  const Shared box = share("box", 1024);
  std::vector<std::uint64_t> source(kSignals + 1);
  std::iota(source.begin(), source.end(), 0);
  std::uint64_t signal = 1;
  std::uint64_t wrong = 0;
  std::uint64_t heard = 0;
  const auto kind_of = [](std::uint64_t s) { return (s * s + s / 5) % 3; };
  std::vector<std::array<std::uint64_t, 3>> before(kSignals + 2);  // how many of each, or the last
  for (std::uint64_t s = 1; s <= kSignals; ++s) {
    before[s + 1] = before[s];
    if (kind_of(s) == 0) before[s + 1][0] = s;
    if (kind_of(s) == 1) ++before[s + 1][1];
    if (kind_of(s) == 2) ++before[s + 1][2];
  }
  node(1).receive(1, [&](Rank, std::span<const std::byte> message) {
    std::uint64_t s = 0;
    std::memcpy(&s, message.data(), 8);
    if (before[s][2] != heard++) ++wrong;
    if (box.load(1, kWritten) < before[s][0] || box.load(1, kCounted) < before[s][1]) ++wrong;
  });
  const Program sender = [&] {
    if (signal > kSignals) return true;
    bool taken = false;
    if (kind_of(signal) == 0) {
      taken = node(0).post(write(1, box.id(0), kWritten, &source[signal], 8)).all();
    } else if (kind_of(signal) == 1) {
      taken = node(0).post(fetch_add(1, box.id(0), kCounted, 1, nullptr)).all();
    } else {
      const auto message = std::as_bytes(std::span(&source[signal], 1));
      taken = node(0).send(1, 1, message) == Refusal::none;
    }
    if (taken) ++signal;
    return false;
  };
  const Program receiver = [&] {
    const std::uint64_t s = box.load(1, kWritten);
    if (box.load(1, kCounted) < before[s][1]) ++wrong;
    // A message that was sent before a visible write is there to be handled.
    while (node(1).poll() > 0) {
    }
    if (heard < before[s][2]) ++wrong;
    const auto& total = before[kSignals + 1];
    return heard == total[2] && box.load(1, kCounted) == total[1] &&
           box.load(1, kWritten) == total[0];
  };
  run("all signals have arrived", {sender, receiver});
  EXPECT_EQ(wrong, 0U);
}

}  // namespace dunlin::conformance
