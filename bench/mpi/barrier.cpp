// Barriers a second of the MPI library at hand: the limit that `dunlin bench table` sets for
// counting with more processes than cores. Usage: mpirun ... dunlin-mpi-barrier COUNT

#include <cstdio>
#include <cstdlib>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long count = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
  if (count <= 0) {
    if (rank == 0) std::fprintf(stderr, "usage: dunlin-mpi-barrier COUNT\n");
    MPI_Finalize();
    return 2;
  }
  for (long i = 0; i < count / 10; ++i) MPI_Barrier(MPI_COMM_WORLD);  // connections are made lazily
  const double start = MPI_Wtime();
  for (long i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  if (rank == 0) std::printf("barriers per second: %.3f\n", static_cast<double>(count) / seconds);
  MPI_Finalize();
  return 0;
}
