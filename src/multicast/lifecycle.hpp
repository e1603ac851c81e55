#pragma once

#include <cstdint>

namespace dunlin::multicast {

/// How far a view has come at this member: open, then wedged, then over. Nothing else changes it.
class Lifecycle {
 public:
  /// Messages are sent, received and delivered.
  [[nodiscard]] bool open() const noexcept { return stage_ == Stage::open; }
  /// The trim is known; only what it covers is still delivered.
  [[nodiscard]] bool over() const noexcept { return stage_ == Stage::over; }

  /// To be called when the view will end: the receipts are final.
  void wedge() noexcept { advance_to(Stage::wedged); }
  void end() noexcept { advance_to(Stage::over); }

 private:
  enum class Stage : std::uint8_t { open, wedged, over };

  void advance_to(Stage stage) noexcept {
    if (stage > stage_) stage_ = stage;
  }

  Stage stage_ = Stage::open;
};

}  // namespace dunlin::multicast
