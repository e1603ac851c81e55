#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub.hpp>

#include "gateway/dds_endpoints.hpp"
#include "gateway/dds_sample.hpp"
#include "gateway/dds_type.hpp"
#include "gateway/domain.hpp"
#include "gateway/rule.hpp"

namespace dunlin::app::gateway {

struct BridgeCounters {
  // Samples, disposes and unregisters.
  std::uint64_t to_dds = 0;
  std::uint64_t from_dds = 0;
  std::uint64_t refused = 0;  // those that the other side cannot have
};

/// One topic, carried in both directions. One thread, that of the participant.
///
///  GWY-1  No sample comes back to the side that it is from. In the group, a sample is from the
///         domain if its writer's member is a gateway of this network, as its name says. In the
///         domain, it is from the group if its writer's user data name the group.
///  GWY-2  The gateway carries each sample that its reliable reader has taken once, and in order
///         for each writer and instance; it waits here until the other side has room. A sample from
///         the domain is stamped with its writer, instance and source time. So RLY-1 passes over
///         samples that another gateway has carried, or this one before it was started again. When
///         the oldest gateway goes, the next one writes the last samples that it has taken
///         meanwhile.
class Bridge {
 public:
  using Notify = std::function<void(const std::string&)>;
  /// `name` is this member's. The names of all gateways between the domain and the group begin with
  /// `network`. `notify` is given sentences for the user.
  Bridge(pubsub::DomainParticipant& participant, Domain& domain, Rule rule, std::string name,
         std::string network, Notify notify);

  /// Returns a number of things done. Throws BadInput for a topic that can never be carried.
  std::size_t poll(bool dds_woken);
  /// A sample waits for room in the domain, which does not tell when there is some.
  [[nodiscard]] bool awaits_dds() const noexcept { return next_ < loan_.size(); }
  /// Whether all that was taken is written.
  [[nodiscard]] bool settled() const noexcept {
    return !awaits_dds() && (arrived_.empty() || !first_);
  }
  /// The readers in the domain have acknowledged all that reliable ones need not lose.
  [[nodiscard]] bool acknowledged() const;

  void on_endpoint(const RemoteEndpoint& endpoint);
  void forget(dds_instance_handle_t publication) { numbers_.erase(publication); }
  [[nodiscard]] const Rule& rule() const noexcept { return rule_; }
  [[nodiscard]] const BridgeCounters& counters() const noexcept { return counters_; }

 private:
  enum class State : std::uint8_t { unknown, joining, carrying };
  enum class Change : std::uint8_t { sample, dispose, unregister };
  struct Arrived {
    Change change = Change::sample;
    pubsub::RawSample sample = {};
    pubsub::ClientStamp stamp = {};
  };

  void tell_mismatches();
  void look_for_topic();
  void begin();
  std::size_t carry_to_dds();
  [[nodiscard]] bool write_to_dds(const pubsub::RawSample& sample, const pubsub::SampleInfo& info);
  [[nodiscard]] bool is_gateway(std::string_view member) const;
  [[nodiscard]] bool is_first() const;
  std::size_t carry_from_dds();
  std::size_t take_from_dds();
  void arrive(const void* memory, const dds_sample_info_t& info, bool last_of_instance);
  void enqueue(Change change, Arrived arrived, const RemoteEndpoint& writer,
               dds_instance_handle_t publication, dds_time_t source_time);
  void refuse(const std::string& why);

  pubsub::DomainParticipant& participant_;
  Domain& domain_;
  Rule rule_;
  std::string name_;
  std::string network_;
  Notify notify_;
  State state_ = State::unknown;
  std::uint64_t look_ns_ = 0;
  pubsub::AnyTopic topic_;
  pubsub::AnyReader reader_;
  pubsub::AnyWriter writer_;
  std::unique_ptr<DdsType> type_;
  std::unique_ptr<DdsSample> sample_;
  std::unique_ptr<DdsEndpoints> dds_;
  pubsub::AnyReader::Loan loan_;  // on its way to the domain
  std::size_t next_ = 0;
  std::deque<Arrived> arrived_;  // on its way to the group
  bool first_ = true;            // false: carries only what another gateway may fail to carry
  bool more_ = true;             // the DDS reader may have some
  // The number of the last sample, by publication and key.
  std::unordered_map<dds_instance_handle_t, std::unordered_map<std::uint64_t, std::uint64_t>>
      numbers_;
  std::unordered_map<dds_instance_handle_t, std::uint32_t> generations_;  // by instance
  BridgeCounters counters_;
};

}  // namespace dunlin::app::gateway
