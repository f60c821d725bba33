#include "bench/device/plain.h"

#include <algorithm>
#include <cmath>

namespace stride::bench::plain {

void Add(const float* a, const float* b, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
}

void Saxpy(const float* a, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) out[i] = 2.5f * a[i] + out[i];
}

void SquaresOfCosAndSin(const float* a, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float c = std::cos(a[i]), s = std::sin(a[i]);
    out[i] = c * c + s * s;
  }
}

void Elu(const float* a, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    out[i] = 1.05f * (a[i] > 0 ? a[i] : 1.67f * std::exp(a[i]) - 1.67f);
}

void BlockSums(const float* a, float* out, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    float sum = 0;
    for (int i = 0; i < 256; ++i) sum += a[block * 256 + i];
    out[block] = sum;
  }
}

void BlockSumsByHalves(const float* a, float* out, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    float part[256];
    std::copy_n(a + block * 256, 256, part);
    for (int half = 128; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) part[i] += part[i + half];
    }
    out[block] = part[0];
  }
}

float Sum(const float* a, int64_t begin, int64_t end) {
  // Many at once, which a compiler may not do on its own.
  float sums[64] = {};
  int64_t i = begin;
  for (; i + 64 <= end; i += 64) {
    for (int k = 0; k < 64; ++k) sums[k] += a[i + k];
  }
  float sum = 0;
  for (; i < end; ++i) sum += a[i];
  for (float part : sums) sum += part;
  return sum;
}

uint64_t AllBits(const uint64_t* words, int64_t begin, int64_t end) {
  uint64_t bits = 0;
  for (int64_t i = begin; i < end; ++i) bits |= words[i];
  return bits;
}

void Histogram(const int32_t* a, int32_t* counts, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ++counts[a[i] & 255];
}

void TiledProduct(const float* a, const float* b, float* out, int n, int64_t begin, int64_t end) {
  for (int64_t row = begin * 16; row < end * 16; row += 16) {
    for (int column = 0; column < n; column += 16) {
      float sum[16][16] = {}, left[16][16], right[16][16];
      for (int k = 0; k < n; k += 16) {
        for (int y = 0; y < 16; ++y) {
          for (int x = 0; x < 16; ++x) {
            left[y][x] = a[(row + y) * n + k + x];
            right[y][x] = b[(k + y) * static_cast<int64_t>(n) + column + x];
          }
        }
        for (int y = 0; y < 16; ++y) {
          for (int j = 0; j < 16; ++j) {
            for (int x = 0; x < 16; ++x) sum[y][x] += left[y][j] * right[j][x];
          }
        }
      }
      for (int y = 0; y < 16; ++y) std::copy_n(sum[y], 16, out + (row + y) * n + column);
    }
  }
}

void Product(const float* a, const float* b, float* out, int n, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    float* sums = out + row * n;
    std::fill_n(sums, n, 0.0f);
    for (int k = 0; k < n; ++k) {
      for (int column = 0; column < n; ++column)
        sums[column] += a[row * n + k] * b[static_cast<int64_t>(k) * n + column];
    }
  }
}

}  // namespace stride::bench::plain
