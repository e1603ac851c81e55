#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

/// Which operations on words are possible: the same for every backend.
namespace dunlin {

[[nodiscard]] inline bool is_atomic(OperationKind kind) noexcept {
  return kind == OperationKind::fetch_add || kind == OperationKind::compare_swap;
}

/// How much of the peer's memory it touches; an atomic one word, whatever its `bytes` say.
[[nodiscard]] inline std::size_t extent_of(const Operation& operation) noexcept {
  return is_atomic(operation.kind) ? kWordBytes : operation.bytes;
}

/// Words can only be copied as words if they lie alike in source and target.
[[nodiscard]] [[gnu::always_inline]] inline bool lies_alike(const Operation& operation) noexcept {
  const auto local = reinterpret_cast<std::uintptr_t>(operation.local);
  return (local - operation.offset) % kWordBytes == 0;
}

/// An atomic's word, and the place for its former value.
[[nodiscard]] [[gnu::always_inline]] inline bool lies_on_words(
    const Operation& operation) noexcept {
  const auto local = reinterpret_cast<std::uintptr_t>(operation.local);
  return (local | operation.offset) % kWordBytes == 0;
}

}  // namespace dunlin
