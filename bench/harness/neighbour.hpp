#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/harness/folder.hpp"
#include "fabric/system.hpp"
#include "process/child.hpp"

/// Key-value servers of other people, where they are installed: a process of our own, and a client
/// of it over a UNIX socket, beside which segments and the store are measured.
namespace dunlin::bench {

/// What a server is asked, and what it answers then, byte by byte.
struct Dialogue {
  std::string request;
  std::string answer;
};

class Neighbour {
 public:
  enum class Kind { redis, memcached };

  [[nodiscard]] static std::string_view name(Kind kind);
  /// What to do to make it available; empty if it is.
  [[nodiscard]] static std::string missing(Kind kind);

  /// Starts a server that keeps nothing on disk, in a directory that goes with it. Throws Error.
  explicit Neighbour(Kind kind);
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour();

  /// A value that is there.
  [[nodiscard]] Dialogue get(std::string_view key, std::string_view value) const;
  [[nodiscard]] Dialogue set(std::string_view key, std::string_view value) const;
  /// Sends all requests, and then reads the answers. Throws Error if they are others than these.
  void exchange(const std::string& requests, const std::string& answers);

  struct Times {
    double get_ns = 0;
    double set_ns = 0;
  };
  /// For a value of so many bytes; medians.
  [[nodiscard]] Times measure(const Batches& plan, std::size_t bytes);

 private:
  void connect_to(const std::filesystem::path& socket);

  Kind kind_;
  Folder directory_;
  process::Child server_;  // goes before its directory
  Descriptor socket_;
  std::string answer_;
};

}  // namespace dunlin::bench
