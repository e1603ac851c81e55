#include "multicast/assembler.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/bytes.hpp"
#include "multicast/logged_view.hpp"

namespace dunlin::multicast {
namespace {

[[noreturn]] void refuse(const log::Log& log, std::uint64_t number, const std::string& why) {
  throw Error("log '" + log.name() + "' in '" + log.path() + "': record " + std::to_string(number) +
              " is not what a multicast writes: " + why);
}

}  // namespace

Assembler::Assembler(const log::Log& log, std::uint64_t view, std::vector<std::string> members)
    : log_(log),
      view_(view),
      members_(std::move(members)),
      reassemblies_(members_.size()),
      began_at_(members_.size()) {}

std::optional<Logged> Assembler::add(const log::Record& record) {
  if (held_ != nullptr) std::exchange(held_, nullptr)->let_go();
  if (is(record, Entry::view)) {
    LoggedView view = read_view(record.payload);
    view_ = view.number;
    members_ = std::move(view.members);
    reassemblies_.assign(members_.size(), {});  // messages that the view left incomplete come again
    began_at_.assign(members_.size(), 0);
    return std::nullopt;
  }
  Reader reader(record.payload);
  const std::uint64_t slot = reader.u64(), sender = reader.u64();
  check(reader);
  if (sender >= members_.size()) refuse(log_, record.number, "its view has no such sender");
  Reassembly& reassembly = reassemblies_[sender];
  if (!reassembly.open()) began_at_[sender] = record.number;
  if (!reassembly.add(
          {.message = reader.rest(), .slot = slot, .continues = is(record, Entry::fragment)}))
    return std::nullopt;
  held_ = &reassembly;
  return Logged{.view = view_,
                .sender = members_[sender],
                .message = reassembly.message(),
                .record = record.number};
}

std::optional<std::uint64_t> Assembler::first_open() const noexcept {
  std::optional<std::uint64_t> first;
  for (std::size_t i = 0; i < reassemblies_.size(); ++i)
    if (reassemblies_[i].open()) first = std::min(first.value_or(began_at_[i]), began_at_[i]);
  return first;
}

}  // namespace dunlin::multicast
