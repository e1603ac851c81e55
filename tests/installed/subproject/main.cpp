#include <dunlin/version.hpp>

int main() { return dunlin::version().empty() ? 1 : 0; }
