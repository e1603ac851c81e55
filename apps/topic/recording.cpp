#include "topic/recording.hpp"

#include <fmt/format.h>

#include <dunlin/version.hpp>

#include "text.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint64_t kFlushNs = 1'000'000'000;

}  // namespace

Recording::Recording(const Options& options)
    : file_(options.file, {.compresses = options.compression == "zstd",
                           .chunk_bytes = options.chunk_kb * 1'024,
                           .library = "dunlin " + std::string(version())}),
      most_(options.count.value_or(UINT64_MAX)) {}

std::uint16_t Recording::schema(const RecordedTopic& described) {
  std::uint16_t& id = schemas_[described.type_text];
  if (id == 0) id = file_.add(schema_of(described));
  return id;
}

void Recording::add(Writer& writer, const pubsub::RawSample& sample, bool disposes,
                    const mcap::Message& times) {
  if (enough()) return;
  failed_ = true;  // true unless all of this succeeds
  std::uint16_t& channel = writer.channels.at(disposes ? 1 : 0);
  if (channel == 0) {
    writer.described.disposes = disposes;
    channel = file_.add(channel_of(writer.described, schema(writer.described)));
  }
  mcap::Message message = times;
  message.channel = channel;
  message.data = sample.payload;
  file_.write(message);
  ++topics_[writer.described.topic];
  failed_ = false;
}

void Recording::tick(std::uint64_t now_ns) {
  if (now_ns - flushed_ns_ < kFlushNs) return;
  flushed_ns_ = now_ns;
  failed_ = true;
  file_.end_chunk();
  failed_ = false;
}

std::string Recording::summary(const char* signal) const {
  const mcap::Statistics& all = file_.statistics();
  return fmt::format("{}: {} {} of {} {} over {:.3f} s, {} bytes{}\n", in_quotes(file_.path()),
                     all.messages, all.messages == 1 ? "sample" : "samples", topics_.size(),
                     topics_.size() == 1 ? "topic" : "topics",
                     static_cast<double>(all.end_ns - all.start_ns) / 1e9, file_.file_bytes(),
                     signal == nullptr ? std::string() : fmt::format("; ended by {}", signal));
}

}  // namespace dunlin::app::topic
