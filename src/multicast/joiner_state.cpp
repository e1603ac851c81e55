#include "multicast/joiner_state.hpp"

#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

namespace dunlin::multicast {
namespace {

void write(Writer& writer, const Known& known) {
  writer.u64(known.slots);
  writer.u32(static_cast<std::uint32_t>(known.fragments.size()));
  for (const std::uint64_t fragment : known.fragments) writer.u64(fragment);
}

[[nodiscard]] Known read_known(Reader& reader) {
  Known known{.slots = reader.u64()};
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left)
    known.fragments.push_back(reader.u64());
  return known;
}

/// How far a state of this member reaches into a sender's slots. The state that the member itself
/// took may have messages that the member has not received yet.
[[nodiscard]] Known known_of(const OpenView& view, std::size_t sender_rank) {
  Known known = view.view->passed(sender_rank);
  if (!view.had.empty()) known.extend(view.had[view.subgroup.senders[sender_rank]]);
  return known;
}

}  // namespace

std::vector<std::byte> JoinerState::give(OpenView& view) const {
  std::vector<std::byte> head;
  Writer writer(head);
  const std::size_t senders = view.subgroup.senders.size();
  writer.u32(static_cast<std::uint32_t>(senders));
  for (std::size_t sender_rank = 0; sender_rank < senders; ++sender_rank)
    write(writer, known_of(view, sender_rank));
  view.before.write(writer);
  writer.u32(save_ ? 1 : 0);
  std::vector<std::byte> state = joined(head, save_ ? save_() : std::vector<std::byte>());
  if (state.size() > kMaxStateBytes)
    throw Error(who_ + "its state has " + std::to_string(state.size()) + " bytes; at most " +
                std::to_string(kMaxStateBytes) + " (kMaxStateBytes) can be given to a new member");
  return state;
}

void JoinerState::take(std::span<const std::byte> state, OpenView& view) {
  Reader reader(state);
  const std::vector<std::uint32_t>& senders = view.subgroup.senders;
  std::vector<Known> had(view.subgroup.members.size());
  const std::uint32_t sender_count = reader.u32();
  for (std::uint32_t sender_rank = 0; sender_rank < sender_count && sender_rank < senders.size();
       ++sender_rank)
    had[senders[sender_rank]] = read_known(reader);
  view.before.read(reader);
  const bool saved = reader.u32() != 0;
  if (!reader.good() || sender_count != senders.size())
    throw Error(who_ + "cannot load the state that another member sent: its " +
                std::to_string(state.size()) +
                " bytes do not describe this view; do all members use the same release?");
  if (!saved)
    throw Error(who_ +
                "this member needs a state, and the member that it asked has no `save` handler: "
                "call on_state at all members, or at none");
  load_(reader.rest());
  view.had = std::move(had);
  awaited_ = false;
}

}  // namespace dunlin::multicast
