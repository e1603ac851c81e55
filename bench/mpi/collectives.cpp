// Calls a second of the MPI library at hand, of all processes together: its barrier is the limit
// that `dunlin bench table` sets for counting with more processes than cores, and all are what
// `dunlin bench container` compares its collectives with.
// Usage: mpirun ... dunlin-mpi-collectives barrier|all_reduce|broadcast COUNT

#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpi.h>

namespace {

bool call(const std::string& name) {
  static long long mine = 1, all = 0;
  if (name == "barrier") {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (name == "all_reduce") {
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  } else if (name == "broadcast") {
    MPI_Bcast(&mine, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string name = argc == 3 ? argv[1] : "";
  const long count = argc == 3 ? std::strtol(argv[2], nullptr, 10) : 0;
  if (count <= 0 || !call(name)) {
    if (rank == 0)
      std::fprintf(stderr, "usage: dunlin-mpi-collectives barrier|all_reduce|broadcast COUNT\n");
    MPI_Finalize();
    return 2;
  }
  for (long i = 0; i < count / 10; ++i) call(name);  // connections are made lazily
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long i = 0; i < count; ++i) call(name);
  MPI_Barrier(MPI_COMM_WORLD);  // a root is done before its last broadcast has come to all
  const double seconds = MPI_Wtime() - start;
  if (rank == 0) std::printf("calls per second: %.3f\n", static_cast<double>(count) / seconds);
  MPI_Finalize();
  return 0;
}
