#pragma once

#include <dunlin/pubsub/core.hpp>
#include <dunlin/pubsub/entities.hpp>
#include <dunlin/pubsub/limits.hpp>
#include <dunlin/pubsub/ordered_access.hpp>
#include <dunlin/pubsub/qos.hpp>
#include <dunlin/pubsub/status.hpp>
#include <dunlin/pubsub/topic_type.hpp>
#include <dunlin/pubsub/wait_set.hpp>

/// Topics: samples of plain structs, from writers to readers by name, in one order of all writers
/// at all readers. The model and the names are those of DDS (DCPS). One thread at a time, that of
/// the participant, whose poll() makes all progress.
///
///     dunlin::pubsub::DomainParticipant participant(group);
///     dunlin::pubsub::Topic<Shape> squares(participant, "square");
///     dunlin::pubsub::DataWriter<Shape> writer(Publisher(participant), squares);
///     dunlin::pubsub::DataReader<Shape> reader(Subscriber(participant), squares);
///     if (writer.write(shape) == dunlin::pubsub::WriteResult::no_room) ...;   // poll, try again
///     participant.poll();
///     for (const auto& sample : reader.take())
///       if (sample.info().valid()) draw(sample.data());
///
/// docs/pubsub.md has the promises (PUB-T1 to PUB-T4), docs/qos.md each policy.
