#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/fabric/shm.hpp>

#include "fabric/shm/link.hpp"
#include "fabric/stepped_join.hpp"

/// A newcomer's way into a fabric of this host. It claims the address of its rank, calls all
/// members and the newcomers of lower ranks, and is called by those of higher ranks.
namespace dunlin::shm {

class ShmEntry final : public SteppedEntry {
 public:
  explicit ShmEntry(JoinOptions options);
  [[nodiscard]] std::vector<std::byte> endpoint() const override { return {}; }
  void begin(const Entry& entry) override;
  [[nodiscard]] std::string missing() const override;

 private:
  struct Awaiting {
    Rank rank = 0;
    bool calls = false;  // it calls here
    std::shared_ptr<Mapping> inbox = {};
  };
  [[nodiscard]] std::unique_ptr<Fabric> step() override;
  [[nodiscard]] Awaited awaited() override;
  void begin_link(Rank rank, bool calls);
  [[nodiscard]] bool claim_address();
  void call_all();
  void call(Awaiting& peer);
  void listen();
  [[nodiscard]] bool take_call(Descriptor& socket, pid_t pid);
  [[nodiscard]] Sent introduce(Link& link, Awaiting& peer);
  [[nodiscard]] bool hear(Awaiting& peer);
  [[nodiscard]] Attachment attachment();
  [[noreturn]] void give_up(const std::string& why) const;

  JoinOptions options_;
  Access access_;
  std::optional<Entry> entry_;
  Identity self_;
  Descriptor listener_;
  Descriptor bell_;
  OwnMapping base_;
  std::vector<Link> links_;         // by rank
  std::vector<Awaiting> awaiting_;  // who is not linked yet
  std::vector<std::pair<Descriptor, pid_t>> callers_;
  std::uint64_t deadline_ns_ = UINT64_MAX;
  std::uint64_t next_try_ns_ = 0;
  std::uint64_t try_interval_ns_;
};

}  // namespace dunlin::shm
