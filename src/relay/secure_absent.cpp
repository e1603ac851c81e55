#include <dunlin/error.hpp>

#include "relay/pipe.hpp"

namespace dunlin::relay {

PipeMaker pipe_maker(Side, const std::string& secret) {
  if (secret.empty()) return {};
  throw Error(
      "a relay's secret needs TLS, and this build of Dunlin has none: build it with OpenSSL 3 "
      "(libssl-dev)");
}

}  // namespace dunlin::relay
