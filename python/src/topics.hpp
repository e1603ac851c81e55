#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/node.hpp>
#include <dunlin/pubsub.hpp>

#include "polled.hpp"
#include "pubsub/type_tree.hpp"

/// A topic whose type this process learns when it runs. It knows no Python object (PY-1): samples
/// are bytes here.
namespace dunlin::python {

struct TopicSetup {
  std::string text = {};  // of the type
  std::string type_name = {};
  pubsub::TypeTree type = {};
  bool reads = true;
  bool writes = true;
  pubsub::TopicQos topic = {};
  pubsub::DataWriterQos writer = {};
  pubsub::DataReaderQos reader = {};
};

/// Samples that were taken: their bytes, one after the other. Samples of a plain type are an array.
struct TakenSamples {
  struct Entry {
    std::size_t end = 0;  // where its bytes end
    bool plain = true;
    pubsub::SampleInfo info = {};  // publication.member refers to nothing; see `member`
    std::string member = {};
  };
  std::vector<std::byte> bytes;
  std::vector<Entry> entries;
};

class TopicObject final : public node::NodeObject {
 public:
  enum class Change : std::uint8_t { sample, dispose, unregister };
  struct Request {
    std::uint32_t most = UINT32_MAX;
    bool ends = false;   // whether the ends of instances are taken, too
    bool waits = false;  // for a sample, if there is none
  };

  TopicObject(node::Engine& engine, const std::string& name, TopicSetup setup);

  // --- under the lock ----------------------------------------------------------------------------
  [[nodiscard]] const TopicSetup& setup() const noexcept { return setup_; }
  [[nodiscard]] std::optional<Result<void>> write(const pubsub::RawSample& sample, Change change);
  [[nodiscard]] std::optional<Result<TakenSamples>> take(const Request& request);
  /// How many readers of other members and of this one match the writer here.
  [[nodiscard]] std::uint32_t matched_readers() const noexcept;
  [[nodiscard]] std::uint32_t matched_writers() const noexcept;
  /// A sentence that says why this member can never be in the topic, or why its reader or writer
  /// matches no other; empty: there is no such reason.
  [[nodiscard]] std::string why_unmatched() const;
  /// Samples that came and that were no samples of the type, or for which the reader had no room.
  [[nodiscard]] std::uint64_t lost_samples() const noexcept;
  [[nodiscard]] PolledCalls& writes() noexcept { return writes_; }
  [[nodiscard]] PolledCalls& takes() noexcept { return takes_; }
  [[nodiscard]] PolledCalls& matches() noexcept { return matches_; }

  std::size_t poll() override;
  void end() noexcept override;

 private:
  [[nodiscard]] bool is_valid(const pubsub::RawSample& sample) const noexcept;
  [[nodiscard]] std::optional<Failure> why_not_taken() const;

  const std::string who_;
  const TopicSetup setup_;
  pubsub::AnyTopic topic_;
  std::optional<pubsub::AnyWriter> writer_;
  std::optional<pubsub::AnyReader> reader_;
  std::uint64_t malformed_ = 0;
  PolledCalls writes_{PolledCalls::Order::first};
  PolledCalls takes_{PolledCalls::Order::first};
  PolledCalls matches_{PolledCalls::Order::any};
};

/// A handle of a topic, for any thread, without the GIL.
class RawTopicHandle {
 public:
  /// Throws Error if this process has the topic already with another type.
  RawTopicHandle(std::shared_ptr<node::Engine> engine, const std::string& name, TopicSetup setup);

  /// Ends once the sample is in this member's ring.
  [[nodiscard]] Future<void> write(pubsub::RawSample sample, TopicObject::Change change);
  [[nodiscard]] Future<TakenSamples> take(TopicObject::Request request);
  /// Ends once so many readers match the writer here; writers match the reader here.
  [[nodiscard]] Future<void> until_readers(std::uint32_t count);
  [[nodiscard]] Future<void> until_writers(std::uint32_t count);
  /// Returns what `look(TopicObject&)` returns.
  template <class Look>
  auto look(Look&& look) const {
    return engine_->look_with_lock([&] { return look(*object_); });
  }

 private:
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<TopicObject> object_;
};

}  // namespace dunlin::python
