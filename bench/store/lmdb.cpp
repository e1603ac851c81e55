#include "bench/store/lmdb.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <lmdb.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {
namespace {

/// No sync at all, writes into the map, and no table of readers' threads.
constexpr unsigned kFlags = MDB_NOSYNC | MDB_NOMETASYNC | MDB_WRITEMAP | MDB_NOTLS;

void demand(int status, const char* call) {
  if (status != MDB_SUCCESS)
    throw Error("bench: LMDB's " + std::string(call) + ": " + ::mdb_strerror(status));
}

MDB_val key_of(std::uint64_t& key) { return {sizeof key, &key}; }

}  // namespace

struct Lmdb::State {
  MDB_env* environment = nullptr;
  MDB_dbi table = 0;
  MDB_txn* reader = nullptr;  // kept, and renewed
  MDB_txn* open = nullptr;
  ~State() {
    if (open != nullptr && open != reader) ::mdb_txn_abort(open);
    if (reader != nullptr) ::mdb_txn_abort(reader);
    ::mdb_env_close(environment);
  }
};

std::string Lmdb::missing() { return {}; }

Lmdb::Lmdb(std::size_t most_bytes) : state_(std::make_unique<State>()) {
  demand(::mdb_env_create(&state_->environment), "mdb_env_create");
  demand(::mdb_env_set_mapsize(state_->environment, most_bytes), "mdb_env_set_mapsize");
  const std::filesystem::path memory = "/dev/shm";
  const auto place =
      std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  std::string directory = (place / "dunlin-lmdb-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr)
    throw Error("bench: no directory " + directory + ": " + std::strerror(errno));
  const int opened = ::mdb_env_open(state_->environment, directory.c_str(), kFlags, 0600);
  std::error_code ignored;  // the open files stay
  std::filesystem::remove_all(directory, ignored);
  demand(opened, "mdb_env_open");
  MDB_txn* made = nullptr;
  demand(::mdb_txn_begin(state_->environment, nullptr, 0, &made), "mdb_txn_begin");
  demand(::mdb_dbi_open(made, nullptr, MDB_INTEGERKEY, &state_->table), "mdb_dbi_open");
  demand(::mdb_txn_commit(made), "mdb_txn_commit");
  demand(::mdb_txn_begin(state_->environment, nullptr, MDB_RDONLY, &state_->reader),
         "mdb_txn_begin");
  ::mdb_txn_reset(state_->reader);
}

Lmdb::~Lmdb() = default;

void Lmdb::begin(bool writes) {
  if (writes)
    return demand(::mdb_txn_begin(state_->environment, nullptr, 0, &state_->open), "begin");
  demand(::mdb_txn_renew(state_->reader), "mdb_txn_renew");
  state_->open = state_->reader;
}

void Lmdb::end() {
  MDB_txn* ended = std::exchange(state_->open, nullptr);
  if (ended == state_->reader) return ::mdb_txn_reset(ended);
  demand(::mdb_txn_commit(ended), "mdb_txn_commit");
}

void Lmdb::get(std::uint64_t key, std::span<std::byte> value) {
  MDB_val named = key_of(key), found{};
  demand(::mdb_get(state_->open, state_->table, &named, &found), "mdb_get");
  if (found.mv_size != value.size()) throw Error("bench: LMDB has a value of another length");
  std::memcpy(value.data(), found.mv_data, found.mv_size);
}

void Lmdb::put(std::uint64_t key, std::span<const std::byte> value) {
  MDB_val named = key_of(key);
  MDB_val stored{value.size(), const_cast<std::byte*>(value.data())};
  demand(::mdb_put(state_->open, state_->table, &named, &stored, 0), "mdb_put");
}

}  // namespace dunlin::bench
