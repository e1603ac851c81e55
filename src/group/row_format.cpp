#include "group/row_format.hpp"

#include <algorithm>
#include <array>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "fault_injection.hpp"

namespace dunlin::group {
namespace {

/// The single words at the beginning of a row, in order of declaration.
constexpr std::size_t kBegun = 0;
constexpr std::size_t kSuspects = 1;
constexpr std::size_t kLeaving = 2;
constexpr std::size_t kPromised = 3;
constexpr std::size_t kAccepted = 4;
constexpr std::size_t kEnded = 5;
constexpr std::size_t kSurvivors = 6;
constexpr std::size_t kPlan = 7;
constexpr std::size_t kWords = 8;

// docs/formats/group-row.md
static_assert(kWordBytes == 8);
static_assert(kBegun * kWordBytes == 0);
static_assert(kSuspects * kWordBytes == 8);
static_assert(kLeaving * kWordBytes == 16);
static_assert(kPromised * kWordBytes == 24);
static_assert(kAccepted * kWordBytes == 32);
static_assert(kEnded * kWordBytes == 40);
static_assert(kSurvivors * kWordBytes == 48);
static_assert(kPlan * kWordBytes == 56);
static_assert(kWords * kWordBytes == 64);

[[nodiscard]] std::byte* at(std::byte* row, std::size_t word) noexcept {
  return row + word * kWordBytes;
}
[[nodiscard]] const std::byte* at(const std::byte* row, std::size_t word) noexcept {
  return row + word * kWordBytes;
}
void store(std::byte* to, std::uint64_t value) noexcept {
  memory::store(*reinterpret_cast<std::uint64_t*>(to), value);
}

}  // namespace

RowFormat::RowFormat(std::uint32_t members, std::size_t counts, const std::string& text)
    : members_(members), counts_(counts) {
  constexpr std::array<const char*, kWords> kNames{"begun",    "suspects", "leaving",   "promised",
                                                   "accepted", "ended",    "survivors", "plan"};
  for (const char* const name : kNames) add(name, 1);
  if (counts > 0) {
    received_at_ = add("received:" + text, counts);
    trim_at_ = add("trim", counts);
  }
  end_at_ = add("revision", 1);
}

std::size_t RowFormat::add(const std::string& name, std::size_t count) {
  const std::size_t offset = layout_.row_bytes;
  layout_.columns.push_back({.name = name,
                             .kind = ColumnKind::word,
                             .type = EntryType::u64,
                             .offset = offset,
                             .count = count,
                             .entry_bytes = kWordBytes,
                             .stride_bytes = kWordBytes,
                             .bytes = count * kWordBytes});
  layout_.row_bytes += count * kWordBytes;
  return offset;
}

std::uint64_t RowFormat::load(const std::byte* from) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(from));
}

void RowFormat::write(std::byte* to, const Row& row, std::uint64_t revision) const noexcept {
  DUNLIN_ASSERT_ALWAYS(row.promised == 0 || row.received.size() == counts_,
                       "GRP-C4: a member that has promised has counted each sender");
  DUNLIN_ASSERT_ALWAYS(row.accepted == 0 || row.proposal.trim.size() == counts_,
                       "GRP-C5: a proposal has a count for each sender");
  store(at(to, kBegun), revision);
  store(at(to, kSuspects), row.suspects.bits());
  store(at(to, kLeaving), row.leaving ? 1 : 0);
  store(at(to, kPromised), row.promised);
  store(at(to, kAccepted), row.accepted);
  store(at(to, kEnded), row.ended ? 1 : 0);
  store(at(to, kSurvivors), row.proposal.survivors.bits());
  store(at(to, kPlan), row.proposal.plan);
  for (std::size_t i = 0; i < std::min(counts_, row.received.size()); ++i)
    store(to + received_at_ + i * kWordBytes, row.received[i]);
  for (std::size_t i = 0; i < std::min(counts_, row.proposal.trim.size()); ++i)
    store(to + trim_at_ + i * kWordBytes, row.proposal.trim[i]);
  store(to + end_at_, revision);
}

bool RowFormat::read(const std::byte* from, Row& row) const {
  const std::uint64_t revision = load(from + end_at_);
  const MemberSet all = MemberSet::first(members_);
  const auto set = [&](std::size_t word) { return all - (all - MemberSet(load(at(from, word)))); };
  const auto ballot = [&](std::size_t word) {
    return static_cast<Ballot>(std::min<std::uint64_t>(load(at(from, word)), members_));
  };
  Row found{.suspects = set(kSuspects),
            .leaving = load(at(from, kLeaving)) != 0,
            .received = std::vector<std::uint64_t>(counts_),
            .promised = ballot(kPromised),
            .proposal = {.survivors = set(kSurvivors),
                         .plan = load(at(from, kPlan)),
                         .trim = std::vector<std::uint64_t>(counts_)},
            .accepted = ballot(kAccepted),
            .ended = load(at(from, kEnded)) != 0};
  for (std::size_t i = 0; i < counts_; ++i) {
    found.received[i] = load(from + received_at_ + i * kWordBytes);
    found.proposal.trim[i] = load(from + trim_at_ + i * kWordBytes);
  }
  // An acquire at each step: an owner that has changed any of this has changed `begun` before.
  if (load(at(from, kBegun)) != revision && !is_injected(FaultInjection::torn_row_is_read))
    return false;
  row = std::move(found);
  return true;
}

}  // namespace dunlin::group
