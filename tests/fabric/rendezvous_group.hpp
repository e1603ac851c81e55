#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "fabric/rendezvous/address.hpp"
#include "fabric/rendezvous/connection.hpp"
#include "fabric/rendezvous/handshake.hpp"
#include "fabric/rendezvous/plan.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"
#include "support/errors.hpp"

namespace dunlin::rendezvous::test {

using dunlin::test::contains;
using dunlin::test::what_is_thrown_by;

inline const std::string kSecret = "what all members know, and nobody else";
inline constexpr std::uint32_t kSoonMs = 150;     // of rendezvous that are meant to fail
inline constexpr std::uint32_t kLongMs = 60'000;  // of those that are meant to succeed

/// What a member needs that knows the secret, and has no certificate.
inline const Tls& our_tls() {
  static const Tls tls(kSecret, {});
  return tls;
}

/// The first words of a joiner.
inline std::vector<std::byte> hello_of(const Tls& tls) {
  const Channel joiner(Side::joiner, tls);
  return {joiner.output().begin(), joiner.output().end()};
}

/// An address of this machine that no other test, in this or another process, uses.
inline std::string fresh_address() {
  static std::atomic<int> count{0};
  return "unix:test-rendezvous-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

/// A port that was free a moment ago.
inline std::string fresh_tcp_address(const std::string& host = "127.0.0.1") {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  EXPECT_EQ(bind(socket.get(), generic, bytes), 0);
  EXPECT_EQ(getsockname(socket.get(), generic, &bytes), 0);
  return host + ":" + std::to_string(ntohs(address.sin_port));
}

inline Options counted(const std::string& address, std::uint32_t members) {
  return {.address = address,
          .secret = kSecret,
          .group = "flock",
          .members = members,
          .timeout_ms = kLongMs};
}

inline Options ranked(const std::string& address, std::uint32_t members, Rank rank) {
  Options options = counted(address, members);
  options.rank = rank;
  return options;
}

inline Options named(const std::string& address, const std::vector<std::string>& names,
                     const std::string& name) {
  Options options = counted(address, 0);
  options.names = names;
  options.name = name;
  return options;
}

inline Options hurried(Options options) {
  options.timeout_ms = kSoonMs;
  return options;
}

inline std::vector<std::byte> endpoint_address_of(const std::string& text) {
  const Bytes bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(const std::vector<std::byte>& endpoint_address) {
  return {reinterpret_cast<const char*>(endpoint_address.data()), endpoint_address.size()};
}

inline Roster meet_with(const Options& options, const std::string& endpoint_address = "") {
  return meet(options, endpoint_address_of(endpoint_address));
}

inline std::string fault_of(const Options& options) {
  return what_is_thrown_by([&] { static_cast<void>(meet_with(options)); });
}

/// A member in a thread of its own; what it came to.
class MemberThread {
 public:
  explicit MemberThread(const Options& options, const std::string& endpoint_address = "")
      : thread_([this, options, endpoint_address] {
          try {
            roster_ = meet_with(options, endpoint_address);
          } catch (const Error& error) {
            fault_ = error.what();
          }
        }) {}
  ~MemberThread() {
    if (thread_.joinable()) thread_.join();
  }
  MemberThread(const MemberThread&) = delete;
  MemberThread& operator=(const MemberThread&) = delete;

  [[nodiscard]] const Roster& roster() {
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(fault_, "");
    return roster_;
  }
  [[nodiscard]] const std::string& fault() {
    if (thread_.joinable()) thread_.join();
    return fault_;
  }

 private:
  Roster roster_{};
  std::string fault_;
  std::thread thread_;
};

/// Connects as soon as somebody listens.
inline Descriptor connect_to(const std::string& address) {
  std::string fault;
  const std::vector<SocketAddress> targets = resolve(parse_address(address), fault);
  while (true) {
    Descriptor socket = begin_to_connect(targets.at(0), fault);
    if (!socket) continue;
    Awaited{.descriptors = {{socket.get(), POLLOUT, 0}}}.wait();
    if (connection_fault(socket.get()).empty()) return socket;
  }
}

inline void wait_for_news_of(const Descriptor& socket) {
  Awaited{.descriptors = {{socket.get(), POLLIN, 0}}}.wait();
}

/// A joiner that does only what the test says, and may stop anywhere.
class HandJoiner {
 public:
  explicit HandJoiner(const Options& options, const std::string& endpoint_address = "")
      : plan_(plan_from(options, {})),
        endpoint_address_(endpoint_address_of(endpoint_address)),
        connection_(connect_to(options.address), Side::joiner, *plan_.tls),
        visit_(plan_, endpoint_address_, channel()) {
    static_cast<void>(connection_.write());
  }

  HandJoiner(const HandJoiner&) = delete;
  HandJoiner& operator=(const HandJoiner&) = delete;

  [[nodiscard]] Channel& channel() { return connection_.channel(); }
  [[nodiscard]] const Descriptor& socket() const { return connection_.socket(); }
  [[nodiscard]] JoinerHandshake& visit() { return visit_; }

  /// False if the host hangs up instead.
  bool prove() {
    while (!channel().proved())
      if (!hear_once()) return false;
    return true;
  }
  void request_join() {
    visit_.request_join();
    write();
  }
  void write() { static_cast<void>(connection_.write()); }
  /// The next frame; none if the host hangs up instead.
  std::optional<Frame> next_frame() {
    while (frames_.empty())
      if (!hear_once()) return std::nullopt;
    Frame frame = std::move(frames_.front());
    frames_.erase(frames_.begin());
    return frame;
  }
  /// Skips others; none if the host hangs up instead.
  std::optional<Frame> next_frame_of(FrameType type) {
    std::optional<Frame> frame = next_frame();
    while (frame && frame->type != type) frame = next_frame();
    return frame;
  }
  /// Until the host counts us as a member.
  bool come() {
    if (!prove()) return false;
    request_join();
    return next_frame_of(FrameType::news).has_value();
  }
  /// Until the host has heard that we know the whole roster.
  bool confirm() {
    while (std::optional<Frame> frame = next_frame()) {
      if (visit_.receive(*frame) != JoinerHandshake::Outcome::waiting) return false;
      write();
      if (frame->type == FrameType::roster) return true;
    }
    return false;
  }
  /// As a real joiner, to the end.
  [[nodiscard]] JoinerHandshake::Outcome stay() {
    while (std::optional<Frame> frame = next_frame()) {
      const JoinerHandshake::Outcome outcome = visit_.receive(*frame);
      write();
      if (outcome != JoinerHandshake::Outcome::waiting) return outcome;
    }
    return JoinerHandshake::Outcome::violated;
  }

 private:
  bool hear_once() {
    wait_for_news_of(socket());
    const bool open = connection_.read();
    for (Frame& frame : channel().take_frames()) frames_.push_back(std::move(frame));
    return connection_.write() && channel().fault() == Fault::none && (open || !frames_.empty());
  }

  Plan plan_;
  std::vector<std::byte> endpoint_address_;
  Connection connection_;
  JoinerHandshake visit_;
  std::vector<Frame> frames_;
};

}  // namespace dunlin::rendezvous::test
