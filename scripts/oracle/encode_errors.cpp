// Prints tests/tensor/encode_errors.inc: the errors of ggml's quantizer on made-up rows. The library is that
// of the rig of scripts/rig/libraries.sh; gimbal decodes, as golden data show that its decoders are right.
//
//   g++ -std=c++20 -O2 -ffp-contract=off -Isrc -Itests -o build/encode_errors
//   scripts/oracle/encode_errors.cpp
//       -Lbuild/release -lgimbal_tensor -lgimbal_base -lfmt -ldl
//   rig=build/libraries-rig/npm-linux-x64-3.22.1; LD_LIBRARY_PATH=$rig build/encode_errors
//   $rig/libggml-base.so
#include <dlfcn.h>

#include <cstdio>

#include "tensor/made_up_rows.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

// The formats whose encoders search, with ggml's numbers of them.
constexpr struct {
  const char* name;
  int number;
} kSearched[] = {{"Q4_0", 2},    {"Q4_1", 3},     {"Q5_0", 6},   {"Q5_1", 7},    {"Q2_K", 10},
                 {"Q3_K", 11},   {"Q4_K", 12},    {"Q5_K", 13},  {"Q6_K", 14},   {"IQ2_XXS", 16},
                 {"IQ2_XS", 17}, {"IQ3_XXS", 18}, {"IQ1_S", 19}, {"IQ4_NL", 20}, {"IQ3_S", 21},
                 {"IQ2_S", 22},  {"IQ4_XS", 23},  {"IQ1_M", 29}};

int main(int count, char** arguments) {
  using namespace gimbal;
  void* library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : nullptr;
  if (!library) return std::fprintf(stderr, "usage: encode_errors LIBGGML-BASE\n"), 2;
  const auto quantize =
      reinterpret_cast<size_t (*)(int, const float*, void*, int64_t, int64_t, int64_t, const float*)>(
          dlsym(library, "ggml_quantize_chunk"));
  std::puts("// table: errors of ggml's quantizer on made-up rows, by scripts/oracle/encode_errors.cpp");
  for (const auto& format : kSearched) {
    std::string lower = format.name;
    for (char& c : lower) c = char(std::tolower(c));
    const DType type = *dtype_named(lower);
    for (const test::MadeUpRows& rows : test::made_up_rows())
      for (const bool weighted : {false, true}) {
        if (!weighted && wants_importance(type)) continue;
        std::vector<uint8_t> blocks(size_t(row_bytes(type, int64_t(rows.values.size()))));
        quantize(format.number, rows.values.data(), blocks.data(), 0, rows.kRows, rows.kColumns,
                 weighted ? rows.importance.data() : nullptr);
        std::vector<float> decoded(rows.values.size());
        decode(type, blocks.data(), int64_t(decoded.size()), decoded.data());
        std::printf("    {DType::%s, \"%s\", %d, %.9e},\n", format.name, rows.name.c_str(), weighted,
                    test::error_of(rows, decoded, weighted));
      }
  }
}
