#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/server_list.hpp"

namespace dunlin::app::resp {

/// One server's part in the list of the servers: it tells the others where it serves. One thread,
/// that polls the fabric.
class ServerDirectory {
 public:
  /// Throws Error, as Progress::open_order() does.
  ServerDirectory(remote::Progress& progress, ServedAt self);

  /// To be called as often as Progress::poll().
  std::size_t poll();
  /// The others learn that this server serves no more, which needs further polls.
  void withdraw() noexcept { serves_ = false; }
  /// By rank. This server is in it before the others know of it, too.
  [[nodiscard]] std::vector<ServedAt> servers() const;

 private:
  const ServedAt self_;
  bool serves_ = true;
  bool has_told_ = false;  // that it serves, as the others know, or will know (REM-21)
  ServerList list_;
  std::unique_ptr<remote::AgreedOrder> order_;
};

}  // namespace dunlin::app::resp
