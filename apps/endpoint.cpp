#include "endpoint.hpp"

#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "command.hpp"
#include "fabric/client_listener.hpp"
#include "text.hpp"

namespace dunlin::app {

Endpoint Endpoint::parse(const std::string& option, const std::string& text, const char* example) {
  const auto refuse = [&](const char* why) {
    return BadInput(
        fmt::format("{} {}: {}; an example: {}", option, in_quotes(text), why, example));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) throw refuse("there is no port");
  Endpoint endpoint{.address = text.substr(0, colon)};
  const char* const past = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data() + colon + 1, past, endpoint.port);
  if (colon + 1 == text.size() || failure != std::errc{} || end != past)
    throw refuse("the port is none");
  std::string& address = endpoint.address;
  if (address == "localhost") address = "127.0.0.1";
  const bool bracketed = address.starts_with('[') && address.ends_with(']');
  if (bracketed) address = address.substr(1, address.size() - 2);
  in_addr v4{};
  in6_addr v6{};
  const bool right = bracketed ? inet_pton(AF_INET6, address.c_str(), &v6) == 1
                               : inet_pton(AF_INET, address.c_str(), &v4) == 1;
  if (!right) throw refuse("the address is none");
  return endpoint;
}

bool Endpoint::is_loopback() const noexcept { return is_loopback_address(address); }

std::string Endpoint::text() const {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

}  // namespace dunlin::app
