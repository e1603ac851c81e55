// Three processes share two licences: a semaphore in the memory of one of them, which takes no part
// when another takes a place. Start it three times:
//
//     ./semaphore & ./semaphore & ./semaphore

#include "semaphore.hpp"

#include <array>
#include <iostream>

#include <dunlin/error.hpp>
#include <dunlin/join.hpp>

int main() try {
  const auto fabric = dunlin::join({.group = "example-semaphore", .members = 3});
  dunlin::remote::Progress progress(*fabric);
  Semaphore licences(progress, {.name = "licences", .home = 0, .places = 2});
  Semaphore done(progress, {.name = "done", .home = 0});

  for (int round = 0; round < 100; ++round) {
    const Semaphore::Taken taken = licences.take().outcome();
    if (taken.status != dunlin::remote::Status::ok)
      throw dunlin::Error("no licence: " + dunlin::remote::describe(taken.status, "semaphore"));
    // Here at most two processes are at once, until `taken` goes.
  }
  std::cout << "member " << fabric->rank() << " has had 100 licences\n" << std::flush;
  done.give();
  while (!licences.idle() || !done.idle()) progress.poll();

  // The home stays until all are done, and the others until it goes.
  std::array<Semaphore::Taken, 3> all;
  if (fabric->rank() == 0) {
    for (Semaphore::Taken& taken : all) taken = done.take().outcome();
  } else {
    while (!progress.stopped()) progress.poll();
  }
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
