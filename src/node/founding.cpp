#include "node/founding.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <climits>
#include <cstdio>
#include <ctime>
#include <optional>

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <dunlin/error.hpp>
#include <dunlin/fabric/pending_join.hpp>

#include "fabric/launch/complete.hpp"
#include "fabric/names.hpp"
#include "fabric/system.hpp"

namespace dunlin::node {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kNewsNs = 900 * kNsPerMs;
constexpr int kLookMs = 2;  // a joiner tries again by itself, and rings no descriptor for that

/// A name that no other process has: the host's name without what a member's name cannot have, for
/// people, and a random number, as processes of several containers may have one name and number.
std::string made_name() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  static_cast<void>(gethostname(host.data(), host.size() - 1));
  std::string name;
  for (const char* at = host.data(); *at != '\0' && name.size() < 16; ++at)
    if (std::isalnum(static_cast<unsigned char>(*at)) != 0 || *at == '-') name += *at;
  std::uint64_t number = 0;
  checked(static_cast<int>(getrandom(&number, sizeof number, 0)), "drawing a random number");
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 36).ptr;
  return name + "-" + std::string(digits.data(), end);
}

class Founding {
 public:
  explicit Founding(const NodeOptions& options)
      : options_(options), join_(options.network), who_("node: group '" + options.group + "': ") {
    check();
    join_.group = options.group;
    join_.names = options.names;
    join_.members = options.names.empty() ? options.members : 0;
    join_.name = options.names.empty() ? std::string() : options.name;
    wait_ms_ = join_.join_ms();
    // Our own time-out comes first, and says more.
    join_.timeout_ms = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{wait_ms_} + kGraceMs, UINT32_MAX));
    if (join_.network.empty()) join_.network = launch::network_name();
    is_founder_ = options.may_found && (options.names.empty() || in_names());
    if (can_be_joined()) {
      JoinOptions meeting = join_;
      meeting.members = 0;
      meeting.names.clear();
      meeting.name.clear();
      meeting.rendezvous = options.listen;
      group_options_.rendezvous = make_rendezvous(meeting, options.contacts);
    } else if (!is_founder_) {
      throw Error(who_ +
                  "a later member needs an address of its own, `listen`, and some of other " +
                  "members, `contacts`");
    }
    entry_name_ = options.name.empty() ? made_name() : options.name;
  }

  Founded run() {
    const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t end_ns = begun_ns + wait_ms_ * kNsPerMs;
    if (is_founder_ && may_found()) founders_ = begin_join(join_);
    if (can_join()) entry_.emplace(entry_name_, group_options_, *join_.timeout_ms);
    for (std::uint64_t news_ns = begun_ns + kNewsNs;;) {
      if (entry_)
        if (std::unique_ptr<Group> group = poll_entry()) return {nullptr, std::move(group)};
      if (founders_) {
        std::unique_ptr<Fabric> fabric = poll_founders();
        if (fabric && may_found()) return found(std::move(fabric));
      }
      if (options_.gives_up && options_.gives_up())
        throw Error(who_ + "the join was given up, waiting for " + awaited());
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      if (now_ns >= end_ns)
        throw Error(who_ + "waited " + std::to_string(wait_ms_) + " ms for " + awaited());
      if (now_ns >= news_ns) {
        tell("waits for " + awaited());
        news_ns = now_ns + kNewsNs;
      }
      wait();
    }
  }

 private:
  static constexpr std::uint32_t kGraceMs = 1'000;

  void check() const {
    check_joinable_group_name(options_.group);
    if (!options_.name.empty() && options_.names.empty())
      throw Error(who_ +
                  "`name` is given, and `names` is not: give the founders' names in `names`, " +
                  "or leave `name` out");
    if (!options_.names.empty() && options_.name.empty())
      throw Error(who_ + "`names` is given, and `name` is not: give this member's name");
    if (options_.names.empty() &&
        (options_.members == 0 || options_.members > options_.most_members))
      throw Error(who_ + "`members` is " + std::to_string(options_.members) +
                  ", and must be 1 to " + std::to_string(options_.most_members) +
                  " (`most_members`)");
  }
  [[nodiscard]] bool in_names() const {
    return std::ranges::find(options_.names, options_.name) != options_.names.end();
  }
  /// Between hosts later members need addresses; without any, the founders stay among themselves.
  [[nodiscard]] bool can_be_joined() const {
    return !network_of(join_.network).between_hosts || !options_.listen.empty();
  }
  [[nodiscard]] bool can_join() const {
    return can_be_joined() &&
           (!network_of(join_.network).between_hosts || !options_.contacts.empty());
  }

  std::unique_ptr<Group> poll_entry() {
    try {
      return entry_->poll();
    } catch (const Error& error) {
      if (!founders_) throw;
      why_not_joined_ = error.what();
      entry_.reset();
      return nullptr;
    }
  }
  /// A group that runs already refuses its founders: then this process only joins.
  std::unique_ptr<Fabric> poll_founders() {
    try {
      return founders_->poll();
    } catch (const Error& error) {
      if (!entry_) throw;
      why_not_founded_ = error.what();
      founders_.reset();
      return nullptr;
    }
  }
  /// A group whose founders have all gone may run: then this process only joins.
  bool may_found() {
    if (!group_options_.rendezvous ||
        !group_options_.rendezvous->has_later_members(static_cast<Rank>(founders())))
      return true;
    why_not_founded_ = "a group of this name runs";
    founders_.reset();
    return false;
  }
  Founded found(std::unique_ptr<Fabric> fabric) {
    entry_.reset();
    Founded founded;
    founded.group = std::make_unique<Group>(*fabric, group_options_);
    founded.fabric = std::move(fabric);
    return founded;
  }

  [[nodiscard]] std::string awaited() const {
    std::string text = "a member of the group that lets it in";
    if (founders_) {
      const std::string missing = founders_->missing();
      text = missing.empty() ? "the other founders, " + std::to_string(founders()) + " in all"
                             : missing + " to found the group";
      if (entry_) text += ", or a group of this name to join";
    } else if (!why_not_founded_.empty()) {
      text += " (it cannot be founded: " + why_not_founded_ + ")";
    }
    if (!entry_ && !why_not_joined_.empty())
      text += " (it cannot be joined: " + why_not_joined_ + ")";
    return text;
  }
  [[nodiscard]] std::size_t founders() const {
    return options_.names.empty() ? options_.members : options_.names.size();
  }
  void tell(const std::string& news) const {
    const std::string text = who_ + news;
    if (options_.on_news) return options_.on_news(text);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  void wait() const {
    pollfd descriptor{
        .fd = founders_ ? founders_->wait_descriptor() : -1, .events = POLLIN, .revents = 0};
    constexpr int kFoundersOnlyMs = 100;
    ::poll(&descriptor, 1, entry_ ? kLookMs : kFoundersOnlyMs);
  }

  const NodeOptions& options_;
  JoinOptions join_;
  std::string who_;
  GroupOptions group_options_;
  std::uint64_t wait_ms_ = 0;
  bool is_founder_ = false;
  std::string entry_name_;
  std::unique_ptr<PendingJoin> founders_;
  std::optional<GroupEntry> entry_;
  std::string why_not_founded_;
  std::string why_not_joined_;
};

}  // namespace

Founded found_or_join(const NodeOptions& options) { return Founding(options).run(); }

}  // namespace dunlin::node
