#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The files that commands write their results to.
namespace dunlin::app {

/// The file that an option names.
struct NamedFile {
  std::string option;
  std::string path;
};

/// Throws BadInput, which names the option, if the file could not be written: before the work whose
/// result goes there. Leaves no new file.
void demand_writable(const NamedFile& file);
/// Throws BadInput, which names both options, if a file that is written is another one as well, so
/// that one would be lost.
void demand_distinct(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);
/// Throws Error that says why it could not be written.
void write_file(const std::string& path, std::string_view content);

}  // namespace dunlin::app
