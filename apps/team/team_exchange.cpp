#include "team/team_exchange.hpp"

#include <array>
#include <cstring>

#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

namespace dunlin::app {
namespace {

constexpr std::uint32_t kLastWordsMs = 1'000;

struct ExchangeRow {
  std::array<Cell<std::uint64_t>, kExchangedBytes / 8> word;
  Cell<std::uint64_t> arrivals;
};

class OnTable final : public TeamExchange {
 public:
  explicit OnTable(std::unique_ptr<Fabric> fabric) : fabric_(std::move(fabric)), table_(*fabric_) {}
  OnTable(const OnTable&) = delete;
  OnTable& operator=(const OnTable&) = delete;
  /// What we have said last must arrive, too.
  ~OnTable() override {
    static_cast<void>(run_until(
        table_, [&] { return table_.settled(); }, kLastWordsMs));
  }

  void arrive(std::string_view word) override {
    if (!word.empty()) {
      std::array<std::uint64_t, kExchangedBytes / 8> text{};
      std::memcpy(text.data(), word.data(), word.size());
      for (std::size_t i = 0; i < text.size(); ++i) table_.mine().word[i] = text[i];
    }
    ++table_.mine().arrivals;
    static_cast<void>(table_.push());
  }

  bool all_here() override {
    table_.poll();
    for (Rank member = 0; member < fabric_->size(); ++member) {
      if (table_[member].arrivals >= table_.mine().arrivals) continue;
      if (table_.alive(member)) return false;
      throw Error("member " + std::to_string(member) +
                  " of the team is gone: " + fabric_->failure_text(member));
    }
    return true;
  }

  [[nodiscard]] std::string word_of(std::uint32_t rank) const override {
    std::array<std::uint64_t, kExchangedBytes / 8> text{};
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = table_[rank].word[i];
    const auto* const start = reinterpret_cast<const char*>(text.data());
    return {start, strnlen(start, sizeof text)};
  }

 private:
  std::unique_ptr<Fabric> fabric_;
  Table<ExchangeRow> table_;
};

}  // namespace

std::unique_ptr<TeamExchange> exchange_on(std::unique_ptr<Fabric> fabric) {
  return std::make_unique<OnTable>(std::move(fabric));
}

}  // namespace dunlin::app
