#include "topic/relayed.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <dunlin/relay/client.hpp>

#include "command.hpp"
#include "fabric/private_file.hpp"
#include "fabric/system.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "topic/sample_json.hpp"
#include "topic/sample_text.hpp"

namespace dunlin::app::topic {
namespace {

constexpr std::uint32_t kRelaySliceMs = 20;       // then it looks at signals
constexpr std::uint64_t kBeginMs = 10'000;        // to find a relay, and the topic
constexpr std::uint64_t kAcknowledgeMs = 10'000;  // at the end

relay::ClientOptions client_options_of(const Options& options) {
  relay::ClientOptions made{.relays = options.relays};
  try {
    const std::string& file = options.place.fabric.secret_file;
    if (!file.empty()) made.secret = read_secret(file, "--secret-file");
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
  return made;
}

class Relayed {
 public:
  explicit Relayed(const Options& options)
      : options_(options), client_(client_options_of(options)) {}

  void echo() {
    relay::AnyRelayReader reader(client_, options_.topic, pubsub::raw_type_support());
    if (!begin(reader)) return;
    const TypeTree type = parse_type(reader.type_text());
    std::uint64_t shown = 0;
    const auto enough = [&] { return options_.count && shown >= *options_.count; };
    until(
        [&] {
          while (!enough() && reader.available()) {
            const auto sample = reader.take_one();
            say(sample->valid ? print_sample(type, sample->payload) + "---\n"
                              : "(an instance is disposed)\n---\n");
            ++shown;
          }
          if (!reader.why_refused().empty()) throw Error(reader.why_refused());
          return enough();
        },
        options_.seconds ? static_cast<std::uint64_t>(*options_.seconds * 1e3) : UINT64_MAX);
  }

  void publish() {
    relay::AnyRelayWriter writer(client_, options_.topic, pubsub::raw_type_support());
    if (!begin(writer)) return;
    const pubsub::RawSample sample = read_sample(parse_type(writer.type_text()), options_.sample);
    const auto period_ns = static_cast<std::uint64_t>(1e9 / options_.rate);
    std::uint64_t next_ns = 0;
    until([&] {
      if (!writer.why_refused().empty()) throw Error(writer.why_refused());
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      if (now_ns < next_ns || writer.write(&sample) != pubsub::WriteResult::written) return false;
      next_ns = now_ns + period_ns;
      return writer.written() == options_.count.value_or(UINT64_MAX);
    });
    if (!until([&] { return writer.all_acknowledged(); }, kAcknowledgeMs) &&
        signals_.caught() == nullptr)
      throw Error(fmt::format("{} of {} samples are acknowledged; {}", writer.acknowledged(),
                              writer.written(), client_.why_disconnected()));
    say(fmt::format("{} {} acknowledged\n", writer.acknowledged(),
                    writer.acknowledged() == 1 ? "sample" : "samples"));
  }

 private:
  /// Until the condition holds, a signal comes, or the time is up.
  template <class Condition>
  bool until(const Condition& condition, std::uint64_t limit_ms = UINT64_MAX) {
    const std::uint64_t begin_ns = read_clock_ns(CLOCK_MONOTONIC);
    while (signals_.caught() == nullptr) {
      if (client_.run_until(condition, kRelaySliceMs)) return true;
      if ((read_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1'000'000 >= limit_ms) return false;
    }
    return false;
  }

  /// False if a signal came.
  template <class Endpoint>
  bool begin(const Endpoint& endpoint) {
    const bool begun = until(
        [&] {
          return (endpoint.ready() && !endpoint.type_text().empty()) ||
                 !endpoint.why_refused().empty();
        },
        kBeginMs);
    if (!endpoint.why_refused().empty()) throw Error(endpoint.why_refused());
    if (begun || signals_.caught() != nullptr) return begun;
    throw Error(client_.connected()
                    ? fmt::format("topic '{}': no member of the group of relay {} has it, or it "
                                  "has no type yet",
                                  options_.topic, client_.relay())
                    : fmt::format("no relay can be reached: {}", client_.why_disconnected()));
  }

  const Options& options_;
  SignalGuard signals_;
  relay::RelayClient client_;
};

}  // namespace

void run_relayed(const Options& options) {
  Relayed relayed(options);
  options.work == Work::echo ? relayed.echo() : relayed.publish();
}

}  // namespace dunlin::app::topic
