#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/remote/agreed_order.hpp>

/// The members, as all of them agree. A process takes over from a dead member (a lock, a second
/// copy, a reserved slot) only when the membership says that the member is gone, never on its own
/// opinion. One thread calls it, the one that polls the fabric.
namespace dunlin::remote {

class Progress;

class Membership {
 public:
  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  virtual ~Membership() = default;

  /// A number that rises with each change. All members go through the same changes, in one order,
  /// though a member that polls seldom may see several changes as one.
  [[nodiscard]] virtual std::uint64_t generation() const noexcept = 0;
  /// Whether that rank of the fabric is a member in this generation.
  [[nodiscard]] virtual bool contains(Rank rank) const noexcept = 0;
  /// How many members are there from the beginning: those with the first ranks, over which the
  /// layers spread memory and duties. All members give the same number, and it never changes.
  [[nodiscard]] virtual std::uint32_t founders() const noexcept = 0;
  /// The number of ranks that can ever be members, later members included.
  [[nodiscard]] virtual std::uint32_t capacity() const noexcept { return founders(); }
  /// A sentence that says why this process is no member any more; empty while it is one.
  [[nodiscard]] virtual const std::string& why_stopped() const noexcept = 0;
  /// Whether members go on when others die or leave, and have an order of decisions.
  [[nodiscard]] virtual bool outlives_deaths() const noexcept { return false; }
  /// Makes the progress that the agreement needs; Progress::poll() calls it.
  virtual std::size_t poll() { return 0; }
  /// The events besides the fabric's that must end a sleep, so that poll() is called in time.
  [[nodiscard]] virtual Waits waits() const { return {}; }
  /// Opens the order of that name, in which this member takes part until the order is destroyed;
  /// Progress::open_order() calls it. The state must outlive the order, and both the last poll() in
  /// which the order is there. Throws Error, also if these members have no order.
  [[nodiscard]] virtual std::unique_ptr<AgreedOrder> open_order(Progress& progress,
                                                                const OrderOptions& options,
                                                                AgreedState& state);
};

/// All members of a fabric, for programs that stop when any of them dies. No member ever takes over
/// from another: after a death, each operation ends with Status::stopped.
class FixedMembers final : public Membership {
 public:
  explicit FixedMembers(Fabric& fabric);

  [[nodiscard]] std::uint64_t generation() const noexcept override { return 1; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override { return rank < members_; }
  [[nodiscard]] std::uint32_t founders() const noexcept override { return members_; }
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }
  [[nodiscard]] std::unique_ptr<AgreedOrder> open_order(Progress& progress,
                                                        const OrderOptions& options,
                                                        AgreedState& state) override;

 private:
  std::uint32_t members_;
  std::string why_stopped_;
  Subscription subscription_;
};

}  // namespace dunlin::remote
