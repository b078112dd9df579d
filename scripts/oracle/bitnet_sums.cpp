// One product by microsoft/BitNet's own kernels, for bitnet.py, which builds this once for each kernel and
// processor: -DI2_S beside their ggml-bitnet-mad.cpp, -DTL with the kernels that their code generator wrote.
// In: the sizes, the weights (i2_s: floats; otherwise the bytes of a file) and a row of activations. Out: the
// bytes of the weights, the codes and the scale of the activations, and the sums.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" void quantize_row_i8_s(const float*, void*, int64_t, float* scale, int32_t* sum);

#ifdef I2_S
extern "C" size_t quantize_i2_s(const float*, void*, int64_t rows, int64_t columns, const float*);
void ggml_vec_dot_i2_i8_s_1x1(int n, float*, size_t, const void*, size_t, const void*, size_t, int rows);
void ggml_vec_dot_i2_i8_s_1x4_32W(int n, float*, size_t, const void*, size_t, const void*, size_t, int rows);
extern "C" size_t ggml_row_size(int, int64_t columns) { return size_t(columns); }
#else
#include "bitnet_tables.h"
#endif

template <class T>
static T* get(size_t count) {
  auto* to = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 127) / 64 * 64));
  if (std::fread(to, sizeof(T), count, stdin) != count) std::exit(1);
  return to;
}
template <class T>
static void put(const T* from, size_t count) {
  std::fwrite(from, sizeof(T), count, stdout);
}

int main() {
  // Rows and columns; bytes of the weights, the scale included; i2_s: a byte to damage, or -1, tl: the case.
  const int32_t* size = get<int32_t>(4);
  const auto rows = size_t(size[0]), columns = size_t(size[1]), bytes = size_t(size[2]);
  std::vector<float> sums(rows);
  std::vector<int8_t> codes(columns);
  float scale = 0;
  int32_t sum = 0;
#ifdef I2_S
  const float *weights = get<float>(rows * columns), *x = get<float>(columns);
  quantize_row_i8_s(x, codes.data(), int64_t(columns), &scale, &sum);
  auto* file = static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
  quantize_i2_s(weights, file, int64_t(rows), int64_t(columns), nullptr);
  if (size[3] >= 0) file[size[3]] |= 0xc0;
  if (FOUR_ROWS)
    ggml_vec_dot_i2_i8_s_1x4_32W(int(columns), sums.data(), 0, file, columns, codes.data(), 0, int(rows));
  else ggml_vec_dot_i2_i8_s_1x1(int(columns), sums.data(), 0, file, columns, codes.data(), 0, int(rows));
  for (float& s : sums) s -= float(sum);  // the kernel multiplies the codes 0, 1, 2
#else
  uint8_t* file = get<uint8_t>(bytes);
  float* x = get<float>(columns);
  quantize_row_i8_s(x, codes.data(), int64_t(columns), &scale, &sum);
  product(size[3], file, x, sums.data());
#endif
  put(file, bytes), put(codes.data(), columns), put(&scale, 1), put(sums.data(), rows);
}
