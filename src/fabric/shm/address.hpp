#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include <dunlin/fabric.hpp>

#include "fabric/shm/system.hpp"

/// Where members of a group find each other: sockets in the kernel's abstract name space, one name
/// a rank, which vanish with their owner. Names contain the user (or the access group), and the
/// kernel gives the user at the other end. So groups of different users never meet, and no user can
/// pretend to be another.
///
/// Any user can bind any name. So an address has kSpareNames more names, for a member that finds a
/// name held by a user who may not be in the group. A member holds an address only if no other
/// member holds one of its names.
namespace dunlin::shm {

/// The users that may be in the group: one user, or one Unix group.
struct Access {
  uid_t user;
  std::optional<gid_t> group;
};

/// The users of that Unix group; empty: only this user. Throws Error if there is no such group.
[[nodiscard]] Access access_for(const std::string& access_group);

inline constexpr unsigned kSpareNames = 7;

struct Address {
  std::string name;  // the first name, without the leading zero byte
  Access access;
  /// The first name, or a spare one.
  [[nodiscard]] std::string name_number(unsigned number) const;
};
[[nodiscard]] Address address_of(const Access& access, const std::string& group, Rank rank);

/// Whether claim() trusts the holder of the first name, or checks it, which leaves a connection in
/// the holder's queue.
enum class Holder : std::uint8_t { is_trusted, is_examined };

/// Claims an address and listens there; returns none if it is taken.
[[nodiscard]] std::optional<Descriptor> claim(const Address& address,
                                              Holder holder = Holder::is_trusted);
/// Connects without waiting: to a member if there is one, otherwise to any holder of a name.
/// Returns none if no process listens there, or it cannot accept right now.
[[nodiscard]] std::optional<Descriptor> connect_to(const Address& address);
/// Whether a member holds the address of a rank from `first` on.
[[nodiscard]] bool is_held_from(const Access& access, const std::string& group, Rank first);
/// Accepts a connection that waits at a listener; returns none if none waits, or no descriptor is
/// left.
[[nodiscard]] Descriptor take_connection(const Descriptor& listener);

struct Counterpart {
  pid_t pid;
  uid_t user;
  bool admitted;  // by the kernel, its user may be in the group
};
[[nodiscard]] Counterpart counterpart_of(const Descriptor& socket, const Access& access);

}  // namespace dunlin::shm
