#pragma once

/// Containers: data structures over the memory of the members, by one-sided access or by message.
#include <dunlin/container/aggregator.hpp>
#include <dunlin/container/calibration.hpp>
#include <dunlin/container/collectives.hpp>
#include <dunlin/container/containers.hpp>
#include <dunlin/container/cost.hpp>
#include <dunlin/container/function.hpp>
#include <dunlin/container/hash_map.hpp>
#include <dunlin/container/limits.hpp>
#include <dunlin/container/map_buffer.hpp>
#include <dunlin/container/map_scan.hpp>
#include <dunlin/container/promise.hpp>
#include <dunlin/container/queue.hpp>
#include <dunlin/container/trait.hpp>
#include <dunlin/container/words.hpp>
