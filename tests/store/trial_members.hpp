#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "store/sim_members.hpp"
#include "store/trial_records.hpp"
#include "support/late_node.hpp"
#include "support/troubles.hpp"

/// Members of a long trial, in the simulator: each one changes and reads keys, moves money, and
/// scans, and judges each answer.
namespace dunlin::test {

struct TrialSeen {
  std::uint64_t changes = 0, gets = 0, transfers = 0, conflicts = 0, audits = 0, scans = 0,
                joins = 0, leaves = 0, drains = 0, deaths = 0, deaths_amid_moves = 0, pauses = 0,
                keys_moved = 0, copies_restored = 0, repaired_locks = 0;
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [count, what] : {std::pair{joins, "joins"},
                                      {leaves, "leaves"},
                                      {drains, "drains"},
                                      {deaths, "deaths"},
                                      {deaths_amid_moves, "deaths amid moves"},
                                      {pauses, "pauses"},
                                      {changes, "changes"},
                                      {gets, "gets"},
                                      {transfers, "transfers"},
                                      {conflicts, "conflicts"},
                                      {audits, "audits"},
                                      {scans, "scans"},
                                      {keys_moved, "keys moved"},
                                      {copies_restored, "copies made again"},
                                      {repaired_locks, "locks repaired"}})
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    return text;
  }
};

/// What all members of a trial share.
struct TrialState {
  TrialState(std::size_t many, int still_ones, TrialSeen& what) : still(still_ones), seen(what) {
    for (std::size_t i = 0; i < many; ++i) keys.emplace_back(i);
  }
  int still;  // keys that nobody changes: each scan returns them
  std::deque<TrialKey> keys;
  TrialCounter counter;
  TrialBank bank;
  TrialSeen& seen;
  std::uint64_t deaths = 0;
  bool is_open = false;             // all keys that stay are there
  bool is_over = false;             // no call begins
  std::uint64_t busy_until_ns = 0;  // until then, calls begin without a pause
};

class TrialMember {
 public:
  TrialMember(TrialState& state, sim::World& world, Rank node, std::uint64_t seed)
      : node_(node), state_(state), world_(world), draws_(seed) {}

  /// A founder has its member from the beginning.
  void begin(std::unique_ptr<StoreMember> founder) { member_ = std::move(founder); }
  void join(const StoreOptions& options, std::uint32_t most) {
    late_.enter(world_, node_);
    options_ = options;
    most_ = most;
  }
  std::size_t poll() {
    if (!member_)
      return late_.poll(member_, [&](std::unique_ptr<Group> group) {
        return std::make_unique<StoreMember>(std::move(group), most_, options_);
      });
    return member_->progress.poll() + step();
  }
  /// It has died, or the others have removed it: what it had under way may still happen.
  void forget() {
    if (!is_gone_)
      for (KeyCaller& caller : callers_)
        if (caller.under_way && caller.changes) state_.keys[caller.key].cut_off();
    is_gone_ = true;
  }
  /// Hands its slots over, and leaves the group then.
  void leave() {
    if (leave_ || !member_) return;
    is_asked_to_leave_ = false;
    leave_ = std::make_unique<StoreOperation>();
    member_->store.leave(*leave_);
  }
  void close() {
    scan_.reset();
    leave_.reset();
    transaction_.reset();
    for (KeyCaller& caller : callers_) caller.operation = StoreOperation();
    increment_ = StoreOperation();
    member_.reset();
  }

  /// Of the node in the world.
  [[nodiscard]] Rank node() const { return node_; }
  /// In the group, once the member is in it: a join that fails uses a rank up.
  [[nodiscard]] Rank rank() const { return member_->progress.fabric().rank(); }
  [[nodiscard]] bool is_there() const { return member_ && !is_gone_ && !has_left_; }
  [[nodiscard]] bool is_gone() const { return is_gone_; }
  void ask_to_leave() { is_asked_to_leave_ = true; }
  [[nodiscard]] bool is_leaving() const { return is_asked_to_leave_ || leave_ != nullptr; }
  [[nodiscard]] bool has_left() const { return has_left_; }
  [[nodiscard]] bool has_member() const { return member_ != nullptr; }
  [[nodiscard]] StoreMember& member() const { return *member_; }
  [[nodiscard]] bool idle() const { return !has_calls() && !is_leaving(); }
  [[nodiscard]] bool is_scanning() const { return scan_ != nullptr; }
  void begin_scan();
  [[nodiscard]] std::string under_way() const;
  /// Whether a change has read the former entry, which it does under the lock.
  [[nodiscard]] bool writes() const {
    return std::ranges::any_of(callers_, [](const KeyCaller& caller) {
      return caller.under_way && caller.changes && !caller.operation.finished() &&
             caller.operation.entry_reads() > 0;
    });
  }

 private:
  enum class Way : std::uint8_t { update, update_to_erase, put, insert, erase };
  struct KeyCaller {
    StoreOperation operation;
    bool under_way = false, changes = false;
    std::size_t key = 0;
    Way way = Way::update;
    std::uint64_t change = 0;
    std::uint64_t least = 0;  // that a get may see
    std::string value;
    std::optional<std::string> saw;  // by an update
  };
  struct Scanning {
    explicit Scanning(Store& store) : scan(store, {.buckets = 2}) {}
    StoreScan scan;
    std::map<std::string, std::string> found;
  };
  static constexpr std::uint32_t kPauseNs = 60'000'000;

  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  [[nodiscard]] bool has_calls() const {
    return under_way_ || counts_ || scan_ ||
           std::ranges::any_of(callers_, [](const KeyCaller& one) { return one.under_way; });
  }
  std::size_t step();
  void begin_call(KeyCaller& caller);
  void begin_change(KeyCaller& caller);
  void end_call(KeyCaller& caller);
  void end_change(KeyCaller& caller);
  void begin_increment();
  void end_increment();
  void begin_transaction();
  void step_of_transaction();
  void commit();
  void end_transaction();
  void step_of_scan();
  void step_of_leave();

  Rank node_;
  TrialState& state_;
  sim::World& world_;
  Draws draws_;
  LateNode late_;
  StoreOptions options_;
  std::uint32_t most_ = 0;
  std::unique_ptr<StoreMember> member_;
  bool is_gone_ = false, is_asked_to_leave_ = false, has_left_ = false;
  std::array<KeyCaller, 2> callers_;
  std::uint64_t next_at_ns_ = 0;
  // An increment.
  StoreOperation increment_;
  bool counts_ = false;
  std::uint64_t found_ = 0, ended_ = 0;
  std::string next_;
  // A transaction.
  std::unique_ptr<StoreTransaction> transaction_;
  bool under_way_ = false, is_committing_ = false, audits_ = false;
  std::vector<std::size_t> accounts_;
  std::vector<StoreOperation*> gets_;
  std::vector<std::uint64_t> ended_before_;
  std::vector<TrialBank::Account> writes_;
  std::uint64_t sum_ = 0;

  std::unique_ptr<Scanning> scan_;
  std::unique_ptr<StoreOperation> leave_;
};

// --- calls ---------------------------------------------------------------------------------------

inline std::size_t TrialMember::step() {
  if (is_gone_ || has_left_) return 0;
  std::size_t done = 0;
  for (KeyCaller& caller : callers_)
    if (caller.under_way && caller.operation.finished()) end_call(caller), ++done;
  if (counts_ && increment_.finished()) end_increment(), ++done;
  if (under_way_) step_of_transaction();
  if (scan_ && scan_->scan.finished()) step_of_scan(), ++done;
  if (leave_ && leave_->finished()) return step_of_leave(), done + 1;
  if (state_.is_over || !state_.is_open || testing::Test::HasFailure()) return done;
  const std::uint64_t now = world_.now_ns();
  if (now >= next_at_ns_) {
    for (KeyCaller& caller : callers_)
      if (!caller.under_way) begin_call(caller), ++done;
    if (!counts_) begin_increment(), ++done;
    if (!under_way_) begin_transaction(), ++done;
    const bool is_busy = now < state_.busy_until_ns;
    next_at_ns_ = now + below(is_busy ? 10'000 : kPauseNs);
  }
  member_->progress.fabric().wake_at(next_at_ns_);
  return done;
}

inline void TrialMember::begin_call(KeyCaller& caller) {
  caller.key = below(static_cast<std::uint32_t>(state_.keys.size()));
  TrialKey& key = state_.keys[caller.key];
  caller.under_way = true;
  caller.changes = below(2) == 0 && !key.is_being_changed();
  if (caller.changes) return begin_change(caller);
  caller.least = key.least();
  member_->store.get(caller.operation, key.name());
}

inline void TrialMember::begin_change(KeyCaller& caller) {
  TrialKey& key = state_.keys[caller.key];
  static constexpr std::array kWays = {Way::update, Way::update, Way::update, Way::put,
                                       Way::insert, Way::insert, Way::erase,  Way::update_to_erase};
  caller.way = kWays.at(below(kWays.size()));
  const bool erases = caller.way == Way::erase || caller.way == Way::update_to_erase;
  caller.change = key.begin(erases);
  caller.value = erases ? "" : key.value_of(caller.change);
  caller.saw.reset();
  Store& store = member_->store;
  const auto bytes = std::as_bytes(std::span(caller.value));
  switch (caller.way) {
    case Way::put:
      return store.put(caller.operation, key.name(), bytes);
    case Way::insert:
      return store.insert(caller.operation, key.name(), bytes);
    case Way::erase:
      return store.erase(caller.operation, key.name());
    case Way::update:
    case Way::update_to_erase:
      return store.update(caller.operation, key.name(),
                          [&caller, erases](std::optional<std::span<const std::byte>> now) {
                            caller.saw.reset();
                            if (now)
                              caller.saw.emplace(reinterpret_cast<const char*>(now->data()),
                                                 now->size());
                            return erases ? StoreUpdate::erase() : StoreUpdate::put(caller.value);
                          });
  }
}

inline void TrialMember::end_call(KeyCaller& caller) {
  caller.under_way = false;
  TrialKey& key = state_.keys[caller.key];
  const remote::Status status = caller.operation.status();
  if (status != remote::Status::ok) {
    if (caller.changes) key.cut_off();
    ADD_FAILURE() << "STO-C1: a call of member " << node_ << " on key " << caller.key
                  << " ends with: " << remote::describe(status) << "\n"
                  << member_->store.describe_moves();
    return;
  }
  if (caller.changes) return end_change(caller);
  ++state_.seen.gets;
  const std::string text(caller.operation.text());
  key.see(caller.least, caller.operation.found() ? &text : nullptr);
}

inline void TrialMember::end_change(KeyCaller& caller) {
  ++state_.seen.changes;
  TrialKey& key = state_.keys[caller.key];
  const StoreOperation& operation = caller.operation;
  const std::string text(operation.text());
  switch (caller.way) {
    case Way::update:
    case Way::update_to_erase:
      if (caller.way == Way::update && !operation.changed())
        ADD_FAILURE() << "STO-1: an update has put nothing";
      return key.end(caller.change, caller.saw ? &*caller.saw : nullptr);
    case Way::insert:
      if (operation.found()) return key.end_without_effect(caller.change, &text);
      return key.end(caller.change, nullptr);
    case Way::put:
    case Way::erase:
      return key.end_unseen(caller.change, operation.found());
  }
}

inline void TrialMember::begin_increment() {
  counts_ = true;
  ended_ = state_.counter.ended();
  state_.counter.begin();
  member_->store.update(increment_, std::string_view(TrialCounter::kName),
                        [this](std::optional<std::span<const std::byte>> now) {
                          found_ = 0;
                          if (now) found_ = std::stoull(Mortals::text_of(*now));
                          next_ = std::to_string(found_ + 1);
                          return StoreUpdate::put(next_);
                        });
}

inline void TrialMember::end_increment() {
  counts_ = false;
  EXPECT_EQ(remote::describe(increment_.status()), "done")
      << "STO-C1: an increment of member " << node_;
  if (increment_.status() == remote::Status::ok) state_.counter.end(found_, ended_);
}

// --- money ---------------------------------------------------------------------------------------

inline void TrialMember::begin_transaction() {
  if (!transaction_) transaction_ = std::make_unique<StoreTransaction>(member_->store);
  audits_ = below(4) == 0;
  is_committing_ = false;
  under_way_ = true;
  ended_before_ = state_.bank.ended();
  accounts_.clear();
  gets_.clear();
  writes_.clear();
  transaction_->clear();
  const std::size_t first = below(TrialBank::kAccounts);
  const std::size_t many = audits_ ? TrialBank::kAccounts : 2;
  const std::size_t step = audits_ ? 1 : 1 + below(TrialBank::kAccounts - 1);
  for (std::size_t i = 0; i < many; ++i)
    accounts_.push_back((first + i * step) % TrialBank::kAccounts);
  for (const std::size_t account : accounts_)
    gets_.push_back(&transaction_->get(TrialBank::name_of(account)));
}

inline void TrialMember::step_of_transaction() {
  const auto has_finished = [](const StoreOperation* get) { return get->finished(); };
  if (is_committing_) {
    if (transaction_->finished()) end_transaction();
  } else if (std::ranges::all_of(gets_, has_finished)) {
    commit();
  }
}

inline void TrialMember::commit() {
  sum_ = 0;
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    const bool is_there = gets_[i]->status() == remote::Status::ok && gets_[i]->found();
    EXPECT_TRUE(is_there) << "STO-C1: member " << node_ << " does not find account " << accounts_[i]
                          << ": " << remote::describe(gets_[i]->status());
    TrialBank::Account account = TrialBank::account_of(gets_[i]->text());
    TrialBank::saw(accounts_[i], account, ended_before_);
    sum_ += account.balance;
    ++account.transfers;
    writes_.push_back(account);
  }
  if (!audits_ && writes_[0].balance > 0) {
    const std::uint64_t amount = 1 + below(static_cast<std::uint32_t>(writes_[0].balance));
    writes_[0].balance -= amount;
    writes_[1].balance += amount;
    for (std::size_t i = 0; i < writes_.size(); ++i)
      transaction_->put(TrialBank::name_of(accounts_[i]),
                        TrialBank::text_of(writes_[i], below(4) == 0 ? 900 : 0));
  } else {
    writes_.clear();
  }
  is_committing_ = true;
  transaction_->commit();
}

inline void TrialMember::end_transaction() {
  under_way_ = false;
  const remote::Status status = transaction_->status();
  if (status == remote::Status::conflict) {
    ++state_.seen.conflicts;
    return;
  }
  EXPECT_EQ(remote::describe(status), "done") << "STO-C5: a transaction of member " << node_ << "\n"
                                              << member_->store.describe_moves();
  if (status != remote::Status::ok) return;
  ++(audits_ ? state_.seen.audits : state_.seen.transfers);
  if (audits_) {
    EXPECT_EQ(sum_, TrialBank::kAccounts * TrialBank::kStart) << "STO-7: member " << node_;
  }
  for (std::size_t i = 0; i < writes_.size(); ++i)
    state_.bank.transferred(accounts_[i], writes_[i].transfers);
}

// --- scans and leaves ----------------------------------------------------------------------------

inline void TrialMember::begin_scan() {
  if (scan_ || !is_there()) return;
  scan_ = std::make_unique<Scanning>(member_->store);
  scan_->scan.step(0);
}

inline void TrialMember::step_of_scan() {
  StoreScan& scan = scan_->scan;
  EXPECT_EQ(remote::describe(scan.status()), "done") << "STO-C3: a scan of member " << node_;
  for (std::size_t i = 0; i < scan.size(); ++i)
    EXPECT_TRUE(
        scan_->found.emplace(Mortals::text_of(scan[i].key), Mortals::text_of(scan[i].value)).second)
        << "STO-C3: a scan of member " << node_ << " returns " << Mortals::text_of(scan[i].key)
        << " twice";
  if (scan.status() == remote::Status::ok && scan.cursor() != 0) return scan.step(scan.cursor());
  for (int key = 0; key < state_.still; ++key)
    EXPECT_EQ(scan_->found[name_of(key)], "still " + name_of(key))
        << "STO-M2: a scan of member " << node_ << " does not return a key that stays";
  ++state_.seen.scans;
  scan_.reset();
}

/// The slots are at others. The member leaves the group once its own calls have ended.
inline void TrialMember::step_of_leave() {
  if (has_calls()) return;
  const remote::Status status = leave_->status();
  EXPECT_TRUE(status == remote::Status::ok || status == remote::Status::not_allowed)
      << "a leave of member " << node_ << " ends with: " << remote::describe(status);
  if (status == remote::Status::ok) {
    ++state_.seen.leaves;
    // Each insert that a death cuts off may leave the count wrong by one.
    if (state_.deaths == 0) {
      EXPECT_EQ(member_->store.statistics().keys, 0U) << "STO-M6: member " << node_;
    }
    has_left_ = true;
    member_->group->leave();
  }
  leave_.reset();
}

inline std::string TrialMember::under_way() const {
  std::string text = "member " + std::to_string(node_) + ":";
  for (const KeyCaller& caller : callers_)
    if (caller.under_way)
      text += std::string(caller.changes ? " a change" : " a get") + " of key " +
              std::to_string(caller.key);
  if (counts_) text += " an increment";
  if (under_way_) text += is_committing_ ? " a commit" : " gets of a transaction";
  if (scan_) text += " a scan";
  if (leave_) text += " a leave";
  if (is_gone_) text += " it is gone";
  if (has_left_) text += " it has left";
  return member_ ? text + "\n  " + member_->store.describe_moves() : text + " it joins";
}

}  // namespace dunlin::test
