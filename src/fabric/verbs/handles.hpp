#pragma once

#include <cerrno>
#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "fabric/system.hpp"

/// The objects of libibverbs and librdmacm, owned: given back at destruction, in the reverse order
/// of their members.
namespace dunlin::verbs {

template <auto Return>
struct GiveBack {
  template <class T>
  void operator()(T* object) const noexcept {
    static_cast<void>(Return(object));
  }
};
template <class T, auto Return>
using Owned = std::unique_ptr<T, GiveBack<Return>>;

using EventChannel = Owned<rdma_event_channel, rdma_destroy_event_channel>;
using Domain = Owned<ibv_pd, ibv_dealloc_pd>;
using Memory = Owned<ibv_mr, ibv_dereg_mr>;
using CompletionChannel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using CompletionQueue = Owned<ibv_cq, ibv_destroy_cq>;

/// A connection's identifier, with its queue pair if it has one.
struct DestroyId {
  void operator()(rdma_cm_id* id) const noexcept {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
};
using Id = std::unique_ptr<rdma_cm_id, DestroyId>;

/// Returns the result of a call; throws Error with the call that failed and the reason if it is
/// null.
template <class T>
T* made(T* object, const std::string& what) {
  if (object != nullptr) return object;
  throw Error(what + " failed: " + error_text(errno));
}
/// Checks a call of librdmacm, which returns -1 and sets errno if it failed.
inline void done(int result, const std::string& what) {
  if (result != 0) throw Error(what + " failed: " + error_text(errno));
}

inline Id new_id(rdma_event_channel* events) {
  rdma_cm_id* id = nullptr;
  done(rdma_create_id(events, &id, nullptr, RDMA_PS_TCP), "making a connection's identifier");
  return Id(id);
}

}  // namespace dunlin::verbs
