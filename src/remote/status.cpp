#include <dunlin/remote/status.hpp>

namespace dunlin::remote {

std::string_view describe(Status status) noexcept {
  switch (status) {
    case Status::under_way:
      return "has not ended yet";
    case Status::ok:
      return "done";
    case Status::abandoned:
      return "abandoned by its caller";
    case Status::timed_out:
      return "its deadline has passed";
    case Status::busy:
      return "another has the lock or waits for it";
    case Status::lost:
      return "lost: the member that holds it has failed or left";
    case Status::stopped:
      return "this process is no member any more";
    case Status::no_room:
      return "there is no free block of that size";
    case Status::half_written:
      return "a writer died in the middle of its put; put the whole to repair it";
    case Status::out_of_range:
      return "it is out of range";
    case Status::misaligned:
      return "the buffer and the range begin at different places of an 8-byte word";
    case Status::unknown:
      return "there is none";
    case Status::released:
      return "it has been released";
    case Status::name_taken:
      return "another has this name";
    case Status::not_allowed:
      return "this call is not allowed there, or not now";
    case Status::not_held:
      return "this process does not hold its lock";
    case Status::already_held:
      return "this process holds its lock already";
    case Status::full:
      return "there is no room for a further element";
    case Status::empty:
      return "there is no element";
    case Status::refused:
      return "the member's part was made with other options; why_refused() names both";
    case Status::over_quota:
      return "the daemon does not allow this process so much (bytes, locks, or bytes at once)";
    case Status::not_kept:
      return "this version is not kept any more, or was not put yet";
    case Status::broken_promise:
      return "another member's call contradicts the promise; Containers::broken_promise() says "
             "whose";
    case Status::too_long:
      return "it has more bytes than is possible there";
    case Status::conflict:
      return "another has changed what the transaction has read; try again";
    case Status::no_memory:
      return "this process has no memory for the call";
    case Status::changed:
      return "another version is there by now";
    case Status::threw:
      return "the function that was called has thrown an exception";
    case Status::overloaded:
      return "too many calls wait for the node's thread";
  }
  return "ended in a way that has no name";
}

std::string describe(Status status, std::string_view what) {
  const std::string name(what);
  switch (status) {
    case Status::out_of_range:
      return "the range ends past the end of the " + name;
    case Status::not_allowed:
      return "the " + name + " does not allow this call, or not now";
    case Status::full:
      return "the " + name + " has no room for a further element";
    case Status::empty:
      return "the " + name + " has no element";
    case Status::refused:
      return "the member's part of the " + name +
             " was made with other options; why_refused() names both";
    case Status::too_long:
      return "it has more bytes than the " + name + " takes";
    default:
      return std::string(describe(status));
  }
}

}  // namespace dunlin::remote
