// Doubles some numbers on the daemon at the given address.
#include <cstdio>
#include <vector>

#include "stride/client.h"

int main(int argc, char** argv) {
  auto client = stride::Client::Connect({.address = argc > 1 ? argv[1] : "nowhere"});
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().ToString().c_str());
    return client.error().code == stride::Code::kInvalidArgument ? 3 : 1;
  }
  const std::vector<int> numbers = {1, 2, 3};
  auto array = client->Put(numbers, {3});
  if (!array) return 1;
  auto doubled = client->Fetch<int>(client->Ufunc("add", {*array, *array}));
  if (!doubled) return 1;
  for (int number : *doubled) std::printf("%d\n", number);
}
