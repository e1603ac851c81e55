#include <sstream>
#include <string>

#include "group/views.hpp"

/// Group::describe(): what each part of a group knows, in words.
namespace dunlin {
namespace group {
namespace {

std::string text_of(const MemberSet& set) {
  std::string text = "{";
  for (const Rank rank : set) text += (text.size() == 1 ? "" : " ") + std::to_string(rank);
  return text + "}";
}

std::string text_of(std::uint64_t generation) {
  constexpr unsigned kBits = Subgroup::kChangeBits;
  return std::to_string(generation >> kBits) + "." +
         std::to_string(generation & ((std::uint64_t{1} << kBits) - 1));
}

std::string words(std::initializer_list<std::pair<const char*, bool>> facts) {
  std::string text;
  for (const auto& [word, holds] : facts)
    if (holds) text += std::string(" ") + word;
  return text;
}

}  // namespace

std::string ViewAgreement::describe() const {
  std::ostringstream out;
  for (Rank rank = 0; rank < table_.size(); ++rank) {
    const bool own = rank == table_.my_row();
    const Row& row = own ? change_.mine() : seen_[rank];
    out << "  row " << rank << (own ? " (own)" : "") << ": suspects " << text_of(row.suspects)
        << ", promised " << row.promised << ", accepted " << row.accepted
        << words({{"leaving", row.leaving}, {"ended", row.ended}, {"lost", !table_.alive(rank)}})
        << '\n';
  }
  return out.str();
}

std::string ControlChannel::describe() const {
  std::ostringstream out;
  out << "  control channel: " << arrived_.size() << " arrived, " << fetching_ << " fetched";
  for (Rank to = 0; to < outgoing_.size(); ++to)
    if (has_more(outgoing_[to]))
      out << ", " << outgoing_[to]->texts.size() << " for rank " << to
          << words({{"(offered)", offers(outgoing_[to])}});
  out << '\n';
  return out.str();
}

std::string SubgroupLeader::describe() const {
  std::ostringstream out;
  out << "  leads: reported " << text_of(reported_) << " of " << names_.size() << ", "
      << outgoing_.size() << " to send\n";
  for (const auto& [name, entry] : entries_)
    out << "    " << name << " " << text_of(entry.generation) << ": members "
        << text_of(entry.members) << ", in " << text_of(entry.in) << ", out " << text_of(entry.out)
        << ", awaited " << text_of(entry.awaited) << ", parting " << text_of(entry.parting)
        << ", behind " << text_of(entry.behind) << ", lacking " << text_of(entry.lacking)
        << words({{"wedging", entry.wedging},
                  {"removed", entry.removed},
                  {"undecided", entry.undecided}})
        << '\n';
  for (const Proposal& proposal : proposals_)
    out << "    proposal " << text_of(proposal.number) << ": accepted "
        << text_of(proposal.accepted) << ", awaited " << text_of(proposal.awaited) << '\n';
  return out.str();
}

std::string ChangingSubgroups::describe() const {
  std::ostringstream out;
  out << "  changing subgroups:" << words({{"works", works_}, {"reported", reported_}}) << ", "
      << held_.size() << " held, " << local_.size() << " local, " << requests_.size()
      << " ask for a state\n";
  for (const auto& membership : memberships_) {
    out << "    " << membership->name << " " << text_of(membership->generation) << ": attempt "
        << membership->attempt
        << words({{"wanted", membership->wants_in},
                  {"waits", membership->waits},
                  {"parted", membership->parted},
                  {"wedged", membership->wedged},
                  {"accepted", membership->accepted.has_value()},
                  {"detached", membership->participant == nullptr},
                  {"lacks_state", membership->lacks_state},
                  {"asked", membership->asked}});
    if (membership->lacks_state)
      out << ", asks " << membership->asks << " of " << membership->whom.size();
    out << '\n';
  }
  if (view_.me == 0) out << leader_.describe();
  return out.str();
}

}  // namespace group

std::string Group::State::describe() const {
  constexpr const char* kStages[] = {"entered", "working", "wedged", "ended"};
  std::ostringstream out;
  out << "group '" << name << "', " << kStages[static_cast<int>(stage_)] << " in " << view
      << " (own place " << view.me << ")" << (leaving_ ? ", leaving" : "") << ", " << past_.size()
      << " past views not settled";
  if (!why.empty()) out << ": " << why;
  out << '\n';
  for (Rank rank = 0; rank < fabric.size(); ++rank)
    if (fabric.failed(rank)) out << "  " << fabric.failure_text(rank) << '\n';
  if (agreement_) out << agreement_->describe();
  out << channel_->describe() << changing->describe();
  return out.str();
}

}  // namespace dunlin
