#include "kmers/counter.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace dunlin::kmers {

using container::Handled;
using container::MapApplied;
using container::MapCall;
using remote::Status;

namespace {

constexpr std::uint64_t kKmersPerWord = 5;  // in the Bloom filter

}  // namespace

KmerCounter::KmerCounter(Containers& containers, const CountOptions& options, std::uint32_t slots)
    : slots_(slots),
      map_(containers,
           {.name = "kmers",
            .slots = slots,
            .style = containers.fabric().properties().atomics_coherent_with_cpu ? Style::automatic
                                                                                : Style::message}) {
  if (options.filter)
    filter_.emplace(
        containers,
        BloomFilterOptions{.name = "kmers",
                           .words = static_cast<std::uint32_t>(slots / kKmersPerWord + 1)});
  // A pass of another member may have begun while this one waits for the end of the last.
  for (const Pass pass : {Pass::filter, Pass::count, Pass::all})
    batches_.push_back(std::make_unique<Aggregator<Kmer>>(
        containers,
        AggregatorOptions{.name = fmt::format("kmers {}", static_cast<int>(pass)),
                          .elements = kBatchElements},
        Aggregator<Kmer>::BatchHandler(
            [this, pass](Rank, std::span<const Kmer> kmers) { return take(pass, kmers); })));
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    map_calls_.emplace_back();
    filter_calls_.emplace_back();
  }
}

void KmerCounter::begin(Pass pass, Style style) {
  pass_ = pass;
  style_ = style;
  waits_ = 0;
}

void KmerCounter::demand_room(Status status) const {
  if (status == Status::full)
    throw Error(
        fmt::format("the map is full: give each member more than {} slots (--slots)", slots_));
  if (status != Status::ok)
    throw Error("a k-mer cannot be counted: " + remote::describe(status, "map"));
}

void KmerCounter::add(Kmer kmer) {
  if (style_ == Style::message) {
    const Status status = batches_[static_cast<std::size_t>(pass_)]->add(map_.home_of(kmer), kmer);
    if (status != Status::ok) demand_room(status);
    return;
  }
  waiting_[waits_++] = kmer;
  if (waits_ == kAtOnce) run_one_sided();
}

void KmerCounter::finish() {
  if (style_ != Style::message) return run_one_sided();
  Aggregator<Kmer>& batches = *batches_[static_cast<std::size_t>(pass_)];
  demand_room(batches.flush());
  if (batches.refused() > 0) demand_room(Status::full);
}

// --- one-sided: all that wait at once, step by step ----------------------------------------------

void KmerCounter::run_one_sided() {
  std::vector<remote::AnyCall> under_way;
  std::array<Kmer, kAtOnce> left{};
  std::size_t many = 0;
  if (pass_ == Pass::all) {
    many = waits_;
    left = waiting_;
  } else {
    for (std::size_t i = 0; i < waits_; ++i) {
      if (pass_ == Pass::filter) {
        filter_calls_[i] = filter_->insert(waiting_[i]);
        under_way.emplace_back(&filter_calls_[i]);
      } else {
        map_calls_[i] = map_.find(waiting_[i], Promise::both, Style::one_sided);
        under_way.emplace_back(&map_calls_[i]);
      }
    }
    remote::wait_all(under_way, remote::kForever);
    for (std::size_t i = 0; i < waits_; ++i) {
      const bool filters = pass_ == Pass::filter;
      demand_room(filters ? filter_calls_[i].status() : map_calls_[i].status());
      if (filters ? filter_calls_[i].result().found() : map_calls_[i].result().found())
        left[many++] = waiting_[i];
    }
  }
  under_way.clear();
  for (std::size_t i = 0; i < many; ++i) {
    map_calls_[i] = pass_ == Pass::filter ? map_.insert(left[i], 0, Promise::both, Style::one_sided)
                                          : map_.add(left[i], 1, Promise::both, Style::one_sided);
    under_way.emplace_back(&map_calls_[i]);
  }
  remote::wait_all(under_way, remote::kForever);
  for (std::size_t i = 0; i < many; ++i) demand_room(map_calls_[i].status());
  waits_ = 0;
}

// --- by messages: batches, which the member that holds the k-mers works off ----------------------

MapApplied KmerCounter::apply(MapCall call, Kmer kmer, std::uint32_t value) {
  alignas(8) std::array<std::byte, sizeof kmer + sizeof value> payload;
  std::memcpy(payload.data(), &kmer, sizeof kmer);
  std::memcpy(payload.data() + sizeof kmer, &value, sizeof value);
  // Nothing but batches is used on the map in this style.
  return map_.core().apply(call, Promise::local, payload.data());
}

bool KmerCounter::take_one(Pass pass, Kmer kmer, bool& refused) {
  MapApplied applied = Status::ok;
  if (pass == Pass::filter) {
    if (filter_->insert_local(kmer)) applied = apply(MapCall::insert, kmer, 0);
  } else {
    if (pass == Pass::count) applied = apply(MapCall::find, kmer, 0);
    if (pass == Pass::all || applied.found()) applied = apply(MapCall::add, kmer, 1);
  }
  refused = !applied.is_again() && applied.status() != Status::ok;
  return !applied.is_again();
}

Handled KmerCounter::take(Pass pass, std::span<const Kmer> kmers) {
  Handled handled;
  for (const Kmer kmer : kmers) {
    bool refused = false;
    if (!take_one(pass, kmer, refused)) break;
    ++handled.taken;
    handled.refused += refused ? 1 : 0;
  }
  return handled;
}

}  // namespace dunlin::kmers
