#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace dunlin::launch {

/// This process's connection to the PMIx server of its launcher, which serves the processes of one
/// job of one user (docs/deploy.md). The library is loaded when the first connection is made, which
/// lasts as long as the object; another thread waits for it to end.
class Pmix {
 public:
  /// Throws Error that says why there is no such connection.
  Pmix();
  ~Pmix();
  Pmix(const Pmix&) = delete;
  Pmix& operator=(const Pmix&) = delete;

  /// How many processes the job has, and how many of them are on this host.
  [[nodiscard]] std::uint32_t job_size() const;
  [[nodiscard]] std::uint32_t local_size() const;
  /// The text that the job's rank 0 has made for this key, the first time that it is asked; others
  /// wait for it so long. Throws Error.
  [[nodiscard]] std::string of_rank_0(const std::string& key,
                                      const std::function<std::string()>& make,
                                      std::uint32_t timeout_ms) const;

 private:
  struct Connection;
  std::unique_lock<std::mutex> lock_;
  Connection& connection_;
};

}  // namespace dunlin::launch
