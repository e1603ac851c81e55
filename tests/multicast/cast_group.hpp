#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "multicast/subgroup_view.hpp"
#include "table/sim_group.hpp"

namespace dunlin::test {

using multicast::Delivery;
using multicast::Mode;
using multicast::SendResult;
using multicast::SubgroupView;
using multicast::SubgroupViewOptions;
using Bytes = std::vector<std::byte>;

/// What everybody sent and delivered, held against the promises MC-O1 to MC-O4.
class Auditor {
 public:
  explicit Auditor(std::size_t members) : sent_(members), logs_(members), counts_(members) {
    for (auto& counts : counts_) counts.resize(members);
  }
  /// Which message of which sender, in the order of delivery.
  using Entry = std::pair<std::uint32_t, std::uint64_t>;

  void sent(std::size_t member, Bytes message) { sent_[member].push_back(std::move(message)); }
  /// Each sender's messages come in order, each once, and as they were sent (MC-O1).
  void delivered(std::size_t member, const Delivery& delivery) {
    std::uint64_t& count = counts_[member][delivery.sender];
    const auto& sent = sent_[delivery.sender];
    ASSERT_LT(count, sent.size()) << "member " << member << " was given what nobody sent";
    ASSERT_TRUE(std::ranges::equal(delivery.message, sent[count]))
        << "member " << member << ", message " << count << " of " << delivery.sender;
    logs_[member].emplace_back(delivery.sender, count);
    ++count;
  }

  [[nodiscard]] const std::vector<Entry>& log(std::size_t member) const { return logs_[member]; }
  [[nodiscard]] const std::vector<Bytes>& sent_by(std::size_t member) const {
    return sent_[member];
  }
  [[nodiscard]] std::uint64_t count(std::size_t member, std::size_t sender) const {
    return counts_[member][sender];
  }
  [[nodiscard]] bool has_all(std::size_t member) const {
    for (std::size_t s = 0; s < sent_.size(); ++s)
      if (counts_[member][s] != sent_[s].size()) return false;
    return true;
  }
  /// What one has delivered, the other has, too, and first (MC-O2).
  void expect_prefix(std::size_t shorter, std::size_t longer) const {
    ASSERT_LE(logs_[shorter].size(), logs_[longer].size());
    ASSERT_TRUE(std::equal(logs_[shorter].begin(), logs_[shorter].end(), logs_[longer].begin()))
        << "members " << shorter << " and " << longer << " differ";
  }

 private:
  std::vector<std::vector<Bytes>> sent_;
  std::vector<std::vector<Entry>> logs_;
  std::vector<std::vector<std::uint64_t>> counts_;
};

/// A workload drawn from a seed.
struct Plan {
  std::uint32_t messages = 60;    // of each sender
  std::size_t most_bytes = 60;    // of most of them
  std::size_t longest_bytes = 0;  // of some
  bool in_place = false;          // and nothing but what fits
  std::uint64_t gap_ns = 0;       // at most, between two bursts of a sender
  std::uint32_t burst = 1;        // so many at once, if there is room
};

/// Simulated nodes of which some are members of one subgroup.
class CastGroup {
 public:
  CastGroup(std::uint32_t nodes, const sim::Profile& profile, std::uint64_t seed,
            SubgroupViewOptions options)
      : world(patient(profile), nodes, seed),
        auditor(options.members.size()),
        random_(seed),
        options_(std::move(options)),
        views_(options_.members.size()),
        left_(options_.members.size()),
        next_send_ns_(options_.members.size()) {}

  static sim::Profile patient(sim::Profile profile) {
    profile.silence_timeout_ns = 0;  // pauses are no failures here
    return profile;
  }

  void make(std::size_t member, bool upcall = true) {
    multicast::Upcall deliver;
    if (upcall) {
      deliver = [this, member](std::span<const Delivery> batch) {
        for (const Delivery& delivery : batch) auditor.delivered(member, delivery);
      };
    }
    const Rank node = options_.members[member];
    views_[member] = std::make_unique<SubgroupView>(world.fabric(node), options_, deliver);
    world.attach(node, [this, member] { return step(member); });
  }
  void make_all() {
    for (std::size_t member = 0; member < views_.size(); ++member) make(member);
  }
  SubgroupView& operator[](std::size_t member) { return *views_[member]; }

  void work(const Plan& plan) {
    plan_ = plan;
    for (const std::uint32_t sender : options_.senders) left_[sender] = plan.messages;
  }
  void quit(std::size_t member) { left_[member] = 0; }
  /// The member sends nothing before that time.
  void speaks_from(std::size_t member, std::uint64_t ns) { next_send_ns_[member] = ns; }

  [[nodiscard]] bool complete() const {
    for (std::size_t member = 0; member < views_.size(); ++member)
      if (left_[member] > 0 || !auditor.has_all(member)) return false;
    return true;
  }
  void run_to_the_end() {
    for (const Rank node : options_.members) world.on(node, [] {});
    const bool done = world.run_until(
        [this] { return testing::Test::HasFatalFailure() || complete(); }, 2'000'000'000);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(done) << told();
    for (std::size_t member = 1; member < views_.size(); ++member) {
      if (options_.mode == Mode::ordered) {
        ASSERT_NO_FATAL_FAILURE(auditor.expect_prefix(member, 0));
      }
    }
  }
  /// When nobody sends, nobody writes (MC-O6).
  void expect_silence() {
    world.run_for(5'000'000);
    const std::uint64_t before = writes();
    world.run_for(50'000'000);
    EXPECT_EQ(writes(), before);
  }
  [[nodiscard]] std::uint64_t writes() const {
    std::uint64_t writes = 0;
    for (const auto& view : views_) writes += view->counters().puts + view->counters().pushes;
    return writes;
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  sim::World world;
  Auditor auditor;
  bool polling_delivery = false;

 private:
  std::size_t step(std::size_t member) {
    std::size_t done = 0;
    Fabric& fabric = world.fabric(options_.members[member]);
    if (fabric.now_ns() >= next_send_ns_[member]) {
      for (std::uint32_t i = 0; i < plan_.burst && left_[member] > 0; ++i) {
        if (send(member) == 0) break;
        ++done;
      }
    }
    if (left_[member] > 0 && next_send_ns_[member] > fabric.now_ns())
      fabric.wake_at(next_send_ns_[member]);
    done += views_[member]->poll();
    while (polling_delivery) {
      const std::optional<Delivery> next = views_[member]->next();
      if (!next) break;
      auditor.delivered(member, *next);
      ++done;
    }
    return done;
  }

  std::size_t send(std::size_t member) {
    SubgroupView& view = *views_[member];
    Bytes& message = drafts_[member];
    if (message.empty() && !drafted_[member]) {
      message.resize(draw(plan_.most_bytes + 1));
      if (plan_.longest_bytes > 0 && draw(8) == 0) message.resize(draw(plan_.longest_bytes + 1));
      for (std::byte& byte : message) byte = static_cast<std::byte>(random_());
      drafted_[member] = true;
    }
    if (plan_.in_place) {
      const std::span<std::byte> room = view.prepare(message.size());
      if (room.data() == nullptr) return 0;
      std::ranges::copy(message, room.begin());
      auditor.sent(member, message);
      view.commit();
    } else {
      if (view.send(message) != SendResult::sent) return 0;
      auditor.sent(member, message);
    }
    message.clear();
    drafted_[member] = false;
    --left_[member];
    if (plan_.gap_ns > 0)
      next_send_ns_[member] = world.fabric(options_.members[member]).now_ns() + draw(plan_.gap_ns);
    return 1;
  }

  [[nodiscard]] std::string told() const {
    std::string text;
    for (std::size_t member = 0; member < views_.size(); ++member) {
      text += "member " + std::to_string(member) + " has " + std::to_string(left_[member]) +
              " to send and delivered " + std::to_string(auditor.log(member).size()) + "; ";
      const multicast::Counters& c = views_[member]->counters();
      text += "(sent " + std::to_string(c.messages_sent) + ", announced " +
              std::to_string(c.records_announced) + ", records delivered " +
              std::to_string(c.records_delivered) + ", received slots " +
              std::to_string(c.slots_received) + ") ";
    }
    return text;
  }

  Plan plan_;
  std::mt19937_64 random_;
  SubgroupViewOptions options_;
  std::vector<std::unique_ptr<SubgroupView>> views_;
  std::vector<std::uint32_t> left_;
  std::vector<std::uint64_t> next_send_ns_;
  std::array<Bytes, 16> drafts_;
  std::array<bool, 16> drafted_{};
};

}  // namespace dunlin::test
