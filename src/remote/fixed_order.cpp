#include "remote/fixed_order.hpp"

#include <numeric>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "fabric/names.hpp"
#include "fabric/thread_guard.hpp"

namespace dunlin::remote {
namespace {

/// Tells orders of different names apart (FNV-1a).
std::uint64_t hash_of(const std::string& name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

}  // namespace

FixedOrder::FixedOrder(Progress& progress, const OrderOptions& options, AgreedState& state)
    : progress_(progress),
      who_("order '" + options.name + "': "),
      state_(state),
      agreement_((check_subgroup_name(options.name), hash_of(options.name)),
                 progress.fabric().rank(), progress.size()),
      channel_(progress, options.channel,
               [this](Rank from, std::span<const std::byte> message) { receive(from, message); }) {}

bool FixedOrder::ready() const noexcept {
  return begun_ && why_stopped_.empty() && !progress_.stopped();
}

bool FixedOrder::propose(std::span<const std::byte> proposal) {
  DUNLIN_ONE_THREAD(&progress_.fabric());
  if (proposal.size() > kMaxProposalBytes)
    throw Error(who_ + "a proposal has " + std::to_string(proposal.size()) +
                " bytes, and can have " + std::to_string(kMaxProposalBytes) +
                " (kMaxProposalBytes)");
  if (!ready() || !agreement_.propose(proposal)) return false;
  send_all();
  return true;
}

/// A member that sends what this protocol does not send is not followed any further.
void FixedOrder::receive(Rank from, std::span<const std::byte> message) {
  if (!why_stopped_.empty()) return;
  const std::string fault = agreement_.receive(from, message);
  if (!fault.empty())
    why_stopped_ = who_ + "protocol error of member " + std::to_string(from) + ": " + fault;
}

std::size_t FixedOrder::send_all() {
  const std::vector<FixedAgreement::Outgoing> all = agreement_.take_outgoing();
  for (const FixedAgreement::Outgoing& one : all)
    channel_.send(one.to, std::span<const std::byte>(one.message));
  return all.size();
}

/// The order ends here as soon as this process has seen a member fail: not all members may go on to
/// handle what this one has heard to be decided, but then none of them goes on (REM-20).
std::size_t FixedOrder::poll() {
  DUNLIN_ONE_THREAD(&progress_.fabric());
  std::size_t done = 0;
  if (!begun_) {
    begun_ = true;
    std::vector<Rank> members(progress_.size());
    std::iota(members.begin(), members.end(), Rank{0});
    state_.members_are(members);
    ++done;
  }
  done += channel_.poll();
  done += send_all();
  while (ready() && agreement_.next(proposal_)) {
    state_.decided(proposal_);
    ++done;
  }
  return done;
}

}  // namespace dunlin::remote
