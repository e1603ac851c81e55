#include "store/scripts.hpp"

#include <cstdint>

#include <boost/uuid/detail/sha1.hpp>
#include <fmt/format.h>

#include "store/limits.hpp"

namespace dunlin::app::resp {

std::string script_name(std::string_view text) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  boost::uuids::detail::sha1::digest_type digest;
  hash.get_digest(digest);
  std::string name;
  for (const std::uint32_t word : digest) name += fmt::format("{:08x}", word);
  return name;
}

std::string Scripts::add(std::string_view text) {
  std::string name = script_name(text);
  const auto [at, is_new] = texts_.try_emplace(name, text);
  if (!is_new) return name;
  order_.push_back(name);
  bytes_ += text.size();
  while (order_.size() > kMaxScripts || bytes_ > kMaxScriptsBytes) {
    const auto oldest = texts_.find(order_.front());
    bytes_ -= oldest->second.size();
    texts_.erase(oldest);
    order_.pop_front();
  }
  return name;
}

const std::string* Scripts::find(std::string_view name) const {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const auto found = texts_.find(lower);
  return found == texts_.end() ? nullptr : &found->second;
}

void Scripts::clear() noexcept {
  texts_.clear();
  order_.clear();
  bytes_ = 0;
}

}  // namespace dunlin::app::resp
