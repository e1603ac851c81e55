// What one-sided operations between two processes cost with the MPI library at hand: the neighbour
// that `dunlin bench segment` compares with. Usage: mpirun -n 2 ... dunlin-mpi-one-sided BATCHES
// PER_BATCH BYTES Prints "get NS", "put NS", "fetch_add NS" and "lock NS": medians over the
// batches.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

namespace {

template <class Once>
void report(const char* name, int batches, int per_batch, Once&& once) {
  std::vector<double> times;
  for (int batch = 0; batch <= batches; ++batch) {  // the first one does not count
    const double start = MPI_Wtime();
    for (int i = 0; i < per_batch; ++i) once();
    if (batch > 0) times.push_back((MPI_Wtime() - start) / per_batch);
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %.3f\n", name, times[times.size() / 2] * 1e9);
}

void measure(MPI_Win window, std::vector<char>& here, int batches, int per_batch) {
  const int bytes = static_cast<int>(here.size());
  MPI_Win_lock_all(0, window);
  report("get", batches, per_batch, [&] {
    MPI_Get(here.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window);
    MPI_Win_flush(1, window);
  });
  report("put", batches, per_batch, [&] {
    MPI_Put(here.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window);
    MPI_Win_flush(1, window);
  });
  const long long one = 1;
  long long before = 0;
  report("fetch_add", batches, per_batch, [&] {
    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 1, 0, MPI_SUM, window);
    MPI_Win_flush(1, window);
  });
  MPI_Win_unlock_all(window);
  report("lock", batches, per_batch, [&] {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Win_unlock(1, window);
  });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int batches = argc == 4 ? std::atoi(argv[1]) : 0;
  const int per_batch = argc == 4 ? std::atoi(argv[2]) : 0;
  const int bytes = argc == 4 ? std::atoi(argv[3]) : 0;
  if (size != 2 || batches <= 0 || per_batch <= 0 || bytes < 8) {
    if (rank == 0)
      std::fprintf(stderr, "usage: mpirun -n 2 dunlin-mpi-one-sided BATCHES PER_BATCH BYTES\n");
    MPI_Finalize();
    return 2;
  }
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  std::vector<char> here(static_cast<std::size_t>(bytes));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) measure(window, here, batches, per_batch);
  MPI_Barrier(MPI_COMM_WORLD);  // process 1 waits here, inside the library
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
