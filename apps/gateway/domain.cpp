#include "gateway/domain.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <dunlin/error.hpp>

struct ddsi_domaingv;
struct ddsi_serdata;

/// Takes the place of a function of Cyclone DDS, which reads the types that other applications of
/// the domain tell each other. Types of some members, such as uint8, end a process of Cyclone DDS
/// 0.10.2 there (a null pointer in its type library). The gateway asks for no type, so it needs no
/// answer. The dynamic linker prefers this definition, because it is in the program.
extern "C" __attribute__((visibility("default"))) void ddsi_tl_handle_reply(
    ddsi_domaingv* /*domain*/, ddsi_serdata* /*reply*/) {}

namespace dunlin::app::gateway {
namespace {

constexpr std::size_t kEndpointsATake = 32;
// The ends of their instances come after they have gone, whenever Cyclone's collector gets to it.
constexpr std::size_t kGoneEndpoints = 1'024;

struct DeleteListener {
  void operator()(dds_listener_t* listener) const noexcept { dds_delete_listener(listener); }
};

/// What a gateway cannot carry of a writer, although its readers match it.
std::string uncarried(const dds_qos_t* qos) {
  dds_presentation_access_scope_kind_t scope{};
  bool coherent = false;
  bool ordered = false;
  if (dds_qget_presentation(qos, &scope, &coherent, &ordered) && coherent)
    return "presentation: coherent_access is offered; changes of a topic are carried one by one";
  return {};
}

/// By the last byte of a GUID, the kind of an entity in RTPS: 2 and 7 are a writer and a reader of
/// a type with a key, 3 and 4 of one without.
bool has_key(const std::array<std::uint8_t, 16>& guid) {
  const unsigned kind = guid.back() & 0x3fU;
  return kind == 2 || kind == 7;
}

std::string user_data_of(const dds_qos_t* qos) {
  void* data = nullptr;
  std::size_t bytes = 0;
  if (!dds_qget_userdata(qos, &data, &bytes) || data == nullptr) return {};
  std::string text(static_cast<const char*>(data), bytes);
  dds_free(data);
  return text;
}

}  // namespace

dds_return_t check_dds(dds_return_t result, const std::string& what) {
  if (result < 0) throw Error(fmt::format("{}: {}", what, dds_strretcode(result)));
  return result;
}

Domain::Domain(std::uint32_t id, std::string identity)
    : id_(id), identity_(std::move(identity)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_.get() < 0) throw Error("no eventfd can be made");
  const std::unique_ptr<dds_listener_t, DeleteListener> listener(dds_create_listener(this));
  const auto wake = [](dds_entity_t, void* domain) { static_cast<Domain*>(domain)->wake(); };
  dds_lset_data_available(listener.get(), wake);
  dds_lset_requested_incompatible_qos(
      listener.get(), [](dds_entity_t, dds_requested_incompatible_qos_status_t, void* domain) {
        static_cast<Domain*>(domain)->wake();
      });
  dds_lset_offered_incompatible_qos(
      listener.get(), [](dds_entity_t, dds_offered_incompatible_qos_status_t, void* domain) {
        static_cast<Domain*>(domain)->wake();
      });
  const std::string what = fmt::format("DDS domain {} cannot be entered (CYCLONEDDS_URI)", id);
  participant_ = Entity(dds_create_participant(id, nullptr, listener.get()), what);
  publications_ = Entity(dds_create_reader(participant_.get(), DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
                                           nullptr, listener.get()),
                         what);
  subscriptions_ = Entity(dds_create_reader(participant_.get(), DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION,
                                            nullptr, listener.get()),
                          what);
}

Domain::~Domain() { participant_ = Entity(); }

void Domain::wake() noexcept {
  if (woken_.exchange(true)) return;
  const std::uint64_t one = 1;
  // It cannot fail: the count is far from its end, as look() takes it back.
  [[maybe_unused]] const ssize_t wrote = ::write(event_.get(), &one, sizeof one);
}

bool Domain::look(bool forget) {
  if (!woken_.load(std::memory_order_relaxed)) return false;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
  woken_.store(false);
  for (; forget && gone_.size() > kGoneEndpoints; gone_.pop_front()) {
    const auto oldest = endpoints_.find(gone_.front());
    if (oldest == endpoints_.end() || !oldest->second.gone) continue;
    if (on_forgotten) on_forgotten(oldest->first);
    endpoints_.erase(oldest);
  }
  take_endpoints(publications_.get(), true);
  take_endpoints(subscriptions_.get(), false);
  return true;
}

void Domain::take_endpoints(dds_entity_t reader, bool writes) {
  std::array<void*, kEndpointsATake> samples{};
  std::array<dds_sample_info_t, kEndpointsATake> infos{};
  for (;;) {
    const dds_return_t count =
        check_dds(dds_take(reader, samples.data(), infos.data(), samples.size(), samples.size()),
                  "discovery of DDS");
    if (count == 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto& from = *static_cast<const dds_builtintopic_endpoint_t*>(samples[i]);
      if (infos[i].valid_data) {
        RemoteEndpoint made{.topic = from.topic_name,
                            .type = from.type_name,
                            .policy = writes ? uncarried(from.qos) : std::string(),
                            .writes = writes,
                            .of_gateway = user_data_of(from.qos) == identity_};
        std::memcpy(made.guid.data(), from.key.v, made.guid.size());
        made.keyed = has_key(made.guid);
        const auto& known =
            endpoints_.insert_or_assign(infos[i].instance_handle, std::move(made)).first->second;
        if (on_endpoint) on_endpoint(known);
      }
      if (infos[i].instance_state != DDS_ALIVE_INSTANCE_STATE)
        if (const auto found = endpoints_.find(infos[i].instance_handle);
            found != endpoints_.end() && !std::exchange(found->second.gone, true))
          gone_.push_back(found->first);
    }
    dds_return_loan(reader, samples.data(), count);
  }
}

const RemoteEndpoint* Domain::find(dds_instance_handle_t publication) const {
  const auto found = endpoints_.find(publication);
  return found == endpoints_.end() ? nullptr : &found->second;
}

}  // namespace dunlin::app::gateway
