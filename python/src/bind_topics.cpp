#include <algorithm>
#include <array>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bytes.hpp"
#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

using Change = TopicObject::Change;

// --- policies ------------------------------------------------------------------------------------

/// The policies of a topic as dunlin/_topics.py gives them: a dict of keywords.
class Keywords {
 public:
  explicit Keywords(nb::dict its) : its_(std::move(its)) {}
  template <class T>
  [[nodiscard]] T get(const char* name) const {
    return nb::cast<T>(its_[name]);
  }
  [[nodiscard]] std::uint64_t ns(const char* name) const {
    return nanoseconds(get<std::optional<double>>(name), pubsub::kInfiniteNs);
  }
  /// Returns the value that belongs to the keyword's word. Throws ValueError that lists all words.
  template <class Enum, std::size_t N>
  [[nodiscard]] Enum one_of(const char* name, const std::array<const char*, N>& words) const {
    const auto word = get<std::string>(name);
    std::string all;
    for (std::size_t i = 0; i < N; ++i) {
      if (word == words[i]) return static_cast<Enum>(i);
      all += (i == 0 ? "'" : i + 1 == N ? " or '" : ", '") + std::string(words[i]) + "'";
    }
    throw nb::value_error((std::string(name) + " is " + all).c_str());
  }
  [[nodiscard]] pubsub::History history(const char* name) const {
    const auto depth = get<std::optional<std::uint32_t>>(name);
    return depth ? pubsub::History::keep_last(*depth) : pubsub::History::keep_all();
  }

 private:
  nb::dict its_;
};

TopicSetup setup_of(const TopicType& type, const Keywords& its) {
  using namespace pubsub;
  TopicSetup setup{.text = type.text(), .type_name = type.name(), .type = type.tree()};
  setup.reads = its.get<bool>("reads");
  setup.writes = its.get<bool>("writes");
  setup.topic.level =
      its.one_of<Level>("level", std::array{"unordered", "atomic", "volatile_storage", "logged"});
  setup.topic.history = its.history("stored");
  setup.topic.max_samples = its.get<std::uint32_t>("max_stored");
  setup.topic.ring_bytes = its.get<std::size_t>("ring_bytes");
  setup.topic.max_bytes = its.get<std::uint64_t>("max_bytes");
  setup.topic.max_age_ns = its.ns("max_age");
  setup.topic.order = its.get<std::string>("order");
  const std::uint64_t deadline_ns = its.ns("deadline");
  const auto kind = its.one_of<Ownership::Kind>("ownership", std::array{"shared", "exclusive"});
  setup.writer.deadline.period_ns = setup.reader.deadline.period_ns = deadline_ns;
  setup.writer.liveliness.lease_ns = setup.reader.liveliness.lease_ns = its.ns("lease");
  setup.writer.lifespan.duration_ns = its.ns("lifespan");
  setup.writer.ownership = {.kind = kind, .strength = its.get<std::uint32_t>("strength")};
  setup.reader.ownership.kind = kind;
  if (its.get<bool>("reliable")) setup.reader.reliability = Reliability::reliable();
  setup.reader.durability.kind = its.one_of<Durability::Kind>(
      "durability", std::array{"volatile", "transient_local", "transient", "persistent"});
  setup.reader.history = its.history("history");
  setup.reader.limits.max_samples = its.get<std::uint32_t>("max_unread");
  setup.reader.time_based_filter.minimum_separation_ns = its.ns("minimum_separation");
  if (const auto after = its.get<std::optional<double>>("drop_slow_after"))
    setup.reader.slow_reader = {.kind = SlowReader::Kind::drop, .after_ns = nanoseconds(*after, 0)};
  return setup;
}

// --- samples -------------------------------------------------------------------------------------

struct PySampleInfo {
  pubsub::SampleInfo its;
  std::string member;
};

/// Calls `use(object, entry)` for each sample whose bytes are one.
template <class Use>
void for_each_object(const TopicType& type, const TakenSamples& taken, const Use& use) {
  std::size_t begin = 0;
  for (const TakenSamples::Entry& entry : taken.entries) {
    const auto bytes = std::span(taken.bytes).subspan(begin, entry.end - begin);
    begin = entry.end;
    if (std::optional<nb::object> object = type.object_of(entry.plain, bytes))
      use(std::move(*object), entry);
  }
}

[[nodiscard]] nb::object list_of(const TopicType& type, const TakenSamples& taken) {
  nb::list objects;
  for_each_object(type, taken, [&](nb::object object, const auto&) { objects.append(object); });
  return objects;
}
[[nodiscard]] nb::object list_with_infos_of(const TopicType& type, const TakenSamples& taken) {
  nb::list pairs;
  for_each_object(type, taken, [&](nb::object object, const TakenSamples::Entry& entry) {
    pairs.append(nb::make_tuple(object, nb::cast(PySampleInfo{entry.info, entry.member})));
  });
  return pairs;
}

/// Memory that Python reads and writes through the buffer protocol.
struct SampleMemory {
  std::vector<std::byte> bytes;
};
int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto& bytes = nb::inst_ptr<SampleMemory>(self)->bytes;
  return PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 0,
                           flags);
}
PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
                              {0, nullptr}};

/// A structured array in the memory into which the samples were taken.
[[nodiscard]] nb::object array_of(nb::handle dtype, TakenSamples taken) {
  const nb::object numpy = nb::module_::import_("numpy");
  if (taken.entries.empty()) return numpy.attr("empty")(0, dtype);
  return numpy.attr("frombuffer")(nb::cast(SampleMemory{std::move(taken.bytes)}), dtype);
}

const char* name_of(pubsub::InstanceState state) {
  return state == pubsub::InstanceState::alive      ? "alive"
         : state == pubsub::InstanceState::disposed ? "disposed"
                                                    : "no_writers";
}

void bind_sample_info(nb::module_& module) {
  nb::class_<PySampleInfo>(module, "SampleInfo", "What is known of a sample beside its data.")
      .def_prop_ro(
          "valid", [](const PySampleInfo& info) { return info.its.valid_data; },
          "False: an instance has ended, and only the key fields of the data count.")
      .def_prop_ro(
          "member", [](const PySampleInfo& info) { return info.member; },
          "The name of the member that wrote the sample.")
      .def_prop_ro(
          "sequence", [](const PySampleInfo& info) { return info.its.sequence; },
          "The writer's number of the sample, from 1 on.")
      .def_prop_ro(
          "position", [](const PySampleInfo& info) { return info.its.position; },
          "The sample's number in the topic, from 1 on: equal at all members if the level has one "
          "order.")
      .def_prop_ro(
          "order_position", [](const PySampleInfo& info) { return info.its.order_position; },
          "The sample's number in the order of several topics; 0: it has none.")
      .def_prop_ro(
          "source_ns", [](const PySampleInfo& info) { return info.its.source_ns; },
          "When it was written, in nanoseconds of the writer's clock.")
      .def_prop_ro(
          "reception_ns", [](const PySampleInfo& info) { return info.its.reception_ns; },
          "When it was received, in nanoseconds of this member's clock.")
      .def_prop_ro(
          "instance", [](const PySampleInfo& info) { return info.its.instance; },
          "The number of the sample's instance at this reader.")
      .def_prop_ro(
          "instance_state",
          [](const PySampleInfo& info) { return name_of(info.its.instance_state); },
          "'alive', 'disposed' or 'no_writers'.", nb::sig("def instance_state(self) -> str"))
      .def("__repr__", [](const PySampleInfo& info) {
        return "<dunlin.SampleInfo: number " + std::to_string(info.its.sequence) + " of member '" +
               info.member + "'" + (info.its.valid_data ? ">" : ", end of an instance>");
      });
  nb::class_<SampleMemory>(module, "SampleMemory", nb::type_slots(memory_slots),
                           "The memory of samples that take_array() has taken.");
}

// --- calls ---------------------------------------------------------------------------------------

constexpr auto kNone = [](std::monostate) -> nb::object { return nb::none(); };

template <Change What>
constexpr auto kWrite = [](PyTopic& topic, nb::handle sample) {
  pubsub::RawSample raw = topic.type->sample_of(sample);
  return Begun{begin_without_gil([&] { return topic.handle.write(std::move(raw), What); }), kNone};
};

/// Begins a take; `convert(type, samples)` makes the Python object.
template <class Convert>
auto begin_take(PyTopic& topic, const TopicObject::Request& request, const Convert& convert) {
  return Begun{begin_without_gil([&] { return topic.handle.take(request); }),
               [type = topic.type, convert](TakenSamples taken) -> nb::object {
                 return convert(*type, std::move(taken));
               }};
}
[[nodiscard]] std::uint32_t most_of(std::optional<std::uint32_t> most) {
  return most.value_or(UINT32_MAX);
}

void bind_writes(BoundHandle<PyTopic>& bound) {
  const auto sample = nb::arg("sample");
  bound.timed_call(
      "write", kWrite<Change::sample>, "self, sample: Any", "None", std::nullopt,
      "Writes a sample, an object of the topic's class, and returns once it is on its way to the "
      "readers. Waits while the ring is full or a reliable reader holds the topic back; raises "
      "CallTimeoutError after `timeout` seconds, and RefusedError if the topic has another type.",
      sample);
  bound.timed_call(
      "dispose", kWrite<Change::dispose>, "self, sample: Any", "None", std::nullopt,
      "Says that the instance with the key fields of this sample is gone. Waits as write() does.",
      sample);
  bound.timed_call(
      "unregister", kWrite<Change::unregister>, "self, sample: Any", "None", std::nullopt,
      "Says that this member writes that instance no more. Waits as write() does.", sample);
  bound.timed_call(
      "wait_for_readers",
      [](PyTopic& topic, std::uint32_t count) {
        return Begun{begin_without_gil([&] { return topic.handle.until_readers(count); }), kNone};
      },
      "self, count: int = 1", "None", std::nullopt,
      "Waits until so many readers, this member's own included, get what is written here.",
      nb::arg("count") = 1);
  bound.timed_call(
      "wait_for_writers",
      [](PyTopic& topic, std::uint32_t count) {
        return Begun{begin_without_gil([&] { return topic.handle.until_writers(count); }), kNone};
      },
      "self, count: int = 1", "None", std::nullopt,
      "Waits until so many writers, this member's own included, write for the reader here.",
      nb::arg("count") = 1);
}

void bind_takes(BoundHandle<PyTopic>& bound) {
  const auto most = nb::arg("most") = nb::none();
  bound.timed_call(
      "next",
      [](PyTopic& topic) {
        return begin_take(topic, {.most = 1, .waits = true},
                          [](const TopicType& type, const TakenSamples& taken) -> nb::object {
                            const nb::object objects = list_of(type, taken);
                            if (nb::len(objects) == 1) return objects[0];
                            throw CallFailed({remote::Status::threw,
                                              "topic: a sample came that is none of its type"});
                          });
      },
      "self", "Any", std::nullopt,
      "Takes the next sample, for which it waits: an object of the topic's class. Raises "
      "CallTimeoutError after `timeout` seconds.");
  bound.call(
      "take",
      [](PyTopic& topic, std::optional<std::uint32_t> count) {
        return begin_take(topic, {.most = most_of(count)}, &list_of);
      },
      "self, most: int | None = None", "list[Any]", most,
      "Takes the samples that have come since the last take, at most so many, and does not wait: "
      "objects of the topic's class, in the order in which they came.");
  bound.call(
      "take_with_infos",
      [](PyTopic& topic, std::optional<std::uint32_t> count) {
        return begin_take(topic, {.most = most_of(count), .ends = true}, &list_with_infos_of);
      },
      "self, most: int | None = None", "list[tuple[Any, SampleInfo]]", most,
      "As take(), with what is known of each sample. Also tells the ends of instances: there, "
      "`info.valid` is false.");
  bound.call(
      "take_array",
      [](PyTopic& topic, std::optional<std::uint32_t> count, bool waits) {
        if (topic.dtype.is_none())
          throw nb::type_error(
              (topic.type->name() +
               " has str, bytes, lists or optional fields, or numpy is missing: take() its samples")
                  .c_str());
        return begin_take(topic, {.most = most_of(count), .waits = waits},
                          [dtype = topic.dtype](const TopicType&, TakenSamples taken) {
                            return array_of(dtype, std::move(taken));
                          });
      },
      "self, most: int | None = None, wait: bool = False", "numpy.ndarray", most,
      nb::arg("wait") = false,
      "As take(), as one structured array with a field for each field of the class, in the memory "
      "into which the samples were taken: no object is made for a sample. `wait`: waits for the "
      "first one. TypeError: the class has str, bytes, lists or optional fields.");
}

void bind_state(nb::class_<PyTopic>& its_class) {
  const auto look = [](PyTopic& topic, auto&& what) {
    return while_running(*topic.state, [&] { return topic.handle.look(what); });
  };
  its_class
      .def_ro("dtype", &PyTopic::dtype,
              "The numpy dtype of take_array(): the memory of the C++ struct. None: there is none.")
      .def_prop_ro(
          "name", [](PyTopic& topic) { return topic.name; }, "The topic's name in the group.")
      .def_prop_ro(
          "type_text", [](PyTopic& topic) { return topic.type->text(); },
          "The type as members compare it: a line for each member of the struct.")
      .def_prop_ro(
          "matched_readers",
          [look](PyTopic& topic) {
            return look(topic, [](TopicObject& its) { return its.matched_readers(); });
          },
          "How many readers get what is written here.")
      .def_prop_ro(
          "matched_writers",
          [look](PyTopic& topic) {
            return look(topic, [](TopicObject& its) { return its.matched_writers(); });
          },
          "How many writers write for the reader here.")
      .def_prop_ro(
          "why_unmatched",
          [look](PyTopic& topic) {
            return look(topic, [](TopicObject& its) { return its.why_unmatched(); });
          },
          "A sentence that says why this member, or another one, was refused in the topic, or "
          "which "
          "policies do not fit; empty: there was no such reason.")
      .def_prop_ro(
          "lost_samples",
          [look](PyTopic& topic) {
            return look(topic, [](TopicObject& its) { return its.lost_samples(); });
          },
          "How many samples came for which the reader had no room, or that were none of the type.")
      .def("__repr__", [](PyTopic& topic) {
        return "<dunlin.Topic '" + topic.name + "' of " + topic.type->name() + " in group '" +
               topic.state->group() + "'>";
      });
}

}  // namespace

void bind_topics(nb::module_& module) {
  bind_sample_info(module);
  nb::class_<TopicType>(module, "TopicType", "The type of a topic, made of a dataclass.")
      .def(nb::init<nb::handle>(), nb::arg("description"))
      .def_prop_ro("text", &TopicType::text)
      .def_prop_ro("bytes", [](const TopicType& type) { return type.tree().bytes; })
      .def_prop_ro("plain", [](const TopicType& type) { return type.tree().plain; });
  BoundHandle<PyTopic> bound(
      module, "Topic",
      "A topic of the group's members: each writes samples, objects of a dataclass, and reads "
      "those "
      "of all. Iteration gives the samples as they come, and ends with the node.");
  bind_writes(bound);
  bind_takes(bound);
  bind_state(bound.waits);
  module.def(
      "make_topic",
      [](PyNode& node, const std::string& name, nb::handle description, nb::object dtype,
         nb::dict keywords) {
        auto type = std::make_shared<const TopicType>(description);
        if (!dtype.is_none() && nb::cast<std::size_t>(dtype.attr("itemsize")) != type->tree().bytes)
          throw Error("topic '" + name + "': numpy lays the type out in another way than C++");
        TopicSetup setup = setup_of(*type, Keywords(std::move(keywords)));
        return begin_without_gil([&] {
          return PyTopic{node.state, RawTopicHandle(node.state->engine(), name, std::move(setup)),
                         type, name, std::move(dtype)};
        });
      },
      nb::arg("node"), nb::arg("name"), nb::arg("description"), nb::arg("dtype").none(),
      nb::arg("keywords"));
}

}  // namespace dunlin::python
