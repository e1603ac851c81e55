#pragma once

#include <memory>

#include <dunlin/fabric.hpp>

#include "kmers/count.hpp"
#include "kmers/part_times.hpp"
#include "team/team.hpp"

/// One process of a count.
namespace dunlin::kmers {

/// Series of the team, recorded by member 0. Those of members have a value for each.
enum Series : std::uint32_t {
  mark_s,
  count_s,
  gather_s,
  chosen_style,
  of_member_slots,
  of_member_kmers,
  of_member_read,
  peak_bytes,
  first_part,  // and those of the other parts
  all_series = first_part + kParts
};
static_assert(all_series <= app::kMaxSeries);

/// Does this member's part of the work. Throws BadInput and Error.
void work(app::Member& me, const CountOptions& options, std::unique_ptr<Fabric> fabric);

}  // namespace dunlin::kmers
