#include <csignal>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "fabric/mapping/mapping.hpp"
#include "support/process.hpp"

namespace dunlin::mapping {
namespace {

using test::Parent;
using test::Process;

MappingInfo sample() {
  return {.kind = MappingKind::region,
          .owner_pid = 77,
          .owner_uid = 5,
          .owner_rank = 1,
          .members = 3,
          .incarnation = 99,
          .generation = 4,
          .layout_hash = 1234,
          .bytes = 10'000,
          .group = "rack7",
          .member = "b",
          .region = "table",
          .layout_text = std::string(5000, 't')};
}

/// The fault that the reader finds in a sound header after `spoil`.
std::string fault_after(const std::function<void(MappingHeader&)>& spoil) {
  MappingHeader header{};
  header.magic = kMappingMagic;
  header.version = kMappingVersion;
  header.kind = MappingKind::region;
  header.members = 1;
  header.payload_bytes = 64;
  header.payload_offset = payload_offset(0);
  const std::uint64_t file_bytes = header.payload_offset + header.payload_bytes;
  EXPECT_EQ(fault_of(header, file_bytes), "");
  spoil(header);
  return fault_of(header, file_bytes);
}

TEST(Segment, IsZeroedAndOnlyForItsUser) {
  const OwnMapping segment = create_mapping(sample(), std::nullopt);
  struct stat status {};
  ASSERT_EQ(fstat(segment.file.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_nlink, 0u) << "a segment must have no name";
  for (std::byte byte : segment.mapping->memory()) ASSERT_EQ(byte, std::byte{0});
}

TEST(Segment, IsForItsAccessGroupIfThereIsOne) {
  const OwnMapping segment = create_mapping(sample(), getegid());
  struct stat status {};
  ASSERT_EQ(fstat(segment.file.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0660u);
  EXPECT_EQ(status.st_gid, getegid());
}

TEST(Segment, TellsAReaderEverythingAboutItself) {
  const OwnMapping segment = create_mapping(sample(), std::nullopt);
  const MappingInfo info = read_mapping_info(segment.file), expected = sample();
  EXPECT_EQ(info.kind, expected.kind);
  EXPECT_EQ(info.owner_pid, expected.owner_pid);
  EXPECT_EQ(info.owner_uid, expected.owner_uid);
  EXPECT_EQ(info.owner_rank, expected.owner_rank);
  EXPECT_EQ(info.members, expected.members);
  EXPECT_EQ(info.incarnation, expected.incarnation);
  EXPECT_EQ(info.generation, expected.generation);
  EXPECT_EQ(info.layout_hash, expected.layout_hash);
  EXPECT_EQ(info.bytes, expected.bytes);
  EXPECT_EQ(info.group, expected.group);
  EXPECT_EQ(info.member, expected.member);
  EXPECT_EQ(info.region, expected.region);
  EXPECT_EQ(info.layout_text, expected.layout_text);
}

TEST(Segment, IsTheSameMemoryForAPeerInTheSameProcess) {
  const OwnMapping segment = create_mapping(sample(), std::nullopt);
  const PeerMapping peer = map_peer(segment.file);
  EXPECT_EQ(peer.mapping->memory().data(), segment.mapping->memory().data());
}

TEST(Segment, IsTheSameBytesForAReaderElsewhere) {
  const OwnMapping segment = create_mapping(sample(), std::nullopt);
  const Mapping reader(segment.file, payload_offset(sample().layout_text.size()), sample().bytes,
                       PROT_READ);
  EXPECT_NE(reader.memory().data(), segment.mapping->memory().data());
  segment.mapping->memory().back() = std::byte{9};
  EXPECT_EQ(reader.memory().back(), std::byte{9});
}

TEST(Segment, SaysHowMuchIsMissingWhenTheMemoryIsFull) {
  MappingInfo huge = sample();
  huge.bytes = std::uint64_t{1} << 50;
  try {
    const OwnMapping segment = create_mapping(huge, std::nullopt);
    ADD_FAILURE() << "a petabyte of shared memory?";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(std::to_string(huge.bytes + payload_offset(5000)) + " bytes are needed"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("are free in /dev/shm"), std::string::npos) << text;
    EXPECT_NE(text.find("remount"), std::string::npos) << text;
  }
}

TEST(Segment, IsNotBelievedWhenItsFileIsShort) {
  const OwnMapping segment = create_mapping(sample(), std::nullopt);
  ASSERT_EQ(ftruncate(segment.file.get(), kMappingPageBytes), 0);
  EXPECT_THROW(static_cast<void>(map_peer(segment.file)), Error);
  ASSERT_EQ(ftruncate(segment.file.get(), 10), 0);
  EXPECT_THROW(static_cast<void>(map_peer(segment.file)), Error);
}

TEST(Segment, IsNotAnythingElse) {
  EXPECT_THROW(static_cast<void>(map_peer(Descriptor(open("/dev/null", O_RDWR)))), Error);
  EXPECT_THROW(static_cast<void>(map_peer(Descriptor(open("/proc/self/exe", O_RDONLY)))), Error);
}

TEST(MappingHeader, IsRefusedForEachImpossibleField) {
  using H = MappingHeader;
  EXPECT_NE(fault_after([](H& h) { h.magic[0] = 'X'; }), "");
  EXPECT_NE(fault_after([](H& h) { h.version = 2; }), "");
  EXPECT_NE(fault_after([](H& h) { h.kind = MappingKind{9}; }), "");
  EXPECT_NE(fault_after([](H& h) { h.members = 0; }), "");
  EXPECT_NE(fault_after([](H& h) { h.members = kMaxRanks + 1; }), "");
  EXPECT_NE(fault_after([](H& h) { h.owner_rank = 1; }), "");
  EXPECT_NE(fault_after([](H& h) { h.payload_bytes = 0; }), "");
  EXPECT_NE(fault_after([](H& h) { h.payload_bytes = 65; }), "");
  EXPECT_NE(fault_after([](H& h) { h.payload_bytes = UINT64_MAX - 100; }), "");
  EXPECT_NE(fault_after([](H& h) { h.payload_offset = 0; }), "");
  EXPECT_NE(fault_after([](H& h) { h.layout_text_bytes = UINT32_MAX; }), "");
  EXPECT_NE(fault_after([](H& h) { h.group.fill('g'); }), "");
  EXPECT_NE(fault_after([](H& h) { h.member.fill('m'); }), "");
  EXPECT_NE(fault_after([](H& h) { h.region.fill('r'); }), "");
}

TEST(Segment, IsReservedThoughSignalsKeepComing) {
  Process profiled([](Parent&) {
    if (std::signal(SIGPROF, [](int) {}) == SIG_ERR) return 2;
    const itimerval often{.it_interval = {0, 10'000}, .it_value = {0, 10'000}};
    if (setitimer(ITIMER_PROF, &often, nullptr) != 0) return 3;
    static_cast<void>(mapping::create_mapping({.bytes = 64 << 20}, std::nullopt));
    return 0;
  });
  EXPECT_EQ(profiled.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin::mapping
