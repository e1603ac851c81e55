#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/container/containers.hpp>

#include "container/attention.hpp"
#include "container/counters.hpp"
#include "container/style_choice.hpp"
#include "remote/control_channel.hpp"

namespace dunlin::container {

enum class MessageKind : std::uint8_t {
  request,        // do this operation on your part
  reply,          // its result
  claim_request,  // which tickets of my queue below `word` do you hold?
  claims          // these; `flag`: and that is all
};

/// The beginning of each message; docs/formats/container.md has the offsets.
struct MessageHead {
  std::uint64_t container = 0;  // Site::id()
  std::uint64_t call = 0;  // the caller's number of a request; of a claim, which time the host asks
  std::uint64_t word = 0;
  std::uint32_t bytes = 0;  // that follow
  MessageKind kind = MessageKind::request;
  std::uint8_t operation = 0;
  std::uint8_t status = 0;
  std::uint8_t flag = 0;
};
static_assert(sizeof(MessageHead) == kMessageHeader);

[[nodiscard]] constexpr MessageHead reply_to(const MessageHead& request,
                                             remote::Status status) noexcept {
  return {.container = request.container,
          .call = request.call,
          .kind = MessageKind::reply,
          .status = static_cast<std::uint8_t>(status)};
}

class Asked;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final, in steps.hpp

/// A container, as the hub knows it.
class Served {
 public:
  Served() = default;
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  virtual ~Served() = default;
  virtual std::size_t poll_part() = 0;
  virtual void members_changed() = 0;
  /// A request or a claim; `content` has as many bytes as the head says.
  virtual void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) = 0;
};

/// CON-Q6, and for an operation that waits for another member's step.
inline constexpr std::uint64_t kShortestRestNs = 500;
inline constexpr std::uint64_t kLongestRestNs = 128'000;
/// For an object that others wait for, or that waits for an event that comes soon.
inline constexpr std::uint64_t kShortRestNs = 16'000;
/// A rest is at least so many times as long as the attempt before it took, up to kLongestRestNs:
/// where attempts take long, several calls would fill a short queue between two short rests.
inline constexpr std::uint64_t kRestOfAnAttempt = 4;

struct Hub final : remote::Part {
  Hub(std::unique_ptr<remote::Progress> own, remote::Progress& progress, ContainersOptions options);
  ~Hub() override;

  void add(std::uint64_t id, Served& container);
  void remove(std::uint64_t id) noexcept { served.erase(id); }

  /// Sends its request, if there is room.
  void ask(Asked& asked) noexcept;
  void forget(Asked& asked) noexcept;
  void send(Rank to, MessageHead head, std::span<const std::byte> content);
  /// By the cost model, as that target polls now.
  [[nodiscard]] Style cheaper_style(StyleChoice& choice, Call call, Situation at,
                                    Rank target) noexcept {
    at.wait_ns = attention.wait_ns_of(target);
    return choice.of(options.costs, costs_version, call, at);
  }
  /// What Style::automatic becomes for a new container, of which these calls write (CON-A3).
  [[nodiscard]] Style settled_style(std::initializer_list<Call> calls,
                                    const Situation& at) const noexcept;
  /// Polls no later than in a moment: an operation looks again at what another is changing.
  void look_again_soon() noexcept;
  /// A later member of which this process has yet to hear may have made its containers already.
  [[nodiscard]] bool gone(Rank rank) const noexcept {
    if (progress.is_gone(rank) || fabric.failed(rank)) return true;
    return is_founder(rank) && !progress.members().contains(rank);
  }
  /// Whether the members have agreed that it is gone. One that came and died between two polls has
  /// never been a member here.
  [[nodiscard]] bool has_left(Rank rank) const noexcept {
    return progress.is_gone(rank) || (fabric.failed(rank) && !progress.contains(rank));
  }
  /// Founders have the parts of what is spread over the members.
  [[nodiscard]] bool is_founder(Rank rank) const noexcept { return rank < progress.size(); }

  /// Whether a member has come or gone since the founders began.
  [[nodiscard]] bool has_changed() const noexcept;

  std::size_t poll_part() override;
  void members_changed() override;

  std::unique_ptr<remote::Progress> own_progress;
  remote::Progress& progress;
  Fabric& fabric;
  ContainersOptions options;
  std::uint32_t costs_version = 1;  // of those in the options
  std::uint32_t present = 0;        // members now
  std::map<std::uint64_t, Served*> served;
  std::string broken_promise;  // the last
  std::string why_refused;     // the last
  HubCounters counters;
  Attention attention;  // of this member, and of those that it asks

 private:
  struct Asking {
    Asked* asked = nullptr;
    std::uint32_t generation = 1;
  };
  void count_present() noexcept;
  void handle(Rank from, std::span<const std::byte> message);
  void refuse_for_memory(Rank from, const MessageHead& request);
  void expel_unanswered();
  void take_reply(const MessageHead& head, std::span<const std::byte> content);

  std::vector<Asking> calls_;
  std::vector<std::uint32_t> free_calls_;
  remote::ControlChannel channel_;
  std::vector<bool> unanswered_;  // members whose request found no memory for a reply
  bool has_unanswered_ = false;
};

class Site;

/// When an operation may be posted to a member's part: as long as the member has it.
struct SiteGate {
  const Site* site;
  Rank to;
  [[nodiscard]] remote::Status now() const noexcept;
  [[nodiscard]] remote::Status refused() const noexcept { return now(); }
  void posted() const noexcept {}
  void taken() const noexcept {}
};

/// A container's region, and the members that have it.
class Site {
 public:
  Site(Hub& hub, const std::string& kind, const std::string& name, std::size_t bytes,
       const std::string& layout, std::uint64_t generation = 0);
  void announce() { hub_.fabric.announce(region_); }
  void announce(std::span<const Rank> to) { hub_.fabric.announce(region_, to); }

  [[nodiscard]] SiteGate gate(Rank to) const noexcept { return {this, to}; }
  [[nodiscard]] Fabric& fabric() const noexcept { return hub_.fabric; }
  /// The container, in messages: the same at all members, and never that of a former one.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] RegionId region() const noexcept { return region_.id(); }
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return hub_.fabric.generation(region_);
  }
  [[nodiscard]] std::byte* memory() const noexcept { return region_.memory().data(); }
  [[nodiscard]] std::span<std::byte> own() const noexcept { return region_.memory(); }
  /// Why operations on that member's part will never be possible again; ok if they may be.
  [[nodiscard]] remote::Status fault(Rank rank) const noexcept {
    return hub_.gone(rank) ? remote::Status::lost : fault_of_part(rank);
  }
  /// Does what fault() does, whether or not that member is one still.
  [[nodiscard]] remote::Status fault_of_part(Rank rank) const noexcept {
    if (withdrawn_[rank]) return remote::Status::lost;
    return refused_[rank] ? remote::Status::refused : remote::Status::ok;
  }
  /// How often a member has destroyed its part.
  [[nodiscard]] std::uint64_t withdrawals() const noexcept { return withdrawals_; }
  [[nodiscard]] bool connected(Rank rank) const noexcept {
    return hub_.fabric.connected(rank, region_.id());
  }
  /// A member's part, if it is mapped here (Fabric::reach) and has so many bytes, which are the
  /// same for each call; else null. The fabric is asked again when a region has been disconnected:
  /// no other call goes through the backend for it. A forked child must ask was_stopped() before.
  [[nodiscard]] std::byte* mapped(Rank rank, std::size_t bytes) const noexcept {
    if (mapped_in_ != hub_.fabric.disconnections()) [[unlikely]]
      forget_mapped();
    std::byte* const kept = mapped_[rank];
    return kept != nullptr ? kept : map(rank, bytes);
  }

  enum class Posted : std::uint8_t { all, later, never };
  /// Posts what is left of a batch; `accepted` counts what is not.
  [[nodiscard]] Posted post(Rank to, std::span<const Operation> batch,
                            std::size_t& accepted) noexcept;

 private:
  Hub& hub_;
  Region region_;
  std::uint64_t id_;
  std::vector<bool> withdrawn_;
  std::uint64_t withdrawals_ = 0;
  std::vector<bool> refused_;
  void forget_mapped() const noexcept;
  [[nodiscard]] std::byte* map(Rank rank, std::size_t bytes) const noexcept;
  mutable std::vector<std::byte*> mapped_;  // null: not known to be
  mutable std::uint64_t mapped_in_ = 0;     // the fabric's disconnections() then
  Subscription subscription_;
};

inline remote::Status SiteGate::now() const noexcept { return site->fault(to); }

/// Throws Error unless the name is one.
void check_name(const std::string& kind, const std::string& name);

}  // namespace dunlin::container
