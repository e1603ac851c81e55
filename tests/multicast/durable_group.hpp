#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "log/simulated_disk.hpp"
#include "multicast/journal.hpp"

namespace dunlin::test {

/// One member: its disk outlives its program.
struct DurableMember {
  log::SimulatedDisk* disk = nullptr;
  std::unique_ptr<Group> group;
  std::unique_ptr<Multicast> cast;
  std::vector<std::string> replayed;   // with what the state has
  std::uint64_t loaded = 0;            // states
  std::vector<std::string> delivered;  // by upcall
  std::vector<View> views;
  std::string error;  // what poll() threw
  std::uint64_t accepted = 0;
  std::uint64_t to_send = 0;
  bool dead = false;
};

/// A state: all texts that were ever delivered, each behind its length.
inline std::vector<std::byte> state_of(const std::vector<std::string>& texts) {
  std::vector<std::byte> state;
  for (const std::string& text : texts) {
    const std::uint64_t bytes = text.size();
    for (const auto part : {std::as_bytes(std::span(&bytes, 1)), std::as_bytes(std::span(text))})
      state.insert(state.end(), part.begin(), part.end());
  }
  return state;
}
inline std::vector<std::string> texts_of(std::span<const std::byte> state) {
  std::vector<std::string> texts;
  while (!state.empty()) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, state.data(), sizeof bytes);
    state = state.subspan(sizeof bytes);
    texts.emplace_back(reinterpret_cast<const char*>(state.data()), bytes);
    state = state.subspan(bytes);
  }
  return texts;
}

/// A group with one durable subgroup in the simulator. Messages are texts of which each is sent
/// once, also over restarts on the same disks.
class DurableGroup {
 public:
  using Disks = std::vector<std::unique_ptr<log::SimulatedDisk>>;
  static Disks make_disks(std::uint32_t members, std::uint64_t seed) {
    Disks disks;
    for (std::uint32_t i = 0; i < members; ++i) {
      disks.push_back(std::make_unique<log::SimulatedDisk>(seed * 100 + i, 64));
      disks.back()->latency(5'000, 200'000);
    }
    return disks;
  }

  DurableGroup(Disks& disks, std::uint64_t seed, std::string run = "a",
               sim::Profile profile = sim::profile("ib100"), std::vector<std::string> given_up = {},
               multicast::LogTrim trim = {}, bool by_quorum = false)
      : world(std::move(profile),
              static_cast<std::uint32_t>(disks.size()) + (by_quorum ? kOthers : 0), seed),
        members(disks.size()),
        others(by_quorum ? kOthers : 0),
        random_(seed),
        run_(std::move(run)),
        given_up_(std::move(given_up)),
        trim_(trim),
        by_quorum_(by_quorum) {
    for (Rank rank = 0; rank < members.size(); ++rank) {
      members[rank].disk = disks[rank].get();
      start(rank);
    }
    for (Rank i = 0; i < others.size(); ++i) {
      const auto rank = static_cast<Rank>(members.size()) + i;
      others[i] = make_group(rank);
      world.attach(rank, [&other = *others[i]] { return other.poll(); });
    }
  }

  static MulticastOptions options(log::SimulatedDisk* disk) {
    return {.mode = multicast::Mode::durable,
            .ring_bytes = 4096,
            .log_directory = "log",
            // The disk is the test's.
            .log_disk = std::shared_ptr<log::Disk>(std::shared_ptr<void>(), disk)};
  }

  void send(std::uint64_t messages_each) {
    for (DurableMember& member : members) member.to_send = messages_each;
    for (Rank rank = 0; rank < members.size(); ++rank) world.on(rank, [] {});
  }
  [[nodiscard]] std::uint64_t accepted() const {
    std::uint64_t sum = 0;
    for (const DurableMember& member : members) sum += member.accepted;
    return sum;
  }
  bool run_until_all_delivered(std::uint64_t messages) {
    return world.run_until(
        [&] {
          return std::ranges::all_of(members, [&](const DurableMember& member) {
            return member.dead || !member.error.empty() || member.delivered.size() >= messages;
          });
        },
        1'000'000'000);
  }
  void crash(Rank rank) {
    members[rank].dead = true;
    world.crash(rank);
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  /// By quorum, so many members of the group are not in the subgroup: then the group goes on also
  /// when most members of the subgroup are gone.
  static constexpr std::uint32_t kOthers = 4;

  sim::World world;
  std::vector<DurableMember> members;
  std::vector<std::unique_ptr<Group>> others;

 private:
  std::unique_ptr<Group> make_group(Rank rank) {
    SubgroupSpec orders{.name = "orders"};
    for (Rank member = 0; member < members.size(); ++member)
      orders.members.push_back(world.fabric(rank).member_name(member));
    return std::make_unique<Group>(world.fabric(rank), GroupOptions{.subgroups = {orders}});
  }
  void start(Rank rank) {
    DurableMember& member = members[rank];
    member.group = make_group(rank);
    MulticastOptions durable = options(member.disk);
    durable.log_given_up = given_up_;
    durable.log_trim = trim_;
    durable.log_quorum = by_quorum_;
    member.cast = std::make_unique<Multicast>(*member.group, "orders", std::move(durable));
    if (trim_.every_bytes > 0 && trim_.keeps_state)
      member.cast->on_state(
          [&member] {
            std::vector<std::string> all = member.replayed;
            all.insert(all.end(), member.delivered.begin(), member.delivered.end());
            return state_of(all);
          },
          [&member](std::span<const std::byte> state) {
            EXPECT_TRUE(member.replayed.empty() && member.delivered.empty());
            member.replayed = texts_of(state);
            ++member.loaded;
          });
    member.cast->on_replay([&member](const multicast::Logged& logged) {
      EXPECT_TRUE(member.delivered.empty());
      member.replayed.push_back(text_of(logged.message));
    });
    member.cast->on_delivery([&member](std::span<const multicast::Delivery> batch) {
      for (const auto& delivery : batch) member.delivered.push_back(text_of(delivery.message));
    });
    member.group->on_view([&member](const View& view) { member.views.push_back(view); });
    world.attach(rank, [this, rank] { return step(rank); });
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::size_t step(Rank rank) {
    DurableMember& member = members[rank];
    std::size_t done = 0;
    while (member.to_send > 0 && member.error.empty() && send_one(rank)) ++done;
    try {
      done += member.group->poll();
    } catch (const Error& error) {
      if (member.error.empty()) ++done;
      member.error = error.what();
    }
    return done;
  }
  bool send_one(Rank rank) {
    DurableMember& member = members[rank];
    std::string text = run_ + ":" + std::to_string(rank) + ":" + std::to_string(member.accepted);
    text +=
        std::string((member.accepted * 37 + rank) % (member.accepted % 16 == 7 ? 6'000 : 150), '.');
    if (member.cast->send(std::as_bytes(std::span(text))) != multicast::SendResult::sent)
      return false;
    ++member.accepted;
    --member.to_send;
    return true;
  }

  std::mt19937_64 random_;
  std::string run_;
  std::vector<std::string> given_up_;
  multicast::LogTrim trim_;
  bool by_quorum_;
};

/// What is in a log, after a crash.
struct FoundLog {
  multicast::JournalState state;
  [[nodiscard]] std::uint64_t view() const {
    return state.views.empty() ? 0 : state.views.back().number;
  }
  std::vector<std::string> messages;
};
inline FoundLog read_log(log::SimulatedDisk& disk, const std::string& name = "sim/orders") {
  multicast::Journal journal(std::shared_ptr<log::Disk>(std::shared_ptr<void>(), &disk), "log",
                             name);
  FoundLog found{.state = journal.read_state(false), .messages = {}};
  if (const auto state = journal.read_state_of_user()) found.messages = texts_of(*state);
  multicast::Replay replay = journal.replay();
  const auto take = [&](const multicast::Logged& logged) {
    found.messages.emplace_back(reinterpret_cast<const char*>(logged.message.data()),
                                logged.message.size());
  };
  while (replay.step(take, 100)) {
  }
  return found;
}

/// After everybody has crashed. Who is in two views of a log has a log itself (MC-L6).
inline void expect_no_log_to_pass_for_lost(const std::vector<FoundLog>& logs) {
  for (const FoundLog& log : logs) {
    std::map<std::string, std::uint32_t> views;
    for (const multicast::LoggedView& view : log.state.views)
      for (const std::string& member : view.members) ++views[member];
    for (std::size_t i = 0; i < logs.size(); ++i)
      ASSERT_TRUE(!logs[i].state.views.empty() || views["node" + std::to_string(i)] < 2) << i;
  }
}

[[nodiscard]] inline bool is_prefix(const std::vector<std::string>& shorter,
                                    const std::vector<std::string>& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

}  // namespace dunlin::test
