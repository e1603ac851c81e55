#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "log/simulated_disk.hpp"
#include "multicast/journal.hpp"

namespace dunlin::test {

/// Writes a log as a member has it: views, and messages of the first of their members.
class LogScribe {
 public:
  explicit LogScribe(log::SimulatedDisk& disk)
      : journal_(std::shared_ptr<log::Disk>(std::shared_ptr<void>(), &disk), "log", "sim/orders",
                 10'000) {}
  ~LogScribe() { journal_.finish(); }
  LogScribe(const LogScribe&) = delete;
  LogScribe& operator=(const LogScribe&) = delete;
  LogScribe& view(std::uint64_t number, const std::vector<std::string>& members) {
    journal_.begin_view(number, members);
    slot_ = 0;
    return *this;
  }
  LogScribe& message(std::string_view text) {
    journal_.append(
        0, {.message = std::as_bytes(std::span(text)), .slot = slot_++, .continues = false});
    return *this;
  }
  LogScribe& messages(std::uint64_t count, std::string_view text) {
    for (; count > 0; --count) {
      message(text);
      journal_.finish();  // each in a commit: so they lie in several segments
    }
    return *this;
  }
  /// What is there so far is given up.
  LogScribe& give_up() {
    journal_.finish();
    journal_.store(journal_.next(), journal_.next(), std::nullopt, 0);
    journal_.finish();
    return *this;
  }

 private:
  multicast::Journal journal_;
  std::uint64_t slot_ = 0;
};

using Writing = std::function<void(LogScribe&)>;
inline void write_log(log::SimulatedDisk& disk, const Writing& write) {
  LogScribe scribe(disk);
  write(scribe);
}

}  // namespace dunlin::test
