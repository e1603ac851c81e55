#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include <dunlin/group/subgroup_participant.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/delivery_upcall.hpp"
#include "multicast/durable_log.hpp"
#include "multicast/joiner_state.hpp"
#include "multicast/open_views.hpp"
#include "multicast/resending.hpp"

/// Does the work of a Multicast in its group: it opens a SubgroupView in each view, ends it, and
/// carries over to the next view what must not be lost or repeated.
namespace dunlin {

class Multicast::Participant final : public SubgroupParticipant {
 public:
  /// Throws Error for options that do not fit each other, or a log that cannot be opened.
  Participant(Group& group, const std::string& subgroup, MulticastOptions options);
  ~Participant() override;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  // --- what the group asks for -------------------------------------------------------------------
  void begin(Fabric& fabric, const Subgroup& subgroup) override;
  std::size_t poll() override;
  [[nodiscard]] bool rests() const noexcept override;
  void wedge() noexcept override { present().wedge(); }
  [[nodiscard]] std::span<const std::uint64_t> received() const noexcept override {
    return views_.present().view->received();
  }
  void finish(std::span<const std::uint64_t> trim, std::span<const Rank> staying) override;
  [[nodiscard]] bool can_begin_anew() const noexcept override {
    return !log_ || (options_.log_quorum && !log_->ever_begun());
  }
  [[nodiscard]] bool wants_state() const noexcept override { return state_.wanted(); }
  [[nodiscard]] std::optional<std::vector<std::byte>> give_state() override;
  void take_state(std::span<const std::byte> state) override;
  void left(const std::string& why) override;
  [[nodiscard]] bool hand_over(bool sends) override;

  /// Asks to be in a subgroup that comes and goes at run time. Throws Error.
  void join(SubgroupJoin join);

  // --- what the user asks for, and the group, too ------------------------------------------------
  [[nodiscard]] bool acknowledged();
  bool hand_over_at_end(std::uint32_t timeout_ms) noexcept;

 private:
  friend class Multicast;  // Its functions are in multicast.cpp and participant_log.cpp.

  [[nodiscard]] multicast::DurableLog& log() const;  // Only a durable subgroup has one.
  [[nodiscard]] std::uint64_t first_record_of_oldest() const noexcept;
  [[nodiscard]] bool others_left() const;
  [[nodiscard]] std::string why_ended_by_leaves() const;
  [[nodiscard]] std::string why_without_quorum() const;
  [[nodiscard]] bool may_go_on(std::span<const Rank> staying) const;
  [[nodiscard]] multicast::SubgroupView& present() noexcept { return *views_.present().view; }
  [[nodiscard]] multicast::SubgroupViewOptions view_options(const Subgroup& subgroup) const;
  /// A member that awaits its state sends nothing: its own messages could come to it only as a part
  /// of that. Nor does one that leaves: what is sent behind what was handed over could be lost.
  [[nodiscard]] bool may_send() const noexcept {
    return !views_.empty() && !resending_.pending() && !state_.awaited() && !leaving_;
  }
  [[nodiscard]] multicast::SendResult why_not_send() const noexcept;
  void note_refused(std::size_t bytes) noexcept {
    if (room_handler_) refused_bytes_ = bytes;
  }
  [[nodiscard]] bool has_room(std::size_t bytes) noexcept {
    return may_send() && present().has_room(bytes);
  }
  [[nodiscard]] std::size_t tell_of_room();
  void hand_up(std::span<const multicast::Delivery> batch);
  [[nodiscard]] std::size_t poll_for_others();
  void check_not_begun(const char* what) const;
  void trim_log();
  void leave_because_of_options();
  void leave_if(const std::string& failure);
  /// This member leaves the group, or a subgroup that came at run time.
  void give_up(const std::string& why);

  Group& group_;
  const pid_t process_;  // a forked child is no member
  const std::string name_;
  const std::string who_;  // "subgroup 'orders': "
  const MulticastOptions options_;
  std::unique_ptr<multicast::DurableLog> log_;  // in the durable mode
  multicast::OpenViews views_;
  multicast::Resending resending_;
  multicast::JoinerState state_;
  multicast::DeliveryUpcall upcall_;
  MembersHandler members_handler_;
  std::function<void()> room_handler_;
  std::optional<std::size_t> refused_bytes_;  // by prepare() or send(), and not told of room since
  bool at_run_time_ = false;                  // the subgroup came at run time
  bool leaving_ = false;                      // this member leaves, and takes nothing more to send
  std::uint64_t hand_over_until_ns_ = 0;      // 0: hand_over() was not called yet
  bool handed_over_ = false;                  // true also if the time was up
  bool delivers_no_more_ = false;
  bool has_left_ = false;
  bool without_quorum_ = false;    // no quorum of the view that has ended goes on (MC-Q2)
  std::vector<std::string> gone_;  // members of that view that did not go on
  std::string why_left_;
  bool next_found_ = false;            // next() has found a message since the last poll()
  std::uint64_t fruitless_polls_ = 0;  // in a row, while the user asked for nothing
};

}  // namespace dunlin
