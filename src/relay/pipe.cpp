#include "relay/pipe.hpp"

namespace dunlin::relay {
namespace {

constexpr std::size_t kMaxWaiting = 65'536;

class PlainPipe final : public Pipe {
 public:
  bool receive(Bytes arrived, Buffer& content) override {
    content.insert(content.end(), arrived.begin(), arrived.end());
    return true;
  }
  bool open() const noexcept override { return true; }
  std::size_t send(Bytes content) override {
    if (sent_ == waiting_.size()) {
      waiting_.clear();
      sent_ = 0;
    }
    const std::size_t taken =
        std::min(content.size(), kMaxWaiting - std::min(kMaxWaiting, waiting_.size()));
    const Bytes part = content.first(taken);
    waiting_.insert(waiting_.end(), part.begin(), part.end());
    return taken;
  }
  Bytes output() const noexcept override { return Bytes(waiting_).subspan(sent_); }
  void was_sent(std::size_t bytes) override { sent_ += bytes; }
  std::string fault() const override { return {}; }

 private:
  Buffer waiting_;
  std::size_t sent_ = 0;
};

}  // namespace

std::unique_ptr<Pipe> make_plain_pipe() { return std::make_unique<PlainPipe>(); }

}  // namespace dunlin::relay
