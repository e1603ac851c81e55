#include <array>

#include "fault_injection/command/named_faults.hpp"

/// The tests of the daemon, with a fault: `daemon_with_fault FAULT`.
namespace {

using dunlin::FaultInjection;
using dunlin::fault_injection::NamedFault;

constexpr std::array kDaemonFaults{
    NamedFault{"put_uses_the_clients_bytes", FaultInjection::put_uses_the_clients_bytes},
    NamedFault{"unlock_overtakes_the_puts", FaultInjection::unlock_overtakes_the_puts},
    NamedFault{"dead_client_is_not_told", FaultInjection::dead_client_is_not_told},
};

}  // namespace

int main(int argc, char** argv) {
  return dunlin::fault_injection::run_tests(argc, argv, kDaemonFaults);
}
