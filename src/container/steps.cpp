#include "container/steps.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "assert.hpp"
#include "remote/control_channel.hpp"

namespace dunlin::container {

using remote::Protocol;
using remote::Status;

void Asked::replied(Status status, bool flag, std::span<const std::byte> content) noexcept {
  answered_ = true;
  reply_ = {status, flag, std::min(content.size(), into_.size())};
  if (reply_.bytes > 0) std::memcpy(into_.data(), content.data(), reply_.bytes);
}

Rests::Pause Rests::pause(std::uint64_t longest_ns, std::uint64_t until_ns) noexcept {
  const std::uint64_t now = hub_.fabric.now_ns();
  const std::uint64_t took_ns = ended_ns_ != 0 ? now - ended_ns_ : 0;
  pause_ns_ = std::min(std::max(pause_ns_ * 2, kShortestRestNs), longest_ns);
  const std::uint64_t share_ns = std::min(took_ns * kRestOfAnAttempt, kLongestRestNs);
  return Pause(*this, std::min(now + std::max(pause_ns_, share_ns), std::max(until_ns, now)));
}

Protocol<Status> Announcement::make() {
  Checker& checker = *checker_;
  co_await remote::Until([&] {  // so many are counted
    if (checker.part_.fault(home_) != Status::ok) return true;
    if (checker.count_of(home_, call_) < record::kMost) return true;
    checker.hub_.look_again_soon();
    return false;
  });
  if (const Status fault = checker.part_.fault(home_); fault != Status::ok) co_return fault;
  checker.expect_owed();
  is_expected_ = true;
  Status status = co_await remote::post(checker.hub_.fabric, checker.change(home_, call_, true),
                                        Gate{checker.site_.gate(home_), this, true});
  if (status != Status::ok) co_return status;
  DUNLIN_ASSERT(stands_, "CON-C1: a call looks at others' once its own announcement stands");
  std::vector<std::uint64_t> records(checker.site_.own().size() / 8);
  status = co_await post(checker.site_, read(home_, checker.site_.region(), 0, records.data(),
                                             checker.site_.own().size()));
  if (status != Status::ok) co_return status;
  std::string sentence = checker.contradiction(records, home_, call_);
  if (sentence.empty()) co_return Status::ok;
  checker.hub_.broken_promise = std::move(sentence);
  static_cast<void>(co_await retract());
  co_return Status::broken_promise;
}

/// CON-C3: the call ends when its retraction is placed. What it came to stays, although its home
/// may have died since.
Protocol<Status> Announcement::retract() {
  Checker& checker = *checker_;
  const bool can_retract = stands_ && checker.part_.fault(home_) == Status::ok;
  if (!can_retract) co_return Status::ok;
  const Status status =
      co_await remote::post(checker.hub_.fabric, checker.change(home_, call_, false),
                            Gate{checker.site_.gate(home_), this, false});
  co_return status;
}

}  // namespace dunlin::container
