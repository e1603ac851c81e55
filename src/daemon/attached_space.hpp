#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/attached_backend.hpp"
#include "daemon/layout.hpp"
#include "segment/port.hpp"

/// The client's side of an attachment: operations become requests in the daemon's rings, and end
/// with its replies.
namespace dunlin::attached {

class AttachedSpace final : public SegmentPort, public remote::Part {
 public:
  /// `welcome` is what the daemon has sent. Throws Error.
  AttachedSpace(Descriptor socket, const Welcome& welcome, const DaemonAddress& daemon);
  ~AttachedSpace() override;

  [[nodiscard]] SegmentOperation begin(const SegmentRequest& request, std::string_view name,
                                       std::uint64_t timeout_ns) override;

  [[nodiscard]] remote::Progress& its_progress() const noexcept override { return *progress_; }
  [[nodiscard]] const std::string& space_name() const noexcept override { return name_; }
  [[nodiscard]] std::uint32_t members() const noexcept override { return group_members_; }
  [[nodiscard]] Rank place_of(Placement placement) noexcept override { return placement.rank; }
  [[nodiscard]] std::string text_of(Rank rank) const override;
  [[nodiscard]] remote::PoolUse use() const noexcept override { return {}; }
  [[nodiscard]] std::vector<Key> lost() const override;
  [[nodiscard]] const std::string& why_refused() const noexcept override { return why_refused_; }

  std::size_t poll_part() override;
  void members_changed() override {}

 private:
  /// A call that waits for its reply, in the frame of its protocol.
  struct Waiting;
  /// The use of a slot until its reply has come.
  struct Slot {
    Waiting* waiting = nullptr;  // null: nobody waits for it
    Request request = {};
    bool in_use = false;
  };

  /// A call: its request, and the reply.
  remote::Protocol<Outcome> call(SegmentRequest wanted, std::string name);
  /// Fills in all but the number, and the slot's buffer. `ok` if such a request is possible.
  [[nodiscard]] remote::Status describe(const SegmentRequest& wanted, const std::string& name,
                                        Request& request) noexcept;
  void describe_allocation(const SegmentRequest& wanted, const std::string& name,
                           const Request& request) noexcept;
  void post(Request& request) noexcept;
  void take_reply(const Reply& reply);
  void take_result(Waiting& waiting, const Request& request, const Reply& reply) noexcept;
  void undo_granted(const SegmentRequest& wanted, const Outcome& outcome);
  void undo(Call call, Key key);
  void send_undone() noexcept;

  [[nodiscard]] std::byte* buffer(std::uint32_t slot) const noexcept {
    return memory_.memory().data() + layout_.buffer_at(slot);
  }

  std::string name_;
  std::string group_;
  std::string daemon_;
  Rank rank_;  // the daemon's rank
  std::uint32_t group_members_;
  Layout layout_;
  SharedMemory memory_;
  AttachedMembers members_;
  AttachedBackend* backend_ = nullptr;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<remote::Progress> progress_;
  std::vector<Slot> slots_;
  std::vector<std::uint16_t> free_;
  std::uint64_t requests_ = 0;
  std::uint64_t replies_ = 0;
  struct Undo {
    Call call;
    Key key;
  };
  std::vector<Undo> undo_;  // what is to be given back because it came after it was given up
  std::set<std::uint64_t> lost_;
  std::string why_refused_;  // always empty: a daemon compares no options
};

}  // namespace dunlin::attached
