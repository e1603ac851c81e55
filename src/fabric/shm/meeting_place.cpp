#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <dunlin/fabric/shm.hpp>

#include "fabric/names.hpp"
#include "fabric/stepped_formation.hpp"
#include "fabric/system.hpp"

/// Doors on one host. A door has one name, so the two who meet there go on to a fabric of their
/// own, and the door is free for the next.
namespace dunlin::shm {
namespace {

constexpr std::uint32_t kChannel = 0;
constexpr std::uint32_t kKnockMs = 1'000;
constexpr std::uint32_t kForEverMs = UINT32_MAX;

using Ticket = std::uint64_t;

class DoorFormation final : public SteppedFormation {
 public:
  DoorFormation(JoinOptions options, bool opens)
      : options_(std::move(options)), group_(options_.group), opens_(opens) {
    options_.names = {"door", "guest"};
    options_.name = opens ? "door" : "guest";
    go_to_the_door();
  }

 private:
  std::unique_ptr<Fabric> step() override {
    try {
      return go_on();
    } catch (const Error&) {
      if (!opens_) throw;
      private_ = false;
      meeting_.reset();
      door_.reset();
      again_ns_ = read_clock_ns(CLOCK_MONOTONIC) + kRetryNs;
      return nullptr;
    }
  }
  Awaited awaited() override {
    Awaited news{.until_ns = door_ ? 0 : UINT64_MAX};
    if (!meeting_ && !door_) news.by(again_ns_);
    if (meeting_) news.descriptors.push_back({meeting_->wait_descriptor(), POLLIN, 0});
    return news;
  }

  std::unique_ptr<Fabric> go_on() {
    if (!meeting_ && !door_) {
      if (read_clock_ns(CLOCK_MONOTONIC) < again_ns_) return nullptr;
      go_to_the_door();
    }
    if (meeting_) {
      std::unique_ptr<Fabric> made = meeting_->poll();
      if (!made) return nullptr;
      meeting_.reset();
      if (private_) return made;
      door_ = std::move(made);
      at_the_door();
    }
    if (door_) exchange_ticket();
    return nullptr;
  }

  void go_to_the_door() {
    options_.group = group_ + ".door";
    options_.timeout_ms = opens_ ? kForEverMs : kKnockMs;
    private_ = false;
    ticket_.reset();
    meeting_ = begin_join(options_);
  }

  void at_the_door() {
    if (opens_) {
      ticket_ = read_clock_ns(CLOCK_MONOTONIC);
      static_cast<void>(door_->send(1, kChannel, std::as_bytes(std::span(&*ticket_, 1))));
      return;
    }
    door_->receive(kChannel, [this](Rank, std::span<const std::byte> message) {
      if (message.size() != sizeof(Ticket)) return;
      std::memcpy(&ticket_.emplace(), message.data(), sizeof(Ticket));
    });
  }

  void exchange_ticket() {
    door_->poll();
    if (!ticket_ && door_->failed(0)) throw Error("group '" + group_ + "': who had opened is gone");
    if (!ticket_) return;
    door_.reset();  // what was sent is there already
    options_.group = group_ + ".d" + std::to_string(*ticket_ % 1'000'000'000);
    options_.timeout_ms = kKnockMs;
    private_ = true;
    meeting_ = begin_join(options_);
  }

  static constexpr std::uint64_t kRetryNs = 20'000'000;

  JoinOptions options_;
  std::string group_;
  bool opens_;
  bool private_ = false;
  std::unique_ptr<Formation> meeting_;
  std::unique_ptr<Fabric> door_;
  std::optional<Ticket> ticket_;
  std::uint64_t again_ns_ = 0;
};

class ShmMeetingPlace final : public MeetingPlace {
 public:
  explicit ShmMeetingPlace(const MeetingPlaceOptions& options)
      : options_{.group = options.group,
                 .timeout_ms = options.timeout_ms,
                 .silence_timeout_ms = options.silence_timeout_ms,
                 .access_group = options.access_group} {
    check_joinable_group_name(options.group);
  }

  const std::string& group() const noexcept override { return options_.group; }
  std::unique_ptr<Formation> form(const std::string& name, const std::vector<std::string>& members,
                                  const std::string& me, const std::string&) override {
    JoinOptions options = options_;
    options.group = name;
    options.names = members;
    options.name = me;
    return begin_join(options);
  }
  std::unique_ptr<Formation> open() override {
    return std::make_unique<DoorFormation>(options_, true);
  }
  std::unique_ptr<Formation> knock() override {
    return std::make_unique<DoorFormation>(options_, false);
  }
  std::uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }

 private:
  JoinOptions options_;
};

}  // namespace

std::shared_ptr<MeetingPlace> meeting_place(const MeetingPlaceOptions& options) {
  return std::make_shared<ShmMeetingPlace>(options);
}

}  // namespace dunlin::shm
