#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <dunlin/pubsub/type_support.hpp>

#include "gateway/dds_type.hpp"

namespace dunlin::app::gateway {

/// A sample in memory that Cyclone DDS writes. One thread.
class DdsSample {
 public:
  /// The type must outlive it.
  explicit DdsSample(const DdsType& type);
  DdsSample(const DdsSample&) = delete;
  DdsSample& operator=(const DdsSample&) = delete;
  ~DdsSample();

  /// Reads a sample from bytes that are plain or XCDR2, as in the topic. Throws Error that names
  /// the member if they are no sample, or one that DDS cannot carry.
  void load(std::span<const std::byte> payload);
  [[nodiscard]] const void* data() const noexcept { return memory_; }

 private:
  void clear() noexcept;

  const DdsType& type_;
  void* memory_;
};

/// The sample in memory, as the topic carries it. The bytes outside of the key members of a
/// disposed instance are zero or empty.
[[nodiscard]] pubsub::RawSample raw_sample_of(const DdsType& type, const void* memory);

}  // namespace dunlin::app::gateway
