#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/backoff.hpp"
#include "fabric/shm/link.hpp"
#include "fabric/stepped_join.hpp"

/// Links a member to others of this host, one by one: it calls some of them, and is called by the
/// others. Two that are linked have shown each other the same key.
///
///     linking.call(0, address);
///     linking.listen_at(std::move(listener));
///     while (!linking.step()) wait(linking.awaited());
namespace dunlin::shm {

class Linking {
 public:
  /// Makes the link of `self` to itself. Requires key != 0.
  Linking(Identity self, Access access, std::uint64_t key);

  /// Calls this peer until it answers.
  void call(Rank peer, Address at);
  /// Expects a call of this peer.
  void expect(Rank peer);
  void listen_at(Descriptor listener) { listener_ = std::move(listener); }
  [[nodiscard]] bool listens() const noexcept { return static_cast<bool>(listener_); }

  /// Makes progress; true once all are linked. Throws Error.
  [[nodiscard]] bool step();
  [[nodiscard]] std::vector<Rank> missing() const;
  void add_to(Awaited& news) const;
  [[nodiscard]] const Identity& self() const noexcept { return self_; }

  /// The result, in which `absent` and `elsewhere` are empty. The last call.
  [[nodiscard]] Attachment attachment();
  [[noreturn]] void give_up(const std::string& why) const;

 private:
  struct Awaiting {
    Rank rank = 0;
    bool calls = false;  // true: the peer calls here
    Address at = {};     // unused if the peer calls
    std::shared_ptr<Mapping> inbox = {};
  };
  void call_all();
  void call(Awaiting& peer);
  void listen();
  [[nodiscard]] bool take_call(Descriptor& socket, pid_t pid);
  [[nodiscard]] Sent introduce(Link& link, Awaiting& peer);
  [[nodiscard]] bool take_answer_of(Awaiting& peer);

  Identity self_;
  Access access_;
  std::uint64_t key_;
  Descriptor listener_;
  Descriptor bell_;
  OwnMapping base_;
  std::vector<Link> links_;         // by rank
  std::vector<Awaiting> awaiting_;  // newcomers that are not linked yet
  std::vector<std::pair<Descriptor, pid_t>> callers_;
  std::uint64_t next_try_ns_ = 0;
  Backoff tries_{200'000, 16'000'000};
};

}  // namespace dunlin::shm
