#include "server/base/random_id.h"

#include <sys/random.h>

#include <cstdint>

#include "server/base/environment.h"

namespace stride {

std::string RandomId(int length) {
  if (simulated_environment != nullptr) return simulated_environment->RandomId(length);
  constexpr char kAlphabet[] = "0123456789abcdefghijklmnopqrstuv";  // 32: five bits a character
  std::string id(length, '0');
  for (char& c : id) {
    uint8_t byte = 0;
    while (getrandom(&byte, 1, 0) != 1) {
    }
    c = kAlphabet[byte & 31];
  }
  return id;
}

}  // namespace stride
