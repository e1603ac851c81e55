#include "group/row_format.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"

namespace dunlin::group {
namespace {

/// The offsets of the words at the beginning of a row, in order of declaration, if a set has
/// `set_words` words. The first word is `begun`, at 0.
struct RowHead {
  std::size_t set_words;
  std::size_t suspects = 1;
  std::size_t leaving = suspects + set_words;
  std::size_t promised = leaving + 1;
  std::size_t accepted = promised + 1;
  std::size_t ended = accepted + 1;
  std::size_t survivors = ended + 1;
  std::size_t plan = survivors + set_words;
  std::size_t end = plan + 1;
};
constexpr std::size_t kBegun = 0;

// docs/formats/group-row.md
constexpr RowHead kOneWord{1};
constexpr RowHead kFourWords{4};
static_assert(kWordBytes == 8 && MemberSet::kWords == 4);
static_assert(kOneWord.suspects * kWordBytes == 8 && kFourWords.suspects * kWordBytes == 8);
static_assert(kOneWord.leaving * kWordBytes == 16 && kFourWords.leaving * kWordBytes == 40);
static_assert(kOneWord.promised * kWordBytes == 24 && kFourWords.promised * kWordBytes == 48);
static_assert(kOneWord.accepted * kWordBytes == 32 && kFourWords.accepted * kWordBytes == 56);
static_assert(kOneWord.ended * kWordBytes == 40 && kFourWords.ended * kWordBytes == 64);
static_assert(kOneWord.survivors * kWordBytes == 48 && kFourWords.survivors * kWordBytes == 72);
static_assert(kOneWord.plan * kWordBytes == 56 && kFourWords.plan * kWordBytes == 104);
static_assert(kOneWord.end * kWordBytes == 64 && kFourWords.end * kWordBytes == 112);

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
  add("begun", 1);
  add("suspects", set_words());
  for (const char* const name : {"leaving", "promised", "accepted", "ended"}) add(name, 1);
  add("survivors", set_words());
  add("plan", 1);
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
  const RowHead head{set_words()};
  const auto store_set = [&](std::size_t word, const MemberSet& set) {
    for (std::size_t i = 0; i < head.set_words; ++i) store(at(to, word + i), set.word(i));
  };
  store(at(to, kBegun), revision);
  store_set(head.suspects, row.suspects);
  store(at(to, head.leaving), row.leaving ? 1 : 0);
  store(at(to, head.promised), row.promised);
  store(at(to, head.accepted), row.accepted);
  store(at(to, head.ended), row.ended ? 1 : 0);
  store_set(head.survivors, row.proposal.survivors);
  store(at(to, head.plan), row.proposal.plan);
  for (std::size_t i = 0; i < std::min(counts_, row.received.size()); ++i)
    store(to + received_at_ + i * kWordBytes, row.received[i]);
  for (std::size_t i = 0; i < std::min(counts_, row.proposal.trim.size()); ++i)
    store(to + trim_at_ + i * kWordBytes, row.proposal.trim[i]);
  store(to + end_at_, revision);
}

bool RowFormat::read(const std::byte* from, Row& row) const {
  const std::uint64_t revision = load(from + end_at_);
  const RowHead head{set_words()};
  const MemberSet all = MemberSet::first(members_);
  const auto set = [&](std::size_t word) {
    MemberSet found;
    for (std::size_t i = 0; i < head.set_words; ++i) found.set_word(i, load(at(from, word + i)));
    return found & all;
  };
  const auto ballot = [&](std::size_t word) {
    return static_cast<Ballot>(std::min<std::uint64_t>(load(at(from, word)), members_));
  };
  Row found{.suspects = set(head.suspects),
            .leaving = load(at(from, head.leaving)) != 0,
            .received = std::vector<std::uint64_t>(counts_),
            .promised = ballot(head.promised),
            .proposal = {.survivors = set(head.survivors),
                         .plan = load(at(from, head.plan)),
                         .trim = std::vector<std::uint64_t>(counts_)},
            .accepted = ballot(head.accepted),
            .ended = load(at(from, head.ended)) != 0};
  for (std::size_t i = 0; i < counts_; ++i) {
    found.received[i] = load(from + received_at_ + i * kWordBytes);
    found.proposal.trim[i] = load(from + trim_at_ + i * kWordBytes);
  }
  // GRP-C9: an acquire at each step, and an owner that has changed any of this has changed `begun`
  // before. So if that has not changed, all words are of one revision.
  if (load(at(from, kBegun)) != revision) return false;
  row = std::move(found);
  return true;
}

}  // namespace dunlin::group
