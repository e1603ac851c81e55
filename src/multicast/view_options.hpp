#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/multicast.hpp>

/// Of what one subgroup in one view consists. All its members give the same, but for the journal.
namespace dunlin::multicast {

class Journal;

struct SubgroupViewOptions {
  std::string name;                    // of the subgroup; names region and table
  std::uint64_t generation = 0;        // the view's number; 0: the how-many-th of this name here
  std::vector<Rank> members;           // ranks of the fabric, in the view's order
  std::vector<std::uint32_t> senders;  // indices into members, ascending
  Mode mode = Mode::ordered;
  std::size_t ring_bytes = std::size_t{1} << 20;  // of each sender; a power of two
  std::uint32_t window_messages = 0;  // own records not yet delivered everywhere; 0: any number
  Switches switches = {};
  bool log_quorum = false;     // that all must agree on; the log's owner acts upon it
  Journal* journal = nullptr;  // of the durable mode, which needs one; outlives the view
};

/// Throws Error for an option that no view can have. `own_rank`: of this process.
void check(const SubgroupViewOptions& options, Rank own_rank);

/// All that the members must agree on beside the table's layout, as text.
[[nodiscard]] std::string describe(const SubgroupViewOptions& options);

/// Of these, what does not change from view to view.
[[nodiscard]] std::string describe_common(const SubgroupViewOptions& options);

/// Throws Error, which names the subgroup.
[[noreturn]] void refuse(const SubgroupViewOptions& options, const std::string& what);

}  // namespace dunlin::multicast
