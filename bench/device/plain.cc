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

void LocalArray(const float* a, const float* b, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float rates[64];
    for (float& rate : rates) rate = 0.05f + 0.0001f * a[i];
    for (int step = 0; step < 16; ++step) {
      float v = 0;
      for (int k = step + 1; k < 64; ++k) {
        const float rate = 0.002f * b[k];
        v += rate * rates[k] / (1 + 0.25f * rates[k]);
        rates[k] *= std::exp(rate * v - 0.1f * rate);
      }
    }
    float sum = 0;
    for (float rate : rates) sum += rate;
    out[i] = sum;
  }
}

void EarlyExit(const float* a, const float* b, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float cx = a[i] * 0.4f, cy = b[i] * 0.02f - 0.7f;
    float x = 0, y = 0;
    int round = 0;
    while (round < 64 && x * x + y * y < 4) {
      const float next = x * x - y * y + cx;
      y = 2 * x * y + cy;
      x = next;
      ++round;
    }
    out[i] = static_cast<float>(round);
  }
}

namespace {

void Wheel(int k, float* color) {
  if (k < 15) {
    color[0] = 1, color[1] = k / 15.0f, color[2] = 0;
  } else if (k < 21) {
    color[0] = 1 - (k - 15) / 6.0f, color[1] = 1, color[2] = 0;
  } else if (k < 25) {
    color[0] = 0, color[1] = 1, color[2] = (k - 21) / 4.0f;
  } else if (k < 36) {
    color[0] = 0, color[1] = 1 - (k - 25) / 11.0f, color[2] = 1;
  } else if (k < 49) {
    color[0] = (k - 36) / 13.0f, color[1] = 0, color[2] = 1;
  } else {
    color[0] = 1, color[1] = 0, color[2] = 1 - (k - 49) / 6.0f;
  }
}

}  // namespace

void ColorWheel(const float* a, const float* b, float* out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float x = a[i] * 0.25f, y = b[i] * 0.03f - 1.1f, length = std::sqrt(x * x + y * y);
    const float place = (std::atan2(-y, -x) * 0.318309886f + 1) * 27;
    const int k = static_cast<int>(place);
    const float share = place - static_cast<float>(k);
    float first[3], second[3], sum = 0;
    Wheel(k % 55, first);
    Wheel((k + 1) % 55, second);
    for (int channel = 0; channel < 3; ++channel) {
      float color = (1 - share) * first[channel] + share * second[channel];
      color = length <= 1 ? 1 - length * (1 - color) : color * 0.75f;
      sum += static_cast<float>(channel + 1) * color;
    }
    out[i] = sum;
  }
}

void Window(const float* a, float* out, int n, int64_t begin, int64_t end) {
  for (int y = static_cast<int>(begin); y < end; ++y) {
    for (int x = 0; x < n; ++x) {
      const float middle = a[y * n + x];
      float sum = 0, weights = 0;
      for (int i = -4; i <= 4; ++i) {
        for (int j = -4; j <= 4; ++j) {
          int row = y + i, column = x + j;
          if (row < 0) row = -row;
          if (row >= n) row = 2 * n - 2 - row;
          if (column < 0) column = -column;
          if (column >= n) column = 2 * n - 2 - column;
          const float value = a[row * n + column], d = middle - value;
          const float weight = std::exp(-d * d * 0.5f - static_cast<float>(i * i + j * j) * 0.1f);
          sum += weight * value;
          weights += weight;
        }
      }
      out[y * n + x] = sum / weights;
    }
  }
}

void ByteTable(const uint8_t* in, uint8_t* out, const uint8_t* table, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    uint8_t s[4];
    for (int k = 0; k < 4; ++k) s[k] = in[4 * i + k];
    for (int round = 0; round < 16; ++round) {
      const uint8_t first = s[0];
      for (int k = 0; k < 3; ++k)
        s[k] = static_cast<uint8_t>(table[s[k + 1] ^ round] ^ (s[k] >> 3));
      s[3] = static_cast<uint8_t>(table[first] ^ round);
    }
    for (int k = 0; k < 4; ++k) out[4 * i + k] = s[k];
  }
}

}  // namespace stride::bench::plain
