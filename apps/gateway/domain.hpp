#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <dds/dds.h>

#include "fabric/system.hpp"

namespace dunlin::app::gateway {

/// Throws Error that says what did not work, and Cyclone's reason, for a result below zero.
dds_return_t check_dds(dds_return_t result, const std::string& what);

/// An entity of Cyclone DDS, which goes with this object.
class Entity {
 public:
  Entity() = default;
  Entity(dds_entity_t handle, const std::string& what) : handle_(check_dds(handle, what)) {}
  Entity(Entity&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Entity& operator=(Entity&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Entity() {
    if (handle_ > 0) dds_delete(handle_);
  }
  [[nodiscard]] dds_entity_t get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ > 0; }

 private:
  dds_entity_t handle_ = 0;
};

struct DeleteQos {
  void operator()(dds_qos_t* qos) const noexcept { dds_delete_qos(qos); }
};
using Qos = std::unique_ptr<dds_qos_t, DeleteQos>;

/// A writer or reader of another participant, as DDS discovery tells of it.
struct RemoteEndpoint {
  std::string topic;
  std::string type;
  std::string policy;  // a writer's policy that this gateway cannot carry; empty: none
  std::array<std::uint8_t, 16> guid = {};
  bool writes = false;
  bool keyed = false;       // its type has a key
  bool of_gateway = false;  // belongs to a gateway of the same group
  bool gone = false;
};

/// A participant in a DDS domain, and the writers and readers that it has discovered. One thread,
/// but for wake().
class Domain {
 public:
  /// `identity`: the same for all gateways to one group. Throws Error.
  Domain(std::uint32_t id, std::string identity);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  /// Whether anything has happened since; then discovery is up to date. Samples that a reader takes
  /// after this come from writers that find() knows: a writer is discovered before it is matched.
  /// It remembers the last thousand that have ended, or, without `forget`, all.
  bool look(bool forget);
  /// By the publication_handle of a sample; null: not known.
  [[nodiscard]] const RemoteEndpoint* find(dds_instance_handle_t publication) const;
  /// Called from look() with each new endpoint of other participants.
  std::function<void(const RemoteEndpoint&)> on_endpoint;
  [[nodiscard]] const std::unordered_map<dds_instance_handle_t, RemoteEndpoint>& endpoints() const {
    return endpoints_;
  }
  /// Called with each publication that is forgotten.
  std::function<void(dds_instance_handle_t)> on_forgotten;

  [[nodiscard]] dds_entity_t participant() const noexcept { return participant_.get(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }
  /// Readable when look() would say so.
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  /// Called from Cyclone's threads.
  void wake() noexcept;

 private:
  void take_endpoints(dds_entity_t reader, bool writes);

  std::uint32_t id_;
  std::string identity_;
  Descriptor event_;
  std::atomic<bool> woken_ = true;
  std::unordered_map<dds_instance_handle_t, RemoteEndpoint> endpoints_;
  std::deque<dds_instance_handle_t> gone_;  // the oldest first
  Entity participant_;  // with all others; its threads end before what is above goes
  Entity publications_;
  Entity subscriptions_;
};

}  // namespace dunlin::app::gateway
