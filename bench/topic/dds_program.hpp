#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "gateway/dds_type.hpp"
#include "gateway/domain.hpp"

/// A program that knows DDS only, made with Cyclone DDS.
namespace dunlin::bench {

/// Of the samples in the domain that it is in, a DDS type.
inline constexpr const char* kDdsType = "Blob";

/// A participant with a reliable writer of one topic and a reliable reader of another.
/// CYCLONEDDS_URI configures it. One thread.
class DdsProgram {
 public:
  struct Topics {
    std::string written;
    std::string read;
  };
  /// `type`: the text of a plain type, as of a topic of the group. Throws Error.
  DdsProgram(const std::string& type, const Topics& topics);

  /// An object of the type. Waits for room. Throws Error if there is none for long.
  void write(const void* sample);
  /// Calls `handle` with each sample that is there, and waits for the first one so long.
  void take(std::chrono::nanoseconds patience, const std::function<void(const void*)>& handle);

 private:
  app::gateway::DdsType type_;
  app::gateway::Entity participant_;  // with all others
  app::gateway::Entity written_;
  app::gateway::Entity read_;
  app::gateway::Entity writer_;
  app::gateway::Entity reader_;
  app::gateway::Entity waitset_;
};

}  // namespace dunlin::bench
