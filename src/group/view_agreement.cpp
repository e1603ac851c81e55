#include "group/view_agreement.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::group {
namespace {

[[nodiscard]] std::uint32_t size_of(const std::vector<Rank>& members) noexcept {
  return static_cast<std::uint32_t>(members.size());
}

}  // namespace

ViewAgreement::ViewAgreement(Fabric& fabric, Options options)
    : fabric_(fabric),
      format_(size_of(options.members), options.counts, options.text),
      table_(fabric, format_.layout(), [](std::byte*) {},
             {.name = options.table, .members = options.members, .generation = options.view}),
      change_(size_of(options.members), static_cast<Rank>(table_.my_row())),
      subscription_(fabric.subscribe([this](const Event&) { due_ = true; })),
      seen_(options.members.size()),
      revisions_(options.members.size()) {
  for (Row& row : seen_) {
    row.received.assign(options.counts, 0);
    row.proposal.trim.assign(options.counts, 0);
  }
}

std::size_t ViewAgreement::poll() {
  const std::size_t done = table_.poll();
  bool changed = false;
  for (std::size_t i = 0; i < revisions_.size(); ++i)
    changed |= i != table_.my_row() && format_.revision(table_.row(i)) != revisions_[i];
  if (const CpuCosts* const costs = fabric_.cpu_costs())
    fabric_.spend(costs->predicate_ns + costs->entry_ns * static_cast<double>(revisions_.size()));
  if (!changed || !refresh()) return done;
  due_ = true;
  return done + 1;
}

/// A row that is being changed is read again the next time.
bool ViewAgreement::refresh() {
  bool any = false;
  for (std::size_t i = 0; i < revisions_.size(); ++i) {
    const std::uint64_t revision = format_.revision(table_.row(i));
    if (i == table_.my_row() || revision == revisions_[i]) continue;
    if (!format_.read(table_.row(i), seen_[i])) continue;
    revisions_[i] = revision;
    any = true;
  }
  return any;
}

/// A member that destroys its table without publishing how the view ended has failed, too.
MemberSet ViewAgreement::failed() const noexcept {
  MemberSet failed;
  for (Rank rank = 0; rank < table_.size(); ++rank)
    if (!table_.alive(rank) && !seen_[rank].ended) failed.add(rank);
  return failed;
}

bool ViewAgreement::known_to_all() const noexcept {
  for (Rank rank = 0; rank < table_.size(); ++rank)
    if (rank != table_.my_row() && table_.alive(rank) && !seen_[rank].ended) return false;
  return true;
}

bool ViewAgreement::has_left(Rank rank) const noexcept {
  if (change_.mine().suspects.has(rank)) return false;
  return seen_[rank].leaving ||
         std::ranges::none_of(seen_, [&](const Row& row) { return row.suspects.has(rank); });
}

void ViewAgreement::step(ViewInput input) {
  due_ = false;
  input.failed = failed();
  const auto rows = [this](Rank rank) -> const Row& { return seen_[rank]; };
  bool changed = false;
  while (change_.step(rows, input)) changed = true;
  if (changed) publish();
}

void ViewAgreement::publish() noexcept {
  format_.write(table_.mine(), change_.mine(), ++published_);
  static_cast<void>(table_.push(table_.whole_row()));
}

}  // namespace dunlin::group
