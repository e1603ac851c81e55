#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "store/service.hpp"
#include "store/session.hpp"
#include "store_command/fake_values.hpp"

namespace dunlin::test {

/// As a client sends it.
inline std::string request(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words)
    text += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  return text;
}

/// One client of a service, without sockets.
struct Conversation {
  explicit Conversation(app::resp::Service& its_service, std::uint64_t id = 1)
      : service(its_service), session(its_service, id) {}

  /// Gives the session as much of it as it takes, `piece` bytes at a time; returns how much.
  std::size_t send(std::string_view bytes, std::size_t piece = SIZE_MAX) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto room = session.input_room();
      if (room.empty()) break;
      const std::size_t count = std::min({room.size(), piece, bytes.size() - sent});
      std::memcpy(room.data(), bytes.data() + sent, count);
      session.received(count);
      session.proceed();
      sent += count;
    }
    return sent;
  }
  std::string take() {
    std::string output(session.output());
    session.output_sent(output.size());
    return output;
  }
  /// Sends all of it, and returns the replies to it.
  std::string ask(std::string_view bytes, std::size_t piece = SIZE_MAX) {
    std::string replies;
    for (;;) {
      bytes.remove_prefix(send(bytes, piece));
      const std::size_t done = go_on();
      const std::string more = take();
      replies += more;
      if (session.can_proceed()) session.proceed();
      if (bytes.empty() && done == 0 && more.empty() && session.output().empty()) return replies;
      if (session.closing()) return replies + take();
    }
  }
  std::string ask(std::initializer_list<std::string_view> words) { return ask(request(words)); }
  std::size_t go_on() {
    std::size_t done = 0;
    while (service.poll() > 0 || service.has_runnable()) {
      ++done;
      for (app::resp::Session* const one : service.take_runnable()) {
        one->marked_runnable = false;
        one->proceed();
      }
    }
    return done;
  }

  app::resp::Service& service;
  app::resp::Session session;
};

constexpr const char* kWrongTypeReply =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// One client of a service over a map.
struct OneClient : testing::Test {
  FakeValues values;
  app::resp::Service service{values, {}};
  Conversation client{service};

  /// A line, as a person types it.
  std::string ask(const std::string& line) { return client.ask(line + "\r\n"); }
};

}  // namespace dunlin::test
