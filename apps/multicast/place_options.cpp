#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "multicast/place.hpp"
#include "value_option.hpp"

namespace dunlin::app::cast {

void add_place_options(CLI::App& command, PlaceOptions& place) {
  command.add_option("--group", place.group, "Its name, the same for all")
      ->required()
      ->type_name("NAME");
  command.add_option("--name", place.name, "That of this member")->required()->type_name("NAME");
  add_list(command, "--members", place.members, "name", "The founders, the same for all of them")
      ->type_name("NAME,...");
  command.add_flag("--join", place.join, "Or: come into a group of others");
  add_fabric_option(
      command, place.fabric,
      "shm: processes of this host; tcp: between hosts; auto: shm within each host,\n"
      "verbs or tcp between them; ofi: over libfabric's networks; verbs: over RDMA devices");
  add_reach_options(command, place.fabric,
                    {.join = fmt::format("{}", cast::kJoinTimeOutMs / 1'000),
                     .silence = fmt::format("{}", place.silence_ms / 1'000)});
  add_text(command, "--listen", place.listen, "HOST:PORT|unix:NAME",
           "Networks: where this member alone is found, by those who join later");
  add_list(command, "--contacts", place.contacts, "address", "To join: where members may be found")
      ->type_name("HOST:PORT,...");
}

}  // namespace dunlin::app::cast
