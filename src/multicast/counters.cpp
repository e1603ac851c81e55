#include <dunlin/multicast.hpp>

namespace dunlin::multicast {

Counters& Counters::operator+=(const Counters& more) noexcept {
  messages_sent += more.messages_sent;
  bytes_sent += more.bytes_sent;
  messages_delivered += more.messages_delivered;
  bytes_delivered += more.bytes_delivered;
  records_delivered += more.records_delivered;
  nulls += more.nulls;
  slots_received += more.slots_received;
  receive_batches += more.receive_batches;
  records_announced += more.records_announced;
  send_batches += more.send_batches;
  deliver_batches += more.deliver_batches;
  puts += more.puts;
  pushes += more.pushes;
  log_commits += more.log_commits;
  no_room += more.no_room;
  posting_ns += more.posting_ns;
  return *this;
}

}  // namespace dunlin::multicast
