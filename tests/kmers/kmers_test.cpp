#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <dunlin/join.hpp>

#include "command.hpp"
#include "kmers/chunk.hpp"
#include "kmers/counter.hpp"
#include "kmers/found.hpp"
#include "kmers/kmer.hpp"
#include "kmers/reads.hpp"
#include "process/program.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"

namespace dunlin::kmers {
namespace {

using app::Status;

/// Files of one test.
class Folder : public test::OwnDirectory {
 public:
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(*this / name) << content;
    return *this / name;
  }
  std::string packed(const std::string& name, const std::string& content) const {
    const gzFile out = gzopen((*this / name).c_str(), "wb");
    EXPECT_EQ(gzwrite(out, content.data(), static_cast<unsigned>(content.size())),
              static_cast<int>(content.size()));
    EXPECT_EQ(gzclose(out), Z_OK);
    return *this / name;
  }
};

/// A member of a gzip file, or a block of BGZF.
std::string gzip_member(const std::string& content, bool bgzf = false) {
  std::string extra("BC\2\0\0\0", 6);  // zlib does not read the block's length behind it
  gz_header header{};
  header.extra = reinterpret_cast<Bytef*>(extra.data());
  header.extra_len = static_cast<uInt>(extra.size());
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  if (bgzf) {
    EXPECT_EQ(deflateSetHeader(&stream, &header), Z_OK);
  }
  std::string packed(content.size() + 100, '\0');
  std::string copy = content;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  EXPECT_EQ(deflateEnd(&stream), Z_OK);
  return packed;
}

std::string content_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> pieces_of(const std::string& file, std::uint32_t k) {
  ReadFile reads({.name = file, .path = file}, k);
  std::vector<std::string> all;
  for (std::string piece; reads.next(piece);) all.push_back(piece);
  return all;
}

/// The sentence about a file that is none.
std::string refusal_of(const std::string& file) {
  try {
    static_cast<void>(pieces_of(file, 5));
  } catch (const app::BadInput& error) {
    return error.what();
  }
  return "";
}

/// Letters that look like a genome, the same each time.
std::string letters(std::size_t count, std::uint64_t seed) {
  std::string text;
  for (std::uint64_t state = seed; text.size() < count;) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    text += "ACGT"[state >> 62];
  }
  return text;
}

/// What dunlin prints.
struct Ran {
  Status status = Status::ok;
  std::string out, error;
};
Ran run(std::vector<std::string> words) {
  words.insert(words.begin(), {"dunlin", "kmers"});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran result;
  result.status = app::run(static_cast<int>(arguments.size()), arguments.data());
  result.out = testing::internal::GetCapturedStdout();
  result.error = testing::internal::GetCapturedStderr();
  return result;
}

using Counts = std::map<std::string, std::uint64_t>;
Counts counts_in(const std::string& dump) {
  std::istringstream in(dump);
  Counts counts;
  std::string kmer;
  for (std::uint64_t count = 0; in >> kmer >> count;) counts[kmer] = count;
  return counts;
}

/// A count by text alone.
std::string canonical(const std::string& kmer) {
  std::string other(kmer.rbegin(), kmer.rend());
  for (char& c : other) c = c == 'A' ? 'T' : c == 'C' ? 'G' : c == 'G' ? 'C' : 'A';
  return std::min(kmer, other);
}
Counts counts_of(const std::vector<std::string>& reads, std::size_t k, std::uint64_t least) {
  Counts counts;
  for (const std::string& read : reads)
    for (std::size_t i = 0; i + k <= read.size(); ++i)
      if (const std::string kmer = read.substr(i, k);
          kmer.find_first_not_of("ACGT") == std::string::npos)
        ++counts[canonical(kmer)];
  std::erase_if(counts, [&](const auto& each) { return each.second < least; });
  return counts;
}

TEST(Kmers, AreCanonicalAndOfBasesOnly) {
  std::vector<std::string> seen;
  const auto for_each_kmer_of = [](const std::string& text, std::uint32_t k, const auto& see) {
    Chunk chunk;
    EXPECT_EQ(pack(text, 0, k, chunk), text.size());
    for_each_kmer(chunk, k, see);
  };
  for_each_kmer_of("ACGTTNggacg", 4, [&](Kmer kmer) { seen.push_back(text_of(kmer, 4)); });
  EXPECT_EQ(seen, (std::vector<std::string>{"ACGT", "AACG", "GGAC", "CGTC"}));
  int count = 0;
  for_each_kmer_of("ACG", 4, [&](Kmer) { ++count; });
  EXPECT_EQ(count, 0);
  for_each_kmer_of(letters(31, 3), kMaxK, [&](Kmer) { ++count; });
  EXPECT_EQ(count, 1);
}

TEST(Chunks, HaveEachKmerOnceWhereverTheyEnd) {
  const Folder folder;
  for (const std::uint32_t k : {1U, 2U, 21U, 31U}) {
    std::vector<std::string> reads;
    std::string fasta;
    for (std::size_t i = 0; i < 3'000; ++i) {
      reads.push_back(letters(10 + i % 97, i));
      if (i % 7 == 0) reads.back()[i % 10] = 'N';
      fasta += ">r\n" + reads.back() + "\n";
    }
    reads.push_back(letters(70'000, 5));
    const std::string file = folder.file("reads.fa", fasta + ">r\n" + reads.back() + "\n");
    ChunkReader reader({{.name = file, .path = file}}, k);
    Counts counts;
    Chunk chunk;
    std::size_t chunks = 0;
    for (; reader.next(chunk); ++chunks)
      for_each_kmer(chunk, k, [&](Kmer kmer) { ++counts[text_of(kmer, k)]; });
    EXPECT_GT(chunks, 10U);
    EXPECT_EQ(counts, counts_of(reads, k, 1)) << k;
  }
}

TEST(Chunks, ThatAPeerHasMadeUpAreReadWithinTheirBytes) {
  Chunk chunk{.bytes = 0xffffffff};
  chunk.runs.fill(0xff);
  std::size_t kmers = 0;
  for_each_kmer(chunk, 3, [&](Kmer) { ++kmers; });
  EXPECT_LE(kmers, kChunkKmers);
  EXPECT_EQ(chunk.used().size(), kChunkBytes) << "that many are kept for the next pass";
}

/// 2^32 occurrences take days to count: the map says that there were almost as many before.
TEST(Counts, ThatHaveNoRoomAreNotBegunAnew) {
  for (const Style style : {Style::one_sided, Style::message}) {
    const Folder folder;
    const auto fabric = join({.group = test::fresh_group(), .members = 1});
    Containers containers(*fabric);
    const CountOptions options{.files = {}, .k = 5, .processes = 1, .rounds = 1};
    PartTimes times;
    Ranges found(folder / ".", options.k);
    KmerCounter counter(containers, options, 1'000, style, times, found);
    Chunk chunk;
    ASSERT_EQ(pack("AAAAAA", 0, options.k, chunk), 6U);  // the same k-mer twice
    counter.add(chunk);
    counter.finish();
    counter.begin_round(0, 100);
    ASSERT_TRUE(counter.map().assign(Kmer{0}, UINT32_MAX - 1).outcome().ok());
    const std::string why = test::what_is_thrown_by([&] {
      counter.add(chunk);
      counter.finish();
    });
    EXPECT_TRUE(test::contains(why, "occurs more than 4294967295 times")) << name_of(style) << why;
  }
}

TEST(FilesOfCounts, DoNotEndWhereTheyCannotBeRead) {
  const Folder folder;
  FoundFile file(folder / ".");  // which opens as a file does
  FoundKmer found{};
  EXPECT_TRUE(test::contains(test::what_is_thrown_by([&] { static_cast<void>(file.next(found)); }),
                             "cannot be read"));
}

TEST(ReadFiles, AreFastaOrFastqPackedOrNot) {
  const Folder folder;
  const std::vector<std::string> expected{"ACGTAC", "GGG"};
  const std::string fasta = ">a\nACG\r\nTAC\n\n>b\nGGG";
  const std::string fastq = "@a\nACGTAC\n+\n@@>+II\n\n@b x\nGGG\n+b\nIII\n";
  EXPECT_EQ(pieces_of(folder.file("a.fa", fasta), 3), expected);
  EXPECT_EQ(pieces_of(folder.file("a.fq", fastq), 3), expected);
  EXPECT_EQ(pieces_of(folder.packed("a.fa.gz", fasta), 3), expected);
  EXPECT_EQ(pieces_of(folder.packed("a.fq.gz", fastq), 3), expected);
  EXPECT_TRUE(pieces_of(folder.file("empty", ""), 3).empty());
}

TEST(ReadFiles, MayHaveAnyLineEndsAndBlanksBeforeThem) {
  const Folder folder;
  const std::vector<std::string> expected{"ACGTAC", "GGG"};
  for (const std::string end : {"\n", "\r", "\r\n", " \t\n", " \r\n"}) {
    const auto with_ends = [&](const std::vector<std::string>& lines) {
      std::string text;
      for (const std::string& line : lines) text += line + end;
      return text;
    };
    EXPECT_EQ(pieces_of(folder.file("a.fa", with_ends({">a", "ACG", "TAC", ">b", "GGG"})), 3),
              expected);
    EXPECT_EQ(pieces_of(folder.file("a.fq", with_ends({"@a", "ACGTAC", "+", "@@>+II", "@b", "GGG",
                                                       "+", "III"})),
                        3),
              expected);
  }
  // The buffer ends between CR and LF.
  std::string long_line = ">" + std::string((1U << 18U) - 2, 'x');
  EXPECT_EQ(pieces_of(folder.file("a.fa", long_line + "\r\nACG\r\n"), 3),
            std::vector<std::string>{"ACG"});
}

TEST(ReadFiles, MayEndWithAnEmptyReadAndNoLineEnd) {
  const Folder folder;
  const std::vector<std::string> expected{"ACG", ""};
  for (const char* rest : {"@b\n\n+\n\n", "@b\n\n+\n", "@b\n\n+"})
    EXPECT_EQ(pieces_of(folder.file("a.fq", std::string("@a\nACG\n+\nIII\n") + rest), 3), expected);
}

TEST(ReadFiles, OfSeveralGzipMembersAreReadToTheirLastByte) {
  const Folder folder;
  const std::vector<std::string> expected{"ACGTAC", "GGG"};
  const std::string one = gzip_member(">a\nACGTAC\n"), two = gzip_member(">b\nGGG\n");
  EXPECT_EQ(pieces_of(folder.file("two.gz", one + two), 3), expected);
  for (std::size_t size = 1; size < one.size() + two.size(); ++size) {
    if (size == one.size()) continue;  // a whole file of one member
    EXPECT_NE(refusal_of(folder.file("cut.gz", (one + two).substr(0, size))), "") << size;
  }
  EXPECT_NE(refusal_of(folder.file("cut.gz", (one + two).substr(0, one.size() + two.size() / 2)))
                .find("it ends within a gzip member"),
            std::string::npos);
  for (const std::string& tail : {std::string(">b\nGGG\n"), std::string(50, '\0'), two.substr(1)}) {
    const std::string why = refusal_of(folder.file("tail.gz", one + tail));
    EXPECT_NE(
        why.find("what follows the gzip member that ends at offset " + std::to_string(one.size())),
        std::string::npos)
        << why;
  }
}

TEST(ReadFiles, OfBgzfAreNotCutOffUnnoticed) {
  const Folder folder;
  const std::string blocks = gzip_member(">a\nACGTAC\n", true) + gzip_member(">b\nGGG\n", true);
  const std::string whole = blocks + gzip_member("", true);
  EXPECT_EQ(pieces_of(folder.file("a.fa.gz", whole), 3),
            (std::vector<std::string>{"ACGTAC", "GGG"}));
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_NE(refusal_of(folder.file("cut.gz", whole.substr(0, size))), "") << size;
  EXPECT_NE(refusal_of(folder.file("cut.gz", blocks)).find("lacks the empty block at its end"),
            std::string::npos);
}

TEST(ReadFiles, CutLongReadsSoThatEachKmerIsInOnePiece) {
  const Folder folder;
  const std::string genome = letters(100'000, 7);
  std::string fasta = ">genome\n";
  for (std::size_t i = 0; i < genome.size(); i += 70) fasta += genome.substr(i, 70) + "\n";
  const auto pieces = pieces_of(folder.file("genome.fa", fasta + ">next\nACGTA\n"), 5);
  EXPECT_GT(pieces.size(), 5U);
  std::vector<std::string> reads{genome, "ACGTA"};
  EXPECT_EQ(counts_of(pieces, 5, 1), counts_of(reads, 5, 1));
}

TEST(ReadFiles, NameTheLineOfWhatIsNoRead) {
  const Folder folder;
  const auto refusal = [&](const std::string& content) {
    const std::string file = folder.file("bad", content), text = refusal_of(file);
    const std::string begin = "\"" + file + "\": ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  EXPECT_EQ(refusal("ACGT\n"), "line 1: a FASTA file begins with '>', a FASTQ file with '@'");
  EXPECT_EQ(refusal(">a\nACGT\nAC1T\n"), "line 3: '1' is no letter of a read");
  EXPECT_EQ(refusal("@a\nACGT\n+\nIIII\nACGT\n"), "line 5: a read begins with '@'");
  EXPECT_EQ(refusal("@a\nACGT\n+\nIII\nI I\n"), "line 5: a read of 4 letters has 6 qualities");
  EXPECT_EQ(refusal("@a\nACGT\n"), "line 2: the file ends within a read, before its '+'");
  EXPECT_EQ(refusal("@a\nACGT\n+\n"), "line 3: the file ends within a read, before its qualities");
  std::string cut = content_of(folder.packed("whole.gz", ">a\n" + letters(10'000, 1)));
  cut.resize(cut.size() / 2);
  EXPECT_NE(refusal(cut).find("the file is damaged or cut off"), std::string::npos);
  EXPECT_NE(refusal_of(folder / "none").find("cannot be opened"), std::string::npos);
}

struct CountsByStyle : testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, CountsByStyle, testing::Values("automatic", "one_sided", "message"),
                         [](const auto& one) { return one.param; });

TEST_P(CountsByStyle, AreThoseOfTheText) {
  const Folder folder;
  std::vector<std::string> reads;
  const std::string genome = letters(2'000, 11);
  std::string fastq;
  for (std::size_t i = 0; i < 60; ++i) {
    reads.push_back(genome.substr(i * 30, 100));
    if (i % 10 == 0) reads.back()[50] = 'N';
    fastq += "@r" + std::to_string(i) + "\n" + reads.back() + "\n+\n" +
             std::string(reads.back().size(), 'I') + "\n";
  }
  const std::string file = folder.packed("reads.fq.gz", fastq), dump = folder / "dump",
                    histogram = folder / "histogram", report = folder / "report.html";
  for (const bool all : {false, true}) {
    const std::string rounds = all ? "1" : "3";
    std::vector<std::string> words{"--rounds", rounds,     file,     "-k",          "15",
                                   "--style",  GetParam(), "--dump", dump,          "--processes",
                                   "3",        "--report", report,   "--histogram", histogram};
    if (all) words.push_back("--all");
    const Ran result = run(words);
    ASSERT_EQ(result.status, Status::ok) << result.error;
    const Counts expected = counts_of(reads, 15, all ? 1 : 2);
    EXPECT_EQ(counts_in(content_of(dump)), expected);
    std::map<std::string, std::uint64_t> sizes;
    for (const auto& [kmer, count] : expected) ++sizes[std::to_string(count)];
    EXPECT_EQ(counts_in(content_of(histogram)), sizes);
    EXPECT_NE(result.out.find("member 2: "), std::string::npos);
    const std::string page = content_of(report);
    const std::size_t begins = page.find("{\"page\":\"kmers\"");
    ASSERT_NE(begins, std::string::npos);
    const auto data = nlohmann::json::parse(page.substr(begins, page.find('<', begins) - begins));
    std::map<std::string, std::uint64_t> drawn;
    for (const auto& bar : data["data"]["histogram"])
      drawn[std::to_string(bar[0].get<std::uint64_t>())] = bar[1].get<std::uint64_t>();
    EXPECT_EQ(drawn, sizes);
    EXPECT_EQ(data["data"]["members"].size(), 3U);
  }
}

TEST(KmersCommand, SaysWhatIsWrongWithReadsAndOptions) {
  const Folder folder;
  const std::string bad = folder.file("bad.fa", ">a\nAC!T\n"),
                    good = folder.file("a.fa", ">a\nACGT\n");
  const Ran reads = run({bad});
  EXPECT_EQ(reads.status, Status::bad_input);
  EXPECT_NE(reads.error.find("line 2: '!' is no letter of a read"), std::string::npos)
      << reads.error;
  EXPECT_EQ(run({good, "-k", "32"}).status, Status::bad_input);
  EXPECT_EQ(run({good, "-k", "0"}).status, Status::bad_input);
  EXPECT_EQ(run({good, "--rounds", "0"}).status, Status::bad_input);
  EXPECT_EQ(run({good, "--style", "loud"}).status, Status::bad_input);
  EXPECT_EQ(run({good, "--fabric", "sim"}).status, Status::bad_input);
  EXPECT_EQ(run({folder / "none"}).status, Status::bad_input);
  const std::string read = ">a\n" + letters(2'000, 5) + "\n";
  const Ran full = run({folder.file("b.fa", read + read), "--all", "--slots", "20"});
  EXPECT_EQ(full.status, Status::could_not_run);
  EXPECT_NE(full.error.find("--slots"), std::string::npos) << full.error;
}

/// Members that have read all of their files, or have none, count what others read.
TEST(KmersCommand, CountsSeveralFilesThatAreReadByDifferentMembers) {
  const Folder folder;
  std::vector<std::string> reads;
  std::vector<std::string> words{"-k", "9", "--all", "--processes", "3", "--dump", folder / "dump"};
  for (std::size_t i = 0; i < 5; ++i) {
    reads.push_back(letters(i * i * 9'000, i % 2));
    words.push_back(folder.file(std::to_string(i), ">a\n" + reads.back() + "\n"));
  }
  const Ran result = run(words);
  ASSERT_EQ(result.status, Status::ok) << result.error;
  EXPECT_EQ(counts_in(content_of(folder / "dump")), counts_of(reads, 9, 1));
}

/// A pipe can be read once.
TEST(KmersCommand, CountsAllThatComesThroughAPipe) {
  const Folder folder;
  const std::string pipe = folder / "pipe", dump = folder / "dump";
  const std::string genome = letters(30'000, 3);
  const std::string content = gzip_member(">a\n" + genome + "\n>b\n" + genome + "\n");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char* processes : {"1", "3"}) {
    std::thread writer([&] { std::ofstream(pipe) << content; });
    const Ran result = run({pipe, "-k", "11", "--processes", processes, "--dump", dump});
    writer.join();
    ASSERT_EQ(result.status, Status::ok) << result.error;
    EXPECT_EQ(counts_in(content_of(dump)), counts_of({genome, genome}, 11, 2));
  }
}

TEST(KmersCommand, RefusesWhatItCannotReadTwice) {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << ">a\nACGT\n"; });
  const Ran result = run({pipe, pipe});
  writer.join();
  EXPECT_EQ(result.status, Status::bad_input);
  EXPECT_NE(result.error.find("is named twice"), std::string::npos) << result.error;
  for (const std::string& name : {std::string("/dev/zero"), folder / ""}) {
    const Ran refused = run({name});
    EXPECT_EQ(refused.status, Status::bad_input);
    EXPECT_NE(refused.error.find("is neither a file nor a pipe"), std::string::npos)
        << refused.error;
  }
}

TEST(KmersCommand, HasTheCountsOfJellyfish) {
  if (!process::program_exists("jellyfish")) GTEST_SKIP() << "there is no jellyfish";
  const std::string data = "/usr/share/doc/gatb-core/test/db/reads2.fa.gz";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "gatb-core-testdata is not installed";
  for (const char* way : {"--all", "--style=message"}) {
    const Ran result = run({data, "--jellyfish", "-k", "17", way});
    EXPECT_EQ(result.status, Status::ok) << result.error;
    EXPECT_NE(result.out.find("Jellyfish has the same"), std::string::npos) << result.out;
  }
}

/// A jellyfish of our own, which has one k-mer too many.
TEST(KmersCommand, EndsWithOneIfJellyfishDiffers) {
  const Folder folder;
  const std::string program =
      folder.file("jellyfish",
                  "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                  "echo 'ACGTA 3' > \"$out\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH"), ours = folder / "";
  ASSERT_EQ(setenv("PATH", (ours + ":" + path).c_str(), 1), 0);
  const Ran result = run({folder.file("a.fa", ">a\nCCCCC\n"), "-k", "5", "--all", "--jellyfish"});
  ASSERT_EQ(setenv("PATH", path.c_str(), 1), 0);
  EXPECT_EQ(result.status, Status::failed) << result.error;
  EXPECT_NE(result.out.find("Jellyfish differs in 2 k-mers: ACGTA occurs 0 times here, and 3 times "
                            "for Jellyfish"),
            std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace dunlin::kmers
