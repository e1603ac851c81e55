#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dunlin/container/hash_map.hpp>
#include <dunlin/node/calls.hpp>

/// A HashMap of a node, for any thread (container/hash_map.hpp says what a map is).
///
///     auto prices = node.map<std::uint64_t, double>("prices", {.slots = 1000});
///     prices.assign(7, 1.5).get();
///     if (const std::optional<double> price = prices.find(7).get()) use(*price);
namespace dunlin {

template <ContainerKey K, class V>
class MapHandle {
 public:
  MapHandle(std::shared_ptr<node::Engine> engine, const std::string& name, MapOptions options)
      : engine_(std::move(engine)) {
    options.name = name;
    object_ = engine_->with_lock([&] {
      return engine_->template object<Object>("map '" + name + "'", [&] {
        return std::make_shared<Object>(engine_->containers(), options);
      });
    });
  }

  /// False: the map has the key already, and nothing has changed.
  Future<bool> insert(const K& key, const V& value) {
    return call<bool>(
        "insert", key, value, [](auto& map, const K& k, const V& v) { return map.insert(k, v); },
        [](const Found<V>& found) { return found.inserted(); });
  }
  /// Inserts the key, or changes its value. The value says whether it was inserted.
  Future<bool> assign(const K& key, const V& value) {
    return call<bool>(
        "assign", key, value, [](auto& map, const K& k, const V& v) { return map.assign(k, v); },
        [](const Found<V>& found) { return found.inserted(); });
  }
  /// Adds to the value of the key, or inserts it; returns the sum.
  Future<V> add(const K& key, const V& more) requires container::Addable<V> {
    return call<V>(
        "add", key, more, [](auto& map, const K& k, const V& v) { return map.add(k, v); },
        [](const Found<V>& found) { return found.value(); });
  }
  [[nodiscard]] Future<std::optional<V>> find(const K& key) {
    return call<std::optional<V>>(
        "find", key, Nothing{}, [](auto& map, const K& k, Nothing) { return map.find(k); },
        [](const Found<V>& found) {
          return found.found() ? std::optional<V>(found.value()) : std::nullopt;
        });
  }
  /// The value says whether the map had the key.
  Future<bool> erase(const K& key) {
    return call<bool>(
        "erase", key, Nothing{}, [](auto& map, const K& k, Nothing) { return map.erase(k); },
        [](const Found<V>& found) { return found.found(); });
  }

 private:
  struct Nothing {};
  class Object final : public node::NodeObject {
   public:
    Object(Containers& containers, const MapOptions& options)
        : who_("map '" + options.name + "'"), map_(std::in_place, containers, options) {}
    [[nodiscard]] const std::string& who() const noexcept { return who_; }
    [[nodiscard]] HashMap<K, V>& map() noexcept { return *map_; }
    void end() noexcept override { map_.reset(); }

   private:
    std::string who_;
    std::optional<HashMap<K, V>> map_;
  };

  template <class T, class Argument, class Begin, class Take>
  Future<T> call(const char* name, const K& key, const Argument& argument, Begin begin, Take take) {
    return node::begin_call<T>(
        *engine_, name, false, [&] { return begin(object_->map(), key, argument); },
        [&] {
          return [object = object_.get(), key, argument, begin] {
            return begin(object->map(), key, argument);
          };
        },
        [object = object_.get(), name, take](const Found<V>& found) -> Result<T> {
          if (!found.ok()) return node::failure_of(object->who(), name, found.status, "map");
          return Result<T>(take(found));
        });
  }

  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
