#include "fabric/ofi/libfabric.hpp"

#include <array>
#include <csignal>

#include <dlfcn.h>

#include <dunlin/error.hpp>

namespace dunlin::ofi {
namespace {

constexpr const char* kFile = "libfabric.so.1";

/// Restores the process's own signal handlers, whatever the libraries' constructors do.
class KeptSignalHandlers {
 public:
  KeptSignalHandlers() noexcept {
    for (int number = 1; number <= kLast; ++number)
      known_.at(index(number)) = sigaction(number, nullptr, &kept_.at(index(number))) == 0;
  }
  KeptSignalHandlers(const KeptSignalHandlers&) = delete;
  KeptSignalHandlers& operator=(const KeptSignalHandlers&) = delete;
  ~KeptSignalHandlers() {
    for (int number = 1; number <= kLast; ++number)
      if (known_.at(index(number))) sigaction(number, &kept_.at(index(number)), nullptr);
  }

 private:
  static constexpr int kLast = SIGSYS;  // beyond are the real-time signals, which no library takes
  static constexpr std::size_t index(int number) { return static_cast<std::size_t>(number - 1); }

  std::array<struct sigaction, kLast> kept_{};
  std::array<bool, kLast> known_{};
};

[[noreturn]] void fail() {
  const char* const why = dlerror();
  throw Error(std::string("the ofi fabric needs libfabric, which cannot be loaded: ") +
              (why == nullptr ? kFile : why) +
              ": install libfabric1, or what your network's vendor has of it");
}

/// Looks up a function in the version of the headers, if libfabric has versions: it has several
/// versions of each function, for structures of several sizes.
template <class Function>
void look_up(void* library, const char* name, const char* version, Function& function) {
  void* const found = *version == '\0' ? dlsym(library, name) : dlvsym(library, name, version);
  if (found == nullptr) fail();
  function = reinterpret_cast<Function>(found);
}

/// Loads libfabric, which is never unloaded, since it may have started threads.
Libfabric load() {
  const KeptSignalHandlers ours;
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail();
  Libfabric loaded{};
  look_up(library, "fi_getinfo", DUNLIN_FI_GETINFO, loaded.getinfo);
  look_up(library, "fi_freeinfo", DUNLIN_FI_FREEINFO, loaded.freeinfo);
  look_up(library, "fi_dupinfo", DUNLIN_FI_DUPINFO, loaded.dupinfo);
  look_up(library, "fi_fabric", DUNLIN_FI_FABRIC, loaded.fabric);
  look_up(library, "fi_strerror", DUNLIN_FI_STRERROR, loaded.strerror);
  return loaded;
}

}  // namespace

const Libfabric& libfabric() {
  static const Libfabric loaded = load();
  return loaded;
}

std::string why_not_loaded() {
  try {
    static_cast<void>(libfabric());
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace dunlin::ofi
