#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/stepped_join.hpp"

/// What a backend gives join().
namespace dunlin {

struct JoinableNetwork {
  /// Why this build does not have the network, and what to do; empty: it has it.
  std::string_view missing = {};
  /// Begins to join. `place` is what a launcher said of this member, for messages. Throws Error.
  std::unique_ptr<SteppedJoin> (*begin_join)(const JoinOptions& options,
                                             const std::string& place) = nullptr;
  /// Throws Error.
  std::shared_ptr<Rendezvous> (*make_rendezvous)(const JoinOptions& options,
                                                 std::vector<std::string> contacts) = nullptr;
  // As devices_of() and unfit_devices_of() say; null: it has none.
  std::vector<std::string> (*devices)() = nullptr;
  std::vector<std::string> (*unfit_devices)() = nullptr;
};

namespace shm {
extern const JoinableNetwork kNetwork;
}
namespace tcp {
extern const JoinableNetwork kNetwork;
}
namespace mixed {
extern const JoinableNetwork kNetwork;
}
namespace verbs {
extern const JoinableNetwork kNetwork;
}
namespace ofi {
extern const JoinableNetwork kNetwork;
/// The provider that is used if none is given.
inline constexpr const char* kDefaultProvider = "tcp";
}  // namespace ofi

}  // namespace dunlin
