#include "fabric/stream/stream_backend.hpp"

/// Members that come while the fabric works.
///  STR-J1  The newcomer calls all members, and all newcomers of lower rank. A member refuses a
///      connection without a proof of STR-S7, made with the admission's key, and one whose rank has
///      a stream already or is not expected; a refusal changes nothing. So one that is early calls
///      again.
///  STR-J2  Nothing is said to a newcomer before its stream stands, and our first word is `hello`.
///      It is linked when its own `hello` has come, and hears of all regions then.
///  STR-J3  Growing touches no other stream: buffers, windows and what is under way stay as they
///      are. It happens between two poll()s, so no code holds a reference to an object that moves.
///  STR-J4  A rank without a member has no stream, ever, and one that has gone gives back all that
///      it held but a few bytes.
namespace dunlin::stream {

void StreamBackend::Contact::open() {
  unplaced = Ring<Completion*>(kQueueSlots);
  reads = Ring<Reading>(kQueueSlots);
  atomics = Ring<Atomic>(kQueueSlots);
}

void StreamBackend::Contact::give_back() noexcept {
  unplaced = {};
  reads = {};
  atomics = {};
  next_read = 0;
  greets = false;
}

void StreamBackend::admit(const Admission& admission) {
  if (prove_ == nullptr)
    throw Error("group '" + core().group() +
                "': members cannot come into a fabric over these streams while it works");
  const auto after = static_cast<std::uint32_t>(admission.first + admission.newcomers.size());
  std::vector<Newcomer> newcomers;
  for (Rank rank = admission.first; rank < after; ++rank)
    newcomers.push_back({.endpoint = admission.newcomers[rank - admission.first].endpoint,
                         .ours = prove_(admission.key, rank_, rank),
                         .theirs = prove_(admission.key, rank, rank_)});
  transport_->admit(admission.first, newcomers);
  our_proofs_.resize(after);
  their_proofs_.resize(after);
  remotes_.resize(after);
  for (Rank rank = members_; rank < after; ++rank) contacts_.emplace_back(*transport_, rank);
  unsent_.reserve(contacts_.capacity());
  members_ = after;
  for (Rank rank = admission.first; rank < after; ++rank) {
    const Newcomer& newcomer = newcomers[rank - admission.first];
    our_proofs_[rank] = newcomer.ours;
    their_proofs_[rank] = newcomer.theirs;
    contacts_[rank].came_here = transport_->is_on_this_host(newcomer.endpoint);
    if (contacts_[rank].came_here) ++host_members_;
  }
}

void StreamBackend::leave_elsewhere(Rank newcomer) noexcept {
  transport_->close(newcomer);
  if (std::exchange(contacts_[newcomer].came_here, false)) --host_members_;
}

void StreamBackend::greet_first(Rank peer) {
  contacts_[peer].open();
  contacts_[peer].greets = true;
  send_hello(peer, std::exchange(our_proofs_[peer], {}), silence_timeout_ms_);
}

void StreamBackend::take_link(Rank peer) {
  if (core().failing(peer)) return;
  greet_first(peer);
  if (dozing_) say_dozing(peer, true);
  core().hasten_beats();
}

}  // namespace dunlin::stream
