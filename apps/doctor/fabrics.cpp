#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "doctor/examine.hpp"
#include "fabric/join/network.hpp"

/// Which fabrics would work here, over which networks and devices, and why others would not.
namespace dunlin::doctor {
namespace {

Finding shm(const Host& host) {
  Finding finding{.subject = "shm", .text = "between processes of this host"};
  finding.facts = {{"built", true}};
  const std::optional<Space> space = host.shm_space();
  if (space && space->fault == 0) return finding;
  finding.state = State::problem;
  finding.text = "has no /dev/shm";
  finding.mend = "mount -t tmpfs -o mode=1777,size=1G tmpfs /dev/shm";
  if (!space) return finding;
  finding.text = fmt::format("cannot make memory in /dev/shm: {}", std::strerror(space->fault));
  if (space->fault == EROFS) finding.mend = "mount -o remount,rw /dev/shm";
  if (space->fault == EACCES) finding.mend = "chmod 1777 /dev/shm";
  return finding;
}

Finding sim() {
  Finding finding{.subject = "sim", .text = "many nodes in one process, in virtual time"};
  finding.facts = {{"built", true}};
  return finding;
}

// --- tcp -----------------------------------------------------------------------------------------

/// What gives a host without one a network to others.
std::string mend_of_reach(const std::vector<Interface>& devices) {
  const auto other = std::find_if(devices.begin(), devices.end(),
                                  [](const Interface& device) { return !device.loopback; });
  return other == devices.end()
             ? "give this host (or container) a network device"
             : fmt::format("ip link set {0} up && ip address add ADDRESS/BITS dev {0}",
                           other->name);
}

Finding over_tcp(const Host& host) {
  Finding finding{.subject = "tcp", .text = "between hosts, over the kernel's sockets"};
  finding.facts = {{"built", host.has_tcp}, {"addresses", nlohmann::json::array()}};
  if (!host.has_tcp) {
    finding.state = State::absent;
    finding.text = "not in this build, as OpenSSL was not there";
    finding.mend = "apt-get install libssl-dev, and build again";
    return finding;
  }
  const std::vector<Interface> devices = host.interfaces();
  bool reaches_others = false;
  for (const std::string& text : host.addresses()) {
    const std::string name = text.substr(0, text.find(' '));
    finding.text += (finding.facts["addresses"].empty() ? ": " : ", ") + text;
    finding.facts["addresses"].push_back(text);
    reaches_others |= std::any_of(devices.begin(), devices.end(), [&](const Interface& device) {
      return device.name == name && device.up && !device.loopback;
    });
  }
  if (reaches_others) return finding;
  if (finding.facts["addresses"].empty()) {
    finding.state = State::problem;
    finding.text = "no interface is up, not even lo: nobody can be reached over tcp";
    finding.mend = "ip link set lo up";
    return finding;
  }
  finding.state = State::advice;
  finding.text =
      "between processes of this host only: no interface but lo is up and has an address";
  finding.mend = mend_of_reach(devices);
  return finding;
}

/// The two that it is made of have their shortcomings told already.
Finding mixed(const Host& host, const Finding& memory, const Finding& network) {
  Finding finding{.subject = "auto", .text = "shm within this host, between hosts "};
  finding.facts = {{"built", network.facts["built"]}, {"networks", host.ranking()}};
  std::string between;
  for (const std::string& one : host.ranking())
    between += (between.empty() ? "" : " if all members have such a network, else ") + one;
  finding.text += between;
  if (network.state == State::absent || network.state == State::problem) {
    finding.state = State::absent;
    finding.text = "not without tcp, see there";
  } else if (memory.state == State::problem) {
    finding.text = between + " alone, as shm does not work here, see there";
  }
  return finding;
}

// --- ofi -----------------------------------------------------------------------------------------

/// "tcp: lo 127.0.0.0/8"
struct Network {
  std::string provider;
  std::string device;
  std::string address;
};
Network network_of(const std::string& text) {
  const std::size_t colon = std::min(text.find(": "), text.size());
  const std::string rest = text.substr(std::min(colon + 2, text.size()));
  const std::size_t blank = std::min(rest.find(' '), rest.size());
  return {text.substr(0, colon), rest.substr(0, blank),
          rest.substr(std::min(blank + 1, rest.size()))};
}

void add_to_provider(const Network& network, std::vector<Finding>& providers) {
  auto at = std::find_if(providers.begin(), providers.end(),
                         [&](const Finding& part) { return part.subject == network.provider; });
  if (at == providers.end()) {
    const bool tested = network.provider == ofi::kDefaultProvider;
    at = providers.insert(at, {.subject = network.provider,
                               .state = tested ? State::good : State::absent,
                               .text = tested ? "" : "can be asked for, but is not tested: "});
    at->facts = {{"tested", tested}, {"networks", nlohmann::json::array()}};
  }
  const bool first = at->facts["networks"].empty();
  at->text += (first ? "" : ", ") + network.device + " " + network.address;
  at->facts["networks"].push_back({{"device", network.device}, {"address", network.address}});
}

/// Whether TCP reaches other hosts from here, or anybody: libfabric names addresses of devices that
/// are down as well.
void check_reach(const Host& host, Finding& finding) {
  const auto tcp = std::find_if(finding.parts.begin(), finding.parts.end(),
                                [](const Finding& part) { return part.facts["tested"]; });
  if (tcp == finding.parts.end()) return;
  const std::vector<Interface> devices = host.interfaces();
  const auto leads = [&](bool to_others) {
    return std::any_of(devices.begin(), devices.end(), [&](const Interface& device) {
      const auto& networks = tcp->facts["networks"];
      return device.up && (!to_others || !device.loopback) &&
             std::any_of(networks.begin(), networks.end(),
                         [&](const auto& network) { return network["device"] == device.name; });
    });
  };
  if (leads(true)) return;
  if (!leads(false)) {
    finding.state = State::problem;
    finding.text = "no network device is up, not even lo: nobody can be reached over tcp";
    finding.mend = "ip link set lo up";
  } else {
    finding.state = State::advice;
    finding.text =
        "between processes of this host only, over lo: no other device is up and has an "
        "address";
    finding.mend = mend_of_reach(devices);
  }
  tcp->state = finding.state;
}

Finding over_libfabric(const Host& host) {
  Finding finding{.subject = "ofi", .text = "between hosts, over libfabric"};
  finding.facts = {{"built", host.has_ofi}};
  if (!host.has_ofi) {
    finding.state = State::absent;
    finding.text = "not in this build, as libfabric or OpenSSL was not there";
    finding.mend = "apt-get install libfabric-dev libssl-dev, and build again";
    return finding;
  }
  for (const std::string& text : host.networks()) add_to_provider(network_of(text), finding.parts);
  if (finding.parts.empty()) {
    finding.state = State::problem;
    finding.text = "libfabric has no network with connected endpoints here";
    finding.mend = "ip link set lo up; fi_info -t FI_EP_MSG shows what libfabric finds";
  }
  check_reach(host, finding);
  for (const std::string& text : host.unfit_networks()) {
    const std::size_t colon = text.find(": ");
    finding.parts.push_back({.subject = text.substr(0, colon),
                             .state = State::absent,
                             .text = text.substr(std::min(text.size(), colon + 2))});
  }
  return finding;
}

// --- verbs ---------------------------------------------------------------------------------------

/// "4: ACTIVE" -> "ACTIVE"
std::string word_of(const std::optional<std::string>& text) {
  if (!text) return "unknown";
  const std::size_t colon = text->find(": ");
  return colon == std::string::npos ? *text : text->substr(colon + 2);
}

const char* transport_of(const std::string& node, const std::string& link) {
  if (node == "RNIC") return "iWARP";
  return link == "Ethernet" ? "RoCE" : "InfiniBand";
}

/// Reports on a port of a device; a port that is active can be used.
Finding port(const Host& host, const std::string& device, const std::string& number) {
  const std::string folder = "sys/class/infiniband/" + device;
  const std::string at = folder + "/ports/" + number;
  const std::string state = word_of(host.text(at + "/state"));
  const std::string link = host.text(at + "/link_layer").value_or("unknown");
  const std::string netdev = host.text(at + "/gid_attrs/ndevs/0").value_or("");
  const char* const transport = transport_of(word_of(host.text(folder + "/node_type")), link);
  Finding finding{.subject = device};
  finding.facts = {
      {"port", number}, {"transport", transport}, {"state", state}, {"netdev", netdev}};
  finding.text = fmt::format("{}, port {} is {}", transport, number, state);
  if (!netdev.empty()) finding.text += ", on " + netdev;
  if (state == "ACTIVE") return finding;
  finding.state = State::advice;
  finding.mend = !netdev.empty() ? "ip link set " + netdev + " up"
                 : link == "InfiniBand"
                     ? "see the cable, and that the subnet has a manager (opensm)"
                     : "bring its network device up (rdma link show " + device + ")";
  return finding;
}

std::vector<Finding> ports(const Host& host) {
  std::vector<Finding> all;
  for (const std::string& device : host.names("sys/class/infiniband"))
    for (const std::string& number : host.names("sys/class/infiniband/" + device + "/ports"))
      all.push_back(port(host, device, number));
  return all;
}

bool has_uverbs(const Host& host) {
  const auto names = host.names("dev/infiniband");
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("uverbs"); });
}

/// Reports what a program lacks to use a device of the kernel, the most important first.
void check_way_to_devices(const Host& host, Finding& finding) {
  const bool active = std::any_of(finding.parts.begin(), finding.parts.end(),
                                  [](const Finding& part) { return part.state == State::good; });
  const auto lacks = [&](const std::string& text, const std::string& mend) {
    finding.state = State::problem;
    finding.text = text;
    finding.mend = mend;
  };
  if (!has_uverbs(host))
    lacks("there are devices, but no /dev/infiniband/uverbs*",
          "modprobe ib_uverbs (in a container: "
          "--device /dev/infiniband)");
  else if (!host.exists("dev/infiniband/rdma_cm"))
    lacks("there are devices, but no /dev/infiniband/rdma_cm",
          "modprobe rdma_ucm (in a container: "
          "--device /dev/infiniband)");
  else if (!active)
    lacks("there are devices, but none has an active port", finding.parts.front().mend);
}

Finding verbs(const Host& host) {
  Finding finding{.subject = "verbs", .text = "between hosts, over RDMA devices"};
  finding.facts = {{"built", host.has_verbs}};
  finding.parts = ports(host);
  if (finding.parts.empty()) {
    finding.state = State::absent;
    finding.text = "no RDMA device here";
    finding.mend =
        "over any Ethernet device, slower: modprobe rdma_rxe && rdma link add rxe0 type "
        "rxe netdev eth0";
  } else if (!host.has_verbs) {
    finding.state = State::absent;
    finding.text = "there are devices, but this build of Dunlin has no verbs fabric";
  } else {
    check_way_to_devices(host, finding);
  }
  return finding;
}

}  // namespace

std::vector<Finding> examine_fabrics(const Host& host) {
  const Finding memory = shm(host);
  const Finding network = over_tcp(host);
  return {memory, sim(), network, mixed(host, memory, network), over_libfabric(host), verbs(host)};
}

}  // namespace dunlin::doctor
