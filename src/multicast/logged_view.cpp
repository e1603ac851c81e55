#include "multicast/logged_view.hpp"

#include <string>

#include <dunlin/error.hpp>

namespace dunlin::multicast {

void check(const Reader& reader) {
  if (!reader.good()) throw Error("a record of a multicast's log is too short");
}

LoggedView read_view(Reader& reader) {
  LoggedView view{.place = {}, .number = reader.u64()};
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const auto name = reader.bytes(reader.u8());
    view.members.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
  }
  check(reader);
  return view;
}
LoggedView read_view(std::span<const std::byte> payload) {
  Reader reader(payload);
  return read_view(reader);
}

void write_view(Writer& writer, const LoggedView& view) {
  writer.u64(view.number);
  writer.u32(static_cast<std::uint32_t>(view.members.size()));
  for (const std::string& member : view.members) {
    writer.u8(static_cast<std::uint8_t>(member.size()));
    writer.bytes(std::as_bytes(std::span(member)));
  }
}

}  // namespace dunlin::multicast
