#include "store/store_transact.hpp"

#include <algorithm>

namespace dunlin::app::resp {
namespace {

constexpr std::uint32_t kMaxAttempts = 4'000;

}  // namespace

Ending ending_of(remote::Status status) noexcept {
  switch (status) {
    case remote::Status::ok:
      return Ending::ok;
    case remote::Status::lost:
      return Ending::lost;
    case remote::Status::no_room:
    case remote::Status::full:
      return Ending::no_room;
    case remote::Status::too_long:
      return Ending::too_large;
    case remote::Status::out_of_range:
      return Ending::out_of_range;
    case remote::Status::conflict:
      return Ending::conflict;
    default:
      return Ending::stopped;
  }
}

std::uint64_t expiry_of(std::uint64_t ttl_ns) noexcept {
  if (ttl_ns == kForeverNs) return kNoExpiry;
  return ttl_ns == kKeepTtl ? kKeepExpiry : ttl_ns;
}

void StoreTransact::start(const Order& order) {
  order_ = order;
  attempts_ = 0;
  rests_.reset();
  if (order.keys.size() > kMaxTransactionReads) {
    ending_ = Ending::too_many;
    stage_ = Stage::ended;
    return;
  }
  read();
}

bool StoreTransact::advance() {
  for (;;) {
    switch (stage_) {
      case Stage::reading:
        if (!std::ranges::all_of(reads_, [](const auto* read) { return read->finished(); }))
          return false;
        decide();
        break;
      case Stage::committing:
        if (!transaction_.finished()) return false;
        settle_commit();
        break;
      case Stage::resting:
        if (store_.fabric().now_ns() < rests_until_ns_) return false;
        read();
        break;
      case Stage::ended:
        return true;
    }
  }
}

void StoreTransact::read() {
  transaction_.clear();
  reads_.clear();
  for (const TransactionKey& key : order_.keys) reads_.push_back(&transaction_.get(key.key));
  stage_ = Stage::reading;
}

void StoreTransact::decide() {
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const StoreOperation& read = *reads_[i];
    if (!read.ok()) return end(read.status());
    order_.keys[i] = {.key = order_.keys[i].key,
                      .found = read.found(),
                      .value = read.text(),
                      .ttl_ns = read.ttl_ns() == kNoExpiry ? kForeverNs : read.ttl_ns(),
                      .version = read.version()};
  }
  // Values that are not to change may have been read at different moments: the commit tells.
  if (order_.decide_keys(order_.context, order_.keys)) {
    for (const TransactionKey& key : order_.keys) {
      if (key.change.action == Change::Action::put)
        transaction_.put(key.key, key.change.value, expiry_of(key.change.ttl_ns));
      if (key.change.action == Change::Action::erase) transaction_.erase(key.key);
    }
  }
  if (transaction_.changes() == 0 && reads_.size() <= 1) return end(remote::Status::ok);
  stage_ = Stage::committing;
  transaction_.commit();
}

void StoreTransact::settle_commit() {
  if (transaction_.status() != remote::Status::conflict || ++attempts_ == kMaxAttempts)
    return end(transaction_.status());
  rests_until_ns_ = rests_.after(store_.fabric().now_ns());
  stage_ = Stage::resting;
}

void StoreTransact::end(remote::Status status) {
  ending_ = ending_of(status);
  stage_ = Stage::ended;
}

}  // namespace dunlin::app::resp
