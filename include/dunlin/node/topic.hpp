#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/node/engine.hpp>
#include <dunlin/pubsub.hpp>

/// A topic of a node, for any thread (pubsub.hpp says what a topic is).
///
///     auto squares = node.topic<Shape>("squares", {.on_sample = [](const Shape& shape, auto&) {
///       draw(shape);
///     }});
///     while (squares.write(shape) == dunlin::pubsub::WriteResult::no_room)
///     std::this_thread::yield();
namespace dunlin {

template <class T>
struct TopicSetup {
  /// Called with each sample. Without an executor, the node's thread calls it, with the sample in
  /// the ring; with one, samples are copied. Null: take() gets the samples.
  std::function<void(const T& sample, const pubsub::SampleInfo& info)> on_sample = nullptr;
  bool reads = true;   // false: this member only writes
  bool writes = true;  // false: this member only reads
  pubsub::TopicQos topic = {};
  pubsub::DataWriterQos writer = {};
  pubsub::DataReaderQos reader = {};
};

template <class T>
class TopicHandle {
 public:
  TopicHandle(std::shared_ptr<node::Engine> engine, const std::string& name, TopicSetup<T> setup)
      : engine_(std::move(engine)) {
    object_ = engine_->with_lock([&] {
      return engine_->template object<Object>("topic '" + name + "'", [&] {
        return std::make_shared<Object>(*engine_, name, std::move(setup));
      });
    });
  }

  /// Writes a sample, at once or from the node's thread. `written`: the node has taken it, and
  /// writes it in the order of this thread's writes. `no_room`: nothing is written; try again, but
  /// not in a loop in a callback on the node's thread, as nobody else makes room.
  [[nodiscard]] pubsub::WriteResult write(const T& sample) { return object_->write(sample); }
  /// The samples that have come since the last take(), without those that only end an instance.
  [[nodiscard]] std::vector<T> take() {
    return engine_->with_lock([&] {
      std::vector<T> samples;
      if (object_->reader())
        for (const pubsub::Sample<T> sample : object_->reader()->take())
          if (sample.info().valid()) samples.push_back(sample.data());
      return samples;
    });
  }
  /// How many readers of other members there are for this writer.
  [[nodiscard]] std::uint32_t matched() {
    return engine_->with_lock([&] { return object_->matched(); });
  }

 private:
  static constexpr std::uint32_t kMostWaiting = 1'024;

  class Object final : public node::NodeObject {
   public:
    Object(node::Engine& engine, const std::string& name, TopicSetup<T> setup)
        : engine_(engine), topic_(engine.participant(), name, setup.topic) {
      if (setup.writes)
        writer_.emplace(pubsub::Publisher(engine.participant()), topic_, setup.writer);
      if (!setup.reads) return;
      reader_.emplace(pubsub::Subscriber(engine.participant()), topic_, setup.reader);
      if (!setup.on_sample) return;
      using Handler = std::function<void(const T&, const pubsub::SampleInfo&)>;
      reader_->on_sample(
          [this, handler = std::make_shared<const Handler>(std::move(setup.on_sample))](
              const T& sample, const pubsub::SampleInfo& info) {
            if (!engine_.has_executor())
              return engine_.call_back([&] { (*handler)(sample, info); });
            engine_.execute([handler, sample, info] { (*handler)(sample, info); });
          });
    }
    [[nodiscard]] std::optional<pubsub::DataReader<T>>& reader() noexcept { return reader_; }
    [[nodiscard]] std::uint32_t matched() const {
      return writer_ ? static_cast<std::uint32_t>(
                           (*writer_)->publication_matched_status().current_count)
                     : 0;
    }

    pubsub::WriteResult write(const T& sample) {
      using pubsub::WriteResult;
      // A program that writes without a pause learns it, too, though its samples wait.
      if (!writer_ || is_refused_.load(std::memory_order_relaxed)) return WriteResult::refused;
      WriteResult result = WriteResult::no_room;
      bool is_done = false;
      const bool has_run = engine_.run_now([&] {
        if (!waiting_.empty()) return;  // NODE-2
        result = writer_->write(sample);
        is_done = result != WriteResult::not_ready;
      });
      if (is_done) {
        engine_.wake_if_asleep();
        return result;
      }
      if (!has_run && !engine_.is_running()) return WriteResult::ended;
      if (accepted_.fetch_add(1, std::memory_order_relaxed) >= kMostWaiting) {
        accepted_.fetch_sub(1, std::memory_order_relaxed);
        return WriteResult::no_room;
      }
      const auto claim = engine_.enqueue([this, kept = std::make_unique<T>(sample)]() mutable {
        waiting_.push_back(std::move(*kept));
      });
      if (claim == node::RecordRing::Claim::ok) return WriteResult::written;
      accepted_.fetch_sub(1, std::memory_order_relaxed);
      return claim == node::RecordRing::Claim::closed ? WriteResult::ended : WriteResult::no_room;
    }

    std::size_t poll() override {
      using pubsub::WriteResult;
      std::size_t written = 0;
      for (; !waiting_.empty(); ++written) {
        const WriteResult result = writer_->write(waiting_.front());
        if (result == WriteResult::no_room || result == WriteResult::not_ready) break;
        if (result != WriteResult::written) ++dropped_;
        if (result == WriteResult::refused) is_refused_.store(true, std::memory_order_relaxed);
        waiting_.pop_front();
        accepted_.fetch_sub(1, std::memory_order_relaxed);
      }
      if (dropped_ > 0 && is_refused_.load(std::memory_order_relaxed))
        tell_dropped((*writer_)->why_refused());
      return written;
    }
    [[nodiscard]] bool handed_over() override { return waiting_.empty(); }
    void end() noexcept override {
      dropped_ += waiting_.size();
      if (dropped_ > 0) tell_dropped("this member ended, or hand_over_ms was over");
      writer_.reset();
      reader_.reset();
      topic_ = {};
    }

   private:
    void tell_dropped(const std::string& why) {
      engine_.tell("topic '" + topic_.name() + "': " + std::to_string(std::exchange(dropped_, 0)) +
                   " samples that were accepted have not been written: " + why);
    }

    node::Engine& engine_;
    pubsub::Topic<T> topic_;
    std::optional<pubsub::DataWriter<T>> writer_;
    std::optional<pubsub::DataReader<T>> reader_;
    std::atomic<std::uint32_t> accepted_{0};
    std::atomic<bool> is_refused_{false};
    std::deque<T> waiting_;    // under the lock
    std::size_t dropped_ = 0;  // accepted, not written, and nobody was told
  };

  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
