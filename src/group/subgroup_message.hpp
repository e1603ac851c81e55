#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "group/member_set.hpp"

/// The messages of members about subgroups that come and go at run time. They name members by index
/// in the view of the control message that carries them.
namespace dunlin::group {

/// How a generation of a subgroup ends for those that are in it.
struct SubgroupEnd {
  std::uint64_t generation = 0;
  std::vector<std::uint64_t> trim = {};  // by sender: how much of it counts
  friend bool operator==(const SubgroupEnd&, const SubgroupEnd&) = default;
};

/// A member's state in a subgroup, and its wishes.
struct SubgroupReport {
  std::string name = {};
  std::uint32_t attempt = 0;  // counts this member's attempts to be in; an answer names one
  bool wants_in = false;      // false: it wants out
  bool sends = false;
  bool removes = false;  // all members are to leave
  /// True: this is no state of the member, but a change that it has accepted and not carried out
  /// (GRP-D9), with that change's `removes`, `generation`, `members`, `ends`, `options` and
  /// `label`.
  bool accepted = false;
  bool lacks_state = false;  // it has not been given the state
  std::string options = {};
  std::string label = {};
  std::vector<std::string> founders = {};
  // --- the change by which this member has it; only in a report
  std::uint64_t generation = 0;              // 0: the member is not in it
  MemberSet members = {};                    // members by that change that are still in the view
  std::vector<std::uint64_t> received = {};  // by sender
  std::vector<SubgroupEnd> ends = {};        // came with that change
};

/// A subgroup's members change.
struct SubgroupChange {
  std::string name = {};
  std::uint64_t generation = 0;
  MemberSet members = {};
  MemberSet stay = {};  // of `members`: those in it before that have its state
  MemberSet senders = {};
  MemberSet anew = {};  // members that found none with the state: they ask again
  bool had_members = false;
  std::string options = {};
  std::string label = {};
  std::vector<SubgroupEnd> ends = {};  // all earlier generations that a member may have
};

struct SubgroupMessage {
  enum class Kind : std::uint32_t {
    ask,       // leader to members: report
    report,    // member to leader: reports (of all its subgroups)
    request,   // member to leader: reports (of one subgroup)
    wedge,     // leader to the subgroup's members: name, generation
    wedged,    // member to leader: name, generation, received; good: it lacks no state
    propose,   // leader to all: generation (the proposal's number), changes; good: these are all of
               // the view's beginning
    refused,   // leader to member: name, attempt, text (empty: it is not in it, as it wanted)
    want,      // joiner to a member of the subgroup: name, generation
    state,     // the answer to want: name, generation, good, bytes; text: why it cannot give any
    parted,    // member to leader: name, generation: the change by which it is out is carried out
    accepted,  // member to leader: generation (of the proposal that it has accepted)
    decide     // leader to all: generation (of the proposal that is decided)
  };
  Kind kind;
  std::string name = {};
  std::uint64_t generation = 0;
  std::uint32_t attempt = 0;
  bool good = false;
  std::string text = {};
  std::vector<std::uint64_t> received = {};
  std::vector<SubgroupReport> reports = {};
  std::vector<SubgroupChange> changes = {};
  std::vector<std::byte> bytes = {};
};

[[nodiscard]] std::vector<std::byte> encode(SubgroupMessage message);
[[nodiscard]] std::optional<SubgroupMessage> decode_subgroup(std::vector<std::byte> bytes);

}  // namespace dunlin::group
