#pragma once

#include <cstdint>
#include <span>

#include "fabric/bytes.hpp"
#include "log/log.hpp"
#include "multicast/restart.hpp"

/// The records of a durable subgroup's log (docs/formats/log.md).
namespace dunlin::multicast {

/// Kinds of records.
enum class Entry : std::uint32_t {
  view = 1,     // number, how many members; for each: length of its name, and the name
  message = 2,  // MessageHead; the bytes of the sender's record
  fragment = 3  // as `message`; the sender's next record goes on with the message
};

/// The head of a message's record. `sender` is an index into the view's members.
struct MessageHead {
  std::uint64_t slot;
  std::uint64_t sender;
};

[[nodiscard]] inline bool is(const log::Record& record, Entry kind) noexcept {
  return record.kind == static_cast<std::uint32_t>(kind);
}
/// Throws Error if the bytes were too few.
void check(const Reader& reader);
/// Both throw Error.
[[nodiscard]] LoggedView read_view(Reader& reader);
[[nodiscard]] LoggedView read_view(std::span<const std::byte> payload);
void write_view(Writer& writer, const LoggedView& view);

}  // namespace dunlin::multicast
