// To which libraries and devices a symbol or a needed library belongs, by its name.
#pragma once
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

namespace gimbal {

enum class SymbolFamily : uint8_t {
#define GIMBAL_SYMBOL_FAMILY(id, key, title, gpu) id,
#include "inspection/symbol_families.def"
#undef GIMBAL_SYMBOL_FAMILY
  Count
};
constexpr size_t kSymbolFamilies = size_t(SymbolFamily::Count);
using SymbolFamilies = std::bitset<kSymbolFamilies>;

struct SymbolFamilyInfo {
  const char* key;    // "cuda"
  const char* title;  // "CUDA symbols"
  bool gpu;
};
const SymbolFamilyInfo& info(SymbolFamily);

SymbolFamilies families_of_symbol(std::string_view name);
// Of a needed library: "libcudart.so.12" belongs to CUDA.
SymbolFamilies families_of_library(std::string_view name);

// Whether a compiler made this name from that of C++.
bool is_mangled(std::string_view name);

// The storage format that a quantization kernel works on: "q4_0" of "ggml_vec_dot_q4_0_q8_0", "tl1" of
// "ggml_preprocessor_tl1"; empty if the name contains none.
std::string format_of_symbol(std::string_view name);

}  // namespace gimbal
