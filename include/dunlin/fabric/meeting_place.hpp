#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/formation.hpp>

namespace dunlin {

/// Where processes meet that form fabrics again and again: those who are in a group form one for
/// each view that takes others in, and who wants to come in knocks first. Made by a fabric's own
/// function, such as shm::meeting_place(). One thread at a time; formations must not outlive it.
class MeetingPlace {
 public:
  MeetingPlace() = default;
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  virtual ~MeetingPlace() = default;

  /// Of the group that meets here.
  [[nodiscard]] virtual const std::string& group() const noexcept = 0;
  /// Where others find us, for those who form() a fabric with us; may be empty.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// A fabric of these members by name, of which we are `me`. All give the same, `address` that of
  /// the first member.
  [[nodiscard]] virtual std::unique_ptr<Formation> form(const std::string& name,
                                                        const std::vector<std::string>& members,
                                                        const std::string& me,
                                                        const std::string& address) = 0;
  /// A fabric of two, with whoever knocks next; our rank is 0. Waits as long as it takes. One at a
  /// time, and none while we form() another.
  [[nodiscard]] virtual std::unique_ptr<Formation> open() = 0;
  /// A fabric of two, with whoever has opened; our rank is 1. Error, from poll(), if nobody has for
  /// some time: then knock again.
  [[nodiscard]] virtual std::unique_ptr<Formation> knock() = 0;

  /// The clock of the node that meets, and "poll me no later than this" (on a simulated node).
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  virtual void wake_at(std::uint64_t) {}
};

}  // namespace dunlin
