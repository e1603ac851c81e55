#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/group.hpp>
#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"

/// A logged topic of three processes that are killed, and that begins again with two of them, on
/// real files (PUB-L1).
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;
using Names = std::vector<std::string>;

constexpr std::uint32_t kPatienceMs = 60'000;
constexpr std::uint64_t kReportEvery = 500;      // so that unread reports stop no process
constexpr std::uint64_t kWritesInALife = 5'000;  // of each, unless it is killed before
constexpr TopicQos kQos{.level = Level::logged, .max_samples = 100'000};

struct Numbered {
  std::array<char, 8> life = {};
  std::uint64_t number = 0;
};

/// What a process has been given so far, in one number: equal for equal samples in equal order.
struct Digest {
  std::uint64_t value = 1;
  std::uint64_t last = 0;
  void take(const Numbered& sample, const SampleInfo& info) {
    if (info.position != last + 1)
      throw Error("position " + std::to_string(info.position) + " comes behind " +
                  std::to_string(last));
    last = info.position;
    for (const char c : sample.life) value = value * 31 + static_cast<unsigned char>(c);
    value = value * 1'000'003 + sample.number;
  }
};

/// Is a founder of a group of these names, or comes into it (no names); writes, and reports its
/// digest at each 100th sample.
int take_part(Parent& parent, const std::string& group_name, const std::string& name,
              const Names& names, const std::string& logs, const std::string& life) {
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Group> group;
  const auto place = make_rendezvous({.group = group_name});
  if (names.empty()) {
    group = Group::join(name, {.rendezvous = place});
  } else {
    fabric = join({.group = group_name, .names = names, .name = name});
    group = std::make_unique<Group>(*fabric, GroupOptions{.rendezvous = place});
  }
  DomainParticipant participant(
      *group, {.log_directory = logs, .log_founders = {"a", "b", "c"}, .log_quorum = true});
  const Topic<Numbered> topic(participant, "numbers", kQos);
  DataWriter<Numbered> writer{Publisher(participant), topic};
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{Durability::Kind::persistent}
      << ResourceLimits{.max_samples = 1'000};
  DataReader<Numbered> reader{Subscriber(participant), topic, qos};
  Digest digest;
  Numbered next;
  const std::string who = life + name;
  std::copy(who.begin(), who.end(), next.life.begin());
  static_cast<void>(run_until(
      participant,
      [&] {
        if (!topic.why_refused().empty()) throw Error(topic.why_refused());
        if (next.number < kWritesInALife && writer.write(next) == WriteResult::written)
          ++next.number;
        for (const auto& sample : reader.take()) {
          if (!sample.info().valid()) continue;
          digest.take(sample.data(), sample.info());
          if (digest.last % kReportEvery == 0)
            parent.send_line(std::to_string(digest.last) + " " + std::to_string(digest.value));
        }
        return false;
      },
      10 * kPatienceMs));
  return 1;  // it is killed before
}

/// The reports of all processes: the same digest at the same place.
struct Reports {
  std::map<std::uint64_t, std::string> digests;
  /// Returns the place of the next report; 0: there is none.
  std::uint64_t take(Process& process) {
    const std::string line = process.receive_line();
    std::uint64_t position = 0;
    std::string digest;
    std::istringstream(line) >> position >> digest;
    if (position == 0) {
      ADD_FAILURE() << "'" << line << "' is no report";
      return 0;
    }
    EXPECT_EQ(digests.try_emplace(position, digest).first->second, digest) << position;
    return position;
  }
  void take_until(Process& process, std::uint64_t position) {
    for (std::uint64_t at = 0; at < position;) {
      at = take(process);
      if (at == 0) return;
    }
  }
};

class TopicQuorumProcesses : public testing::Test {
 protected:
  std::unique_ptr<Process> start(const std::string& name, const Names& names,
                                 const std::string& life) {
    const std::string logs = directory_ / name;
    std::filesystem::create_directory(logs);
    return std::make_unique<Process>([=, group = group_](Parent& parent) {
      return take_part(parent, group, name, names, logs, life);
    });
  }
  OwnDirectory directory_;
  std::string group_ = fresh_group();
};

TEST_F(TopicQuorumProcesses, BeginAgainWithTwoOfThreeAndTakeInTheThird) {
  Reports reports;
  std::uint64_t given = 0;
  for (const bool is_lost : {false, true}) {
    SCOPED_TRACE(is_lost);
    {
      const Names all{"a", "b", "c"};
      std::vector<std::unique_ptr<Process>> processes;
      for (const std::string& name : all)
        processes.push_back(start(name, all, is_lost ? "3" : "1"));
      for (const auto& process : processes) reports.take_until(*process, given + 500);
      for (const auto& process : processes) process->kill();
    }
    if (is_lost) std::filesystem::remove_all(directory_ / "a");
    // All that any of them reported was delivered, and is there.
    given = reports.digests.rbegin()->first;
    const auto b = start("b", {"b", "c"}, is_lost ? "4" : "2");
    const auto c = start("c", {"b", "c"}, is_lost ? "4" : "2");
    reports.take_until(*b, given + 500);
    reports.take_until(*c, given + 500);
    const auto a = start("a", {}, is_lost ? "4" : "2");
    reports.take_until(*a, given + 1'000);
    reports.take_until(*b, given + 1'000);
    reports.take_until(*c, given + 1'000);
    for (const auto& process : {&a, &b, &c}) (*process)->kill();
    given = reports.digests.rbegin()->first;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace dunlin::test
