// must say: is_trivially_copyable_v<T>
#include <functional>
#include <string>

#include <dunlin/container.hpp>

#ifdef MISTAKE
using Value = std::string;
#else
using Value = double;
#endif

void use(dunlin::Collectives& team) { const auto call = team.all_reduce(Value(), std::plus<>()); }
