#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/multicast.hpp>

/// The options of one subgroup in one view. All members give equal ones, but for the journal.
namespace dunlin::multicast {

class Journal;

struct SubgroupViewOptions {
  std::string name;                    // the subgroup's name, also of its region and table
  std::uint64_t generation = 0;        // 0: views of this name are numbered in order of creation
  std::vector<Rank> members;           // ranks of the fabric, in the view's order
  std::vector<std::uint32_t> senders;  // indices into members, ascending
  Mode mode = Mode::ordered;
  std::size_t ring_bytes = std::size_t{1} << 20;  // for each sender; a power of two
  std::uint32_t window_messages = 0;  // own records not yet delivered everywhere; 0: any number
  Switches switches = {};
  bool log_quorum = false;     // members compare it; the log's owner acts upon it
  Journal* journal = nullptr;  // needed in the durable mode; outlives the view
};

/// Throws Error for an option that no view can have. `own_rank` is this process's rank.
void check(const SubgroupViewOptions& options, Rank own_rank);

/// The options on which the members must agree beside the table's layout, as text.
[[nodiscard]] std::string describe(const SubgroupViewOptions& options);

/// The part of that text which does not change from view to view.
[[nodiscard]] std::string describe_common(const SubgroupViewOptions& options);

/// Throws Error with the subgroup's name.
[[noreturn]] void refuse(const SubgroupViewOptions& options, const std::string& what);

}  // namespace dunlin::multicast
