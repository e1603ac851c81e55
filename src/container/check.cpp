#include "container/check.hpp"

#include <utility>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::container {

Checker::Checker(Hub& hub, const CheckedCalls& calls, const std::string& name, const Site& part)
    : hub_(hub),
      part_(part),
      calls_(calls),
      name_(name),
      site_(hub, "check", name, hub.progress.capacity() * record::kBytes,
            "check of a " + std::string(calls.kind)),
      under_way_(std::size_t{hub.progress.capacity()} * record::kPromises * record::kCalls) {
  site_.announce();
}

Operation Checker::change(Rank home, CheckedCall call, bool up) const noexcept {
  const std::uint64_t one = record::one(call.call);
  return fetch_add(
      home, site_.region(),
      hub_.fabric.rank() * record::kBytes + static_cast<std::uint64_t>(call.promise) * 8,
      up ? one : 0 - one, nullptr);
}

/// A peer may have written the word: any value of it is some calls, or none.
std::string Checker::contradiction(std::span<const std::uint64_t> records, Rank home,
                                   CheckedCall mine) const {
  const bool writes = calls_.writes[mine.call];
  for (Rank rank = 0; rank < hub_.progress.capacity(); ++rank) {
    if (rank == hub_.fabric.rank() || hub_.gone(rank)) continue;
    for (std::uint32_t p = 0; p < record::kPromises; ++p)
      for (std::uint32_t call = 0; call < record::kCalls; ++call) {
        const auto theirs = static_cast<Promise>(p);
        if (record::count_of(records[rank * record::kPromises + p], call) == 0) continue;
        const bool mine_broken = !allows(mine.promise, calls_.writes[call]);
        if (!mine_broken && allows(theirs, writes)) continue;
        const auto of = [&](std::uint32_t one, Rank member, Promise promise) {
          return std::string(calls_.names[one].empty() ? "a call" : calls_.names[one]) +
                 " of member '" + hub_.fabric.member_name(member) + "' (promise '" +
                 std::string(name_of(promise)) + "')";
        };
        return std::string(calls_.kind) + " '" + name_ + "', part of member '" +
               hub_.fabric.member_name(home) +
               "': " + of(mine.call, hub_.fabric.rank(), mine.promise) + " began while " +
               of(call, rank, theirs) + " was under way; '" +
               std::string(name_of(mine_broken ? mine.promise : theirs)) + "' forbids that";
      }
  }
  return {};
}

bool Checker::allows_here(CheckedCall mine) {
  std::vector<std::uint64_t> records(site_.own().size() / 8);
  memory::fetch(records.data(), site_.memory(), site_.own().size());
  std::string sentence = contradiction(records, hub_.fabric.rank(), mine);
  if (sentence.empty()) return true;
  hub_.broken_promise = std::move(sentence);
  return false;
}

void Checker::expect_owed() {
  owed_.reserve(owed_.size() + announced_ + 1);
  ++announced_;
}

void Checker::owe(Rank home, CheckedCall call) noexcept {
  owed_.push_back({home, call});
  hub_.look_again_soon();
}

std::size_t Checker::poll() {
  std::size_t done = 0;
  while (!owed_.empty()) {
    const Owed& owed = owed_.back();
    const Operation lower = change(owed.home, owed.call, false);
    std::size_t accepted = 0;
    if (site_.post(owed.home, std::span(&lower, 1), accepted) == Site::Posted::later) break;
    owed_.pop_back();
    ++done;
  }
  return done;
}

}  // namespace dunlin::container
