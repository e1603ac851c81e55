#include "remote/fixed_agreement.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"

namespace dunlin::remote {

namespace {

constexpr Rank kSequencer = 0;

}  // namespace

FixedAgreement::FixedAgreement(std::uint64_t order, Rank me, std::uint32_t members)
    : order_(order), me_(me), members_(members), has_(members) {
  DUNLIN_ASSERT_ALWAYS(me < members, "REM-20: only members take part in an order");
}

bool FixedAgreement::propose(std::span<const std::byte> proposal) {
  DUNLIN_ASSERT_ALWAYS(proposal.size() <= kMaxProposalBytes, "a proposal fits into a message");
  if (own_under_way_ == kMostUnderWay) return false;
  ++own_under_way_;
  send(kSequencer, Kind::proposal, 0, me_, proposal);
  return true;
}

std::string FixedAgreement::receive(Rank from, std::span<const std::byte> message) {
  Header header{};
  if (message.size() < sizeof header || from >= members_) return "a message is too short";
  std::memcpy(&header, message.data(), sizeof header);
  if (header.order != order_) return "it has an order of another name on this channel";
  const std::span<const std::byte> content = message.subspan(sizeof header);
  switch (header.kind) {
    case Kind::proposal:
      if (me_ != kSequencer || header.proposer != from) return "a proposal went to a wrong member";
      order(from, content);
      return {};
    case Kind::record:
      if (from != kSequencer || header.number != received_ + 1 || header.proposer >= members_)
        return "a record is not the next one";
      records_.push_back({header.proposer, {content.begin(), content.end()}});
      received_ = header.number;
      send(kSequencer, Kind::has, received_, me_, {});
      return {};
    case Kind::has:
      return note(from, header.number);
    case Kind::decided:
      if (from != kSequencer || header.number < decided_ || header.number > received_)
        return "records were decided that are not here";
      decided_ = header.number;
      return {};
  }
  return "a message is of no known kind";
}

void FixedAgreement::order(Rank proposer, std::span<const std::byte> proposal) {
  ++ordered_;
  for (Rank rank = 0; rank < members_; ++rank)
    send(rank, Kind::record, ordered_, proposer, proposal);
}

/// REM-20: member 0 waits for all members, itself included.
std::string FixedAgreement::note(Rank from, std::uint32_t number) {
  if (me_ != kSequencer || number < has_[from] || number > ordered_)
    return "it says to have records that were not sent";
  const std::uint32_t all_had = *std::ranges::min_element(has_);
  has_[from] = number;
  const std::uint32_t all_have = *std::ranges::min_element(has_);
  if (all_have == all_had) return {};
  for (Rank rank = 0; rank < members_; ++rank) send(rank, Kind::decided, all_have, me_, {});
  return {};
}

void FixedAgreement::send(Rank to, Kind kind, std::uint32_t number, Rank proposer,
                          std::span<const std::byte> content) {
  const Header header{order_, number, static_cast<std::uint16_t>(proposer), kind};
  Outgoing& last = outgoing_.emplace_back();
  last.to = to;
  last.message.resize(sizeof header + content.size());
  std::memcpy(last.message.data(), &header, sizeof header);
  std::ranges::copy(content, last.message.begin() + sizeof header);
}

std::vector<FixedAgreement::Outgoing> FixedAgreement::take_outgoing() noexcept {
  return std::exchange(outgoing_, {});
}

bool FixedAgreement::next(std::vector<std::byte>& proposal) {
  if (handed_up_ == decided_) return false;
  DUNLIN_ASSERT(!records_.empty(), "REM-20: what is decided is here");
  ++handed_up_;
  if (records_.front().proposer == me_) --own_under_way_;
  proposal = std::move(records_.front().proposal);
  records_.pop_front();
  return true;
}

}  // namespace dunlin::remote
