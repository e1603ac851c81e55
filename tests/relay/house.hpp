#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <dunlin/group.hpp>
#include <dunlin/join.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/relay.hpp>
#include <dunlin/relay/relay.hpp>

#include "fabric/system.hpp"
#include "relay/frame.hpp"
#include "support/fresh_group.hpp"

namespace dunlin::test {

struct Counted {
  std::uint32_t client = 0;
  std::uint32_t number = 0;
};
struct Text {
  std::string text = {};
  std::vector<std::uint16_t> numbers = {};
};
struct Keyed {
  std::uint32_t key = 0;
  std::uint32_t value = 0;
  using TopicKey = pubsub::KeyOf<&Keyed::key>;
};
/// Fills queues.
struct Heavy {
  std::uint64_t number = 0;
  std::array<std::uint8_t, 8184> load = {};
};

/// A member with a relay, and clients, all polled by one thread.
class House {
 public:
  explicit House(relay::RelayOptions options = {})
      : fabric(join({.group = fresh_group(), .names = {"r"}, .name = "r"})),
        group(*fabric),
        participant(group, {.sender_linger_ms = 0}),  // so that members change at once, or not
        relay(participant, std::move(options)) {}

  std::unique_ptr<relay::RelayClient> client(relay::ClientOptions options = {}) {
    options.relays = {place()};
    return std::make_unique<relay::RelayClient>(std::move(options));
  }
  std::string place() { return "127.0.0.1:" + std::to_string(relay.port()); }

  std::size_t poll() {
    std::size_t done = participant.poll() + relay.poll();
    for (relay::RelayClient* const one : polled) done += one->poll();
    return done;
  }
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      // A busy host gives the processor back after a while only: not without a reason.
      std::size_t done = 0;
      for (int i = 0; i < 20; ++i) {
        done += poll();
        if (condition()) return true;
      }
      if (done == 0) sched_yield();
    }
    return false;
  }

  std::unique_ptr<Fabric> fabric;
  Group group;
  pubsub::DomainParticipant participant;
  relay::Relay relay;
  std::vector<relay::RelayClient*> polled;
};

/// A connection that speaks the protocol by hand.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  void say(relay::Bytes bytes) {
    // What the relay has given up takes nothing more, and that is no fault here.
    static_cast<void>(
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  /// Takes what is there; returns whether the connection has ended.
  bool listen() {
    std::array<std::byte, 4096> part;
    for (;;) {
      const ssize_t got = recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (got > 0)
        heard.insert(heard.end(), part.begin(), part.begin() + got);
      else
        return got == 0 || (errno != EAGAIN && errno != EINTR);
    }
  }
  /// The sentence of the last frame, if that is a goodbye.
  [[nodiscard]] std::string goodbye() const {
    relay::FrameParser parser(relay::Side::relay);
    relay::Bytes rest(heard);
    std::string sentence;
    while (const auto frame = parser.parse(rest)) {
      if (frame->header.kind == relay::FrameKind::goodbye)
        sentence = relay::read_sentence(*frame).value_or("");
      rest = rest.subspan(relay::kFrameHeaderBytes + frame->body.size());
    }
    return sentence;
  }

  [[nodiscard]] std::size_t count(relay::FrameKind kind) const {
    relay::FrameParser parser(relay::Side::relay);
    relay::Bytes rest(heard);
    std::size_t found = 0;
    while (const auto frame = parser.parse(rest)) {
      if (frame->header.kind == kind) ++found;
      rest = rest.subspan(relay::kFrameHeaderBytes + frame->body.size());
    }
    return found;
  }

  relay::Buffer heard;

 private:
  Descriptor socket_;
};

}  // namespace dunlin::test
