#include "topic/player.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "command.hpp"
#include "text.hpp"
#include "topic/sample_key.hpp"

namespace dunlin::app::topic {

Player::Player(const Options& options)
    : file_(options.file),
      rate_(options.rate),
      loops_(options.loops),
      from_ns_(file_.statistics().start_ns +
               static_cast<std::uint64_t>(options.start_offset * 1e9)) {
  for (const auto& [id, channel] : file_.channels())
    if (options.topics.empty() || std::ranges::count(options.topics, channel.topic) > 0)
      add_channel(channel);
  for (const std::string& name : options.topics)
    if (std::ranges::none_of(topics_, [&](const Topic& one) { return one.recorded.topic == name; }))
      throw BadInput(fmt::format("{} has no topic '{}'", in_quotes(file_.path()), name));
  for (const auto& [id, messages] : file_.statistics().messages_of)
    if (channels_.contains(id)) samples_ += messages;
  planned_warnings_ = file_.warnings().size();
}

void Player::add_channel(const mcap::Channel& channel) {
  RecordedTopic recorded = recorded_topic_of(file_, channel);
  auto topic = std::ranges::find_if(
      topics_, [&](const Topic& one) { return one.recorded.topic == recorded.topic; });
  if (topic == topics_.end()) {
    TypeTree type = parse_type(recorded.type_text);
    topic = topics_.insert(topic, {.recorded = recorded, .type = std::move(type)});
  } else if (!pubsub::types_match(topic->recorded.type_text, recorded.type_text)) {
    throw BadInput(
        fmt::format("{} has two types of topic '{}': {}", in_quotes(file_.path()), recorded.topic,
                    pubsub::show_both_types(topic->recorded.type_text, recorded.type_text)));
  } else if (recorded.type_text.size() > topic->recorded.type_text.size()) {
    topic->recorded.type_text = recorded.type_text;  // members were appended
    topic->type = parse_type(recorded.type_text);
  }
  const pubsub::DataWriterQos qos = recorded.writer_qos.value_or(pubsub::DataWriterQos{});
  auto writer = std::ranges::find(topic->writers, qos);
  if (writer == topic->writers.end()) writer = topic->writers.insert(writer, qos);
  channels_[channel.id] = {.topic = static_cast<std::size_t>(topic - topics_.begin()),
                           .writer = static_cast<std::size_t>(writer - topic->writers.begin()),
                           .disposes = recorded.disposes};
}

/// The next sample of a topic that is played; false: this pass is over.
bool Player::load() {
  mcap::Message message;
  while (file_.next(message)) {
    const auto found = channels_.find(message.channel);
    if (found == channels_.end()) continue;
    sample_.topic = found->second.topic;
    sample_.writer = found->second.writer;
    sample_.disposes = found->second.disposes;
    const Topic& topic = topics_[sample_.topic];
    sample_.raw.plain = topic.type.plain;
    sample_.raw.payload.assign(message.data.begin(), message.data.end());
    try {
      sample_.raw.key_hash = key_hash_of(topic.type, message.data);
    } catch (const Error& error) {
      throw BadInput(fmt::format("{}: topic '{}', sample {}, logged at {} ns: {}",
                                 in_quotes(file_.path()), topic.recorded.topic, message.sequence,
                                 message.log_ns, error.what()));
    }
    const std::uint64_t after_ns = message.log_ns - std::min(from_ns_, message.log_ns);
    due_ns_ = pass_begin_ns_ + static_cast<std::uint64_t>(static_cast<double>(after_ns) / rate_);
    return true;
  }
  return false;
}

void Player::begin_pass(std::uint64_t now_ns) {
  file_.rewind(from_ns_);
  pass_begin_ns_ = now_ns;
  played_before_ = played_;
}

bool Player::play(std::uint64_t now_ns, const std::function<bool(const Sample&)>& publish) {
  if (!begun_) {
    begun_ = true;
    begin_ns_ = now_ns;
    begin_pass(now_ns);
  }
  end_ns_ = now_ns;
  for (;;) {
    if (!loaded_ && !load()) {
      // A pass without a sample is the last one: the next would have none, either.
      if (++passes_ == loops_ || played_ == played_before_) return true;
      begin_pass(now_ns);
      continue;
    }
    loaded_ = true;
    if (now_ns < due_ns_ || !publish(sample_)) return false;
    latest_ns_ = std::max(latest_ns_, now_ns - due_ns_);
    ++played_;
    loaded_ = false;
  }
}

std::string Player::plan() const {
  const mcap::Statistics& all = file_.statistics();
  std::string text;
  for (std::size_t i = 0; i < planned_warnings_; ++i)
    text += "warning: " + file_.warnings()[i] + "\n";
  text += fmt::format("replays {}: {} samples of {} {}, recorded over {:.3f} s{}\n",
                      in_quotes(file_.path()), samples_, topics_.size(),
                      topics_.size() == 1 ? "topic" : "topics",
                      static_cast<double>(all.end_ns - all.start_ns) / 1e9,
                      rate_ == 1 ? std::string() : fmt::format(", at rate {:g}", rate_));
  for (const Topic& topic : topics_)
    text += fmt::format("  {} [{}]\n", printable(topic.recorded.topic),
                        printable(type_name_of(topic.recorded.type_text)));
  return text;
}

std::string Player::summary(const char* signal) const {
  std::string text;
  for (std::size_t i = planned_warnings_; i < file_.warnings().size(); ++i)
    text += "warning: " + file_.warnings()[i] + "\n";
  return text +
         fmt::format("{} {} replayed in {:.3f} s, each at most {:.3f} ms late{}\n", played_,
                     played_ == 1 ? "sample" : "samples",
                     static_cast<double>(end_ns_ - begin_ns_) / 1e9,
                     static_cast<double>(latest_ns_) / 1e6,
                     signal == nullptr ? std::string() : fmt::format("; ended by {}", signal));
}

}  // namespace dunlin::app::topic
