#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

#include <dunlin/error.hpp>

/// The functions of the operating system that the backends need: owned descriptors, error texts and
/// clocks.
namespace dunlin {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] explicit operator bool() const noexcept { return number_ >= 0; }
  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

[[nodiscard]] inline std::string error_text(int error) {
  return std::system_category().message(error);
}

/// Returns a system call's result; throws Error that says what failed and why if the call failed.
inline int checked(int result, const char* what) {
  if (result >= 0) return result;
  throw Error(std::string(what) + " failed: " + error_text(errno));
}

/// Adds a descriptor to an epoll set (EPOLL_CTL_ADD) or changes its events there (EPOLL_CTL_MOD).
/// Returns -1 and errno if the kernel refuses: it limits what all processes of a user watch.
inline int watch_in(int epoll, int operation, int descriptor, std::uint32_t events,
                    epoll_data_t tag = {}) noexcept {
  epoll_event event{.events = events, .data = tag};
  return epoll_ctl(epoll, operation, descriptor, &event);
}

/// Raises this process's limit by the descriptors that a group of so many members needs and, as far
/// as the hard limit allows, by those that it may use later. Throws Error that says what to do if
/// the process cannot have what it needs.
void ensure_descriptors(std::uint64_t needed, std::uint64_t wanted, std::uint32_t members);

[[nodiscard]] inline std::uint64_t read_clock_ns(clockid_t clock) noexcept {
  std::timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace dunlin
