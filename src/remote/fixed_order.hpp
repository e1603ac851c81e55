#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dunlin/remote/agreed_order.hpp>

#include "remote/control_channel.hpp"
#include "remote/fixed_agreement.hpp"

namespace dunlin::remote {

/// The order of a fixed list of members, over messages of the fabric.
class FixedOrder final : public AgreedOrder {
 public:
  /// Throws Error for an invalid name, and for a channel that is in use.
  FixedOrder(Progress& progress, const OrderOptions& options, AgreedState& state);

  [[nodiscard]] bool propose(std::span<const std::byte> proposal) override;
  [[nodiscard]] bool ready() const noexcept override;
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }
  std::size_t poll() override;

 private:
  void receive(Rank from, std::span<const std::byte> message);
  std::size_t send_all();

  Progress& progress_;
  const std::string who_;  // "order 'sum': "
  AgreedState& state_;
  FixedAgreement agreement_;
  ControlChannel channel_;
  bool begun_ = false;
  std::string why_stopped_;
  std::vector<std::byte> proposal_;
};

}  // namespace dunlin::remote
