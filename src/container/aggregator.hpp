#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <dunlin/container/aggregator.hpp>

#include "container/hub.hpp"

namespace dunlin::container {

/// The region of an aggregator: docs/formats/container.md.
///
///     a line for each member as a target:  handled batches, refused elements
///     a ring for each member as an origin: batches of a head line and the elements
struct AggregatorState final : Served {
  AggregatorState(Containers& containers, AggregatorSpec its_spec, AggregatorCore::Handler handler);
  ~AggregatorState() override;

  [[nodiscard]] remote::Protocol<remote::Status> wait_for_room(Rank to);
  [[nodiscard]] remote::Protocol<remote::Status> flush();
  [[nodiscard]] std::byte* push(Rank to, std::size_t& count);
  /// Sends the open batch, if there is anything in it, and room; an own one goes to the handler.
  void send_open(Rank to);
  void post_open(Rank to) noexcept;
  /// Hands the elements of a batch over that were not taken yet. If the handler throws, they count
  /// as taken and refused.
  std::size_t hand_over(Rank from, std::span<const std::byte> elements, std::uint64_t& refused);
  /// Whether the open batch takes an element more.
  [[nodiscard]] bool has_room(Rank to) noexcept;
  [[nodiscard]] bool lost(Rank to) const noexcept {
    return to >= targets.size() || targets[to].lost;
  }
  [[nodiscard]] bool is_taken(Rank to) noexcept;
  void look_at(Rank to) noexcept;

  std::size_t poll_part() override;
  std::size_t take_from(Rank from);
  void acknowledge(Rank from) noexcept;
  void members_changed() override;
  void handle(Rank, const MessageHead&, std::span<const std::byte>) override {}

  /// A member as a target.
  struct Target {
    std::vector<std::byte> memory = {};  // of all batches: heads, and elements
    std::uint64_t open = 0;              // the number of the batch that is filled
    std::uint32_t filled = 0;            // elements in it
    std::uint64_t handled = 0;           // batches, by its own word
    std::uint64_t refused = 0;
    std::size_t accepted = 0;  // operations of the batch that is being posted
    bool sending = false;
    bool lost = false;
    Completion completion = {};
  };
  /// A member as an origin.
  struct Origin {
    std::uint64_t next = 0;  // the number of the batch that comes
    std::size_t taken = 0;   // elements of it
    std::uint64_t told = 0;  // how many batches it knows to be handled
    std::uint64_t refused = 0;
    std::array<std::uint64_t, 2> word = {};  // the source of an acknowledgement under way
    Completion completion = {};
  };

  [[nodiscard]] std::uint64_t ring_at(Rank origin, std::uint64_t number) const noexcept {
    return lines_bytes +
           (std::uint64_t{origin} * spec.batches + number % spec.batches) * batch_bytes;
  }
  [[nodiscard]] std::byte* batch_of(Target& target) const noexcept {
    return target.memory.data() + target.open % spec.batches * batch_bytes;
  }
  void finish_batch(Target& target) noexcept;
  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }

  Containers& containers;
  Hub& hub;
  AggregatorSpec spec;
  AggregatorCore::Handler handler;
  std::uint64_t batch_bytes;
  std::uint64_t lines_bytes;
  std::deque<Target> targets;
  std::deque<Origin> origins;
  std::vector<std::byte> image;  // of a batch that is handed over
  bool handing_over = false;
  std::uint32_t flushes = 0;  // under way: polls send what is in the buffers
  Site site;
};

}  // namespace dunlin::container
