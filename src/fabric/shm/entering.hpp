#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/shm/linking.hpp"
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
  [[nodiscard]] std::unique_ptr<Fabric> step() override;
  [[nodiscard]] Awaited awaited() override;
  void begin_link(Rank rank, bool calls);
  [[nodiscard]] bool claim_address();
  [[nodiscard]] Attachment attachment();

  JoinOptions options_;
  Access access_;
  std::optional<Entry> entry_;
  std::optional<Linking> linking_;  // set once it has begun
  std::uint64_t deadline_ns_ = UINT64_MAX;
  std::uint64_t next_claim_ns_ = 0;
};

}  // namespace dunlin::shm
