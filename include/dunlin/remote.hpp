#pragma once

/// The one-sided toolkit that segments, containers and the store share: operations of several
/// steps, membership, an order of decisions, pools of remote memory, and locks. docs/remote.md is
/// its page.
#include <dunlin/remote/agreed_order.hpp>
#include <dunlin/remote/call.hpp>
#include <dunlin/remote/coroutine.hpp>
#include <dunlin/remote/lock.hpp>
#include <dunlin/remote/membership.hpp>
#include <dunlin/remote/pool.hpp>
#include <dunlin/remote/progress.hpp>
#include <dunlin/remote/protocol.hpp>
#include <dunlin/remote/slab_pool.hpp>
#include <dunlin/remote/status.hpp>
