#include "bench/multicast/workload.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "bench/harness/clock.hpp"
#include "bench/harness/statistics.hpp"
#include "bench/multicast/patience.hpp"

namespace dunlin::bench {

using multicast::Delivery;

namespace {

constexpr std::uint64_t kTimedOneOf = 8;  // as looking at the clock takes time

std::string name_of(std::uint32_t subgroup) { return "s" + std::to_string(subgroup); }

}  // namespace

GroupOptions Workload::options() const {
  GroupOptions options;
  for (std::uint32_t i = 0; i < load_.subgroups; ++i) {
    SubgroupSpec spec{.name = name_of(i)};
    for (std::uint32_t sender = 0; sender < load_.senders; ++sender)
      spec.senders.push_back(std::to_string(sender));
    options.subgroups.push_back(std::move(spec));
  }
  return options;
}

Workload::Workload(Member& me, std::unique_ptr<Fabric> fabric, Load load)
    : me_(me),
      load_(std::move(load)),
      fabric_(std::move(fabric)),
      group_(*fabric_, options()),
      parts_(load_.subgroups),
      delayed_(me.rank() >= load_.undelayed() && me.rank() < load_.senders),
      own_(load_.bytes, std::byte{1}) {
  MulticastOptions options{.ring_bytes = load_.ring_bytes,
                           .window_messages = load_.window,
                           .log_directory = load_.log_directory,
                           .switches = load_.switches};
  options.switches.time_posting = load_.timed;
  if (!load_.log_directory.empty()) options.mode = multicast::Mode::durable;
  for (std::uint32_t i = 0; i < load_.subgroups; ++i) {
    Part& part = parts_[i];
    part.cast = std::make_unique<Multicast>(group_, name_of(i), options);
    part.cast->on_delivery([this, &part](std::span<const Delivery> batch) { take(part, batch); });
  }
  while (group_.view().number == 0) poll();
  me_.meet([this] { poll(); });
}

void Workload::take(Part& part, std::span<const Delivery> batch) {
  for (const Delivery& delivery : batch) {
    ++delivered_;
    undelayed_ += delivery.sender < load_.undelayed() ? 1 : 0;
    if (load_.copies) copy_out(delivery.message);
    if (delivery.sender != me_.rank()) {
      if (!load_.copies) look_at(delivery.message);
      continue;
    }
    if (load_.timed && part.delivered % kTimedOneOf == 0) {
      latencies_.push_back(now_ns() - part.sent_ns.front());
      part.sent_ns.pop_front();
    }
    ++part.delivered;
  }
  if (load_.upcall_ns > 0) spin_for(static_cast<double>(load_.upcall_ns));
}

void Workload::copy_out(std::span<const std::byte> message) {
  std::memcpy(own_.data(), message.data(), message.size());
  asm volatile("" : : "r"(own_.data()) : "memory");
}

bool Workload::send_one() {
  Part& part = parts_[next_];
  const std::span<std::byte> room = part.cast->prepare(load_.bytes);
  if (room.data() == nullptr) return false;
  if (load_.copies) std::memcpy(room.data(), own_.data(), room.size());
  if (load_.timed && part.sent % kTimedOneOf == 0) part.sent_ns.push_back(now_ns());
  part.cast->commit();
  ++part.sent;
  next_ = (next_ + 1) % load_.active;
  return true;
}

std::size_t Workload::send() {
  std::size_t sent = 0;
  if (delayed_) {
    if (left_ == 0 || over() || now_ns() < next_ns_ || !send_one()) return 0;
    next_ns_ = now_ns() + static_cast<double>(load_.delay_ns);
    return 1;
  }
  for (; left_ > 0 && send_one(); --left_) ++sent;
  return sent;
}

std::optional<double> Workload::round(std::uint64_t messages, std::optional<Wait> wait) {
  goal_ += messages * load_.undelayed();
  return take_turn(
      me_, [this] { poll(); },
      [&]() -> std::optional<double> {
        const bool sends =
            me_.rank() < load_.senders && !(delayed_ && load_.delay_ns == Load::kSilent);
        left_ = sends ? messages : 0;
        const std::uint64_t before = delivered_;
        const double start = now_ns();
        struct Step {
          Workload& load;
          std::size_t poll() { return load.send() + load.group_.poll(); }
        } step{*this};
        if (wait) {
          Loop loop(*fabric_, {.wait = *wait});
          loop.add(step);
          while (!loop.run_until([this] { return over(); }, 1'000)) continue;
        } else {
          for (Patience patience; !over();) patience.after(step.poll() > 0);
        }
        const double ns = now_ns() - start;
        timed_ns_ += ns;
        if (me_.rank() != 0) return std::nullopt;
        return static_cast<double>(delivered_ - before) * 1e9 / ns;
      });
}

std::optional<double> Workload::one_by_one(const Batches& plan) {
  const std::uint64_t before = undelayed_;
  goal_ += plan.total();
  return take_turn(
      me_, [this] { poll(); },
      [&]() -> std::optional<double> {
        Patience patience;
        if (me_.rank() != 0) {
          while (!over()) patience.after(poll() > 0);
          return std::nullopt;
        }
        std::uint64_t next = before;
        return batch_ns(plan, [&] {
          while (!send_one()) patience.after(poll() > 0);
          for (++next; undelayed_ < next;) patience.after(poll() > 0);
        });
      });
}

multicast::Counters Workload::counters() const {
  multicast::Counters sum;
  for (const Part& part : parts_) sum += part.cast->counters();
  return sum;
}

std::string Workload::told() const {
  const multicast::Counters c = counters();
  const auto ratio = [](std::uint64_t of, std::uint64_t to) {
    return to == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(to);
  };
  std::string text = fmt::format(
      "batches of {:.1f} sent, {:.1f} received, {:.1f} delivered; {:.3f} writes and {:.2f} nulls a "
      "message delivered",
      ratio(c.records_announced, c.send_batches), ratio(c.slots_received, c.receive_batches),
      ratio(c.messages_delivered, c.deliver_batches),
      ratio(c.puts + c.pushes, c.messages_delivered), ratio(c.nulls, c.messages_delivered));
  if (c.log_commits > 0)
    text += fmt::format("; {:.1f} in a commit", ratio(c.messages_delivered, c.log_commits));
  if (!load_.timed) return text;
  text += fmt::format("; posting: {:.1f} % of the time",
                      static_cast<double>(c.posting_ns) / timed_ns_ * 100);
  if (latencies_.empty()) return text;
  std::vector<double> sorted = latencies_;
  std::ranges::sort(sorted);
  text += fmt::format("; own delivery after {}, 99 %: {}, 99.9 %: {}",
                      to_text(quantile(sorted, 0.5), "ns"), to_text(quantile(sorted, 0.99), "ns"),
                      to_text(quantile(sorted, 0.999), "ns"));
  return text;
}

void note_timed(Member& me, std::unique_ptr<Fabric> fabric, Load load, std::uint64_t messages) {
  load.timed = true;
  Workload workload(me, std::move(fabric), std::move(load));
  static_cast<void>(workload.round(messages));
  if (me.rank() == 0) me.note(workload.told());
}

}  // namespace dunlin::bench
