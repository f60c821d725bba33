#pragma once

#include <cstddef>
#include <cstdint>

namespace stride::cpu {

// A matrix with strides: element (i, j) is at data + i * row_stride + j * column_stride, in bytes.
struct MatrixView {
  std::byte* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;

  MatrixView Block(int64_t row, int64_t column, int64_t num_rows, int64_t num_columns) const {
    return {data + row * row_stride + column * column_stride, num_rows, num_columns, row_stride,
            column_stride};
  }
  MatrixView Transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

}  // namespace stride::cpu
