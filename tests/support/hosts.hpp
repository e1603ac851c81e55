#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/system.hpp"

/// Hosts made of network namespaces, each with an interface `eth0` on one switch (a bridge in a
/// namespace of its own). The namespaces have no names: they go when the last process that is in
/// them, and this object, has gone.
///
///     Hosts hosts(3);
///     std::jthread member([&] { hosts.enter(1); ... });
///     hosts.cut(1);
namespace dunlin::test {

class Hosts {
 public:
  /// Why there can be no hosts here; empty if there can.
  [[nodiscard]] static const std::string& why_not();

  /// Throws Error if something that why_not() did not foresee fails.
  explicit Hosts(unsigned count);

  /// Moves the calling thread to that host; its children come with it.
  void enter(unsigned host) const;
  [[nodiscard]] static std::string address(unsigned host);

  /// Unplugs its cable, and plugs it in again.
  void cut(unsigned host) const;
  void heal(unsigned host) const;
  /// Drops what `from` sends to `to`; the other direction is as before.
  void cut_one_way(unsigned from, unsigned to) const;
  void heal_one_way(unsigned from, unsigned to) const;
  /// Why impair() cannot be used here; empty if it can.
  [[nodiscard]] const std::string& why_not_impaired() const { return why_not_impaired_; }
  /// `how` is an argument of `tc qdisc ... netem`: "delay 20ms 5ms loss 2%".
  void impair(unsigned host, const std::string& how) const;

 private:
  void run_in(const Descriptor& where, const std::string& command) const;

  Descriptor switch_;
  std::vector<Descriptor> hosts_;
  std::string why_not_impaired_;
};

}  // namespace dunlin::test
