// The same work as the kernels, as plain C++ loops compiled with -O3 -march=native: the baselines.
// Each does the items [begin, end), so that several threads can share it out.
#pragma once

#include <cstdint>

namespace stride::bench::plain {

void Add(const float* a, const float* b, float* out, int64_t begin, int64_t end);
void Saxpy(const float* a, float* out, int64_t begin, int64_t end);
void SquaresOfCosAndSin(const float* a, float* out, int64_t begin, int64_t end);
void Elu(const float* a, float* out, int64_t begin, int64_t end);
// One sum for each block of 256, in the order of the elements.
void BlockSums(const float* a, float* out, int64_t begin, int64_t end);
// The same by halves, as the kernel does it.
void BlockSumsByHalves(const float* a, float* out, int64_t begin, int64_t end);
float Sum(const float* a, int64_t begin, int64_t end);
// The bits that any of the words has: reads them as fast as they come.
uint64_t AllBits(const uint64_t* words, int64_t begin, int64_t end);
// Adds to 256 counters.
void Histogram(const int32_t* a, int32_t* counts, int64_t begin, int64_t end);
// Rows [begin, end) of 16-row tiles of the product of two n x n matrices: tiles of 16 x 16 are
// copied and multiplied, as the kernel does it.
void TiledProduct(const float* a, const float* b, float* out, int n, int64_t begin, int64_t end);
// Rows [begin, end), the middle loop over the shared dimension.
void Product(const float* a, const float* b, float* out, int n, int64_t begin, int64_t end);
// A recurrence over 64 floats for each item; b has 64 elements.
void LocalArray(const float* a, const float* b, float* out, int64_t begin, int64_t end);
// Rounds until a point is far away, 64 at most.
void EarlyExit(const float* a, const float* b, float* out, int64_t begin, int64_t end);
// A direction as a mixture of two colors of a wheel of 55, and its length as their strength.
void ColorWheel(const float* a, const float* b, float* out, int64_t begin, int64_t end);
// Rows [begin, end) of an image of n x n under a window of 9 x 9, mirrored at the edges.
void Window(const float* a, float* out, int n, int64_t begin, int64_t end);
// Groups of four bytes, replaced by those of a table of 256 in 16 rounds.
void ByteTable(const uint8_t* in, uint8_t* out, const uint8_t* table, int64_t begin, int64_t end);

}  // namespace stride::bench::plain
