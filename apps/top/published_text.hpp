#pragma once

#include <vector>

#include "top/sample.hpp"
#include "top/text_table.hpp"

namespace dunlin::top {

void print_space(std::vector<Line>& to, const Group& group, const Space& space, const Page& page);
void print_store(std::vector<Line>& to, const Group& group, const StoreSample& store,
                 const Page& page);
void print_containers(std::vector<Line>& to, const Group& group, const ContainersSample& containers,
                      const Page& page);
/// All of the group's, as one block.
void print_relays(std::vector<Line>& to, const Group& group, const Page& page);

}  // namespace dunlin::top
