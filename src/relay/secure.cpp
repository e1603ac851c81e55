#include <dunlin/error.hpp>

#include "fabric/private_file.hpp"
#include "fabric/rendezvous/tls.hpp"
#include "relay/pipe.hpp"

/// TLS 1.3 as at the rendezvous, with another key.
namespace dunlin::relay {
namespace {

constexpr std::string_view kSecretLabel = "dunlin relay 1";
constexpr std::size_t kMaxEncryptedWaiting = 65'536;  // encrypted
constexpr std::size_t kRecordBytes = 16'384;

class SecurePipe final : public Pipe {
 public:
  SecurePipe(const rendezvous::Tls& tls, Side self)
      : session_(tls, self == Side::client ? rendezvous::Side::joiner : rendezvous::Side::host) {}

  bool receive(Bytes arrived, Buffer& content) override {
    session_.receive(arrived);
    const auto got = session_.take_content();
    content.insert(content.end(), got.begin(), got.end());
    return session_.fault() == rendezvous::Fault::none;
  }
  bool open() const noexcept override { return session_.established(); }
  std::size_t send(Bytes content) override {
    std::size_t taken = 0;
    while (open() && taken < content.size() && session_.output().size() < kMaxEncryptedWaiting) {
      const Bytes part = content.subspan(taken, std::min(kRecordBytes, content.size() - taken));
      session_.send(part);
      taken += part.size();
    }
    return taken;
  }
  Bytes output() const noexcept override { return session_.output(); }
  void was_sent(std::size_t bytes) override { session_.was_sent(bytes); }
  std::string fault() const override {
    switch (session_.fault()) {
      case rendezvous::Fault::none:
        return {};
      case rendezvous::Fault::wrong_secret:
        return "it does not know the secret of this group";
      case rendezvous::Fault::turned_away:
        return "it does not accept our secret: is it that of its group?";
      default:
        return "it does not speak TLS as we do: has it been given a secret?";
    }
  }

 private:
  rendezvous::TlsSession session_;
};

/// Derives a key that is of no use at a rendezvous.
std::string key_of(const std::string& secret) {
  const rendezvous::Digest key =
      rendezvous::derived_key(rendezvous::bytes_of(secret), kSecretLabel);
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace

PipeMaker pipe_maker(Side self, const std::string& secret) {
  if (secret.empty()) return {};
  if (secret.size() < kMinSecretBytes || secret.size() > kMaxSecretBytes)
    throw Error("the secret of a relay has " + std::to_string(secret.size()) + " bytes; " +
                std::to_string(kMinSecretBytes) + " to " + std::to_string(kMaxSecretBytes) +
                " are possible");
  const auto tls = std::make_shared<const rendezvous::Tls>(key_of(secret), TlsFiles{});
  return [=] { return std::make_unique<SecurePipe>(*tls, self); };
}

}  // namespace dunlin::relay
