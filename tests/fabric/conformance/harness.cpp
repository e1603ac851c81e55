#include "fabric/conformance/harness.hpp"

#include <algorithm>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace dunlin::conformance {

namespace {

[[noreturn]] void in_vain(std::string_view what) {
  throw std::runtime_error("waited in vain until " + std::string(what));
}

}  // namespace

void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.variant; }

void Group::record_events() {
  for (Rank r = 0; r < size(); ++r) {
    auto mine = std::make_unique<Belongings>();
    mine->subscription = node(r).subscribe([&log = mine->events](const Event& e) {
      log.push_back({e.kind, e.peer, e.region, std::string(e.text)});
    });
    belongings_.push_back(std::move(mine));
  }
}

Region& Group::allocate(Rank rank, const RegionSpec& spec) {
  auto& regions = belongings_[rank]->regions;
  regions.push_back(node(rank).allocate(spec));
  return regions.back();
}

void Group::release(Rank rank, RegionId id) {
  for (Region& region : belongings_[rank]->regions) {
    if (region.id() == id) region = Region();
  }
}

const std::vector<SeenEvent>& Group::events(Rank rank) const { return belongings_[rank]->events; }

void Group::bury(Rank rank) {
  // Never destroyed, and reachable, so that no leak is reported. What a test still wants to know
  // (the events seen before death) is copied.
  static auto& graveyard = *new std::vector<std::unique_ptr<Belongings>>;
  auto successor = std::make_unique<Belongings>();
  successor->events = belongings_[rank]->events;
  graveyard.push_back(std::exchange(belongings_[rank], std::move(successor)));
}

void Conformance::until(std::string_view what, const std::function<bool()>& condition) {
  bool held = false;  // conditions may act: what held is not asked again
  if (!group_->run_until([&] { return held = held || condition(); })) in_vain(what);
}

void Conformance::until_finished(const Completion& completion, std::string_view what) {
  until(what, [&] { return completion.finished(); });
}

void Conformance::run(std::string_view what, std::vector<Program> programs) {
  programs.resize(group_->size());
  if (!group_->run(programs)) in_vain(what);
}

void Conformance::let_time_pass() {
  for (int round = 0; round < 50; ++round) group_->poll_all();
}

Shared Conformance::share(const std::string& name, std::size_t bytes) {
  std::vector<Region*> regions;
  for (Rank r = 0; r < group_->size(); ++r) {
    if (!group_->alive(r)) {
      regions.push_back(nullptr);
      continue;
    }
    regions.push_back(&group_->allocate(r, {.name = name, .bytes = bytes}));
    node(r).announce(*regions.back());
  }
  Shared shared(std::move(regions));
  until("all nodes are connected to " + name, [&] { return all_connected(shared); });
  return shared;
}

bool Conformance::all_connected(const Shared& shared) {
  for (Rank from = 0; from < group_->size(); ++from) {
    for (Rank to = 0; to < group_->size(); ++to) {
      if (!group_->alive(from) || !group_->alive(to)) continue;
      if (!node(from).connected(to, shared.id(from))) return false;
    }
  }
  return true;
}

std::size_t Conformance::seen(Rank at, Event::Kind kind, Rank about) {
  const auto& events = group_->events(at);
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(),
                    [&](const SeenEvent& e) { return e.kind == kind && e.peer == about; }));
}

std::size_t Conformance::seen(Rank at, Event::Kind kind, Rank about, RegionId region) {
  const auto& events = group_->events(at);
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(),
      [&](const SeenEvent& e) { return e.kind == kind && e.peer == about && e.region == region; }));
}

std::string Conformance::text_of(Rank at, Event::Kind kind, Rank about) {
  std::string text;
  for (const SeenEvent& e : group_->events(at)) {
    if (e.kind == kind && e.peer == about) text = e.text;
  }
  return text;
}

void Conformance::post(Rank from, const Operation& operation) {
  Posted posted;
  until("there is room for an operation", [&] {
    posted = node(from).post(operation);
    return posted.refusal != Refusal::queue_full;
  });
  if (!posted.all()) {
    throw std::runtime_error("an operation was refused: " + std::string(describe(posted.refusal)));
  }
}

void Conformance::post_and_finish(Rank from, const Operation& operation, Notify how) {
  Completion done;
  post(from, operation.notify(done, how));
  until_finished(done);
  EXPECT_FALSE(done.failed());
}

void Conformance::send(Rank from, Rank to, std::uint32_t channel,
                       std::span<const std::byte> message) {
  Refusal refusal = Refusal::none;
  until("there is room for a message", [&] {
    refusal = node(from).send(to, channel, message);
    return refusal != Refusal::queue_full;
  });
  if (refusal != Refusal::none) {
    throw std::runtime_error("a message was refused: " + std::string(describe(refusal)));
  }
}

}  // namespace dunlin::conformance
