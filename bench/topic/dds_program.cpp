#include "bench/topic/dds_program.hpp"

#include <array>

#include "topic/type_tree.hpp"

namespace dunlin::bench {
namespace {

using app::gateway::check_dds;
using app::gateway::Entity;

constexpr dds_domainid_t kDomain = 0;
constexpr dds_duration_t kPatienceForRoom = DDS_SECS(10);
constexpr std::size_t kAtATime = 128;

Entity topic(dds_entity_t participant, const app::gateway::DdsType& type, const std::string& name) {
  return {dds_create_topic(participant, &type.descriptor(), name.c_str(), nullptr, nullptr),
          "DDS topic " + name};
}

}  // namespace

DdsProgram::DdsProgram(const std::string& type, const Topics& topics)
    : type_(app::topic::parse_type(type), kDdsType),
      participant_(dds_create_participant(kDomain, nullptr, nullptr), "DDS participant") {
  const app::gateway::Qos qos(dds_create_qos());
  dds_qset_reliability(qos.get(), DDS_RELIABILITY_RELIABLE, kPatienceForRoom);
  dds_qset_history(qos.get(), DDS_HISTORY_KEEP_ALL, 0);
  const dds_entity_t participant = participant_.get();
  written_ = topic(participant, type_, topics.written);
  read_ = topic(participant, type_, topics.read);
  writer_ =
      Entity(dds_create_writer(participant, written_.get(), qos.get(), nullptr), "DDS writer");
  reader_ = Entity(dds_create_reader(participant, read_.get(), qos.get(), nullptr), "DDS reader");
  waitset_ = Entity(dds_create_waitset(participant), "DDS wait set");
  check_dds(dds_set_status_mask(reader_.get(), DDS_DATA_AVAILABLE_STATUS), "DDS reader");
  check_dds(dds_waitset_attach(waitset_.get(), reader_.get(), 0), "DDS wait set");
}

void DdsProgram::write(const void* sample) {
  check_dds(dds_write(writer_.get(), sample), "writing to DDS");
}

void DdsProgram::take(std::chrono::nanoseconds patience,
                      const std::function<void(const void*)>& handle) {
  if (patience.count() > 0)
    check_dds(dds_waitset_wait(waitset_.get(), nullptr, 0, patience.count()), "waiting for DDS");
  std::array<void*, kAtATime> samples{};
  std::array<dds_sample_info_t, kAtATime> infos{};
  for (;;) {
    const dds_return_t count =
        check_dds(dds_take(reader_.get(), samples.data(), infos.data(), kAtATime, kAtATime),
                  "reading from DDS");
    if (count == 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      if (infos.at(i).valid_data) handle(samples.at(i));
    dds_return_loan(reader_.get(), samples.data(), count);
  }
}

}  // namespace dunlin::bench
