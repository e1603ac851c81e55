#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "bytes.hpp"
#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

constexpr std::array<const char*, 7> kCoherences{"null",    "read",     "write", "strict",
                                                 "version", "temporal", "delta"};

Coherence coherence_of(const std::string& name) {
  for (std::size_t i = 0; i < kCoherences.size(); ++i)
    if (name == kCoherences[i]) return static_cast<Coherence>(i);
  throw nb::value_error(
      "coherence is 'null', 'read', 'write', 'strict', 'version', 'temporal' or 'delta'");
}

constexpr auto kNone = [](std::monostate) -> nb::object { return nb::none(); };

/// A get or put of the caller's memory, which the call has until it ends.
template <class Begin>
auto begin_transfer(PySegment& segment, nb::handle buffer, Memory::Access access,
                    const Begin& begin) {
  auto memory = std::make_unique<Memory>(buffer, access);
  std::span<std::byte> bytes = memory->span();
  // The call uses the bytes under the node's lock only, where registered memory is there.
  if (segment.state->memories()) bytes = segment.state->memories()->registered(bytes);
  return Begun{begin_without_gil([&] { return begin(bytes); }),
               [memory = std::move(memory)](std::uint64_t version) -> nb::object {
                 return nb::int_(version);
               }};
}

/// A lock that nobody knows of would never be given back.
struct Taken {
  SegmentsHandle handle;
  Key key;
  nb::object operator()(bool recovered) const { return nb::bool_(recovered); }
  void give_back() { static_cast<void>(handle.unlock(key)); }
};

auto begin_lock(PySegment& segment, std::uint64_t timeout_ns) {
  return Begun{begin_without_gil([&] { return segment.handle.lock(segment.key, timeout_ns); }),
               Taken{segment.handle, segment.key}};
}

void bind_segment(nb::module_& module) {
  BoundHandle<PySegment> bound(module, "Segment",
                               "Shared memory of a fixed size. Calls raise LostError if the "
                               "segment's member has died, NotFoundError "
                               "once it is released, and TooLongError past its end.");
  const auto offset = nb::arg("offset") = 0;
  bound.call(
      "get_into",
      [](PySegment& segment, nb::handle buffer, std::uint64_t at) {
        return begin_transfer(segment, buffer, Memory::Access::write, [&](std::span<std::byte> to) {
          return segment.handle.get(segment.key, to, at);
        });
      },
      "self, buffer: Buffer, offset: int = 0", "int", nb::arg("buffer"), offset,
      "Fills a writable buffer or tensor (numpy, torch, bytearray, ...) with the bytes from "
      "`offset` on, and "
      "returns their version. Buffer and offset begin at the same place of an 8-byte word: any "
      "allocated "
      "array does. The buffer belongs to the call until the call has ended.");
  const auto put = [](PySegment& segment, nb::handle buffer, std::uint64_t at) {
    return begin_transfer(segment, buffer, Memory::Access::read, [&](std::span<std::byte> from) {
      return segment.handle.put(segment.key, from, at);
    });
  };
  bound.call("put", put, "self, buffer: Buffer, offset: int = 0", "int", nb::arg("buffer"), offset,
             "Writes the memory of a buffer or tensor to the bytes from `offset` on, and returns "
             "the version "
             "that it has made. The buffer must not change until the call has ended.");
  bound.call("put_from", put, "self, array: Buffer, offset: int = 0", "int", nb::arg("array"),
             offset, "put(), under the name that belongs to get_into().");
  bound.call(
      "lock",
      [](PySegment& segment, std::optional<double> timeout) {
        return begin_lock(segment, nanoseconds(timeout, remote::kForever));
      },
      "self, timeout: float | None = None", "bool", nb::arg("timeout") = nb::none(),
      "Takes the segment's lock for this process, not for this thread; raises CallTimeoutError "
      "after "
      "`timeout` seconds. True: the last holder died with the lock, and the bytes may be half "
      "changed.");
  bound.call(
      "unlock",
      [](PySegment& segment) {
        return Begun{begin_without_gil([&] { return segment.handle.unlock(segment.key); }), kNone};
      },
      "self", "None", "Gives the lock back.");
  bound.call(
      "release",
      [](PySegment& segment) {
        return Begun{begin_without_gil([&] { return segment.handle.release(segment.key); }), kNone};
      },
      "self", "None", "Frees the segment for all members, once none uses it.");
  bound.waits
      .def_prop_ro(
          "key", [](PySegment& segment) { return segment.key.value; },
          "The segment's number, at every member; `segments.at(key)` has the segment.")
      .def(
          "__enter__",
          [](nb::handle self) {
            wait_for(begin_lock(nb::cast<PySegment&>(self), remote::kForever));
            return nb::borrow(self);
          },
          "Takes the lock until the end of the block.")
      .def("__exit__",
           [](PySegment& segment, nb::args) {
             wait_for(Begun{begin_without_gil([&] { return segment.handle.unlock(segment.key); }),
                            kNone});
           })
      .def(
          "__eq__", [](PySegment& one, PySegment& other) { return one.key == other.key; },
          nb::is_operator())
      .def("__hash__", [](PySegment& one) { return std::hash<std::uint64_t>()(one.key.value); })
      .def("__repr__", [](PySegment& segment) {
        return "<dunlin.Segment " + std::to_string(segment.key.value) + ">";
      });
}

}  // namespace

void bind_segments(nb::module_& module) {
  bind_segment(module);
  BoundHandle<Segments> bound(
      module, "Segments",
      "Memory that the members of the group share, in segments: each contributes a pool.");
  const auto segment_of = [](Segments& segments) {
    return [state = segments.state, handle = segments.handle](Key key) -> nb::object {
      return nb::cast(PySegment{state, handle, key});
    };
  };
  bound.call(
      "allocate",
      [segment_of](Segments& segments, std::size_t bytes, const std::string& name,
                   const std::string& coherence, std::optional<Rank> on, std::uint32_t copies,
                   std::uint32_t versions, double stale) {
        SegmentSpec spec{.bytes = bytes,
                         .coherence = coherence_of(coherence),
                         .placement = on ? Placement::on(*on) : Placement::in_turn(),
                         .name = name,
                         .stale_ns = nanoseconds(stale, 0),
                         .versions = versions,
                         .copies = copies};
        return Begun{begin_without_gil([&] { return segments.handle.allocate(spec); }),
                     segment_of(segments)};
      },
      "self, bytes: int, name: str = '', coherence: str = 'write', on: int | None = None, copies: "
      "int = 1, "
      "versions: int = 0, stale: float = 0.0",
      "Segment", nb::arg("bytes"), nb::arg("name") = "", nb::arg("coherence") = "write",
      nb::arg("on") = nb::none(), nb::arg("copies") = 1, nb::arg("versions") = 0,
      nb::arg("stale") = 0.0,
      "Allocates a segment of zeros. `name`: unique, for find(). `on`: the rank of the member that "
      "has it; "
      "None: in turn. `coherence`: what gets and puts promise: 'write' (a get returns the latest "
      "put, whole), "
      "'strict', 'null' (words are not torn), 'read', 'version', 'temporal' (a copy may be used "
      "until it is "
      "`stale` seconds old), 'delta' (the last `versions` are kept). `copies=2`: no put that has "
      "ended is lost "
      "if one member dies. Raises NoRoomError, ExistsError.");
  bound.call(
      "find",
      [segment_of](Segments& segments, const std::string& name) {
        return Begun{begin_without_gil([&] { return segments.handle.find(name); }),
                     segment_of(segments)};
      },
      "self, name: str", "Segment", nb::arg("name"),
      "The segment of that name. Raises NotFoundError.");
  bound.waits
      .def(
          "at",
          [segment_of](Segments& segments, std::uint64_t key) {
            return segment_of(segments)(Key{key});
          },
          nb::arg("key"), nb::sig("def at(self, key: int) -> Segment"),
          "The segment with this key, which may have come from another process.")
      .def("__repr__", [](Segments& segments) {
        return "<dunlin.Segments '" + segments.name + "' of group '" + segments.state->group() +
               "'>";
      });
}

}  // namespace dunlin::python
