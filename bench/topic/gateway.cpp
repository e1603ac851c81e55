#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <dunlin/error.hpp>
#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "bench/fabric/group.hpp"
#include "bench/harness/folder.hpp"
#include "bench/topic/cyclone.hpp"
#include "bench/topic/dds_program.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"
#include "gateway/options.hpp"
#include "process/child.hpp"

/// What a program gets that knows DDS only: its samples go to a member of a group through a gateway
/// and come back, beside another program that knows DDS only. All of them sleep when they have
/// nothing to do. The program that asks has a core, and the other side has another: Dunlin's loops
/// know then that they share it, and yield.
namespace dunlin::bench {
namespace {

constexpr const char* kMember = "member";
constexpr const char* kGateway = "dds0";  // of domain 0
constexpr std::uint32_t kSliceMs = 2;
constexpr std::chrono::milliseconds kSlice{kSliceMs};
constexpr double kPatienceNs = 60e9;
constexpr std::uint64_t kUnderWay = 256;

/// A process of its own, with the two topics "there" and "back".
process::Child start_gateway(const std::string& group, const Folder& folder) {
  const std::string config = folder / "topics.json";
  std::ofstream(config) << R"({"topics": [
    {"topic": "there", "dds_type": ")"
                        << kDdsType << R"(", "direction": "from_dds"},
    {"topic": "back", "dds_type": ")"
                        << kDdsType << R"(", "direction": "to_dds"}]})";
  return process::Child([group, config] {
    // What it prints is for its user.
    const Descriptor nothing(checked(::open("/dev/null", O_WRONLY | O_CLOEXEC), "open"));
    checked(::dup2(nothing.get(), STDOUT_FILENO), "dup2");
    app::gateway::run({.place = {.fabric = {{.network = "shm", .silence_timeout_ms = 0}},
                                 .group = group,
                                 .name = kGateway,
                                 .members = {kMember, kGateway}},
                       .config = config});
    return 0;
  });
}

/// The member of the group that writes to one topic what it is given of the other.
template <std::size_t Bytes>
class Answerer {
 public:
  Answerer(Member& me, const std::string& group)
      : node_(me, dunlin::join({.group = group,
                                .names = {kMember, kGateway},
                                .name = kMember,
                                .silence_timeout_ms = 0})),
        there_(node_.participant(), "there", measured_qos(pubsub::Level::atomic)),
        back_(node_.participant(), "back", measured_qos(pubsub::Level::atomic)),
        writer_(pubsub::Publisher(node_.participant()), back_) {
    pubsub::DataReaderQos qos;
    qos << pubsub::Reliability::reliable() << pubsub::History::keep_all();
    reader_ = pubsub::DataReader<Blob<Bytes>>(pubsub::Subscriber(node_.participant()), there_, qos);
  }

  /// Answers what comes, and sleeps for a slice if nothing does.
  void step() {
    run_until(node_.participant(), [this] { return reader_->available(); }, kSliceMs,
              {.wait = Wait::block});
    for (const auto& sample : reader_.take())
      if (sample.info().valid()) answer(sample.data());
  }

 private:
  void answer(const Blob<Bytes>& sample) {
    node_.poll_until([&] {
      const pubsub::WriteResult result = writer_.write(sample);
      if (result == pubsub::WriteResult::ended) throw Error("bench: the group has ended");
      return result == pubsub::WriteResult::written;
    });
  }
  TopicNode node_;
  pubsub::Topic<Blob<Bytes>> there_;
  pubsub::Topic<Blob<Bytes>> back_;
  pubsub::DataWriter<Blob<Bytes>> writer_;
  pubsub::DataReader<Blob<Bytes>> reader_;
};

/// Numbers its samples, and counts those that have come back.
template <std::size_t Bytes>
class Asker {
 public:
  explicit Asker(const DdsProgram::Topics& topics)
      : program_(pubsub::type_support<Blob<Bytes>>()->text, topics) {
    // Until all endpoints know each other, samples are lost.
    constexpr std::chrono::milliseconds kUntilAnotherOne{50};
    const double start = now_ns();
    while (back_ == 0) {
      if (now_ns() - start > kPatienceNs) throw_silent();
      ask();
      hear(kUntilAnotherOne);
    }
    hear_until(asked_);
  }

  double round_trip(const Batches& plan) {
    return batch_ns(plan, [this] {
      ask();
      hear_until(asked_);
    });
  }
  /// Samples a second until all are back.
  double stream(std::uint64_t samples) {
    const double start = now_ns();
    for (std::uint64_t i = 0; i < samples; ++i) {
      ask();
      if (i % 16 == 0) hear({});
      if (asked_ - back_ >= kUnderWay) hear_until(asked_ - kUnderWay / 2);
    }
    hear_until(asked_);
    return static_cast<double>(samples) * 1e9 / (now_ns() - start);
  }

 private:
  void ask() {
    ++asked_;
    std::memcpy(sample_->bytes.data(), &asked_, sizeof asked_);
    program_.write(sample_.get());
  }
  void hear(std::chrono::nanoseconds patience) {
    program_.take(patience, [this](const void* sample) {
      const std::uint64_t before = back_;
      std::memcpy(&back_, sample, sizeof back_);
      if (before != 0 && back_ != before + 1)
        throw Error("bench: sample " + std::to_string(back_) + " came back behind sample " +
                    std::to_string(before));
    });
  }
  void hear_until(std::uint64_t number) {
    const double start = now_ns();
    while (back_ < number) {
      if (now_ns() - start > kPatienceNs) throw_silent();
      hear(kSlice);
    }
  }
  [[noreturn]] void throw_silent() const {
    throw Error("bench: of " + std::to_string(asked_) + " DDS samples, only those up to " +
                std::to_string(back_) + " have come back in a minute");
  }

  DdsProgram program_;
  std::unique_ptr<Blob<Bytes>> sample_ = std::make_unique<Blob<Bytes>>();
  std::uint64_t asked_ = 0;
  std::uint64_t back_ = 0;
};

/// The other side without a gateway: writes to one topic what it takes of the other.
template <std::size_t Bytes>
std::jthread start_echo(const DdsProgram::Topics& topics) {
  return std::jthread([topics](const std::stop_token& stop) {
    DdsProgram program(pubsub::type_support<Blob<Bytes>>()->text, topics);
    while (!stop.stop_requested())
      program.take(kSlice, [&](const void* sample) { program.write(sample); });
  });
}

template <std::size_t Bytes>
void measure(const Effort& effort, std::vector<Result>& results) {
  const Batches plan = effort.plan(50, 20);
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 10'000 : 50'000);
  const std::string group = fresh_group();
  const Folder folder;
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    ::setenv("CYCLONEDDS_URI", cyclone_on_udp(group).c_str(), 1);
    if (me.rank() == 1) {
      process::Child gateway = start_gateway(group, folder);
      Answerer<Bytes> answerer(me, group);
      const std::jthread echo = start_echo<Bytes>({.written = "alone_back", .read = "alone_there"});
      const auto turn = [&]() -> std::optional<double> {
        return take_turn(
            me, [&] { answerer.step(); }, [] { return std::nullopt; });
      };
      static_cast<void>(turn());
      alternate(me, effort.rounds, {turn, turn, turn, turn});
      return gateway.kill();  // before the member that it would miss
    }
    std::optional<Asker<Bytes>> alone, through;
    const auto turn = [&](const std::function<std::optional<double>()>& run) {
      return [&me, run] {
        return take_turn(
            me, [] {}, run);
      };
    };
    static_cast<void>(turn([&]() -> std::optional<double> {
      alone.emplace(DdsProgram::Topics{.written = "alone_there", .read = "alone_back"});
      through.emplace(DdsProgram::Topics{.written = "there", .read = "back"});
      return std::nullopt;
    })());
    alternate(me, effort.rounds,
              {turn([&] { return alone->round_trip(plan); }),
               turn([&] { return through->round_trip(plan); }),
               turn([&] { return alone->stream(samples); }),
               turn([&] { return through->stream(samples); })});
  });
  for (const bool rate : {false, true}) {
    results.push_back(compared(
        {.params = {{"bytes", double(Bytes)}, {"what", rate ? "samples back" : "there and back"}},
         .unit = rate ? "1/s" : "ns"},
        team.series(rate ? 3 : 1), "Cyclone DDS alone", team.series(rate ? 2 : 0)));
  }
}

}  // namespace

std::vector<Experiment> gateway_to_dds() {
  return {{.name = "gateway",
           .title = "samples of a program that knows DDS only, to a member and back",
           .fabric = "shm",
           .x = "bytes",
           .run = [](const Effort& effort) {
             std::vector<Result> results;
             measure<64>(effort, results);
             if (effort.quick) return results;
             measure<1'000>(effort, results);
             measure<10'000>(effort, results);
             return results;
           }}};
}

}  // namespace dunlin::bench
