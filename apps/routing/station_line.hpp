#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "routing/run.hpp"

namespace dunlin::routing {

/// Between the station's process and its parent: made by the parent, before it forks.
class StationLine {
 public:
  explicit StationLine(const Plan& plan);
  ~StationLine();
  StationLine(const StationLine&) = delete;
  StationLine& operator=(const StationLine&) = delete;

  // Called in the station's process. They throw Error if the parent cannot be told.
  void tell_network(const std::string& network);
  void tell_event(const EventRecord& record);
  void tell_tables(const std::vector<Installed>& tables);
  /// Why it shall stop; empty if it need not.
  [[nodiscard]] std::string asked_to_stop() const;

  // Called in the station's parent.
  void ask_to_stop(const std::string& why) const;
  /// Readable when there is news.
  [[nodiscard]] int descriptor() const noexcept { return parent_end_; }
  /// Passes on what has been told. True when that were the tables.
  [[nodiscard]] bool take_news(const Listener& listener, const NetworkListener& network);
  /// It has joined: the network was told.
  [[nodiscard]] bool joined() const noexcept { return joined_; }
  [[nodiscard]] std::vector<Installed> take_tables() noexcept { return std::move(tables_); }

 private:
  void send(char kind, const std::string& body) const;
  void take(char kind, std::string body, const Listener& listener, const NetworkListener& network);

  const Plan& plan_;
  int parent_end_ = -1;
  int station_end_ = -1;
  std::string unread_;
  std::uint32_t events_ = 0;  // told, the start among them
  bool joined_ = false;
  bool finished_ = false;
  std::vector<Installed> tables_;
};

}  // namespace dunlin::routing
