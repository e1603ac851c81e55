#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include <dunlin/fabric.hpp>

#include "fabric/shm/system.hpp"

/// Where members of a group find each other: sockets in the kernel's abstract name space, one name
/// a rank, which vanish with their owner. Names contain the user (or the access group), and the
/// kernel tells who is at the other end, so users neither meet nor pretend.
namespace dunlin::shm {

/// Who may be in the group: one user, or one Unix group.
struct Access {
  uid_t user;
  std::optional<gid_t> group;
};

/// Error if there is no such Unix group. Empty: only this user.
[[nodiscard]] Access access_for(const std::string& access_group);

struct Address {
  std::string name;  // without the leading zero byte of abstract names
};
[[nodiscard]] Address address_of(const Access& access, const std::string& group, Rank rank);

/// Claims an address and listens there; none if it is taken.
[[nodiscard]] std::optional<Descriptor> claim(const Address& address);
/// Connects without waiting; none if nobody listens there, or cannot take us right now.
[[nodiscard]] std::optional<Descriptor> connect_to(const Address& address);
/// Takes a connection that waits at a listener; none if there is none or no descriptor is left.
[[nodiscard]] Descriptor take_connection(const Descriptor& listener);

struct Counterpart {
  pid_t pid;
  uid_t user;
  bool admitted;  // by the kernel's word, one of those who may be in the group
};
[[nodiscard]] Counterpart counterpart_of(const Descriptor& socket, const Access& access);

}  // namespace dunlin::shm
