#include "fabric/shm/shm_rendezvous.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/backoff.hpp"
#include "fabric/names.hpp"
#include "fabric/shm/address.hpp"
#include "fabric/shm/entering.hpp"
#include "fabric/shm/packet.hpp"
#include "fabric/system.hpp"

/// The listeners of one host: addresses with numbers. A leader takes the first that is free, so a
/// process that was stopped may keep its own; a joiner tries all. The two then meet in a fabric of
/// their own, under a unique name, so neither blocks other members if it goes no further.
namespace dunlin::shm {
namespace {

constexpr Rank kListeners = kMaxViewMembers;
constexpr std::uint32_t kConnectMs = 1'000;
constexpr std::uint64_t kConnectNs = kConnectMs * std::uint64_t{1'000'000};

std::string group_text(const JoinOptions& options) { return "group '" + options.group + "'"; }

Address listener_address(const Access& access, const std::string& group, Rank candidate) {
  return address_of(access, group + ".join", candidate);
}

std::unique_ptr<PendingJoin> begin_pair(JoinOptions options, std::uint64_t ticket, Rank rank) {
  options.group += ".d" + std::to_string(ticket % 1'000'000'000);
  options.names = {"leader", "joiner"};
  options.name = options.names[rank];
  options.timeout_ms = kConnectMs;
  return begin_join(options, {});
}

class ShmAccept final : public SteppedJoin {
 public:
  explicit ShmAccept(JoinOptions options)
      : options_(std::move(options)), access_(access_for(options_.access_group)) {
    if (claims_listener(Holder::is_trusted) || claims_listener(Holder::is_examined)) return;
    throw Error(group_text(options_) + ": all its " + std::to_string(kListeners) +
                " listener addresses are held, by members that were stopped or other processes: " +
                holders());
  }

 private:
  std::unique_ptr<Fabric> step() override {
    if (!pair_) let_in();
    if (!pair_) return nullptr;
    try {
      if (std::unique_ptr<Fabric> made = pair_->poll()) return made;
      if (receive_packet(joiner_.get()).kind == Received::Kind::nothing_yet) return nullptr;
    } catch (const Error&) {
      if (read_clock_ns(CLOCK_MONOTONIC) < until_ns_) throw;  // the fault is ours
    }
    pair_.reset();  // the joiner has gone, or was stopped
    joiner_.close();
    return nullptr;
  }
  Awaited awaited() override {
    Awaited news;
    news.add(pair_ ? joiner_ : listener_);
    if (pair_) news.descriptors.push_back({pair_->wait_descriptor(), POLLIN, 0});
    return news;
  }

  [[nodiscard]] bool claims_listener(Holder holder) {
    for (Rank candidate = 0; candidate < kListeners; ++candidate) {
      std::optional<Descriptor> listener =
          claim(listener_address(access_, options_.group, candidate), holder);
      if (!listener) continue;
      listener_ = std::move(*listener);
      return true;
    }
    return false;
  }

  void let_in() {
    while (!pair_) {
      Descriptor joiner = take_connection(listener_);
      if (!joiner && (errno == EMFILE || errno == ENFILE))
        throw Error(group_text(options_) + ": " + out_of_descriptors());
      if (!joiner) return;
      if (!counterpart_of(joiner, access_).admitted) continue;
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      Packet ticket;
      ticket.type = PacketType::ticket;
      ticket.value = now_ns;
      if (send_packet(joiner.get(), ticket) != Sent::whole) continue;  // the joiner has not waited
      joiner_ = std::move(joiner);
      until_ns_ = now_ns + kConnectNs;
      pair_ = begin_pair(options_, ticket.value, 0);
    }
  }

  [[nodiscard]] std::string holders() const {
    std::string text;
    std::vector<pid_t> named;
    for (Rank candidate = 0; candidate < kListeners; ++candidate) {
      const auto socket = connect_to(listener_address(access_, options_.group, candidate));
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
  Descriptor joiner_;  // the peer that this member meets,
  std::unique_ptr<PendingJoin> pair_;
  std::uint64_t until_ns_ = 0;  // and the time limit for that
};

class ShmConnect final : public SteppedJoin {
 public:
  explicit ShmConnect(JoinOptions options)
      : options_(std::move(options)),
        access_(access_for(options_.access_group)),
        listeners_(kListeners),
        until_ns_(read_clock_ns(CLOCK_MONOTONIC) + kConnectNs) {}

 private:
  std::unique_ptr<Fabric> step() override {
    const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (!pair_) try_listeners(now_ns);
    for (Rank candidate = 0; candidate < kListeners && !pair_; ++candidate)
      if (listeners_[candidate]) look_at(listeners_[candidate]);
    if (!pair_ && now_ns >= until_ns_) throw_unheard();
    if (!pair_) return nullptr;
    try {
      return pair_->poll();
    } catch (const Error&) {
      if (read_clock_ns(CLOCK_MONOTONIC) < until_ns_) throw;
      throw Error(group_text(options_) + ": the member that listened does not answer any more");
    }
  }
  Awaited awaited() override {
    Awaited news;
    if (pair_) {
      news.descriptors.push_back({pair_->wait_descriptor(), POLLIN, 0});
      return news;
    }
    news.by(until_ns_);
    news.by(next_try_ns_);
    for (const Descriptor& candidate : listeners_)
      if (candidate) news.add(candidate);
    return news;
  }

  void try_listeners(std::uint64_t now_ns) {
    if (now_ns < next_try_ns_) return;
    next_try_ns_ = tries_.after(now_ns);
    for (Rank candidate = 0; candidate < kListeners; ++candidate) {
      if (listeners_[candidate]) continue;
      std::optional<Descriptor> socket =
          connect_to(listener_address(access_, options_.group, candidate));
      if (socket && counterpart_of(*socket, access_).admitted)
        listeners_[candidate] = std::move(*socket);
    }
  }

  void look_at(Descriptor& candidate) {
    const Received received = receive_packet(candidate.get());
    if (received.kind == Received::Kind::nothing_yet) return;
    if (received.kind == Received::Kind::other_version)
      throw Error(group_text(options_) + ": its listener speaks version " +
                  std::to_string(received.packet.version) +
                  " of the control protocol, and this process " + std::to_string(kProtocolVersion) +
                  ". All members must use the same release of Dunlin");
    if (received.kind != Received::Kind::packet || received.packet.type != PacketType::ticket)
      return candidate.close();  // it has closed, or is no leader
    listener_ = std::move(candidate);
    for (Descriptor& other : listeners_) other.close();
    until_ns_ = read_clock_ns(CLOCK_MONOTONIC) + kConnectNs;
    pair_ = begin_pair(options_, received.packet.value, 1);
  }

  [[noreturn]] void throw_unheard() const {
    std::string there;
    for (const Descriptor& candidate : listeners_)
      if (candidate)
        there += (there.empty() ? "pid " : ", ") +
                 std::to_string(counterpart_of(candidate, access_).pid);
    if (there.empty())
      throw Error(group_text(options_) +
                  ": no member listens here for joiners. Does the group run on this host, under "
                  "this name and user, with members that may be joined?");
    throw Error(group_text(options_) + ": the member that listens does not answer (" + there +
                "): stopped, or busy with others");
  }

  JoinOptions options_;
  Access access_;
  std::vector<Descriptor> listeners_;  // by number: where we have connected
  Descriptor listener_;                // the listener whose ticket we have
  std::unique_ptr<PendingJoin> pair_;
  std::uint64_t until_ns_;
  std::uint64_t next_try_ns_ = 0;
  Backoff tries_{1'000'000, 16'000'000};
};

class ShmRendezvous final : public Rendezvous {
 public:
  explicit ShmRendezvous(const JoinOptions& options) : options_(options) {
    check_joinable_group_name(options.group);
  }

  const std::string& group() const noexcept override { return options_.group; }
  std::unique_ptr<PendingEntry> enter() override { return std::make_unique<ShmEntry>(options_); }
  std::unique_ptr<PendingJoin> accept() override { return std::make_unique<ShmAccept>(options_); }
  std::unique_ptr<PendingJoin> connect() override { return std::make_unique<ShmConnect>(options_); }
  bool has_later_members(std::uint32_t founders) override {
    return is_held_from(access_for(options_.access_group), options_.group, founders);
  }
  std::uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }

 private:
  JoinOptions options_;
};

}  // namespace

std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& options,
                                            std::vector<std::string> contacts) {
  if (!contacts.empty())
    throw Error(
        "group '" + options.group +
        "': members of one host need no `contacts`: they find each other by the group's name");
  return std::make_shared<ShmRendezvous>(options);
}

}  // namespace dunlin::shm
