#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/remote/agreed_order.hpp>

#include "store/key_values.hpp"

namespace dunlin::app::resp {

/// A server's name for clients; with its name and its number it has room in one proposal.
inline constexpr std::size_t kMaxHostBytes = 128;

/// The servers of a store, and where they are reached: a state on which all servers agree, by the
/// order that ServerDirectory opens. Pure. A server that has ended, or has failed, is in no list.
///
/// A proposal is a line of text without its end: "RANK ID PORT HOST NAME" of a server, or "RANK"
/// alone when it serves no more. A saved state has a line with the ranks of all members, and then
/// the line of each server.
class ServerList final : public remote::AgreedState {
 public:
  void members_are(std::span<const Rank> members) noexcept override;
  /// A proposal that is none of these changes nothing.
  void decided(std::span<const std::byte> proposal) noexcept override;
  [[nodiscard]] std::vector<std::byte> save() const override;
  [[nodiscard]] bool load(std::span<const std::byte> state) noexcept override;

  /// By rank.
  [[nodiscard]] const std::vector<ServedAt>& servers() const noexcept { return servers_; }

  /// The proposal of a server that begins to serve, or ends.
  [[nodiscard]] static std::string proposal_of(const ServedAt& server);
  [[nodiscard]] static std::string proposal_to_end(Rank rank);

 private:
  bool take(std::string_view line);

  std::vector<Rank> members_;
  std::vector<ServedAt> servers_;
};

}  // namespace dunlin::app::resp
