#include "fabric/entering.hpp"

#include <algorithm>

#include "fabric/member_list.hpp"
#include "fabric/names.hpp"

namespace dunlin {
namespace {

[[nodiscard]] std::vector<std::string> names_of(const Entry& entry) {
  const Admission& admission = entry.admission;
  std::vector<std::string> names(admission.first + admission.newcomers.size());
  for (const Entry::Member& member : entry.members) names[member.rank] = member.name;
  for (std::size_t i = 0; i < admission.newcomers.size(); ++i)
    names[admission.first + i] = admission.newcomers[i].name;
  return names;
}

}  // namespace

void check(const Entry& entry) {
  const Admission& admission = entry.admission;
  const bool fits = admission.first <= kMaxRanks && admission.newcomers.size() <= kMaxRanks &&
                    admission.first + admission.newcomers.size() <= kMaxRanks &&
                    entry.place < admission.newcomers.size() && !entry.members.empty();
  const bool ascending =
      std::ranges::adjacent_find(entry.members, [](const auto& one, const auto& next) {
        return one.rank >= next.rank;
      }) == entry.members.end();
  check_group_name(entry.group);
  for (const std::string& name : fits&& ascending ? names_of(entry) : std::vector<std::string>())
    if (!name.empty()) check_member_name(name);
  if (fits && ascending && entry.members.back().rank < admission.first) return;
  throw Error("group '" + entry.group +
              "': a newcomer was told of members and ranks that no fabric can have");
}

void take_members(FabricSetup& setup, const Entry& entry) {
  setup.names = names_of(entry);
  std::vector<bool> present(setup.names.size());
  for (const Entry::Member& member : entry.members) present[member.rank] = true;
  for (Rank rank = 0; rank < entry.admission.first; ++rank)
    if (!present[rank]) setup.absent.push_back(rank);
}

std::string member_text(const Entry& entry, Rank rank) {
  return member_text(names_of(entry), rank);
}

}  // namespace dunlin
