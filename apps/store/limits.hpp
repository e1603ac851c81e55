#pragma once

#include <cstddef>
#include <cstdint>

/// The limits of `dunlin store serve`, which no client can exceed.
namespace dunlin::app::resp {

inline constexpr const char* kDefaultEndpoint = "127.0.0.1:6390";
inline constexpr std::size_t kMaxArguments = std::size_t{1} << 16;      // in one request
inline constexpr std::size_t kMaxArgumentBytes = std::size_t{1} << 20;  // a value, or a key
inline constexpr std::size_t kMaxRequestBytes = std::size_t{8} << 20;   // all arguments together
inline constexpr std::size_t kMaxInlineBytes = std::size_t{1} << 16;    // a request in one line
inline constexpr std::size_t kMaxHeaderBytes = 32;                      // "*3" or "$1048576"
// A request over these limits is read to its end and refused; one over those ends the connection.
inline constexpr std::size_t kMaxRefusedArguments = std::size_t{1} << 20;
inline constexpr std::size_t kMaxRefusedBytes = std::size_t{1} << 29;  // in one argument
// These are for clients that have not given the password yet.
inline constexpr std::size_t kMaxStrangerArguments = 10;
inline constexpr std::size_t kMaxStrangerArgumentBytes = std::size_t{1} << 14;

inline constexpr std::size_t kInputBytes = std::size_t{1} << 14;     // a new connection's buffer
inline constexpr std::size_t kMaxBacklog = std::size_t{1} << 18;     // replies that wait to be sent
inline constexpr std::size_t kMaxReplyBytes = std::size_t{8} << 20;  // the values of one HMGET
inline constexpr std::size_t kMaxTransactionWork = std::size_t{64} << 20;  // bytes of values
inline constexpr std::size_t kMaxScriptBytes = std::size_t{1} << 16;       // a script's text
inline constexpr std::size_t kMaxScripts = 1024;                       // those that a server keeps
inline constexpr std::size_t kMaxScriptsBytes = std::size_t{8} << 20;  // all their texts together
inline constexpr std::size_t kMaxScriptMemory = std::size_t{8} << 20;  // a running script's
inline constexpr std::uint64_t kMaxScriptNs = 100'000'000;             // processor time
// Work between two polls of the fabric: a member that does not poll for long is expelled. One
// command more may be begun within this time, and take longer.
inline constexpr std::uint64_t kMaxWorkMs = 20;
inline constexpr std::size_t kMaxPatternBytes = 512;        // SCAN MATCH; all of one CONFIG GET
inline constexpr std::size_t kMaxElementPatternBytes = 64;  // HSCAN MATCH: a hash is one step
inline constexpr std::size_t kMaxClientNameBytes = 256;     // CLIENT SETNAME
inline constexpr std::uint32_t kMaxJobs = 64;               // commands of one connection under way
inline constexpr std::uint32_t kMaxCalls = 1024;  // calls on the store under way, of all clients
// Steps that one SCAN takes at most. A step finds keys, unless a member is empty or has failed, or
// the step's keys have expired.
inline constexpr std::uint32_t kLeastScanSteps = 64;
inline constexpr std::uint32_t kMaxScanSteps = 512;
inline constexpr std::uint32_t kKeysOfAScanStep = 8;  // more, if MATCH lets few through
inline constexpr std::uint32_t kMaxEmptyScanSteps = 4096;
inline constexpr int kMaxEvents = 256;  // clients' events in one turn of the loop
inline constexpr std::uint32_t kMaxClients = 1 << 16;
inline constexpr std::size_t kMaxAllInputBytes = std::size_t{1} << 30;  // all connections together

static_assert(kMaxArgumentBytes + kMaxHeaderBytes < kMaxRequestBytes);
static_assert(kMaxArgumentBytes < kMaxReplyBytes, "a hash has room in one reply");
static_assert(kInputBytes <= kMaxInlineBytes);

}  // namespace dunlin::app::resp
