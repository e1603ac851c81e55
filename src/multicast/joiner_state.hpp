#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "fabric/bytes.hpp"
#include "multicast/open_views.hpp"

namespace dunlin::multicast {

/// The state that a member gives to a joiner: the bytes of the user's `save`, and how far into the
/// senders' slots of the present view they reach. A joiner that awaits its state neither sends nor
/// delivers.
class JoinerState {
 public:
  /// `who` begins each error's message.
  explicit JoinerState(std::string who) : who_(std::move(who)) {}

  void on_state(Multicast::Save save, Multicast::Load load) {
    save_ = std::move(save);
    load_ = std::move(load);
  }
  /// Whether a joiner has to be given a state.
  [[nodiscard]] bool wanted() const noexcept { return load_ != nullptr; }
  [[nodiscard]] bool saves() const noexcept { return save_ != nullptr; }
  [[nodiscard]] std::vector<std::byte> save() const { return save_(); }
  /// Whether this member is a joiner that has not been given a state yet.
  [[nodiscard]] bool awaited() const noexcept { return awaited_; }
  void begin(bool awaits) noexcept { awaited_ = awaits; }

  /// Throws Error for a state that is too large, and what `save` throws.
  [[nodiscard]] std::vector<std::byte> give(OpenView& view) const;
  /// Throws Error for a state that cannot be loaded, and what `load` throws.
  void take(std::span<const std::byte> state, OpenView& view);

 private:
  std::string who_;
  Multicast::Save save_;
  Multicast::Load load_;
  bool awaited_ = false;
};

}  // namespace dunlin::multicast
