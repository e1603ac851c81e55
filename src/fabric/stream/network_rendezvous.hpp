#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/names.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"
#include "fabric/stepped_join.hpp"
#include "fabric/system.hpp"

/// Listeners between hosts: each member has its own address, and a joiner tries several.
namespace dunlin::stream {

/// Connects to all listeners; the first one that accepts counts.
class ConnectToAny final : public SteppedJoin {
 public:
  explicit ConnectToAny(std::vector<std::unique_ptr<PendingJoin>> addresses)
      : addresses_(std::move(addresses)) {}

 private:
  std::unique_ptr<Fabric> step() override {
    for (std::unique_ptr<PendingJoin>& address : addresses_) {
      try {
        if (std::unique_ptr<Fabric> fabric = address->poll()) return fabric;
      } catch (const Error& error) {
        if (why_.empty()) why_ = error.what();
        address.reset();
      }
    }
    std::erase(addresses_, nullptr);
    if (addresses_.empty()) throw Error(why_);
    return nullptr;
  }
  Awaited awaited() override {
    Awaited news;
    for (const std::unique_ptr<PendingJoin>& address : addresses_)
      news.descriptors.push_back({address->wait_descriptor(), POLLIN, 0});
    return news;
  }

  std::vector<std::unique_ptr<PendingJoin>> addresses_;
  std::string why_;  // about the first target that was not opened
};

class NetworkRendezvous final : public Rendezvous {
 public:
  using Begin = std::unique_ptr<SteppedJoin> (*)(const JoinOptions&, const std::string& place);
  /// A function that begins a newcomer's entry; its option `rendezvous` tells from where the
  /// members are reached.
  using BeginEntry = std::unique_ptr<PendingEntry> (*)(const JoinOptions&);

  NetworkRendezvous(const JoinOptions& options, std::vector<std::string> addresses, Begin begin,
                    BeginEntry begin_entry)
      : options_(options),
        addresses_(std::move(addresses)),
        begin_(begin),
        begin_entry_(begin_entry) {
    check_joinable_group_name(options_.group);
    options_.members = 0;
    options_.rank = JoinOptions::kAnyRank;
    options_.may_serve = true;  // to newcomers; connect() may not
    rendezvous::check(rendezvous::rendezvous_options(two("leader", options_.rendezvous)));
    for (const std::string& address : addresses_)
      rendezvous::check(rendezvous::rendezvous_options(two("joiner", address)));
  }

  const std::string& group() const noexcept override { return options_.group; }
  std::unique_ptr<PendingEntry> enter() override {
    JoinOptions options = options_;
    if (!addresses_.empty()) options.rendezvous = addresses_.front();
    return begin_entry_(options);
  }
  std::unique_ptr<PendingJoin> accept() override {
    JoinOptions options = two("leader", options_.rendezvous);
    options.timeout_ms = UINT32_MAX;
    return begin_(options, {});
  }
  std::unique_ptr<PendingJoin> connect() override {
    if (addresses_.empty())
      throw Error("group '" + options_.group +
                  "': no addresses to connect to: give make_rendezvous() addresses of members");
    std::vector<std::unique_ptr<PendingJoin>> attempts;
    for (const std::string& address : addresses_) {
      JoinOptions options = two("joiner", address);
      options.timeout_ms = kConnectMs;
      options.may_serve = false;
      attempts.push_back(begin_(options, {}));
    }
    return std::make_unique<ConnectToAny>(std::move(attempts));
  }
  std::uint64_t now_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }

 private:
  static constexpr std::uint32_t kConnectMs = 2'000;

  [[nodiscard]] JoinOptions two(const std::string& name, const std::string& where) const {
    JoinOptions options = options_;
    options.group += ".join";
    options.names = {"leader", "joiner"};
    options.name = name;
    options.rendezvous = where;
    return options;
  }

  JoinOptions options_;
  std::vector<std::string> addresses_;
  Begin begin_;
  BeginEntry begin_entry_;
};

}  // namespace dunlin::stream
