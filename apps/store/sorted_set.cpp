#include "store/sorted_set.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "store/command_table.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kScoreBytes = 8;
constexpr std::size_t kHeaderBytes = kScoreBytes + 4;

std::uint64_t uint_at(std::string_view text, std::size_t bytes) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(text[i]);
  return number;
}

void append_uint(std::string& to, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(number >> 8 * i & 0xff);
}

/// A negative zero is equal to zero.
bool comes_before(double score, std::string_view name, const SortedSet::Member& other) noexcept {
  return score != other.score ? score < other.score : name < other.name;
}

}  // namespace

SortedSet::SortedSet(std::string_view value) noexcept
    : rest_(value.substr(std::min(value.size(), kMarkBytes))) {}

std::optional<SortedSet::Member> SortedSet::next() noexcept {
  if (rest_.size() < kHeaderBytes) return {};
  const auto score = std::bit_cast<double>(uint_at(rest_, kScoreBytes));
  const std::size_t bytes = uint_at(rest_.substr(kScoreBytes), kHeaderBytes - kScoreBytes);
  if (bytes > rest_.size() - kHeaderBytes) return {};
  const std::string_view whole = rest_.substr(0, kHeaderBytes + bytes);
  rest_.remove_prefix(whole.size());
  return Member{score, whole.substr(kHeaderBytes), whole};
}

std::optional<SortedSet::Member> SortedSet::find(std::string_view value,
                                                 std::string_view name) noexcept {
  SortedSet members(value);
  while (const auto member = members.next())
    if (member->name == name) return member;
  return {};
}

std::size_t SortedSet::count(std::string_view value) noexcept {
  SortedSet members(value);
  std::size_t count = 0;
  while (members.next()) ++count;
  return count;
}

NamedMembers::NamedMembers(std::span<const std::string_view> words, std::size_t step) {
  all_.reserve(words.size() / step + 1);
  for (std::size_t i = 0; i < words.size(); i += step) all_.push_back({.name = words[i]});
  std::ranges::sort(all_, {}, &Named::name);
  const auto is_same = [](const Named& a, const Named& b) { return a.name == b.name; };
  all_.erase(std::unique(all_.begin(), all_.end(), is_same), all_.end());
}

NamedMembers::Named* NamedMembers::find(std::string_view name) noexcept {
  const auto found = std::ranges::lower_bound(all_, name, {}, &Named::name);
  return found != all_.end() && found->name == name ? &*found : nullptr;
}

void NamedMembers::locate(std::string_view value) noexcept {
  SortedSet members(value);
  while (const auto member = members.next()) {
    Named* const named = find(member->name);
    if (named == nullptr || named->is_there) continue;
    named->found = member->bytes;
    named->score = member->score;
    named->is_there = true;
  }
}

std::size_t NamedMembers::remove() noexcept {
  std::size_t count = 0;
  for (Named& named : all_) {
    if (!named.is_there) continue;
    named.is_there = false;
    named.changed = true;
    ++count;
  }
  return count;
}

/// Copies what stays in runs that are as long as possible.
void NamedMembers::write(std::string_view value, std::string& to) const {
  std::vector<std::string_view> goes;
  std::vector<const Named*> comes;
  std::size_t bytes = std::max(value.size(), kMarkBytes);
  for (const Named& named : all_) {
    if (!named.changed) continue;
    if (!named.found.empty()) goes.push_back(named.found);
    if (!named.is_there) continue;
    comes.push_back(&named);
    bytes += kHeaderBytes + named.name.size();
  }
  std::ranges::sort(goes, {}, [](std::string_view found) { return found.data(); });
  std::ranges::sort(comes, [](const Named* a, const Named* b) {
    return comes_before(a->score, a->name, {b->score, b->name, {}});
  });
  to.assign(kSortedSetMark);
  to.reserve(bytes);
  auto gone = goes.begin();
  auto next = comes.begin();
  const auto append = [&to](const Named& named) {
    append_uint(to, std::bit_cast<std::uint64_t>(named.score), kScoreBytes);
    append_uint(to, named.name.size(), kHeaderBytes - kScoreBytes);
    to += named.name;
  };
  SortedSet members(value);
  std::string_view run;  // stays, and is not copied yet
  while (const auto member = members.next()) {
    for (; next != comes.end() && comes_before((*next)->score, (*next)->name, *member); ++next) {
      to += run;
      run = {};
      append(**next);
    }
    if (gone != goes.end() && gone->data() == member->bytes.data()) {
      ++gone;
      to += run;
      run = {};
    } else {
      const char* const begin = run.empty() ? member->bytes.data() : run.data();
      run = {begin, run.size() + member->bytes.size()};
    }
  }
  to += run;
  for (; next != comes.end(); ++next) append(**next);
}

}  // namespace dunlin::app::resp
