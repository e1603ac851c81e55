#include "gateway/dds_endpoints.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"

namespace dunlin::app::gateway {
namespace {

/// By dds_qos_policy_id_t.
constexpr std::array<std::string_view, 26> kPolicies{"an unknown policy",
                                                     "user_data",
                                                     "durability",
                                                     "presentation",
                                                     "deadline",
                                                     "latency_budget",
                                                     "ownership",
                                                     "ownership_strength",
                                                     "liveliness",
                                                     "time_based_filter",
                                                     "partition",
                                                     "reliability",
                                                     "destination_order",
                                                     "history",
                                                     "resource_limits",
                                                     "entity_factory",
                                                     "writer_data_lifecycle",
                                                     "reader_data_lifecycle",
                                                     "topic_data",
                                                     "group_data",
                                                     "transport_priority",
                                                     "lifespan",
                                                     "durability_service",
                                                     "property",
                                                     "type_consistency",
                                                     "data_representation"};
static_assert(DDS_DATA_REPRESENTATION_QOS_POLICY_ID + 1 == kPolicies.size());

std::string_view policy_name(std::uint32_t id) {
  return kPolicies.at(id < kPolicies.size() ? id : 0);
}

dds_duration_t duration_of(std::uint64_t ns) {
  return ns == pubsub::kInfiniteNs ? DDS_INFINITY : static_cast<dds_duration_t>(ns);
}

Qos common_qos(const Domain& domain, const Rule& rule, bool transient_local) {
  Qos qos(dds_create_qos());
  // A write does not wait: the gateway's one thread has the group to serve.
  dds_qset_reliability(qos.get(),
                       rule.reliability.kind == pubsub::Reliability::Kind::reliable
                           ? DDS_RELIABILITY_RELIABLE
                           : DDS_RELIABILITY_BEST_EFFORT,
                       0);
  dds_qset_durability(qos.get(),
                      transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  dds_qset_history(qos.get(), DDS_HISTORY_KEEP_ALL, 0);
  dds_qset_deadline(qos.get(), duration_of(rule.deadline_ns));
  dds_qset_ignorelocal(qos.get(), DDS_IGNORELOCAL_PARTICIPANT);
  dds_qset_userdata(qos.get(), domain.identity().data(), domain.identity().size());
  std::vector<const char*> partitions;
  for (const std::string& name : rule.partitions) partitions.push_back(name.c_str());
  if (!partitions.empty())
    dds_qset_partition(qos.get(), static_cast<std::uint32_t>(partitions.size()), partitions.data());
  return qos;
}

Qos writer_qos(const Domain& domain, const DdsType& type, const Rule& rule, bool transient_local) {
  Qos qos = common_qos(domain, rule, transient_local);
  dds_qset_lifespan(qos.get(), duration_of(rule.lifespan_ns));
  // An instance that a writer of the group has left is without writers, and not disposed.
  dds_qset_writer_data_lifecycle(qos.get(), false);
  const auto limit = static_cast<std::int32_t>(rule.max_samples);
  dds_qset_durability_service(
      qos.get(), 0, rule.depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL,
      static_cast<std::int32_t>(rule.depth), limit, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  const bool xcdr2 = type.needs_xcdr2() || rule.representation == Rule::Representation::xcdr2;
  const dds_data_representation_id_t id =
      xcdr2 ? DDS_DATA_REPRESENTATION_XCDR2 : DDS_DATA_REPRESENTATION_XCDR1;
  dds_qset_data_representation(qos.get(), 1, &id);
  return qos;
}

Qos reader_qos(const Domain& domain, const DdsType& type, const Rule& rule, bool transient_local) {
  Qos qos = common_qos(domain, rule, transient_local);
  dds_qset_resource_limits(qos.get(), static_cast<std::int32_t>(rule.max_samples),
                           DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  const std::array<dds_data_representation_id_t, 2> ids{DDS_DATA_REPRESENTATION_XCDR2,
                                                        DDS_DATA_REPRESENTATION_XCDR1};
  dds_qset_data_representation(qos.get(), type.needs_xcdr2() ? 1 : 2, ids.data());
  return qos;
}

}  // namespace

DdsEndpoints::DdsEndpoints(const Domain& domain, const DdsType& type, const Rule& rule,
                           bool transient_local) {
  if (rule.representation == Rule::Representation::xcdr1 && type.needs_xcdr2())
    throw BadInput(fmt::format(
        "topic '{}': representation 'xcdr1' cannot be carried: the type has appendable or optional "
        "parts, which Cyclone DDS encodes as XCDR2 only",
        rule.topic));
  const std::string what = fmt::format("topic '{}', DDS topic '{}' of type '{}'", rule.topic,
                                       rule.dds_name(), type.name());
  topic_ = Entity(dds_create_topic(domain.participant(), &type.descriptor(),
                                   rule.dds_name().c_str(), nullptr, nullptr),
                  what);
  if (rule.to_dds)
    writer_ =
        Entity(dds_create_writer(domain.participant(), topic_.get(),
                                 writer_qos(domain, type, rule, transient_local).get(), nullptr),
               what + ", writer");
  if (rule.from_dds)
    reader_ =
        Entity(dds_create_reader(domain.participant(), topic_.get(),
                                 reader_qos(domain, type, rule, transient_local).get(), nullptr),
               what + ", reader");
}

std::string DdsEndpoints::new_mismatch() {
  dds_requested_incompatible_qos_status_t requested{};
  if (reader_ && dds_get_requested_incompatible_qos_status(reader_.get(), &requested) == 0 &&
      std::exchange(requested_, requested.total_count) != requested.total_count)
    return fmt::format("a DDS writer offers less {} than the gateway requests, and is not heard",
                       policy_name(requested.last_policy_id));
  dds_offered_incompatible_qos_status_t offered{};
  if (writer_ && dds_get_offered_incompatible_qos_status(writer_.get(), &offered) == 0 &&
      std::exchange(offered_, offered.total_count) != offered.total_count)
    return fmt::format("a DDS reader requests more {} than the gateway offers, and gets nothing",
                       policy_name(offered.last_policy_id));
  return {};
}

}  // namespace dunlin::app::gateway
