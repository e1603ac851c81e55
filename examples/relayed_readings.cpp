// A program that is no member of a group publishes and subscribes through relays:
//
//   dunlin relay --group plant --members r --name r --serve 127.0.0.1:7480
//   relayed_readings 127.0.0.1:7480
//
// It links with dunlin::client alone. Without a relay's address it shows what happens then.
#include <cstdint>
#include <iostream>
#include <string>

#include <dunlin/relay.hpp>

struct Reading {
  std::int32_t sensor;
  double celsius;
};

int main(int count, char** arguments) {
  using namespace dunlin::relay;
  const bool alone = count < 2;
  ClientOptions options;
  options.relays.assign(arguments + 1, arguments + count);
  if (alone) options.relays = {"127.0.0.1:1"};  // where no relay is
  RelayClient client(options);
  RelayWriter<Reading> writer(client, "readings", dunlin::pubsub::TopicQos{});
  RelayReader<Reading> reader(client, "readings");
  const bool there =
      client.run_until([&] { return writer.ready() && reader.ready(); }, alone ? 100 : 10'000);
  if (!there) {
    std::cout << client.why_disconnected() << writer.why_refused() << "\n";
    return alone ? 0 : 1;
  }
  std::cout << "relay " << client.relay() << "\n";
  for (std::int32_t sensor = 1; sensor <= 3; ++sensor)
    if (!write_within(client, writer, {sensor, 20.0 + sensor}, 10'000)) return 1;
  // Acknowledged: delivered to all members of the topic.
  if (!client.run_until([&] { return writer.all_acknowledged(); }, 10'000)) return 1;
  for (int taken = 0; taken < 3;) {
    if (!client.run_until([&] { return reader.available(); }, 10'000)) return 1;
    for (const auto& sample : reader.take()) {
      std::cout << "sensor " << sample.data.sensor << ": " << sample.data.celsius << "\n";
      ++taken;
    }
  }
}
