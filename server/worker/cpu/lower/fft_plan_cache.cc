#include "server/worker/cpu/lower/fft_plan_cache.h"

#include <algorithm>
#include <type_traits>

namespace stride::cpu {
namespace {

// Small compared with a worker's arrays.
constexpr size_t kMaxBytes = 64 << 20;

}  // namespace

template <typename T>
FftTables<T>::FftTables(int64_t n, bool real)
    : is_halved(real && n % 2 == 0), plan(is_halved ? n / 2 : n) {
  if (!is_halved) return;
  const RootTable roots(n);
  half_roots.reserve(n / 2 + 1);
  for (int64_t k = 0; k <= n / 2; ++k) half_roots.push_back(roots.At<T>(k));
}

template <typename T>
size_t FftTables<T>::bytes() const {
  return plan.table_bytes() + half_roots.size() * sizeof(Complex<T>);
}

template <typename T>
std::shared_ptr<const FftTables<T>> FftPlanCache::Get(int64_t n, bool real) {
  constexpr bool kIsDouble = std::is_same_v<T, double>;
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.is_double == kIsDouble && entry.real == real && entry.n == n;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return std::static_pointer_cast<const FftTables<T>>(found->tables);
  }
  auto tables = std::make_shared<const FftTables<T>>(n, real);
  if (tables->bytes() > kMaxBytes) return tables;
  entries_.push_front({kIsDouble, real, n, tables->bytes(), tables});
  bytes_ += tables->bytes();
  while (bytes_ > kMaxBytes) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return tables;
}

template struct FftTables<float>;
template struct FftTables<double>;
template std::shared_ptr<const FftTables<float>> FftPlanCache::Get(int64_t, bool);
template std::shared_ptr<const FftTables<double>> FftPlanCache::Get(int64_t, bool);

}  // namespace stride::cpu
