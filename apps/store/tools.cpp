#include "store/tools.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "endpoint.hpp"
#include "read_file.hpp"
#include "standard_output.hpp"
#include "store/client.hpp"
#include "store/progress_bar.hpp"
#include "store/request_parser.hpp"
#include "text.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kInPipeline = 64;
constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr std::string_view kKeysAStep = "64";
// Names and values of hash fields, or scores and members, in a request.
constexpr std::size_t kWordsOfFields = 2'000;
static_assert(kWordsOfFields % 2 == 0 && kWordsOfFields + 2 <= kMaxArguments);
constexpr std::int64_t kNoTtl = -1;  // what PTTL says

Client connect(const ToolOptions& options) {
  const std::string password = read_secret_file(options.password_file, "--password-file");
  return {Endpoint::parse("--resp", options.endpoint, kDefaultEndpoint), password};
}

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Null for "-".
File open_file(const std::string& path, const char* mode) {
  if (path == "-") return nullptr;
  File file(std::fopen(path.c_str(), mode));
  if (!file) throw BadInput(fmt::format("{}: {}", in_quotes(path), std::strerror(errno)));
  return file;
}

std::uint64_t size_of(std::FILE* file) {
  if (file == nullptr || std::fseek(file, 0, SEEK_END) != 0) return 0;
  const long bytes = std::ftell(file);
  std::rewind(file);
  return bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes);
}

std::string read_standard_input() {
  std::string text;
  std::array<char, kReadBytes> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    text.append(part.data(), count);
    if (text.size() > kMaxArgumentBytes)
      throw BadInput(
          fmt::format("standard input: a value has at most {} bytes", kMaxArgumentBytes));
  }
  return text;
}

/// Requests that are sent, and whose replies are taken some at a time.
class Loader {
 public:
  explicit Loader(Client& client) noexcept : client_(client) {}
  void send(const Client::Words& words) {
    client_.send(words);
    ++requests_;
    if (++waiting_ == kInPipeline) take_all();
  }
  void take_all() {
    for (; waiting_ > 0; --waiting_) client_.take();
  }
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }

 private:
  Client& client_;
  std::uint64_t requests_ = 0;
  std::size_t waiting_ = 0;
};

/// Sends what is whole of the text, and drops it there; returns how many bytes that were.
std::size_t send_requests(std::string& text, const std::string& path, RequestParser& parser,
                          Loader& loader) {
  std::size_t begin = 0;
  for (;;) {
    switch (parser.parse(std::string_view(text).substr(begin))) {
      case RequestParser::Parsed::request: {
        const auto words = parser.arguments();
        if (!words.empty()) loader.send(Client::Words(words.begin(), words.end()));
        begin += parser.bytes();
        parser.next();
        break;
      }
      case RequestParser::Parsed::part:
        text.erase(0, begin);
        return begin;
      case RequestParser::Parsed::skipped:  // the server would refuse it
      case RequestParser::Parsed::refused:
      case RequestParser::Parsed::mistake:
        throw BadInput(fmt::format("{}: request {}: {}", in_quotes(path), loader.requests() + 1,
                                   parser.mistake()));
    }
  }
}

std::string request_of(const Client::Words& words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words)
    text.append(fmt::format("${}\r\n", word.size())).append(word).append("\r\n");
  return text;
}

/// The requests that make a hash or a sorted set anew, each with no more parts than a request has
/// room for.
std::string requests_for_parts(const std::string& key, bool is_sorted_set,
                               const std::vector<Client::Answer>& parts) {
  std::string text = request_of({"DEL", key});  // removes what the key held before
  for (std::size_t begin = 0; begin < parts.size(); begin += kWordsOfFields) {
    Client::Words words{is_sorted_set ? "ZADD" : "HSET", key};
    const std::size_t end = std::min(parts.size(), begin + kWordsOfFields);
    // ZADD takes the score first, and a range has it behind the member.
    for (std::size_t i = begin; i < end; ++i)
      words.push_back(parts[is_sorted_set ? i ^ 1 : i].text);
    text += request_of(words);
  }
  return text;
}

/// What makes this key anew; nothing if it has gone. `ttl_ms` is what PTTL says, which was asked
/// for behind the value: the key may have expired in between.
std::string requests_for(const std::string& key, const std::string& type,
                         const Client::Answer& value, std::int64_t ttl_ms) {
  const bool has_ttl = ttl_ms != kNoTtl;
  if (has_ttl && ttl_ms <= 0) return {};
  const std::string ttl = fmt::format("{}", ttl_ms);
  if (value.kind == Client::Answer::Kind::text) {
    Client::Words words{"SET", key, value.text};
    if (has_ttl) words.insert(words.end(), {"PX", ttl});
    return request_of(words);
  }
  if (value.list.empty() || value.list.size() % 2 != 0) return {};
  return requests_for_parts(key, type == "zset", value.list) +
         (has_ttl ? request_of({"PEXPIRE", key, ttl}) : std::string());
}

/// Keys that a dump lacks.
struct PassedOver {
  std::uint64_t of_other_type = 0;
  std::uint64_t lost = 0;

  void count(const Client::Answer& error) {
    if (error.text.starts_with("WRONGTYPE ")) {
      ++of_other_type;
    } else if (error.text.starts_with("CLUSTERDOWN ")) {
      ++lost;
    } else {
      complain_of(error);
    }
  }
  void report() const {
    if (of_other_type > 0)
      fmt::print(stderr,
                 "store: keys that the dump lacks, as they have no type of this server, or "
                 "changed their type meanwhile: {}\n",
                 of_other_type);
    if (lost > 0)
      fmt::print(stderr, "store: keys that the dump lacks, as their members have failed: {}\n",
                 lost);
  }
};

std::string dump_keys(Client& client, const std::vector<Client::Answer>& keys, PassedOver& passed) {
  using Kind = Client::Answer::Kind;
  for (const Client::Answer& key : keys) client.send({"TYPE", key.text});
  std::vector<Client::Answer> types;
  // An error comes again as the reply to GET.
  for (std::size_t i = 0; i < keys.size(); ++i) types.push_back(client.take_any());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (types[i].text == "zset") {
      client.send({"ZRANGE", keys[i].text, "0", "-1", "WITHSCORES"});
    } else {
      client.send({types[i].text == "hash" ? "HGETALL" : "GET", keys[i].text});
    }
    client.send({"PTTL", keys[i].text});
  }
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Client::Answer value = client.take_any();
    const Client::Answer ttl = client.take_any();
    if (value.kind == Kind::error || ttl.kind == Kind::error) {
      passed.count(value.kind == Kind::error ? value : ttl);
    } else {
      text += requests_for(keys[i].text, types[i].text, value, ttl.number);
    }
  }
  return text;
}

void write_to(std::FILE* file, const std::string& path, const std::string& text) {
  if (file == nullptr) return say(text);
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size())
    throw Error(fmt::format("{}: {}", in_quotes(path), std::strerror(errno)));
}

}  // namespace

void get(const ToolOptions& options) {
  const Client::Answer answer = connect(options).ask({"GET", options.key});
  if (answer.kind == Client::Answer::Kind::nothing)
    throw VerificationFailed(fmt::format("store: there is no key {}", in_quotes(options.key)));
  say(answer.text + "\n");
}

void put(const ToolOptions& options) {
  const std::string value = options.value == "-" ? read_standard_input() : options.value;
  connect(options).ask({"SET", options.key, value});
}

void load(const ToolOptions& options) {
  const File file = open_file(options.file, "rb");
  Client client = connect(options);
  Loader loader(client);
  RequestParser parser;
  ProgressBar bar("loads", size_of(file.get()));
  std::string text;
  std::string part(kReadBytes, '\0');
  std::uint64_t done = 0;
  std::FILE* const from = file ? file.get() : stdin;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), from)) {
    text.append(part, 0, count);
    done += send_requests(text, options.file, parser, loader);
    bar.show(done);
  }
  if (std::ferror(from) != 0) throw Error(in_quotes(options.file) + " cannot be read to its end");
  if (!text.empty())
    throw BadInput(fmt::format("{}: the last request is cut off, after {} whole ones",
                               in_quotes(options.file), loader.requests()));
  loader.take_all();
}

void dump(const ToolOptions& options) {
  Client client = connect(options);
  const File file = open_file(options.file, "wb");
  ProgressBar bar("dumps", static_cast<std::uint64_t>(client.ask({"DBSIZE"}).number));
  std::uint64_t done = 0;
  PassedOver passed;
  std::string cursor = "0";
  do {
    const Client::Answer step = client.ask({"SCAN", cursor, "COUNT", kKeysAStep});
    if (step.list.size() != 2) throw Error("store: the server's SCAN has no cursor and keys");
    write_to(file.get(), options.file, dump_keys(client, step.list[1].list, passed));
    done += step.list[1].list.size();
    bar.show(done);
    cursor = step.list[0].text;
  } while (cursor != "0");
  if (file && std::fflush(file.get()) != 0)
    throw Error(fmt::format("{}: {}", in_quotes(options.file), std::strerror(errno)));
  passed.report();
}

void stats(const ToolOptions& options) {
  std::string text = connect(options).ask({"INFO"}).text;
  std::erase(text, '\r');
  say(text);
}

}  // namespace dunlin::app::resp
