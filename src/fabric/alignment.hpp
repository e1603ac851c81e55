#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

/// Which operations on words are possible, for every backend.
namespace dunlin {

[[nodiscard]] inline bool is_atomic(OperationKind kind) noexcept {
  return kind == OperationKind::fetch_add || kind == OperationKind::compare_swap;
}

/// How much of the peer's memory an operation touches; an atomic touches one word, whatever its
/// `bytes` say.
[[nodiscard]] inline std::size_t extent_of(const Operation& operation) noexcept {
  return is_atomic(operation.kind) ? kWordBytes : operation.bytes;
}

/// Whether source and target agree modulo 8: only then can words be copied as words.
[[nodiscard]] [[gnu::always_inline]] inline bool lies_alike(const Operation& operation) noexcept {
  const auto local = reinterpret_cast<std::uintptr_t>(operation.local);
  return (local - operation.offset) % kWordBytes == 0;
}

/// Whether an atomic's word, and the place for its former value, are aligned words.
[[nodiscard]] [[gnu::always_inline]] inline bool lies_on_words(
    const Operation& operation) noexcept {
  const auto local = reinterpret_cast<std::uintptr_t>(operation.local);
  return (local | operation.offset) % kWordBytes == 0;
}

}  // namespace dunlin
