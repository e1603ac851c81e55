#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <dunlin/fabric/memory.hpp>

#include "store/format.hpp"
#include "store/state.hpp"

namespace dunlin::store {

/// The buckets of a chain in own memory, its main header first, for a range-based loop. A link is
/// read when the loop goes on to the next bucket. The loop ends after kMostBuckets, whatever a peer
/// has written into the links.
class OwnChain {
 public:
  OwnChain(State& state, std::byte* main) noexcept : state_(state), main_(main) {}

  class Iterator {
   public:
    Iterator(State& state, std::byte* main) noexcept : state_(state), bucket_(main) {}
    std::byte* operator*() const noexcept { return bucket_; }
    Iterator& operator++() noexcept {
      const auto* const link = reinterpret_cast<const std::uint64_t*>(bucket_ + kLinkAt);
      bucket_ = ++seen_ < kMostBuckets ? state_.own_bucket(memory::load(*link)) : nullptr;
      return *this;
    }
    bool operator==(std::default_sentinel_t /*end*/) const noexcept { return bucket_ == nullptr; }

   private:
    State& state_;
    std::byte* bucket_;
    std::uint32_t seen_ = 0;
  };

  [[nodiscard]] Iterator begin() const noexcept { return {state_, main_}; }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  State& state_;
  std::byte* main_;
};

}  // namespace dunlin::store
