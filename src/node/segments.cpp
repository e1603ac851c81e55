#include <dunlin/node/calls.hpp>
#include <dunlin/node/segments.hpp>

#include "segment/port.hpp"

namespace dunlin {

class SegmentsHandle::Object final : public node::NodeObject {
 public:
  Object(remote::Progress& progress, SpaceOptions options)
      : space_(std::in_place, progress, std::move(options)) {
    // A node's thread has nothing to do when a segment has changed. It would look for work for a
    // while, often on the processor of the thread that puts: a put of 2 MB took 1.3 times as long.
    SegmentPort::of(*space_).leave_members_asleep();
  }
  [[nodiscard]] SegmentSpace& space() noexcept { return *space_; }
  void end() noexcept override { space_.reset(); }

 private:
  std::optional<SegmentSpace> space_;
};

SegmentsHandle::SegmentsHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                               SpaceOptions options)
    : engine_(std::move(engine)) {
  options.name = name;
  object_ = engine_->with_lock([&] {
    return engine_->object<Object>("segments '" + name + "'", [&] {
      return std::make_shared<Object>(engine_->progress(), std::move(options));
    });
  });
}

/// `begin` is copied into the queue if it has to wait there; it holds no references.
template <class T, class Begin, class Convert>
Future<T> SegmentsHandle::call(const char* name, bool borrows, const Begin& begin,
                               const Convert& convert) {
  Object* const object = object_.get();
  return node::begin_call<T>(
      *engine_, name, borrows, [&] { return begin(object->space()); },
      [&] { return [object, begin] { return begin(object->space()); }; },
      [convert](const Outcome& outcome) -> Result<T> {
        if (!outcome.ok()) return Failure{outcome.status, outcome.describe()};
        return convert(outcome);
      });
}

namespace {

constexpr auto kNothing = [](const Outcome&) { return Result<void>(); };
constexpr auto kKey = [](const Outcome& outcome) { return Result<Key>(outcome.key); };
constexpr auto kVersion = [](const Outcome& outcome) {
  return Result<std::uint64_t>(outcome.version);
};

}  // namespace

Future<Key> SegmentsHandle::allocate(const SegmentSpec& spec) {
  return call<Key>(
      "allocate", false, [spec](SegmentSpace& space) { return space.allocate(spec); }, kKey);
}
Future<void> SegmentsHandle::release(Key key) {
  return call<void>(
      "release", false, [key](SegmentSpace& space) { return space.release(key); }, kNothing);
}
Future<Key> SegmentsHandle::find(const std::string& name) {
  return call<Key>(
      "find", false, [name](SegmentSpace& space) { return space.find(name); }, kKey);
}
Future<std::uint64_t> SegmentsHandle::get(Key key, std::span<std::byte> to, std::uint64_t offset) {
  return call<std::uint64_t>(
      "get", true, [=](SegmentSpace& space) { return space.get(key, to, offset); }, kVersion);
}
Future<std::uint64_t> SegmentsHandle::put(Key key, std::span<const std::byte> from,
                                          std::uint64_t offset) {
  return call<std::uint64_t>(
      "put", true, [=](SegmentSpace& space) { return space.put(key, from, offset); }, kVersion);
}
Future<bool> SegmentsHandle::lock(Key key, std::uint64_t timeout_ns) {
  return call<bool>(
      "lock", false, [=](SegmentSpace& space) { return space.lock(key, timeout_ns); },
      [](const Outcome& outcome) { return Result<bool>(outcome.recovered); });
}
Future<void> SegmentsHandle::unlock(Key key) {
  return call<void>(
      "unlock", false, [key](SegmentSpace& space) { return space.unlock(key); }, kNothing);
}

}  // namespace dunlin
