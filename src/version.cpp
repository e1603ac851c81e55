#include <dunlin/version.hpp>

namespace dunlin {

std::string_view version() noexcept { return DUNLIN_VERSION; }

}  // namespace dunlin
