#include <dunlin/error.hpp>

#include "bench/fabric/bare.hpp"

namespace dunlin::bench {

std::unique_ptr<Bare> bare_verbs(Member&, const std::string&) {
  throw Error("bench: built without libibverbs and librdmacm");
}

}  // namespace dunlin::bench
