#include "log/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace dunlin::log {
namespace {

static_assert(std::endian::native == std::endian::little, "eight bytes are taken as one word");

using Table = std::array<std::uint64_t, 256>;

/// Table k has the checksums of a byte that k zeros follow. So eight bytes take eight loads that do
/// not wait for each other.
constexpr std::array<Table, 8> make_tables() {
  constexpr std::uint64_t kPolynomial = 0xC96C'5795'D787'0F42;
  std::array<Table, 8> tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t before) noexcept {
  std::uint64_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = kTables[7][word & 0xff] ^ kTables[6][(word >> 8) & 0xff] ^
          kTables[5][(word >> 16) & 0xff] ^ kTables[4][(word >> 24) & 0xff] ^
          kTables[3][(word >> 32) & 0xff] ^ kTables[2][(word >> 40) & 0xff] ^
          kTables[1][(word >> 48) & 0xff] ^ kTables[0][word >> 56];
  }
  for (; left > 0; --left, ++at)
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint64_t>(*at)) & 0xff];
  return ~crc;
}

}  // namespace dunlin::log
