#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/node/engine.hpp>
#include <dunlin/node/multicast.hpp>
#include <dunlin/pubsub/topic_type.hpp>

/// A Replicated<T> is an object of the program's class T at each member of a node's group. Commands
/// are plain structs, and `T::apply(command)` is called with each at all members, in one order; so
/// the objects go through the same states (state machine replication). Any thread uses it.
///
///     struct Put { std::string key, value; };
///     struct Prices {
///       std::map<std::string, std::string> entries;
///       bool apply(const Put& put) { return entries.insert_or_assign(put.key, put.value).second; }
///       std::string save() const;            // for members that come in later
///       void load(std::string_view saved);
///     };
///     auto prices = node.replicated<Prices, Put>("prices");
///     const bool is_new = prices.apply(Put{"k", "v"}).get();     // once it has been applied here
///     prices.look([](const Prices& p) { print(p.entries); });
///
/// apply() must do the same at all members: no clocks, no random numbers, no pointers. A command's
/// members are those that a topic's sample can have (pubsub/topic_type.hpp).
namespace dunlin {

template <class T, class... Commands>
class Replicated {
  static_assert(sizeof...(Commands) > 0,
                "dunlin: a Replicated needs its commands: <T, Put, Erase>");
  static_assert(
      requires(const T& object, T& other, std::string_view saved) {
        { object.save() } -> std::convertible_to<std::string>;
        other.load(saved);
      },
      "dunlin: a Replicated's class has `std::string save() const` and `void "
      "load(std::string_view)`, "
      "for members that come in later");

 public:
  Replicated(std::shared_ptr<node::Engine> engine, const std::string& name)
      : engine_(std::move(engine)) {
    object_ = engine_->with_lock([&] {
      return engine_->template object<Object>(
          "replicated '" + name + "'", [&] { return std::make_shared<Object>(*engine_, name); });
    });
  }

  /// Has the command applied at all members. The future has what apply() returns here. It fails
  /// with `overloaded` if there is no room for the command now: nothing is applied then.
  template <class Command>
  auto apply(const Command& command) {
    using R = std::remove_cvref_t<std::invoke_result_t<Apply, T&, const Command&>>;
    if (engine_->is_forked()) return Future<R>(engine_->number(), engine_->why_stopped());
    std::vector<std::byte> message = header(kNumberOf<Command>);
    append(command, message);
    auto* const pending = new PendingCommand<R>(*engine_, *object_);
    pending->number = object_->expect(*pending);
    std::memcpy(message.data() + kNumberOffset, &pending->number, sizeof pending->number);
    Failure why{remote::Status::overloaded,
                object_->who + ": no room for a command now; try again"};
    try {
      const multicast::SendResult sent = object_->messages.send(message);
      if (sent == multicast::SendResult::sent) return Future<R>(pending);
      if (sent == multicast::SendResult::ended) why = object_->why_ended();
    } catch (const Error& error) {
      why = {remote::Status::too_long, error.what()};
    }
    if (object_->forget(pending->number) == nullptr) return Future<R>(pending);  // the end took it
    pending->release();  // as the call, which is none
    pending->release();  // as the future, which is none
    return Future<R>(engine_->number(), std::move(why));
  }
  /// Returns what `look(const T&)` returns; no command is applied meanwhile. Another member may
  /// have applied more.
  template <class Look>
  auto look(Look&& look) const {
    return engine_->with_lock([&] { return look(std::as_const(object_->state)); });
  }
  /// Waits until this member takes part, with the state that the others have.
  void wait_until_joined(std::uint64_t timeout_ns = 10'000'000'000) {
    object_->messages.wait_until_joined(timeout_ns);
  }

 private:
  struct Apply {
    template <class Command>
    auto operator()(T& object, const Command& command) const {
      return object.apply(command);
    }
  };
  template <class Command>
  static consteval std::uint32_t number_of() {
    std::uint32_t number = 0, found = UINT32_MAX;
    ((std::is_same_v<Command, Commands> ? found = number++ : number++), ...);
    return found;
  }
  template <class Command>
  static constexpr std::uint32_t kNumberOf = [] {
    static_assert((std::is_same_v<Command, Commands> || ...),
                  "dunlin: this is none of the Replicated's commands");
    return number_of<Command>();
  }();

  // A message: the command's number in the list (4 bytes) and zero (4), the sender's number of the
  // call (8), the command.
  static constexpr std::size_t kHeaderBytes = 16;
  static constexpr std::size_t kNumberOffset = 8;
  static std::vector<std::byte> header(std::uint32_t command) {
    std::vector<std::byte> message(kHeaderBytes);
    std::memcpy(message.data(), &command, sizeof command);
    return message;
  }
  template <class Command>
  static const pubsub::TypeSupport& type() {
    static const std::shared_ptr<const pubsub::TypeSupport> kType = pubsub::type_support<Command>();
    return *kType;
  }
  template <class Command>
  static void append(const Command& command, std::vector<std::byte>& to) {
    if (type<Command>().plain) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&command);
      to.insert(to.end(), bytes, bytes + sizeof command);
    } else {
      type<Command>().encode(&command, to);
    }
  }

  class Object;
  /// A command of this member's that has not come back yet.
  class AnyPending {
   public:
    virtual void fail_with(Failure failure) noexcept = 0;

   protected:
    ~AnyPending() = default;
  };
  template <class R>
  class PendingCommand final : public node::SharedResult<R>, public AnyPending {
   public:
    PendingCommand(node::Engine& engine, Object& object)
        : node::SharedResult<R>(engine, false), object_(object) {}
    /// Ends the call; requires that the object has forgotten it.
    void take(Result<R> how) noexcept {
      this->result = std::move(how);
      this->end();
    }
    void fail_with(Failure failure) noexcept override { take(std::move(failure)); }
    void fail(Failure failure) noexcept override {
      if (object_.forget(number) != nullptr) take(std::move(failure));
    }
    std::uint64_t number = 0;

   private:
    Object& object_;
  };

  class Object final : public node::NodeObject {
   public:
    Object(node::Engine& engine, const std::string& name)
        : who("replicated '" + name + "'"),
          messages(engine, name,
                   {.save = [this] { return bytes_of_text(state.save()); },
                    .load =
                        [this](std::span<const std::byte> saved) {
                          state.load({reinterpret_cast<const char*>(saved.data()), saved.size()});
                        }},
                   [this](std::span<const multicast::Delivery> batch, node::MulticastObject& of) {
                     for (const auto& delivery : batch) take(delivery, of.is_me(delivery.sender));
                   }),
          engine_(engine) {}

    // --- any thread
    std::uint64_t expect(AnyPending& pending) {
      const std::lock_guard lock(mutex_);
      pending_.emplace(++last_, &pending);
      return last_;
    }
    AnyPending* forget(std::uint64_t number) {
      const std::lock_guard lock(mutex_);
      const auto at = pending_.find(number);
      if (at == pending_.end()) return nullptr;
      AnyPending* const found = at->second;
      pending_.erase(at);
      return found;
    }

    /// Why it takes no command any more.
    [[nodiscard]] Failure why_ended() const {
      const std::lock_guard lock(mutex_);
      return why_left_.empty() ? engine_.why_stopped()
                               : Failure{remote::Status::stopped, who + ": " + why_left_};
    }

    // --- under the lock
    std::size_t poll() override {
      const std::size_t done = messages.poll();
      return messages.core().left() ? done + fail_all(messages.core().why_left()) : done;
    }
    void close() noexcept override { messages.close(); }
    [[nodiscard]] bool handed_over() override { return messages.handed_over(); }
    void end() noexcept override {
      messages.end();
      static_cast<void>(fail_all({}));
    }

    const std::string who;
    T state{};
    node::MulticastObject messages;

   private:
    /// Ends what is pending. `why_left`: this member is not in the subgroup any more, though the
    /// node goes on.
    std::size_t fail_all(const std::string& why_left) noexcept {
      for (std::size_t done = 0;; ++done) {
        const std::uint64_t first = [&] {
          const std::lock_guard lock(mutex_);
          if (!why_left.empty()) why_left_ = why_left;
          return pending_.empty() ? 0 : pending_.begin()->first;
        }();
        if (first == 0) return done;
        if (AnyPending* const pending = forget(first)) pending->fail_with(why_ended());
      }
    }
    static std::vector<std::byte> bytes_of_text(const std::string& text) {
      const auto bytes = std::as_bytes(std::span(text));
      return {bytes.begin(), bytes.end()};
    }
    void take(const multicast::Delivery& delivery, bool is_own) {
      if (delivery.message.size() < kHeaderBytes) return;
      std::uint32_t command = 0;
      std::uint64_t number = 0;
      std::memcpy(&command, delivery.message.data(), sizeof command);
      std::memcpy(&number, delivery.message.data() + kNumberOffset, sizeof number);
      AnyPending* const pending = is_own ? forget(number) : nullptr;
      const std::span<const std::byte> bytes = delivery.message.subspan(kHeaderBytes);
      static_cast<void>(
          ((kNumberOf<Commands> == command && (apply_one<Commands>(bytes, pending), true)) || ...));
    }
    template <class Command>
    void apply_one(std::span<const std::byte> bytes, AnyPending* pending) {
      using R = std::remove_cvref_t<std::invoke_result_t<Apply, T&, const Command&>>;
      auto* const mine = static_cast<PendingCommand<R>*>(pending);
      engine_.call_back([&] {
        try {
          Command its_command{};
          if (!pubsub::decode_sample(type<Command>(), type<Command>().plain, bytes, &its_command))
            throw Error(who + ": a command that no member of this release sends");
          if constexpr (std::is_void_v<R>) {
            state.apply(its_command);
            if (mine != nullptr) mine->take(Result<void>());
          } else {
            R result = state.apply(its_command);
            if (mine != nullptr) mine->take(std::move(result));
          }
        } catch (const std::exception& error) {
          if (mine != nullptr && !mine->ended())
            mine->take(Failure{remote::Status::threw, who + ": apply() threw: " + error.what()});
          throw;
        } catch (...) {
          if (mine != nullptr && !mine->ended())
            mine->take(Failure{remote::Status::threw, who + ": apply() threw no std::exception"});
          throw;
        }
      });
    }

    node::Engine& engine_;
    mutable std::mutex mutex_;
    std::string why_left_;  // under mutex_, as what follows
    std::map<std::uint64_t, AnyPending*> pending_;
    std::uint64_t last_ = 0;
  };

  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
