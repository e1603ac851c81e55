#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

/// What members of a long trial have been told about the keys of a store, and what a key may hold
/// after that. Unlike the histories of seeds_test.cpp, these records have no limit of calls.
namespace dunlin::test {

/// One key, which at most one call changes at a time. The changes are numbered from 1 on, and the
/// value of a change has its number. A change whose caller has died may happen later, until a later
/// change has happened.
class TrialKey {
 public:
  explicit TrialKey(std::size_t its_index) : index_(its_index) {}

  [[nodiscard]] std::string name() const { return "trial " + std::to_string(index_); }
  [[nodiscard]] std::string value_of(std::uint64_t change) const {
    const std::size_t length = (index_ + change) % 11 == 0 ? 2'500 : (index_ * 20 + change) % 400;
    return std::to_string(change) + "/" + std::to_string(index_) + std::string(length, 'v');
  }
  [[nodiscard]] bool is_being_changed() const { return is_being_changed_; }
  /// The latest change of which a call has told: no call that begins now may see an older one.
  [[nodiscard]] std::uint64_t least() const { return least_; }
  [[nodiscard]] std::uint64_t last() const { return changes_.size() - 1; }

  /// Returns the number of the change.
  std::uint64_t begin(bool erases) {
    is_being_changed_ = true;
    least_before_ = least_;
    changes_.push_back({.erases = erases});
    return last();
  }
  /// The change has ended, and found this before: nothing if the key was absent.
  void end(std::uint64_t change, const std::string* saw) {
    is_being_changed_ = false;
    if (saw == nullptr) {
      std::uint64_t before = change;
      while (before > least_before_ && !may_be_absent(before - 1)) --before;
      if (before == least_before_)
        return fail("change", change, "finds no key: STO-C1: it is lost");
    } else {
      const std::uint64_t before = number_of(*saw);
      if (before >= change || before < least_before_ || changes_[before].is_undone)
        return fail("change", change, "finds change " + std::to_string(before) + ": STO-C1");
      if (*saw != value_of(before)) return fail("change", change, "finds other bytes: STO-3");
      if (before < least_ && least_ < change)
        return fail("change", change, "does not find what a get has seen: STO-1");
      // With an absent key it is not certain which of the changes in between have happened.
      for (std::uint64_t i = before + 1; i < change; ++i) changes_[i].is_undone = true;
    }
    least_ = change;
  }
  /// The change has ended, and says only whether it has found the key.
  void end_unseen(std::uint64_t change, bool found) {
    is_being_changed_ = false;
    std::uint64_t before = least_before_;
    while (before < change && (changes_[before].is_undone || changes_[before].erases == found))
      ++before;
    if (before == change)
      return fail("change", change, found ? "finds a key: STO-1" : "finds no key: STO-C1");
    least_ = change;
  }
  /// The change has ended, and has not found what it asks for: it finds this value, or no key.
  void end_without_effect(std::uint64_t change, const std::string* saw) {
    is_being_changed_ = false;
    changes_[change].is_undone = true;
    see(least_before_, saw);
  }
  void cut_off() { is_being_changed_ = false; }
  /// What was cut off, and has not been seen, does not happen any more (STO-4).
  void close() {
    for (std::uint64_t i = least_ + 1; i <= last(); ++i) changes_[i].is_undone = true;
  }

  /// A get that began when `least` was the least has found this value, or no key.
  void see(std::uint64_t least, const std::string* saw) {
    std::uint64_t change = least;
    if (saw != nullptr) {
      change = number_of(*saw);
      if (change < least) return fail("a get of", change, "STO-C2, STO-P10: it is an older value");
      if (change > last() || changes_[change].erases || *saw != value_of(change))
        return fail("a get of", change, "STO-3: nobody has put it");
    } else {
      while (change <= last() && !may_be_absent(change)) ++change;
      if (change > last()) return fail("a get after", least, "finds no key: STO-C1: it is lost");
    }
    if (changes_[change].is_undone)
      return fail("a get of", change, "STO-1: a later change has not found it");
    least_ = std::max(least_, change);
  }

 private:
  struct Change {
    bool erases = false;
    bool is_undone = false;  // it has not happened, and will not
  };
  [[nodiscard]] bool may_be_absent(std::uint64_t change) const {
    return changes_[change].erases && !changes_[change].is_undone;
  }
  static std::uint64_t number_of(const std::string& text) {
    std::uint64_t number = UINT64_MAX;
    std::istringstream(text) >> number;
    return number;
  }
  void fail(const char* what, std::uint64_t change, const std::string& why) const {
    ADD_FAILURE() << "key " << index_ << " (" << name() << "): " << what << " " << change << ": "
                  << why << "; the least is " << least_ << " and the last " << last();
  }

  std::size_t index_;
  std::vector<Change> changes_ = {{.erases = true}};  // the key is absent at first
  std::uint64_t least_ = 0;
  std::uint64_t least_before_ = 0;  // when the change that is under way began
  bool is_being_changed_ = false;
};

/// A number that all members increment at the same time.
class TrialCounter {
 public:
  static constexpr const char* kName = "counter";
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  void begin() { ++begun_; }
  /// An increment has ended that has found this number, and began when `ended` had ended.
  void end(std::uint64_t saw, std::uint64_t ended) {
    EXPECT_GE(saw, ended) << "STO-C1: an increment is lost";
    EXPECT_TRUE(seen_.insert(saw).second) << "STO-1: two increments have found " << saw;
    ++ended_;
  }
  void expect(std::uint64_t number) const {
    EXPECT_TRUE(number >= ended_ && number <= begun_)
        << "STO-C1: the counter is " << number << " after " << ended_ << " of " << begun_
        << " increments";
  }

 private:
  std::uint64_t begun_ = 0, ended_ = 0;
  std::set<std::uint64_t> seen_;
};

/// Accounts between which transactions move money. The value of an account is its balance, and how
/// many transactions have changed it.
class TrialBank {
 public:
  static constexpr std::size_t kAccounts = 6;
  static constexpr std::uint64_t kStart = 1'000;
  struct Account {
    std::uint64_t balance = 0, transfers = 0;
  };

  static std::string name_of(std::size_t account) { return "account " + std::to_string(account); }
  static std::string text_of(const Account& account, std::size_t length) {
    std::string text =
        std::to_string(account.balance) + " " + std::to_string(account.transfers) + " ";
    text.resize(std::max(text.size(), length), '.');
    return text;
  }
  static Account account_of(std::string_view text) {
    Account account;
    std::istringstream(std::string(text)) >> account.balance >> account.transfers;
    return account;
  }
  /// How many transfers of each account have ended.
  [[nodiscard]] const std::vector<std::uint64_t>& ended() const { return ended_; }
  /// A transfer has ended, and was the one of this number on the account.
  void transferred(std::size_t account, std::uint64_t number) {
    EXPECT_TRUE(numbers_[account].insert(number).second)
        << "STO-7: two transfers of account " << account << " were number " << number;
    ended_[account] = std::max(ended_[account], number);
  }
  /// A transaction that began after `ended` has seen these accounts.
  static void saw(std::size_t account, const Account& seen,
                  const std::vector<std::uint64_t>& ended) {
    EXPECT_GE(seen.transfers, ended[account])
        << "STO-C5: a transfer of account " << account << " is lost";
  }

 private:
  std::vector<std::uint64_t> ended_ = std::vector<std::uint64_t>(kAccounts);
  std::vector<std::set<std::uint64_t>> numbers_ = std::vector<std::set<std::uint64_t>>(kAccounts);
};

}  // namespace dunlin::test
