#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/log.hpp"
#include "multicast/long_messages.hpp"

namespace dunlin::multicast {

/// Puts the messages of a log together, from its records in turn.
class Assembler {
 public:
  /// `view` and `members` are those of the view before the first record.
  Assembler(const log::Log& log, std::uint64_t view, std::vector<std::string> members);

  /// The message that ends with this record, if one does. Valid until the next call. Throws Error
  /// for a record that no multicast writes.
  [[nodiscard]] std::optional<Logged> add(const log::Record& record);
  /// The first record of the messages that are incomplete so far; none: there is no such message.
  [[nodiscard]] std::optional<std::uint64_t> first_open() const noexcept;
  [[nodiscard]] std::uint64_t view() const noexcept { return view_; }
  [[nodiscard]] const std::vector<std::string>& members() const noexcept { return members_; }

 private:
  const log::Log& log_;
  std::uint64_t view_;
  std::vector<std::string> members_;
  std::vector<Reassembly> reassemblies_;
  std::vector<std::uint64_t> began_at_;  // the first record of the message in each
  Reassembly* held_ = nullptr;           // has the message that was returned last
};

}  // namespace dunlin::multicast
