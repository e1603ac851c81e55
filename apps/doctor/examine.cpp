#include "doctor/examine.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace dunlin::doctor {

const char* name_of(State state) {
  return std::array{"good", "absent", "advice", "problem"}.at(static_cast<std::size_t>(state));
}

std::size_t Report::count(State state) const {
  const auto is = [state](const Finding& finding) { return finding.state == state; };
  return static_cast<std::size_t>(std::count_if(fabrics.begin(), fabrics.end(), is) +
                                  std::count_if(machine.begin(), machine.end(), is));
}

std::string Report::why_not(const std::string& fabric) const {
  const auto found = std::ranges::find(fabrics, fabric, &Finding::subject);
  if (found == fabrics.end()) return "nothing is known about it";
  return found->state == State::problem || found->state == State::absent ? found->text : "";
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto size = static_cast<double>(bytes);
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{:.{}f} {}", size, size < 10 && unit > 0 ? 1 : 0, kUnits.at(unit));
}

Report examine(const Host& host) {
  return {.host = host.text("proc/sys/kernel/hostname").value_or("unknown"),
          .kernel = host.text("proc/sys/kernel/osrelease").value_or("unknown"),
          .fabrics = examine_fabrics(host),
          .machine = examine_machine(host)};
}

}  // namespace dunlin::doctor
