#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bytes.hpp"
#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

// --- from Python's values to those of a container, and back --------------------------------------

template <class V>
struct Value;
template <>
struct Value<std::string> {
  static constexpr const char* kType = "bytes";
  static std::string from(nb::handle object) {
    if (PyUnicode_Check(object.ptr())) {
      const std::span<const std::byte> bytes = text_or_bytes(object, "str");
      return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    const Memory memory(object, Memory::Access::read);
    return {reinterpret_cast<const char*>(memory.span().data()), memory.span().size()};
  }
  static nb::object to(const std::string& value) { return bytes_object(value); }
};
template <class Number>
struct NumberValue {
  static Number from(nb::handle object) { return nb::cast<Number>(object); }
  static nb::object to(Number value) { return nb::cast(value); }
};
template <>
struct Value<std::uint64_t> : NumberValue<std::uint64_t> {
  static constexpr const char* kType = "int";
};
template <>
struct Value<double> : NumberValue<double> {
  static constexpr const char* kType = "float";
};

constexpr auto kBool = [](bool value) -> nb::object { return nb::bool_(value); };

template <class K, class V>
void bind_map_of(nb::module_& module, const char* name) {
  using Map = PyMap<K, V>;
  const std::string key_type = Value<K>::kType, value_type = Value<V>::kType;
  BoundHandle<Map> bound(
      module, name,
      "A hash map that is spread over the members of the group. Calls raise TooLongError, "
      "NoRoomError, LostError and EndedError.");
  const auto key = nb::arg("key"), value = nb::arg("value");
  const std::string both = "self, key: " + key_type + ", value: " + value_type;
  bound.call(
      "insert",
      [](Map& map, nb::handle k, nb::handle v) {
        const K its_key = Value<K>::from(k);
        const V its_value = Value<V>::from(v);
        return Begun{begin_without_gil([&] { return map.handle.insert(its_key, its_value); }),
                     kBool};
      },
      both, "bool", key, value,
      "Adds the key. False: the map has it already, and nothing has changed.");
  bound.call(
      "assign",
      [](Map& map, nb::handle k, nb::handle v) {
        const K its_key = Value<K>::from(k);
        const V its_value = Value<V>::from(v);
        return Begun{begin_without_gil([&] { return map.handle.assign(its_key, its_value); }),
                     kBool};
      },
      both, "bool", key, value, "Adds the key, or changes its value. Says whether it was added.");
  bound.call(
      "find",
      [](Map& map, nb::handle k, nb::object otherwise) {
        const K its_key = Value<K>::from(k);
        return Begun{
            begin_without_gil([&] { return map.handle.find(its_key); }),
            [otherwise = std::move(otherwise)](const std::optional<V>& found) -> nb::object {
              return found ? Value<V>::to(*found) : otherwise;
            }};
      },
      "self, key: " + key_type + ", default: Any = None", value_type + " | Any", key,
      nb::arg("default") = nb::none(), "The key's value; `default` if the map has no such key.");
  bound.call(
      "erase",
      [](Map& map, nb::handle k) {
        const K its_key = Value<K>::from(k);
        return Begun{begin_without_gil([&] { return map.handle.erase(its_key); }), kBool};
      },
      "self, key: " + key_type, "bool", key, "Erases the key; says whether the map had it.");
  if constexpr (container::Addable<V>)
    bound.call(
        "add",
        [](Map& map, nb::handle k, nb::handle v) {
          const K its_key = Value<K>::from(k);
          const V its_value = Value<V>::from(v);
          return Begun{begin_without_gil([&] { return map.handle.add(its_key, its_value); }),
                       [](V sum) -> nb::object { return nb::cast(sum); }};
        },
        both, "int", key, value, "Adds to the key's value, or inserts it, and returns the sum.");
  bound.waits.def("__repr__", [](Map& map) {
    return "<dunlin map '" + map.name + "' of group '" + map.state->group() + "'>";
  });
}

template <class K, class V>
nb::object make_map(PyNode& node, const std::string& name, const MapOptions& options) {
  PyMap<K, V> map = begin_without_gil([&] {
    return PyMap<K, V>{node.state, node.state->node().map<K, V>(name, options), name};
  });
  return nb::cast(std::move(map));
}

nb::object map_of(PyNode& node, const std::string& name, const std::string& key,
                  const std::string& value, const MapOptions& options) {
  if (key == "int" && value == "int")
    return make_map<std::uint64_t, std::uint64_t>(node, name, options);
  if (key == "int" && value == "float") return make_map<std::uint64_t, double>(node, name, options);
  if (key == "int") return make_map<std::uint64_t, std::string>(node, name, options);
  if (value == "int") return make_map<std::string, std::uint64_t>(node, name, options);
  if (value == "float") return make_map<std::string, double>(node, name, options);
  return make_map<std::string, std::string>(node, name, options);
}

void bind_queue(nb::module_& module) {
  BoundHandle<PyQueue> bound(
      module, "Queue",
      "A queue of bytes in the memory of one member; all push and pop. First in, first "
      "out. Calls raise TooLongError, LostError and EndedError.");
  const auto timeout_ns = [](std::optional<double> timeout) {
    return nanoseconds(timeout, remote::kForever);
  };
  bound.call(
      "push",
      [timeout_ns](PyQueue& queue, nb::handle element, std::optional<double> timeout) {
        const std::string its_element = Value<std::string>::from(element);
        const std::uint64_t wait_ns = timeout_ns(timeout);
        return Begun{begin_without_gil([&] { return queue.handle.push(its_element, wait_ns); }),
                     kBool};
      },
      "self, element: Buffer, timeout: float | None = None", "bool", nb::arg("element"),
      nb::arg("timeout") = nb::none(),
      "Appends an element. False: the queue had no room for `timeout` seconds (None: waits for "
      "ever; 0: does "
      "not wait).");
  bound.call(
      "pop",
      [timeout_ns](PyQueue& queue, std::optional<double> timeout) {
        const std::uint64_t wait_ns = timeout_ns(timeout);
        return Begun{begin_without_gil([&] { return queue.handle.pop(wait_ns); }),
                     [](const std::optional<std::string>& element) -> nb::object {
                       return element ? nb::object(bytes_object(*element)) : nb::none();
                     }};
      },
      "self, timeout: float | None = None", "bytes | None", nb::arg("timeout") = nb::none(),
      "Takes the first element. None: there was none for `timeout` seconds (None: waits for ever; "
      "0: does not "
      "wait).");
  bound.waits.def("__repr__", [](PyQueue& queue) {
    return "<dunlin.Queue '" + queue.name + "' of group '" + queue.state->group() + "'>";
  });
}

}  // namespace

void bind_containers(nb::module_& module) {
  bind_map_of<std::string, std::string>(module, "Map");
  bind_map_of<std::string, std::uint64_t>(module, "MapOfBytesToInt");
  bind_map_of<std::string, double>(module, "MapOfBytesToFloat");
  bind_map_of<std::uint64_t, std::string>(module, "MapOfIntToBytes");
  bind_map_of<std::uint64_t, std::uint64_t>(module, "MapOfIntToInt");
  bind_map_of<std::uint64_t, double>(module, "MapOfIntToFloat");
  bind_queue(module);
  module.def("make_map",
             [](PyNode& node, const std::string& name, const std::string& key,
                const std::string& value, std::uint32_t slots, std::uint32_t key_bytes,
                std::uint32_t value_bytes, std::uint32_t grow_to, std::size_t pool_bytes) {
               MapOptions options;
               options.slots = slots;
               options.key_bytes = key == "bytes" ? key_bytes : 0;
               options.value_bytes = value == "bytes" ? value_bytes : 0;
               options.grow_to = grow_to;
               options.pool_bytes = pool_bytes;
               return map_of(node, name, key, value, options);
             });
  module.def("make_queue", [](PyNode& node, const std::string& name, std::uint32_t capacity,
                              std::uint32_t element_bytes, Rank host) {
    QueueOptions options;
    options.capacity = capacity;
    options.element_bytes = element_bytes;
    options.host = host;
    return begin_without_gil([&] {
      return PyQueue{node.state, node.state->node().queue<std::string>(name, options), name};
    });
  });
}

}  // namespace dunlin::python
