#include "cluster/aside.hpp"

#include <exception>

#include <dunlin/error.hpp>

#include "process/child.hpp"
#include "process/pipe.hpp"

namespace dunlin::app {
namespace {

/// Lines, of which the first is empty if all went well.
std::string answer(const std::function<std::vector<std::string>()>& ask) {
  try {
    std::string text = "\n";
    for (const std::string& line : ask()) text += line + "\n";
    return text;
  } catch (const std::exception& error) {
    return std::string(error.what()) + "\n";
  }
}

}  // namespace

std::vector<std::string> asked_aside(const std::function<std::vector<std::string>()>& ask) {
  process::Pipe pipe = process::make_pipe();
  const process::Child child([&] {
    process::write_all(pipe.in, answer(ask));
    return 0;
  });
  pipe.in.close();
  std::string text;
  static_cast<void>(process::read_all(pipe.out, text));
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end == std::string::npos ? text.size() : end + 1;
  }
  if (lines.empty()) throw Error("a process that was asked for networks has ended without a word");
  if (!lines.front().empty()) throw Error(lines.front());
  lines.erase(lines.begin());
  return lines;
}

}  // namespace dunlin::app
