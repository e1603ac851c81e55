#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include <dunlin/container/function.hpp>
#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/hub.hpp"
#include "container/steps.hpp"
#include "remote/control_channel.hpp"

/// Functions of the program's that members call at each other.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;

namespace {

/// A request whose arguments are in a buffer has this as its content.
struct InBuffer {
  std::uint64_t number = 0;  // of the call; the buffer begins with it, too
  std::uint32_t buffer = 0;
  std::uint32_t bytes = 0;
};
static_assert(sizeof(InBuffer) == 16, "docs/formats/container.md");

/// Where the arguments of a request are, or the result of a reply: the flag of the message.
enum class Sent : std::uint8_t { by_message, in_buffer };

/// Notes when the arguments are on their way: a message that is sent now comes behind them.
struct PutGate : SiteGate {
  bool* is_posted;
  void accepted(std::size_t operations) const noexcept { *is_posted = operations > 0; }
};

constexpr std::string_view kNotLocal =
    "it has begun a call or waited for one, and a function does local work only";

FunctionSpec checked(FunctionSpec spec) {
  check_name(spec.kind, spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error(spec.kind + (" '" + spec.name) + "': " + why);
  };
  if (spec.bytes > kMaxFunctionBytes)
    refuse("the option bytes is at most " + std::to_string(kMaxFunctionBytes) +
           " (kMaxFunctionBytes)");
  if (spec.buffers == 0 || spec.buffers > kMaxFunctionBuffers)
    refuse("the option buffers is 1 to " + std::to_string(kMaxFunctionBuffers) +
           " (kMaxFunctionBuffers)");
  spec.bytes = std::max({spec.bytes, spec.least_bytes, kMessageContentBytes});
  return spec;
}

std::string layout_of(const FunctionSpec& spec) {
  return spec.kind + ("\n" + spec.signature) + "\nbytes " + std::to_string(spec.bytes) +
         "\nbuffers " + std::to_string(spec.buffers);
}

}  // namespace

struct LongCall;

/// Waits for a call with a buffer, which is led to its end in any case: until it is answered, its
/// buffer is in use. The two know each other, in frames of which either may go first.
struct LongCaller {
  LongCaller() = default;
  LongCaller(const LongCaller&) = delete;
  LongCaller& operator=(const LongCaller&) = delete;
  ~LongCaller();
  LongCall* call = nullptr;  // while it is under way
  FunctionResult result = {.status = Status::no_memory};
};

/// A call with a buffer.
struct LongCall {
  LongCall(FunctionState& its_function, LongCaller& its_caller, Rank its_target) noexcept
      : function(its_function), caller(&its_caller), to(its_target) {
    caller->call = this;
  }
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;
  ~LongCall();
  /// Takes a buffer, if one is free.
  [[nodiscard]] bool has_buffer() noexcept;

  FunctionState& function;
  LongCaller* caller;  // null once it has given the call up
  Rank to;
  InBuffer in_buffer;  // its number is 0 while there is no buffer
};

LongCaller::~LongCaller() {
  if (call != nullptr) call->caller = nullptr;
}

struct FunctionState final : Served {
  FunctionState(Containers& containers, const FunctionSpec& its_spec, FunctionCore::Handler its);
  ~FunctionState() override { hub.remove(site.id()); }
  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }

  // --- at the caller -----------------------------------------------------------------------------
  Protocol<FunctionResult> run(Rank to, FunctionArguments arguments);
  Protocol<FunctionResult> run_here(const FunctionArguments& arguments);
  /// Asks the member, until it is not busy.
  Protocol<Reply> ask(Rank to, std::span<const std::byte> content, Sent how, FunctionResult& ended);
  Protocol<Status> lead(LongCaller& caller, Rank to, FunctionArguments arguments);
  Protocol<FunctionResult> call_with_buffer(LongCall& call, const FunctionArguments& arguments);
  [[nodiscard]] bool needs_buffer(std::size_t bytes) const noexcept {
    const std::uint32_t most = spec.result_bytes == kAnySize ? spec.bytes : spec.result_bytes;
    return std::max<std::size_t>(bytes, most) > kMessageContentBytes;
  }
  void explain(FunctionResult& ended, Rank at) const;
  [[nodiscard]] std::string who() const { return spec.kind + (" '" + spec.name) + "'"; }
  [[nodiscard]] std::string member(Rank rank) const {
    const std::string& name = hub.fabric.member_name(rank);
    return "member " + std::to_string(rank) + (name.empty() ? "" : " '" + name + "'");
  }

  // --- at the member that is called --------------------------------------------------------------
  void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) override;
  /// Runs the function; afterwards `result` is its result, or a sentence. CON-F1
  [[nodiscard]] Status execute(std::span<const std::byte> arguments) noexcept;
  void say(std::string_view sentence) noexcept;
  /// The buffer of a request, if it is as the request says; else null. CON-F2
  [[nodiscard]] std::byte* buffer_of(Rank from, std::span<const std::byte> content,
                                     std::span<const std::byte>& arguments) noexcept;
  std::size_t poll_part() override { return protocols.advance(hub.progress.was_stopped()); }
  void members_changed() override {}

  /// The ranks that have come so far, and are of the membership.
  [[nodiscard]] Rank ranks() const noexcept {
    return std::min(hub.fabric.size(), hub.progress.capacity());
  }
  /// Where a caller's buffer is in the part of any other member.
  [[nodiscard]] std::uint64_t offset_of(Rank from, std::uint32_t buffer) const noexcept {
    return kCacheLineBytes + (std::uint64_t{from} * spec.buffers + buffer) * buffer_bytes;
  }

  Containers& containers;
  Hub& hub;
  const FunctionSpec spec;
  FunctionCore::Handler handler;
  const std::uint64_t buffer_bytes;  // 0: no call needs one
  Site site;
  ContainerCounters counters;
  remote::FramePool memory_of_calls;
  std::vector<std::uint64_t> taken;  // by member, a bit for each of our buffers there
  std::uint64_t last_number = 0;     // of our calls with a buffer
  std::vector<std::byte> image;      // of the arguments in a buffer
  std::vector<std::byte> result;
  remote::Runs protocols;
};

FunctionState::FunctionState(Containers& its_containers, const FunctionSpec& its_spec,
                             FunctionCore::Handler its)
    : containers(its_containers),
      hub(its_containers.hub()),
      spec(checked(its_spec)),
      handler(std::move(its)),
      buffer_bytes(spec.bytes > kMessageContentBytes
                       ? round_up(kWordBytes + std::size_t{spec.bytes}, kCacheLineBytes)
                       : 0),
      site(hub, spec.kind, spec.name,
           kCacheLineBytes + std::uint64_t{hub.progress.capacity()} * spec.buffers * buffer_bytes,
           layout_of(spec)),
      counters(hub.counters, spec.kind, spec.name, buffer_bytes == 0 ? 0 : spec.buffers, nullptr),
      taken(hub.progress.capacity()),
      image(buffer_bytes),
      protocols(hub.progress) {
  result.reserve(kMessageContentBytes);  // so that say() needs no memory
  hub.add(site.id(), *this);
  site.announce();
}

// --- at the caller -------------------------------------------------------------------------------

bool LongCall::has_buffer() noexcept {
  if (in_buffer.number != 0) return true;
  std::uint64_t& taken = function.taken[to];
  const auto free = static_cast<std::uint32_t>(std::countr_one(taken));
  if (free >= function.spec.buffers) return false;
  taken |= std::uint64_t{1} << free;
  in_buffer.buffer = free;
  in_buffer.number = ++function.last_number;
  return true;
}

/// CON-F4: the call has been answered, or its buffer is gone with its member.
LongCall::~LongCall() {
  if (caller != nullptr) caller->call = nullptr;
  if (in_buffer.number == 0) return;
  const std::uint64_t bit = std::uint64_t{1} << in_buffer.buffer;
  DUNLIN_ASSERT((function.taken[to] & bit) != 0, "CON-F4: a buffer is one call's until its end");
  function.taken[to] &= ~bit;
}

Protocol<FunctionResult> FunctionState::run(Rank to, FunctionArguments arguments) {
  FunctionResult ended;
  if (to == hub.fabric.rank()) {
    ended = co_await run_here(arguments);
  } else if (!needs_buffer(arguments.bytes)) {
    const Reply reply = co_await ask(to, arguments.content(), Sent::by_message, ended);
    if (reply.flag) ended.status = Status::refused;  // the peer may have sent anything
  } else {
    LongCaller caller;
    protocols.start(lead(caller, to, std::move(arguments)));
    co_await remote::Until([&] { return caller.call == nullptr; });
    ended = std::move(caller.result);
  }
  const bool is_result = spec.result_bytes == kAnySize || ended.content.size() == spec.result_bytes;
  if (ended.status == Status::ok && !is_result) ended.status = Status::refused;
  if (ended.status != Status::ok) explain(ended, to);
  co_return std::move(ended);
}

Protocol<FunctionResult> FunctionState::run_here(const FunctionArguments& arguments) {
  FunctionResult ended;
  ++counters.local;
  while ((ended.status = execute(arguments.content())) == Status::busy) co_await Soon(hub);
  ended.memory = CallMemory(memory_of_calls, result.size());
  if (ended.memory.data() == nullptr) co_return FunctionResult{Status::no_memory};
  if (!result.empty()) std::memcpy(ended.memory.data(), result.data(), result.size());
  ended.content = std::span(ended.memory.data(), result.size());
  co_return std::move(ended);
}

Protocol<Reply> FunctionState::ask(Rank to, std::span<const std::byte> content, Sent how,
                                   FunctionResult& ended) {
  ended.memory = CallMemory(memory_of_calls, kMessageContentBytes);
  if (ended.memory.data() == nullptr) co_return Reply{ended.status = Status::no_memory};
  ++counters.by_message;
  const std::span<std::byte> into(ended.memory.data(), kMessageContentBytes);
  const MessageHead head{.container = site.id(), .flag = static_cast<std::uint8_t>(how)};
  for (;;) {
    Asked asked(hub, site, to, head, content, into);
    const Reply reply = co_await asked;
    ended.status = reply.status;
    ended.content = into.first(reply.bytes);
    if (reply.status != Status::busy) co_return reply;
    co_await Soon(hub);
  }
}

/// Nobody waits for this one, so the buffer is given back also if the caller has gone in the
/// meantime.
Protocol<Status> FunctionState::lead(LongCaller& caller, Rank to, FunctionArguments arguments) {
  LongCall call(*this, caller, to);
  co_await remote::Until(
      [&] { return call.caller == nullptr || site.fault(to) != Status::ok || call.has_buffer(); });
  FunctionResult ended;
  ended.status = call.caller == nullptr ? Status::abandoned : site.fault(to);
  if (ended.status == Status::ok) ended = co_await call_with_buffer(call, arguments);
  const Status status = ended.status;
  if (call.caller != nullptr) call.caller->result = std::move(ended);
  co_return status;
}

/// Puts the arguments, and asks: a member that sees the request sees the arguments (FAB-F1). Its
/// function leaves a long result in the same buffer, and the caller reads it there.
Protocol<FunctionResult> FunctionState::call_with_buffer(LongCall& call,
                                                         const FunctionArguments& arguments) {
  FunctionResult ended;
  DUNLIN_ASSERT(call.in_buffer.number != 0, "CON-F4: a call that puts its arguments has a buffer");
  call.in_buffer.bytes = static_cast<std::uint32_t>(arguments.bytes);
  std::memcpy(arguments.memory.data(), &call.in_buffer.number, kWordBytes);
  const std::uint64_t offset = offset_of(hub.fabric.rank(), call.in_buffer.buffer);
  bool is_posted = false;
  remote::Batch<1, PutGate> store(hub.fabric, PutGate{site.gate(call.to), &is_posted});
  store.add(
      put(call.to, site.region(), offset, arguments.memory.data(), kWordBytes + arguments.bytes));
  co_await remote::Until([&] { return store.ready() || is_posted; });
  if (!is_posted) {
    ended.status = co_await store;
    co_return std::move(ended);
  }
  const auto request = std::as_bytes(std::span(&call.in_buffer, 1));
  const Reply reply = co_await ask(call.to, request, Sent::in_buffer, ended);
  if (reply.status == Status::ok && reply.flag) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, ended.content.data(), std::min(ended.content.size(), sizeof bytes));
    bytes = std::min(bytes, spec.bytes);  // the peer may have sent anything
    ended.memory = CallMemory(memory_of_calls, bytes);
    if (ended.memory.data() == nullptr) co_return FunctionResult{Status::no_memory};
    ended.content = std::span(ended.memory.data(), bytes);
    ended.status = co_await post(
        site, read(call.to, site.region(), offset + kWordBytes, ended.memory.data(), bytes));
  }
  static_cast<void>(co_await store);  // which reads the arguments until then
  co_return std::move(ended);
}

/// What the called member has to say comes as the content of its reply.
void FunctionState::explain(FunctionResult& ended, Rank at) const {
  ended.why = who() + " at " + member(at) + ": ";
  if (ended.content.empty())
    ended.why += remote::describe(ended.status);
  else
    ended.why.append(reinterpret_cast<const char*>(ended.content.data()), ended.content.size());
  ended.content = {};
}

// --- at the member that is called ----------------------------------------------------------------

void FunctionState::say(std::string_view sentence) noexcept {
  const auto bytes = std::as_bytes(std::span(sentence));
  const auto some = bytes.first(std::min<std::size_t>(bytes.size(), kMessageContentBytes));
  result.assign(some.begin(), some.end());
}

Status FunctionState::execute(std::span<const std::byte> arguments) noexcept {
  result.clear();
  const remote::LocalWork work(hub.progress);
  Status status = Status::threw;
  try {
    status = handler(arguments, result);
    if (status != Status::ok) result.clear();
    if (result.size() > spec.bytes) {
      const std::size_t bytes = result.size();
      say("its result has " + std::to_string(bytes) + " bytes; give the option bytes more");
      status = Status::too_long;
    }
  } catch (const std::exception& error) {
    say(error.what());
  } catch (...) {
    say("it has thrown what is no std::exception");
  }
  if (!work.was_broken()) return status;
  say(kNotLocal);
  return Status::not_allowed;
}

std::byte* FunctionState::buffer_of(Rank from, std::span<const std::byte> content,
                                    std::span<const std::byte>& arguments) noexcept {
  InBuffer where;
  if (content.size() != sizeof where || buffer_bytes == 0) return nullptr;
  std::memcpy(&where, content.data(), sizeof where);
  if (where.buffer >= spec.buffers || where.bytes > spec.bytes) return nullptr;
  std::byte* const buffer = site.memory() + offset_of(from, where.buffer);
  memory::copy_unwatched(image.data(), buffer, kWordBytes + std::size_t{where.bytes});
  if (word_at(image.data()) != where.number) return nullptr;
  arguments = std::span(image).subspan(kWordBytes, where.bytes);
  return buffer;
}

/// CON-A2: what a peer has sent is checked before it is used.
void FunctionState::handle(Rank from, const MessageHead& head, std::span<const std::byte> content) {
  if (head.kind != MessageKind::request) return;
  const auto answer = [&](Status status, Sent how = Sent::by_message) {
    MessageHead reply = reply_to(head, status);
    reply.flag = static_cast<std::uint8_t>(how);
    hub.send(from, reply, result);
  };
  std::byte* buffer = nullptr;
  if (head.flag != static_cast<std::uint8_t>(Sent::by_message)) {
    buffer = buffer_of(from, content, content);
    result.clear();
    if (buffer == nullptr) return answer(Status::lost);  // it was put into a part of before
  }
  ++counters.served;
  const Status status = execute(content);
  if (result.size() <= kMessageContentBytes) return answer(status);
  if (buffer == nullptr) {  // a caller of our own gives one to a function with such results
    result.clear();
    return answer(Status::refused);
  }
  const auto bytes = static_cast<std::uint32_t>(result.size());
  memory::copy_unwatched(buffer + kWordBytes, result.data(), bytes);
  const auto its_size = std::as_bytes(std::span(&bytes, 1));
  result.assign(its_size.begin(), its_size.end());
  answer(status, Sent::in_buffer);
}

// --- the interface -------------------------------------------------------------------------------

FunctionCore::FunctionCore(Containers& containers, const FunctionSpec& spec, Handler handler)
    : state_(std::make_unique<FunctionState>(containers, spec, std::move(handler))) {}
FunctionCore::~FunctionCore() = default;
remote::Progress& FunctionCore::progress() const noexcept { return state_->hub.progress; }
bool FunctionCore::fits(std::size_t bytes) const noexcept { return bytes <= state_->spec.bytes; }

void FunctionCore::check_call(const Containers& by, Rank at) const {
  const auto refuse = [&](const std::string& why) { throw Error(state_->who() + ": " + why); };
  if (&by != &state_->containers) refuse("it was made with another Containers");
  if (at >= state_->ranks())
    refuse("the group has no member " + std::to_string(at) + ", only 0 to " +
           std::to_string(state_->ranks() - 1));
}

FunctionArguments FunctionCore::arguments_of(std::size_t bytes) {
  return {CallMemory(state_->memory_of_calls, kWordBytes + bytes), bytes};
}

Protocol<FunctionResult> FunctionCore::run(Rank at, FunctionArguments arguments) {
  return state_->run(at, std::move(arguments));
}

std::string FunctionCore::describe() const {
  const FunctionState& function = *state_;
  std::string all = function.who();
  const char* between = ": ";
  for (Rank rank = 0; rank < function.ranks(); ++rank) {
    if (rank == function.hub.fabric.rank()) continue;
    const Status fault = function.site.fault(rank);
    if (fault == Status::ok && function.site.connected(rank)) continue;
    all += between + function.member(rank);
    if (fault == Status::ok) all += " has not made it yet";
    if (fault == Status::lost) all += " is gone, or has it no more";
    if (fault == Status::refused) all += " has another one of this name";
    between = "; ";
  }
  return between[0] == ':' ? all + " is at all members" : all;
}

void check_update(const MapCore& map, const std::string& name) {
  const std::string who = "update '" + name + "' of map '" + map.spec().name + "': ";
  if (map.values() != nullptr)
    throw Error(who +
                "the map has a pool (pool_bytes), where a home would have to wait for a block; "
                "give its slots room for the longest value");
  if (!map.applies(Promise::both))
    throw Error(who +
                "on this fabric, atomics and the processor do not exclude each other; make the map "
                "with Style::message");
}

}  // namespace dunlin::container
