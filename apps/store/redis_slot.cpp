#include "store/redis_slot.hpp"

namespace dunlin::app::resp {
namespace {

std::uint32_t crc16(std::string_view bytes) noexcept {
  constexpr std::uint32_t kPolynomial = 0x1021;
  std::uint32_t crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit)
      crc = ((crc << 1) ^ ((crc & 0x8000) != 0 ? kPolynomial : 0)) & 0xffff;
  }
  return crc;
}

}  // namespace

std::uint32_t redis_slot_of(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  const std::size_t close = open == std::string_view::npos ? open : key.find('}', open + 1);
  if (close != std::string_view::npos && close > open + 1)
    key = key.substr(open + 1, close - open - 1);
  return crc16(key) % kRedisSlots;
}

}  // namespace dunlin::app::resp
