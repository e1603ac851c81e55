#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/limits.hpp>

/// An AgreedOrder is one order of small proposals for all members that open it by one name. A layer
/// keeps what its members must agree on, such as which member owns what, in an AgreedState: a state
/// machine that nothing but this order changes. Membership::open_order() makes one; the thread that
/// polls the fabric uses it.
///
///     struct Sum final : remote::AgreedState { ... std::uint64_t sum = 0; };
///     Sum sum;
///     auto order = progress.open_order({.name = "sum"}, sum);
///     if (!order->propose(bytes_of_7)) ...;      // no room now: poll, and try again
///     while (sum.sum == 0) {
///       progress.poll();
///       order->poll();
///     }
///
/// docs/remote.md says how it is made on a group, and without one.
///  REM-19  All members handle the same proposals in the same order, each proposal once, and the
///          same changes of the members between the same two proposals.
///  REM-20  A member handles a proposal only once all members that go on are certain to handle it.
///  REM-21  What a member has proposed, and it goes on, is handled in the order in which it
///  proposed. REM-22  A member that opens the order later handles nothing before it has the others'
///  state.
namespace dunlin::remote {

/// What an order changes. The functions are called from Progress::poll() or AgreedOrder::poll(), in
/// the same order at all members; so the same state follows everywhere, if it depends on nothing
/// else: no clock, no rank of this process, no random number.
class AgreedState {
 public:
  virtual ~AgreedState() = default;

  /// From here on, these are the members that have opened the order: ranks, ascending. Comes first
  /// of all, and again with each change of them.
  virtual void members_are(std::span<const Rank> members) noexcept = 0;
  virtual void decided(std::span<const std::byte> proposal) noexcept = 0;
  /// The state, members included, for a member that opens the order later.
  [[nodiscard]] virtual std::vector<std::byte> save() const = 0;
  /// Takes a state of another member, in place of the initial one. False: this is none.
  [[nodiscard]] virtual bool load(std::span<const std::byte> state) noexcept = 0;

 protected:
  AgreedState() = default;
  AgreedState(const AgreedState&) = default;
  AgreedState& operator=(const AgreedState&) = default;
};

class AgreedOrder {
 public:
  AgreedOrder() = default;
  AgreedOrder(const AgreedOrder&) = delete;
  AgreedOrder& operator=(const AgreedOrder&) = delete;
  virtual ~AgreedOrder() = default;

  /// Asks that all members handle this, of at most kMaxProposalBytes. False: it was not taken,
  /// because there is no room now, or this member has no state yet, or has stopped.
  [[nodiscard]] virtual bool propose(std::span<const std::byte> proposal) = 0;
  /// Whether the state of this member is that of the order, so that it can propose.
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  /// A sentence that says why this member has no part in the order any more, though the membership
  /// may go on; empty while it has.
  [[nodiscard]] virtual const std::string& why_stopped() const noexcept = 0;
  /// Makes the progress that Progress::poll() does not make.
  virtual std::size_t poll() = 0;
};

struct OrderOptions {
  std::string name;  // the same at all its members: [A-Za-z0-9._-], at most kMaxSubgroupNameBytes
  /// On a fixed list of members: the channel of the order's messages, which it alone has. A group
  /// needs none.
  std::uint32_t channel = kOrderChannel;
};

}  // namespace dunlin::remote
