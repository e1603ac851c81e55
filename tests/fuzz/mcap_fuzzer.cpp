#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "command.hpp"
#include "fabric/system.hpp"
#include "mcap/file_reader.hpp"

/// An MCAP file of any writer: it is read twice, or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dunlin::Descriptor file(::memfd_create("mcap", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    dunlin::app::mcap::FileReader reader("/proc/self/fd/" + std::to_string(file.get()));
    std::uint64_t last_ns = 0;
    for (int round = 0; round < 2; ++round) {
      dunlin::app::mcap::Message message;
      std::uint64_t sum = 0;
      while (reader.next(message)) {
        for (const std::byte byte : message.data) sum += static_cast<std::uint8_t>(byte);
        last_ns = message.log_ns;
      }
      static_cast<void>(sum);
      reader.rewind(last_ns / 2);
    }
  } catch (const dunlin::app::BadInput&) {
    return 0;
  }
  return 0;
}
