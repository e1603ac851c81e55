#pragma once

/// All of Dunlin; each header can also be included alone.
#include <dunlin/container.hpp>
#include <dunlin/daemon.hpp>
#include <dunlin/error.hpp>
#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/join.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/node.hpp>
#include <dunlin/progress_thread.hpp>
#include <dunlin/pubsub.hpp>
#include <dunlin/relay.hpp>
#include <dunlin/remote.hpp>
#include <dunlin/run.hpp>
#include <dunlin/segment.hpp>
#include <dunlin/store.hpp>
#include <dunlin/table.hpp>
