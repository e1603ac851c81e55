#include "top/selection.hpp"

#include <algorithm>
#include <set>

#include "command.hpp"

namespace dunlin::top {
namespace {

constexpr const char* kClaimed = "shm";  // the fabric whose claims everybody sees

bool wants_group(const Selection& selection, const std::string& group) {
  return selection.group.empty() || selection.group == group;
}

bool wants_fabric(const Selection& selection, const std::string& fabric) {
  return selection.fabric.empty() || selection.fabric == fabric;
}

std::string on_fabric(const Selection& selection) {
  return selection.fabric.empty() ? "" : " on fabric " + selection.fabric;
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

}  // namespace

void check(const Selection& selection, const Sample& sample, const std::vector<Hidden>& hidden) {
  std::set<std::string> groups;
  std::set<std::string> tables;
  bool there = false;
  for (const Group& group : sample.groups) {
    if (!wants_fabric(selection, group.fabric)) continue;
    groups.insert(group.name);
    if (!wants_group(selection, group.name)) continue;
    there = true;
    for (const Table& table : group.tables) tables.insert(table.name);
  }
  if (!there && !selection.group.empty()) {
    for (const Hidden& h : hidden) {
      if (h.group == selection.group && wants_fabric(selection, kClaimed))
        throw Error("top: " + h.sentence);
    }
    throw app::BadInput("top: there is no group '" + selection.group + "'" + on_fabric(selection) +
                        " on this host; groups that you may look at: " + join(groups));
  }
  if (!selection.table.empty() && tables.count(selection.table) == 0) {
    throw app::BadInput("top: there is no table '" + selection.table +
                        "'; tables that are there: " + join(tables));
  }
}

void apply(const Selection& selection, Sample& sample, const std::vector<Hidden>& hidden) {
  std::erase_if(sample.groups, [&](const Group& g) {
    return !wants_group(selection, g.name) || !wants_fabric(selection, g.fabric);
  });
  for (Group& group : sample.groups) {
    std::erase_if(group.tables, [&](const Table& t) {
      return !selection.table.empty() && t.name != selection.table;
    });
  }
  for (const Hidden& h : hidden) {
    if (wants_group(selection, h.group) && wants_fabric(selection, kClaimed))
      sample.remarks.push_back(h.sentence);
  }
}

}  // namespace dunlin::top
