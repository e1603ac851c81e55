#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/segment.hpp>

#include "daemon/session.hpp"

/// A session whose client is the test, or a fuzzer, on a simulated fabric of one member; and the
/// segment of somebody else, which must stay as it is.
namespace dunlin::test {

class Hostile {
 public:
  static constexpr attached::Layout kLayout{.slots = 4, .transfer_bytes = 4096};

  Hostile() {
    replied_.reserve(1);
    world_.attach(0, [this] {
      std::size_t done = space_.poll();
      if (session_) done += session_->poll();
      return done;
    });
    segment_ = make({.bytes = 4096, .coherence = Coherence::write});
    secret_ = make({.bytes = 4096, .coherence = Coherence::strict});
    words_.fill(kSecret);
    end_of(space_.put(secret_, bytes_of(words_)));
    end_of(space_.lock(secret_));  // nobody else puts there
  }

  /// Another client comes.
  void begin() {
    memory_.assign(kLayout.bytes() / 64, Line{});
    posted_ = 0;
    session_ = std::make_unique<attached::Session>(
        space_, ledger_, replied_, kLayout, memory(),
        attached::SessionOptions{.owner = ++owner_, .quota_bytes = 16'384, .quota_locks = 4});
  }
  /// It ends; all that it had goes.
  void end() {
    session_->end();
    static_cast<void>(world_.run_until([&] { return session_->over(); }, kLongNs));
    for (const Key key : ledger_.segments_of(owner_)) {
      end_of(space_.release(key));
      ledger_.forget(key);
    }
    session_.reset();
    replied_.clear();
    posted_ = 0;
  }
  [[nodiscard]] bool broke_off() const { return session_->fault() != nullptr; }
  [[nodiscard]] Key segment() const noexcept { return segment_; }

  /// A request as an attachment would publish it.
  void ask(attached::Request request) {
    request.number = ++posted_;
    attached::publish(memory().data() + kLayout.request_at(posted_ - 1), request);
    static_cast<void>(session_->poll());
  }
  void settle() {
    int polls = 0;
    static_cast<void>(world_.run_until([&] { return ++polls > 200; }, kLongNs));
  }

  /// Requests that are nearly right, and bytes that are not.
  template <class Random>
  void write_garbage(Random& random) {
    const std::array keys{segment_.value, secret_.value, std::uint64_t{0}, std::uint64_t{random()},
                          Key::of(0, static_cast<std::uint32_t>(random() % 8), 1).value};
    attached::Request request{
        .key = keys[random() % keys.size()],
        .offset = random() % 3 == 0 ? random() : random() % 5000,
        .argument = random() % 2 == 0 ? UINT64_MAX : random() % 8,
        .bytes = static_cast<std::uint32_t>(random() % 4 == 0 ? random() : random() % 4200),
        .slot =
            static_cast<std::uint16_t>(random() % 20 == 0 ? random() : random() % kLayout.slots),
        .call = static_cast<attached::Call>(random() % 20 == 0 ? random() : 1 + random() % 9),
        .flags = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 2)};
    if (random() % 2 == 0) {
      const std::size_t at = random() % (memory().size() / 8) * 8;
      memory::store(*reinterpret_cast<std::uint64_t*>(memory().data() + at), random());
    }
    if (request.call == attached::Call::allocate) {
      const attached::Wish wish{.bytes = random() % 8192,
                                .coherence = static_cast<std::uint32_t>(random() % 8),
                                .versions = static_cast<std::uint32_t>(random() % 3),
                                .copies = static_cast<std::uint32_t>(random() % 3),
                                .place = static_cast<std::uint32_t>(random() % 2),
                                .name_bytes = static_cast<std::uint32_t>(random() % 3)};
      memory::place(memory().data() + kLayout.buffer_at(request.slot % kLayout.slots), &wish,
                    sizeof wish);
    }
    ask(request);
    if (random() % 3 == 0) settle();
  }

  /// The secret is as it was, and the segment that all may use can be used.
  [[nodiscard]] bool others_are_well() {
    words_.fill(0);
    if (!end_of(space_.get(secret_, bytes_of(words_)))) return false;
    for (const std::uint64_t word : words_)
      if (word != kSecret) return false;
    if (look_up() == remote::Status::released)  // which any client may do
      segment_ = make({.bytes = 4096, .coherence = Coherence::write});
    return put(1) && end_of(space_.get(segment_, bytes_of(words_)));
  }
  /// A member puts these words into the segment that all may use.
  [[nodiscard]] bool put(std::uint64_t word) {
    words_.fill(word);
    return end_of(space_.put(segment_, bytes_of(words_)));
  }

  /// What a member finds in the segment that all may use; 0 if it cannot get it.
  [[nodiscard]] const std::array<std::uint64_t, 512>& content() {
    words_.fill(0);
    if (!end_of(space_.get(segment_, bytes_of(words_)))) words_.fill(0);
    return words_;
  }

  /// For a fuzzer: all of it is the client's.
  [[nodiscard]] std::span<std::byte> memory() {
    return {reinterpret_cast<std::byte*>(memory_.data()), kLayout.bytes()};
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  static constexpr std::uint64_t kSecret = 0x5ec2e7;
  static constexpr std::uint64_t kLongNs = 1'000'000'000;

  bool end_of(SegmentOperation&& operation) {
    return world_.run_until([&] { return operation.finished(); }, kLongNs) && operation.ok();
  }
  remote::Status look_up() {
    std::uint64_t word = 0;
    auto operation = space_.get(segment_, bytes_of(word));
    static_cast<void>(world_.run_until([&] { return operation.finished(); }, kLongNs));
    return operation.status();
  }
  Key make(const SegmentSpec& spec) {
    auto operation = space_.allocate(spec);
    static_cast<void>(world_.run_until([&] { return operation.finished(); }, kLongNs));
    return operation.result().key;
  }

  sim::World world_{sim::profile("ib100"), 1, 1};
  SegmentSpace space_{world_.fabric(0), {.pool_bytes = 1 << 16}};
  attached::Ledger ledger_;
  std::vector<std::uint32_t> replied_;
  std::vector<Line> memory_;
  std::unique_ptr<attached::Session> session_;
  std::uint64_t owner_ = 0;
  std::uint64_t posted_ = 0;
  Key segment_;
  Key secret_;
  std::array<std::uint64_t, 512> words_{};
};

}  // namespace dunlin::test
