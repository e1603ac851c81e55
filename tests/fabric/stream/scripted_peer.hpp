#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/stream/frames.hpp"
#include "fabric/stream/stream_backend.hpp"

/// A fabric of rank 0 whose one peer is the test: it says what it likes, and sees every frame.
namespace dunlin::stream::test {

/// Of a region of the peer's: its first announcement at some place.
inline constexpr std::uint32_t kTheirNumber = kMaxRegions + 44;

class ScriptedTransport final : public Transport {
 public:
  std::deque<Bytes> incoming;
  std::vector<Bytes> outgoing;
  std::uint32_t free_buffers = UINT32_MAX;  // that can be committed before the next "completion"
  bool busy = false;                        // a frame is under way
  bool closed = false;
  std::optional<std::string> end = std::nullopt;
  DeviceOperations* devices = nullptr;
  std::function<void(Receiver&)> also;  // in the next progress()

  std::size_t frame_bytes() const noexcept override { return kMinFrameBytes; }
  std::byte* lend(Rank) noexcept override { return free_buffers == 0 ? nullptr : buffer_.get(); }
  void commit(Rank, std::size_t bytes) noexcept override {
    outgoing.emplace_back(buffer_.get(), buffer_.get() + bytes);
    if (free_buffers != UINT32_MAX) --free_buffers;
  }
  bool idle(Rank) const noexcept override { return !busy && free_buffers != 0; }
  void progress(Receiver& receiver) noexcept override {
    if (also) std::exchange(also, nullptr)(receiver);
    while (!incoming.empty() && !closed) {
      const Exact frame(incoming.front());
      incoming.pop_front();
      receiver.take_frame(1, frame.view());
    }
    if (end && !closed) receiver.take_end(1, *std::exchange(end, std::nullopt));
  }
  void close(Rank peer) noexcept override {
    if (peer == 1) closed = true;
  }
  DeviceOperations* device() noexcept override { return devices; }
  void watch(int) override {}
  bool may_wait() noexcept override { return incoming.empty(); }

 private:
  std::unique_ptr<std::byte[]> buffer_ = std::make_unique<std::byte[]>(kMinFrameBytes);
};

class ScriptedPeer {
 public:
  static constexpr std::size_t kBytes = 256;

  /// Its first word is right unless it is told otherwise.
  explicit ScriptedPeer(bool says_hello = true, std::uint32_t silence_timeout_ms = 0,
                        std::uint64_t formed_by_ns = 0, DeviceOperations* devices = nullptr) {
    auto made = std::make_unique<ScriptedTransport>();
    transport = made.get();
    transport->devices = devices;
    Proof theirs{};
    theirs[0] = std::byte{1};
    fabric = make_stream_fabric(Attachment{.kind = "scripted",
                                           .description = "",
                                           .group = "test",
                                           .rank = 0,
                                           .names = {"us", "them"},
                                           .silence_timeout_ms = silence_timeout_ms,
                                           .formed_by_ns = formed_by_ns,
                                           .our_proofs = {Proof{}, Proof{}},
                                           .their_proofs = {Proof{}, theirs},
                                           .transport = std::move(made)});
    events = fabric->subscribe([this](const Event& event) {
      if (event.kind == Event::Kind::peer_failed) ++failures;
    });
    if (says_hello) say(hello());
  }

  [[nodiscard]] static Hello right_hello() {
    Hello hello;
    hello.from = 1;
    hello.to = 0;
    hello.proof[0] = std::byte{1};
    return hello;
  }
  [[nodiscard]] static Bytes hello(const Hello& words = right_hello()) {
    Bytes payload(sizeof words);
    std::memcpy(payload.data(), &words, sizeof words);
    return FrameBuilder().add({.kind = EntryKind::hello}, payload).frame();
  }
  void say(const Bytes& frame) {
    transport->incoming.push_back(frame);
    fabric->poll();
  }
  void say(const EntryHead& head, const Bytes& payload = {}) {
    say(FrameBuilder().add(head, payload).frame());
  }
  /// A region here that the peer knows as number kMaxRegions.
  Region announce_box() {
    Region box = fabric->allocate({.name = "box", .bytes = kBytes});
    fabric->announce(box);
    fabric->poll();
    return box;
  }
  /// And the peer's of the same name, of the same size.
  void announce_theirs() {
    const Announcement words{.generation = 1, .layout_hash = 0, .name = "box"};
    Bytes payload(words.bytes());
    words.encode(payload.data());
    say({.kind = EntryKind::announce, .region = kTheirNumber, .value = kBytes}, payload);
  }
  /// All entries of that kind that were sent to the peer so far.
  [[nodiscard]] std::vector<EntryHead> heard(EntryKind kind) const {
    std::vector<EntryHead> all;
    for (const Bytes& frame : transport->outgoing) {
      FrameReader reader(frame);
      Entry entry;
      while (reader.next(entry))
        if (entry.head.kind == kind) all.push_back(entry.head);
      EXPECT_FALSE(reader.garbage());
    }
    return all;
  }
  void expect_failed(const std::string& because) const {
    EXPECT_TRUE(fabric->failed(1)) << because;
    EXPECT_TRUE(transport->closed);
    EXPECT_EQ(failures, 1);
    EXPECT_NE(fabric->failure_text(1).find(because), std::string::npos) << fabric->failure_text(1);
  }

  ScriptedTransport* transport = nullptr;
  std::unique_ptr<Fabric> fabric;
  int failures = 0;
  Subscription events;
};

}  // namespace dunlin::stream::test
