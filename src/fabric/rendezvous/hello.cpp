#include "fabric/rendezvous/hello.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "fabric/bytes.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::uint32_t kMagic = 0x4d4c4e44;  // "DNLM"
constexpr std::string_view kName = "dunlin/";
constexpr std::string_view kWithCertificates = "+certificates";

constexpr std::byte kAlert{0x15};
constexpr std::byte kHandshake{0x16};
constexpr std::byte kTlsMajor{0x03};
constexpr std::byte kClientHello{0x01};

/// Parses a record's header (type, two bytes of version, two of length), then a handshake message's
/// (type, three bytes of length).
Beginning client_hello_in(Bytes bytes) {
  if (bytes.size() < kBeginningBytes) return {Beginning::Of::too_little};
  const auto number = [&](std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); };
  const std::uint32_t record_bytes = number(3) << 8 | number(4);
  const std::uint32_t hello_bytes = number(6) << 16 | number(7) << 8 | number(8);
  const bool possible = bytes[1] == kTlsMajor && bytes[5] == kClientHello &&
                        record_bytes <= kMaxHelloBytes && hello_bytes <= kMaxHelloBytes;
  return {possible ? Beginning::Of::tls : Beginning::Of::garbage};
}

Beginning refusal_in(Bytes bytes) {
  const std::vector<std::byte> right = refusal_by({});
  const std::size_t seen = std::min(bytes.size(), sizeof kMagic);
  if (!std::equal(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(seen), bytes.begin()))
    return {Beginning::Of::garbage};
  if (bytes.size() < right.size()) return {Beginning::Of::too_little};
  Reader reader(bytes.subspan(sizeof kMagic));
  const std::uint16_t version = reader.u16();
  return {Beginning::Of::refusal, {version, reader.u16() != 0}};
}

}  // namespace

std::string name_of(const Protocol& protocol) {
  std::string name(kName);
  name += std::to_string(protocol.version);
  if (protocol.certificates) name += kWithCertificates;
  return name;
}

std::string protocol_list(const Protocol& protocol) {
  const std::string name = name_of(protocol);
  return static_cast<char>(name.size()) + name;
}

/// Reads a list of protocols, whose own length comes first, in network order.
std::optional<Protocol> protocol_in(Bytes list) {
  const std::string text(reinterpret_cast<const char*>(list.data()), list.size());
  const std::size_t name_at = 3, number_at = name_at + kName.size();
  if (text.size() <= number_at) return std::nullopt;
  Protocol protocol{0, text.ends_with(kWithCertificates)};
  std::from_chars(&text[number_at], text.data() + text.size(), protocol.version);
  const std::string right = protocol_list(protocol);
  const std::string length{'\0', static_cast<char>(right.size())};
  return text == length + right ? std::optional(protocol) : std::nullopt;
}

std::vector<std::byte> refusal_by(const Protocol& own) {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(kMagic);
  writer.u16(own.version);
  writer.u16(own.certificates ? 1 : 0);
  return bytes;
}

Beginning beginning_of(Bytes bytes, Side from) {
  if (bytes.empty()) return {Beginning::Of::too_little};
  const bool alert = from == Side::host && bytes[0] == kAlert;
  if (bytes[0] != kHandshake && !alert) return refusal_in(bytes);
  return from == Side::host ? Beginning{Beginning::Of::tls} : client_hello_in(bytes);
}

}  // namespace dunlin::rendezvous
