#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/meeting_place.hpp>

#include "fabric/meeting/meeting.hpp"
#include "fabric/names.hpp"
#include "fabric/stepped_formation.hpp"
#include "fabric/system.hpp"

/// Doors between hosts: each member has an address of its own, and who knocks tries several.
namespace dunlin::stream {

/// Knocks at all doors; the first that is opened counts.
class Knocking final : public SteppedFormation {
 public:
  explicit Knocking(std::vector<std::unique_ptr<Formation>> doors) : doors_(std::move(doors)) {}

 private:
  std::unique_ptr<Fabric> step() override {
    for (std::unique_ptr<Formation>& door : doors_) {
      try {
        if (std::unique_ptr<Fabric> fabric = door->poll()) return fabric;
      } catch (const Error& error) {
        if (why_.empty()) why_ = error.what();
        door.reset();
      }
    }
    std::erase(doors_, nullptr);
    if (doors_.empty()) throw Error(why_);
    return nullptr;
  }
  Awaited awaited() override {
    Awaited news;
    for (const std::unique_ptr<Formation>& door : doors_)
      news.descriptors.push_back({door->wait_descriptor(), POLLIN, 0});
    return news;
  }

  std::vector<std::unique_ptr<Formation>> doors_;
  std::string why_;  // of the first that was not opened
};

template <class JoinOptions>
class StreamMeetingPlace final : public MeetingPlace {
 public:
  using Begin = std::unique_ptr<Formation> (*)(const JoinOptions&);

  StreamMeetingPlace(JoinOptions options, std::vector<std::string> doors, Begin begin)
      : options_(std::move(options)), doors_(std::move(doors)), begin_(begin) {
    check_joinable_group_name(options_.group);
    options_.members = 0;
    options_.rank = JoinOptions::kAnyRank;
    meeting::check(meeting::meeting_of(two("door", options_.meeting)));
    for (const std::string& door : doors_) meeting::check(meeting::meeting_of(two("guest", door)));
  }

  const std::string& group() const noexcept override { return options_.group; }
  std::string address() const override { return options_.meeting; }
  std::unique_ptr<Formation> form(const std::string& name, const std::vector<std::string>& members,
                                  const std::string& me, const std::string& address) override {
    JoinOptions options = options_;
    options.group = name;
    options.names = members;
    options.name = me;
    options.meeting = address;
    return begin_(options);
  }
  std::unique_ptr<Formation> open() override {
    JoinOptions options = two("door", options_.meeting);
    options.timeout_ms = UINT32_MAX;
    return begin_(options);
  }
  std::unique_ptr<Formation> knock() override {
    if (doors_.empty())
      throw Error("group '" + options_.group +
                  "': no doors to knock at: give meeting_place() addresses of members");
    std::vector<std::unique_ptr<Formation>> knocks;
    for (const std::string& door : doors_) {
      JoinOptions options = two("guest", door);
      options.timeout_ms = kKnockMs;
      options.may_serve = false;
      knocks.push_back(begin_(options));
    }
    return std::make_unique<Knocking>(std::move(knocks));
  }
  std::uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }

 private:
  static constexpr std::uint32_t kKnockMs = 2'000;

  [[nodiscard]] JoinOptions two(const std::string& name, const std::string& where) const {
    JoinOptions options = options_;
    options.group += ".door";
    options.names = {"door", "guest"};
    options.name = name;
    options.meeting = where;
    return options;
  }

  JoinOptions options_;
  std::vector<std::string> doors_;
  Begin begin_;
};

}  // namespace dunlin::stream
