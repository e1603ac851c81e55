#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/ofi/provider.hpp"
#include "fabric/rendezvous/address.hpp"

/// TCP: addresses are those of IP. It orders frames by its nature, moves them only when a
/// completion queue is read (both sides'), and reports a closed connection at once, but no silent
/// one. For each completion it writes into a socket of its own, and reads that when it is polled
/// next: 1 us.
namespace dunlin::ofi {
namespace {

/// Whether two endpoint addresses agree in that part. They are socket addresses; those of one host
/// differ only in the port.
template <class Address, class Part>
bool alike(std::span<const std::byte> one, std::span<const std::byte> other, Part part) {
  if (one.size() < sizeof(Address) || other.size() < sizeof(Address)) return false;
  Address first{};
  Address second{};
  std::memcpy(&first, one.data(), sizeof first);
  std::memcpy(&second, other.data(), sizeof second);
  return std::memcmp(&(first.*part), &(second.*part), sizeof(first.*part)) == 0;
}

sa_family_t family(std::span<const std::byte> endpoint_address) {
  sa_family_t is = AF_UNSPEC;
  if (endpoint_address.size() >= offsetof(sockaddr, sa_family) + sizeof is)
    std::memcpy(&is, endpoint_address.data() + offsetof(sockaddr, sa_family), sizeof is);
  return is;
}

bool same_host(std::span<const std::byte> one, std::span<const std::byte> other) {
  if (family(one) != family(other)) return false;
  if (family(one) == AF_INET) return alike<sockaddr_in>(one, other, &sockaddr_in::sin_addr);
  if (family(one) == AF_INET6) return alike<sockaddr_in6>(one, other, &sockaddr_in6::sin6_addr);
  return false;
}

}  // namespace

const Provider kTcp{.name = "tcp",
                    .local_address = rendezvous::local_address,
                    .same_host = same_host,
                    .text_of = rendezvous::address_text,
                    .fills_in_order = true};

}  // namespace dunlin::ofi
