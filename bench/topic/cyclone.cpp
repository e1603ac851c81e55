#include "bench/topic/cyclone.hpp"

namespace dunlin::bench {
namespace {

std::string configuration(const std::string& tag, const DdsAddresses& at, const std::string& more) {
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface address=\"" +
         at.own +
         "\"/></Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" + tag +
         "</Tag><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>40"
         "</MaxAutoParticipantIndex><Peers><Peer address=\"" +
         at.other + "\"/></Peers></Discovery>" + more + "</Domain></CycloneDDS>";
}

}  // namespace

std::string cyclone_on_udp(const std::string& tag, const DdsAddresses& at) {
  return configuration(tag, at, "");
}

std::string cyclone_on_shared_memory(const std::string& tag) {
  return configuration(tag, {}, "<SharedMemory><Enable>true</Enable></SharedMemory>");
}

}  // namespace dunlin::bench
