#include "support/histories.hpp"

#include <chrono>

#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/program.hpp"

namespace dunlin::test {
namespace {

constexpr const char* kChecker = DUNLIN_LINEARIZABILITY_CHECKER;
constexpr std::chrono::minutes kPatience{4};
constexpr int kWrong = 1;  // exit status: some are not linearizable

}  // namespace

std::string Histories::why_not() {
  if (::access(kChecker, X_OK) == 0) return {};
  return std::string("there is no checker of linearizability, ") + kChecker +
         ": ./run test builds it, with Go";
}

void Histories::begin(std::string_view name, Model model) {
  text_.append("history ").append(name);
  switch (model) {
    case Model::one_register:
      text_.append(" register\n");
      break;
    case Model::map:
      text_.append(" map\n");
      break;
    case Model::transactions:
      text_.append(" transactions\n");
      break;
  }
}

void Histories::transaction(std::uint32_t client, std::string_view reads, std::string_view writes,
                            std::uint64_t call, std::uint64_t end) {
  add(client, " transaction ", reads.empty() ? "-" : reads, writes.empty() ? "-" : writes, call,
      end);
}

void Histories::put(std::uint32_t client, std::string_view key, std::string_view value,
                    std::uint64_t call, std::uint64_t end) {
  add(client, " put ", key, value, call, end);
}

void Histories::get(std::uint32_t client, std::string_view key, std::string_view value,
                    std::uint64_t call, std::uint64_t end) {
  add(client, " get ", key, value, call, end);
}

void Histories::add(std::uint32_t client, std::string_view what, std::string_view key,
                    std::string_view value, std::uint64_t call, std::uint64_t end) {
  text_.append(std::to_string(client)).append(what).append(key).append(" ").append(value);
  text_.append(" ").append(std::to_string(call)).append(" ");
  text_.append(end == kNever ? "-" : std::to_string(end)).append("\n");
}

Histories::Verdict Histories::check() const {
  const process::Outcome run =
      process::run({.command = {kChecker}, .input = text_, .timeout = kPatience});
  if (!run.status.well() && run.status.exit_code() != kWrong)
    throw Error("the checker of linearizability " + run.status.text() + ": " + run.output);
  return {run.status.well(), run.output};
}

}  // namespace dunlin::test
