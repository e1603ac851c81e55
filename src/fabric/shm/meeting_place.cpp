#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/shm.hpp>

#include "fabric/names.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/shm/packet.hpp"
#include "fabric/stepped_formation.hpp"
#include "fabric/system.hpp"

/// Doors on one host: addresses with numbers. Who opens takes the first that is free, so a process
/// that was stopped may keep its own; who knocks tries all. The two then meet in a fabric of their
/// own, under a name that nobody else has, so neither is in anybody's way if it goes no further.
namespace dunlin::shm {
namespace {

constexpr Rank kDoors = kMaxViewMembers;
constexpr std::uint32_t kKnockMs = 1'000;
constexpr std::uint64_t kKnockNs = kKnockMs * std::uint64_t{1'000'000};
constexpr std::uint64_t kShortestTryNs = 1'000'000;
constexpr std::uint64_t kLongestTryNs = 16'000'000;

std::string group_text(const JoinOptions& options) { return "group '" + options.group + "'"; }

Address door_address(const Access& access, const std::string& group, Rank door) {
  return address_of(access, group + ".door", door);
}

std::unique_ptr<Formation> begin_meeting(JoinOptions options, std::uint64_t ticket, Rank rank) {
  options.group += ".d" + std::to_string(ticket % 1'000'000'000);
  options.names = {"door", "guest"};
  options.name = options.names[rank];
  options.timeout_ms = kKnockMs;
  return begin_join(options);
}

class Opening final : public SteppedFormation {
 public:
  explicit Opening(JoinOptions options)
      : options_(std::move(options)), access_(access_for(options_.access_group)) {
    if (claims_door(Holder::is_trusted) || claims_door(Holder::is_examined)) return;
    throw Error(group_text(options_) + ": all its " + std::to_string(kDoors) +
                " doors are held, by members that were stopped or other processes: " + holders());
  }

 private:
  std::unique_ptr<Fabric> step() override {
    if (!meeting_) let_in();
    if (!meeting_) return nullptr;
    try {
      if (std::unique_ptr<Fabric> made = meeting_->poll()) return made;
      if (receive_packet(guest_.get()).kind == Received::Kind::nothing_yet) return nullptr;
    } catch (const Error&) {
      if (read_clock_ns(CLOCK_MONOTONIC) < until_ns_) throw;  // it is us who cannot
    }
    meeting_.reset();  // the guest has gone, or was stopped: others wait
    guest_.close();
    return nullptr;
  }
  Awaited awaited() override {
    Awaited news;
    news.add(meeting_ ? guest_ : listener_);
    if (meeting_) news.descriptors.push_back({meeting_->wait_descriptor(), POLLIN, 0});
    return news;
  }

  [[nodiscard]] bool claims_door(Holder holder) {
    for (Rank door = 0; door < kDoors; ++door) {
      std::optional<Descriptor> listener =
          claim(door_address(access_, options_.group, door), holder);
      if (!listener) continue;
      listener_ = std::move(*listener);
      return true;
    }
    return false;
  }

  void let_in() {
    while (!meeting_) {
      Descriptor guest = take_connection(listener_);
      if (!guest && (errno == EMFILE || errno == ENFILE))
        throw Error(group_text(options_) + ": " + out_of_descriptors());
      if (!guest) return;
      if (!counterpart_of(guest, access_).admitted) continue;
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      Packet ticket;
      ticket.type = PacketType::ticket;
      ticket.value = now_ns;
      if (send_packet(guest.get(), ticket) != Sent::whole) continue;  // it has not waited
      guest_ = std::move(guest);
      until_ns_ = now_ns + kKnockNs;
      meeting_ = begin_meeting(options_, ticket.value, 0);
    }
  }

  [[nodiscard]] std::string holders() const {
    std::string text;
    std::vector<pid_t> named;
    for (Rank door = 0; door < kDoors; ++door) {
      const auto socket = connect_to(door_address(access_, options_.group, door));
      const pid_t pid = socket ? counterpart_of(*socket, access_).pid : 0;
      if (pid == 0 || std::ranges::find(named, pid) != named.end()) continue;
      named.push_back(pid);
      text += (text.empty() ? "pid " : ", ") + std::to_string(pid);
    }
    return text.empty() ? "which, is not known" : text;
  }

  JoinOptions options_;
  Access access_;
  Descriptor listener_;
  Descriptor guest_;  // with whom we meet,
  std::unique_ptr<Formation> meeting_;
  std::uint64_t until_ns_ = 0;  // which must not take longer
};

class Knock final : public SteppedFormation {
 public:
  explicit Knock(JoinOptions options)
      : options_(std::move(options)),
        access_(access_for(options_.access_group)),
        doors_(kDoors),
        until_ns_(read_clock_ns(CLOCK_MONOTONIC) + kKnockNs) {}

 private:
  std::unique_ptr<Fabric> step() override {
    const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (!meeting_) try_doors(now_ns);
    for (Rank door = 0; door < kDoors && !meeting_; ++door)
      if (doors_[door]) look_at(doors_[door]);
    if (!meeting_ && now_ns >= until_ns_) throw_unheard();
    if (!meeting_) return nullptr;
    try {
      return meeting_->poll();
    } catch (const Error&) {
      if (read_clock_ns(CLOCK_MONOTONIC) < until_ns_) throw;
      throw Error(group_text(options_) + ": who had opened does not answer any more");
    }
  }
  Awaited awaited() override {
    Awaited news;
    if (meeting_) {
      news.descriptors.push_back({meeting_->wait_descriptor(), POLLIN, 0});
      return news;
    }
    news.by(until_ns_);
    news.by(next_try_ns_);
    for (const Descriptor& door : doors_)
      if (door) news.add(door);
    return news;
  }

  void try_doors(std::uint64_t now_ns) {
    if (now_ns < next_try_ns_) return;
    next_try_ns_ = now_ns + try_interval_ns_;
    try_interval_ns_ = std::min(2 * try_interval_ns_, kLongestTryNs);
    for (Rank door = 0; door < kDoors; ++door) {
      if (doors_[door]) continue;
      std::optional<Descriptor> socket = connect_to(door_address(access_, options_.group, door));
      if (socket && counterpart_of(*socket, access_).admitted) doors_[door] = std::move(*socket);
    }
  }

  void look_at(Descriptor& door) {
    const Received received = receive_packet(door.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    if (received.kind == Received::Kind::other_version)
      throw Error(group_text(options_) + ": its door speaks version " +
                  std::to_string(received.packet.version) +
                  " of the control protocol, and this process " + std::to_string(kProtocolVersion) +
                  ". All members must use the same release of Dunlin");
    if (received.kind != Received::Kind::packet || received.packet.type != PacketType::ticket)
      return door.close();  // it has closed, or is none
    opener_ = std::move(door);
    for (Descriptor& other : doors_) other.close();
    until_ns_ = read_clock_ns(CLOCK_MONOTONIC) + kKnockNs;
    meeting_ = begin_meeting(options_, received.packet.value, 1);
  }

  [[noreturn]] void throw_unheard() const {
    std::string there;
    for (const Descriptor& door : doors_)
      if (door)
        there +=
            (there.empty() ? "pid " : ", ") + std::to_string(counterpart_of(door, access_).pid);
    if (there.empty())
      throw Error(group_text(options_) +
                  ": nobody has opened it here for others to join. Does it run on this host, under "
                  "this name and user, with members that may be joined?");
    throw Error(group_text(options_) + ": who has opened it does not answer (" + there +
                "): stopped, or busy with others");
  }

  JoinOptions options_;
  Access access_;
  std::vector<Descriptor> doors_;  // by number: where we have knocked
  Descriptor opener_;              // whose ticket we have
  std::unique_ptr<Formation> meeting_;
  std::uint64_t until_ns_;
  std::uint64_t next_try_ns_ = 0;
  std::uint64_t try_interval_ns_ = kShortestTryNs;
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
  std::unique_ptr<Formation> open() override { return std::make_unique<Opening>(options_); }
  std::unique_ptr<Formation> knock() override { return std::make_unique<Knock>(options_); }
  std::uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }

 private:
  JoinOptions options_;
};

}  // namespace

std::shared_ptr<MeetingPlace> meeting_place(const MeetingPlaceOptions& options) {
  return std::make_shared<ShmMeetingPlace>(options);
}

}  // namespace dunlin::shm
