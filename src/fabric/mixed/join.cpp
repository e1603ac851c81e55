#include "fabric/mixed/join.hpp"

#include <optional>
#include <utility>

#include "fabric/entering.hpp"
#include "fabric/join/network.hpp"
#include "fabric/mixed/forming.hpp"
#include "fabric/rendezvous/peer_endpoints.hpp"
#include "fabric/stream/network_rendezvous.hpp"

namespace dunlin::mixed {
namespace {

/// A founder's join: the founders meet, and then enter a fabric that has no members.
class MixedJoin final : public SteppedJoin {
 public:
  MixedJoin(const JoinOptions& options, const std::string& place, const std::string& host)
      : place_(place), group_(options.group) {
    forming_.emplace(options, rendezvous::count_members(options), place_, host);
    saying_where(
        [&] { exchange_.emplace(rendezvous::rendezvous_options(options), forming_->endpoint()); });
  }
  std::string missing() const override { return forming_->missing(); }

 private:
  std::unique_ptr<Fabric> step() override {
    if (exchange_ && !meet()) return nullptr;
    return forming_->step();
  }
  Awaited awaited() override { return exchange_ ? exchange_->awaited() : forming_->awaited(); }

  bool meet() {
    std::optional<rendezvous::Roster> roster;
    saying_where([&] { roster = exchange_->poll(); });
    if (!roster) return false;
    exchange_.reset();
    Entry entry{.group = group_, .members = {}, .admission = {}, .place = roster->rank};
    for (rendezvous::Member& member : roster->members)
      entry.admission.newcomers.push_back(
          {.name = std::move(member.name), .endpoint = std::move(member.endpoint_address)});
    entry.admission.key = roster->key;
    forming_->begin(entry);
    return true;
  }

  template <class Action>
  void saying_where(Action action) const {
    try {
      action();
    } catch (const Error& error) {
      if (place_.empty()) throw;
      throw Error(std::string(error.what()) + ". This member's place: " + place_);
    }
  }

  std::string place_;
  std::string group_;
  std::optional<Forming> forming_;
  std::optional<rendezvous::RosterExchange> exchange_;  // set until all have met
};

class MixedEntry final : public SteppedEntry {
 public:
  MixedEntry(const JoinOptions& options, const std::string& host)
      : forming_(options, 1, {}, host) {}
  std::vector<std::byte> endpoint() const override { return forming_.endpoint(); }
  void begin(const Entry& entry) override {
    if (forming_.has_begun())
      throw Error("group '" + entry.group + "': this newcomer has begun to come already");
    check(entry);
    forming_.begin(entry);
    begin_anew();
  }
  std::string missing() const override { return forming_.missing(); }

 private:
  std::unique_ptr<Fabric> step() override {
    return forming_.has_begun() ? forming_.step() : nullptr;
  }
  Awaited awaited() override { return forming_.has_begun() ? forming_.awaited() : Awaited(); }

  Forming forming_;
};

std::unique_ptr<PendingEntry> begin_entry(const JoinOptions& options) {
  return begin_entry_on({}, options);
}

}  // namespace

std::unique_ptr<SteppedJoin> begin_join_on(const std::string& host, const JoinOptions& options) {
  return std::make_unique<MixedJoin>(options, std::string(), host);
}

std::unique_ptr<PendingEntry> begin_entry_on(const std::string& host, const JoinOptions& options) {
  return std::make_unique<MixedEntry>(options, host);
}

namespace {

std::unique_ptr<SteppedJoin> begin_join(const JoinOptions& options, const std::string& place) {
  return std::make_unique<MixedJoin>(options, place, std::string());
}

std::vector<std::string> offered() {
  std::vector<std::string> all;
  for (const NetworkPlan& plan : plan_networks({}, verbs::device_addresses()))
    all.push_back(plan.kind == NetworkPlan::Kind::verbs
                      ? "verbs on " + plan.options.device + " " + plan.options.address
                      : "tcp");
  return all;
}

std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& options,
                                            std::vector<std::string> contacts) {
  return std::make_shared<stream::NetworkRendezvous>(options, std::move(contacts), begin_join,
                                                     begin_entry);
}

}  // namespace

constinit const JoinableNetwork kNetwork{
    .begin_join = begin_join, .make_rendezvous = make_rendezvous, .devices = offered};

}  // namespace dunlin::mixed
