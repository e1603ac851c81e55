#include "group/subgroups.hpp"

#include <algorithm>
#include <set>

#include <dunlin/limits.hpp>

#include "fabric/hash.hpp"
#include "fabric/names.hpp"

namespace dunlin::group {
namespace {

/// The version of rows, plans and control messages (docs/formats/group-control.md).
constexpr int kProtocol = 3;

[[nodiscard]] bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names as a text that begins with a space.
using List = std::string (*)(const std::vector<std::string>&);

[[nodiscard]] std::string in_full(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return names.empty() ? " (all)" : text;
}
[[nodiscard]] std::string in_short(const std::vector<std::string>& names) {
  return " " + std::to_string(names.size()) + " (hash " + std::to_string(fnv1a(in_full(names))) +
         ")";
}
[[nodiscard]] std::string described(const std::vector<SubgroupSpec>& specs, bool joinable,
                                    List list) {
  std::string text = "group protocol " + std::to_string(kProtocol) + "\n" +
                     (joinable ? "with a rendezvous" : "without a rendezvous");
  for (const SubgroupSpec& spec : specs)
    text +=
        "\n'" + spec.name + "': members" + list(spec.members) + ", senders" + list(spec.senders);
  return text;
}

void check(const SubgroupSpec& spec) {
  check_subgroup_name(spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error("subgroup '" + spec.name + "': " + why);
  };
  for (const auto* const names : {&spec.members, &spec.senders}) {
    std::set<std::string> seen;
    for (const std::string& name : *names)
      if (!seen.insert(name).second) refuse("'" + name + "' is listed twice");
  }
  if (spec.members.empty()) return;
  for (const std::string& sender : spec.senders)
    if (!has(spec.members, sender))
      refuse("the sender '" + sender + "' is not one of its members; add it to them");
}

}  // namespace

Subgroups::Subgroups(std::vector<SubgroupSpec> specs) : specs_(std::move(specs)) {
  if (specs_.size() > kMaxSubgroups)
    throw Error("group: " + std::to_string(specs_.size()) + " subgroups; at most " +
                std::to_string(kMaxSubgroups) + " (kMaxSubgroups) are allowed");
  std::set<std::string> names;
  for (const SubgroupSpec& spec : specs_) {
    check(spec);
    if (!names.insert(spec.name).second)
      throw Error("group: there are two subgroups '" + spec.name + "'; give one another name");
  }
}

std::vector<Subgroups::InView> Subgroups::in_view(const View& view, const std::vector<Rank>& ranks,
                                                  const Scope& scope) const {
  std::vector<InView> all;
  std::size_t counts = 0;
  for (const SubgroupSpec& spec : specs_) {
    InView next{.subgroup = {.name = scope.subgroup(spec.name),
                             .view = view.number,
                             .members = {},
                             .senders = {}},
                .first_count = counts};
    for (std::uint32_t i = 0; i < ranks.size(); ++i) {
      const std::string& name = view.members[i];
      if (!spec.members.empty() && !has(spec.members, name)) continue;
      if (i == view.me) next.ours = true;
      if (spec.senders.empty() || has(spec.senders, name))
        next.subgroup.senders.push_back(static_cast<std::uint32_t>(next.subgroup.members.size()));
      next.subgroup.members.push_back(ranks[i]);
    }
    counts += next.subgroup.senders.size();
    all.push_back(std::move(next));
  }
  return all;
}

std::size_t Subgroups::counts(const std::vector<InView>& all) noexcept {
  if (all.empty()) return 0;
  return all.back().first_count + all.back().subgroup.senders.size();
}

std::string Subgroups::fingerprint(bool joinable) const {
  return std::to_string(fnv1a(described(specs_, joinable, in_full)));
}

std::string Subgroups::description(bool joinable) const {
  std::string text = described(specs_, joinable, in_full);
  if (text.size() > kMaxLayoutTextBytes) text = described(specs_, joinable, in_short);
  return text;
}

}  // namespace dunlin::group
