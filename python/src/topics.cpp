#include "topics.hpp"

#include <utility>

#include "pubsub/sample_key.hpp"

namespace dunlin::python {

using pubsub::WriteResult;
using remote::Status;

TopicObject::TopicObject(node::Engine& engine, const std::string& name, TopicSetup setup)
    : who_("topic '" + name + "': "), setup_(std::move(setup)) {
  const auto type = setup_.type.keyed
                        ? pubsub::raw_keyed_type_support(setup_.text, setup_.type_name)
                        : pubsub::raw_type_support(setup_.text, setup_.type_name);
  topic_ = pubsub::AnyTopic(engine.participant(), name, type, setup_.topic);
  if (setup_.writes) writer_.emplace(topic_, setup_.writer);
  if (setup_.reads) reader_.emplace(topic_, setup_.reader);
}

// --- writing -------------------------------------------------------------------------------------

std::optional<Result<void>> TopicObject::write(const pubsub::RawSample& sample, Change change) {
  if (!writer_) return Failure{Status::refused, who_ + "write: this member said writes=False"};
  const WriteResult result = change == Change::sample    ? writer_->write(&sample)
                             : change == Change::dispose ? writer_->dispose(&sample)
                                                         : writer_->unregister(&sample);
  switch (result) {
    case WriteResult::written:
      return Result<void>();
    case WriteResult::refused:
      return Failure{Status::refused, who_ + "write: " + writer_->why_refused()};
    case WriteResult::ended:
      return Failure{Status::stopped, who_ + "write: the group has ended here"};
    default:
      if (!topic_.why_refused().empty())
        return Failure{Status::refused, who_ + "write: " + topic_.why_refused()};
      return std::nullopt;
  }
}

// --- taking --------------------------------------------------------------------------------------

bool TopicObject::is_valid(const pubsub::RawSample& sample) const noexcept {
  if (sample.plain != setup_.type.plain) return false;
  if (!sample.plain) return true;  // XCDR2 is checked when it is decoded
  if (sample.payload.size() != setup_.type.bytes) return false;
  if (!setup_.type.has_bool) return true;
  try {
    static_cast<void>(pubsub::key_hash_of(setup_.type, sample.payload));
    return true;
  } catch (const std::exception&) {
    return false;  // a bool of it is neither 0 nor 1
  }
}

std::optional<Failure> TopicObject::why_not_taken() const {
  if (!reader_) return Failure{Status::refused, who_ + "take: this member said reads=False"};
  std::string why = reader_->why_refused();
  if (why.empty()) why = topic_.why_refused();
  if (why.empty() && reader_->sample_lost_status().dropped)
    why = "this reader was too slow (slow_reader), and gets no more samples";
  if (why.empty()) return std::nullopt;
  return Failure{Status::refused, who_ + "take: " + why};
}

std::optional<Result<TakenSamples>> TopicObject::take(const Request& request) {
  TakenSamples taken;
  while (reader_ && taken.entries.size() < request.most) {
    const auto left = static_cast<std::uint32_t>(request.most - taken.entries.size());
    const auto loan = reader_->take({.max_samples = left});
    if (loan.size() == 0) break;
    for (std::size_t i = 0; i < loan.size(); ++i) {
      const auto& sample = *static_cast<const pubsub::RawSample*>(loan.data(i));
      if (!loan.info(i).valid() && !request.ends) continue;
      if (!is_valid(sample)) {
        ++malformed_;
        continue;
      }
      taken.bytes.insert(taken.bytes.end(), sample.payload.begin(), sample.payload.end());
      taken.entries.push_back({.end = taken.bytes.size(),
                               .plain = sample.plain,
                               .info = loan.info(i),
                               .member = std::string(loan.info(i).publication.member)});
      taken.entries.back().info.publication.member = {};
    }
  }
  if (!taken.entries.empty()) return taken;
  if (std::optional<Failure> why = why_not_taken()) return std::move(*why);
  if (request.waits) return std::nullopt;
  return taken;
}

// --- the state -----------------------------------------------------------------------------------

std::uint32_t TopicObject::matched_readers() const noexcept {
  return writer_ ? writer_->publication_matched_status().current_count : 0;
}
std::uint32_t TopicObject::matched_writers() const noexcept {
  return reader_ ? reader_->subscription_matched_status().current_count : 0;
}

std::string TopicObject::why_unmatched() const {
  if (!topic_.why_refused().empty()) return topic_.why_refused();
  if (writer_ && !writer_->why_refused().empty()) return writer_->why_refused();
  if (reader_ && !reader_->why_refused().empty()) return reader_->why_refused();
  if (writer_)
    if (auto last = writer_->offered_incompatible_qos_status().last; !last.empty()) return last;
  if (reader_)
    if (auto last = reader_->requested_incompatible_qos_status().last; !last.empty()) return last;
  return topic_.inconsistent_topic_status().last;
}

std::uint64_t TopicObject::lost_samples() const noexcept {
  return malformed_ + (reader_ ? reader_->sample_lost_status().total_count : 0);
}

std::size_t TopicObject::poll() {
  return writes_.poll() + (takes_.empty() ? 0 : takes_.poll()) +
         (matches_.empty() ? 0 : matches_.poll());
}

void TopicObject::end() noexcept {
  writer_.reset();
  reader_.reset();
  topic_ = {};
}

// --- the handle ----------------------------------------------------------------------------------

RawTopicHandle::RawTopicHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                               TopicSetup setup)
    : engine_(std::move(engine)) {
  object_ = engine_->with_lock([&] {
    auto object = engine_->object<TopicObject>("topic '" + name + "'", [&] {
      return std::make_shared<TopicObject>(*engine_, name, setup);
    });
    if (object->setup().text != setup.text)
      throw Error("topic '" + name + "': this process has it already, with another type: " +
                  pubsub::show_both_types(object->setup().text, setup.text));
    return object;
  });
}

Future<void> RawTopicHandle::write(pubsub::RawSample sample, TopicObject::Change change) {
  constexpr std::size_t kHeadBytes = 256;  // more than what a message has before a sample
  if (sample.payload.size() > kMaxCastBytes - kHeadBytes)
    return {
        engine_->number(),
        Result<void>(Failure{Status::too_long,
                             "topic: write: a sample of " + std::to_string(sample.payload.size()) +
                                 " bytes; at most " + std::to_string(kMaxCastBytes - kHeadBytes) +
                                 " are possible"})};
  return begin_polled<void>(*engine_, object_->writes(),
                            [object = object_.get(), sample = std::move(sample), change] {
                              return object->write(sample, change);
                            });
}

Future<TakenSamples> RawTopicHandle::take(TopicObject::Request request) {
  return begin_polled<TakenSamples>(*engine_, object_->takes(), [object = object_.get(), request] {
    return object->take(request);
  });
}

namespace {

std::optional<Result<void>> ended_if(bool has_come) {
  if (has_come) return Result<void>();
  return std::nullopt;
}

}  // namespace

Future<void> RawTopicHandle::until_readers(std::uint32_t count) {
  return begin_polled<void>(*engine_, object_->matches(), [object = object_.get(), count] {
    return ended_if(object->matched_readers() >= count);
  });
}
Future<void> RawTopicHandle::until_writers(std::uint32_t count) {
  return begin_polled<void>(*engine_, object_->matches(), [object = object_.get(), count] {
    return ended_if(object->matched_writers() >= count);
  });
}

}  // namespace dunlin::python
