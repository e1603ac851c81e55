#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hiredis/hiredis.h>

#include "endpoint.hpp"

namespace dunlin::app::resp {

/// A connection to a server of `dunlin store serve`, for `dunlin store get` and its like.
class Client {
 public:
  struct Answer {
    enum class Kind : std::uint8_t { text, number, nothing, list, error };
    Kind kind = Kind::nothing;
    std::string text;  // a string, or an error
    std::int64_t number = 0;
    std::vector<Answer> list;
  };
  using Words = std::vector<std::string_view>;

  /// Connects, and gives the password if there is one. Throws Error.
  Client(const Endpoint& endpoint, const std::string& password);

  /// Throws Error if the server replies with one.
  Answer ask(const Words& words);
  /// Sends without waiting; as many take() or take_any() must follow.
  void send(const Words& words);
  /// Throws Error if the server replies with one.
  Answer take();
  /// The reply, which may be an error.
  Answer take_any();
  /// Sends what send() has been given, and waits; returns whether a part of a reply is there.
  bool wait_for_reply(std::chrono::milliseconds most);

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept;
  };
  [[noreturn]] void complain() const;

  std::string place_;
  std::unique_ptr<redisContext, Close> context_;
};

/// Throws Error with the reply, which is an error.
[[noreturn]] void complain_of(const Client::Answer& error);

}  // namespace dunlin::app::resp
