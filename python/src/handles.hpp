#pragma once

#include <memory>
#include <string>

#include <dunlin/node.hpp>

#include "state.hpp"
#include "topic_type.hpp"
#include "topics.hpp"

/// The objects that Python holds. Each shares its node.
namespace dunlin::python {

struct PyNode {
  std::shared_ptr<NodeState> state;
};
struct Store {
  std::shared_ptr<NodeState> state;
  StoreHandle handle;
  std::string name;
};

struct Segments {
  std::shared_ptr<NodeState> state;
  SegmentsHandle handle;
  std::string name;
};
struct PySegment {
  std::shared_ptr<NodeState> state;
  SegmentsHandle handle;
  Key key;
};
template <class K, class V>
struct PyMap {
  std::shared_ptr<NodeState> state;
  MapHandle<K, V> handle;
  std::string name;
};
struct PyQueue {
  std::shared_ptr<NodeState> state;
  QueueHandle<std::string> handle;
  std::string name;
};

struct PyTopic {
  std::shared_ptr<NodeState> state;
  RawTopicHandle handle;
  std::shared_ptr<const TopicType> type;
  std::string name;
  nb::object dtype;  // None unless the type is plain
};

void bind_node(nb::module_& module);
void bind_store(nb::module_& module);
void bind_segments(nb::module_& module);
void bind_containers(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_topics(nb::module_& module);

}  // namespace dunlin::python
