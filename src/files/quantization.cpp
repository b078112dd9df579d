#include "files/quantization.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace gimbal {
namespace {

struct FileType {
  uint64_t number;
  const char* name;
  const char* format;  // of its tensors: a file with a wrong number has none
};

// Numbers: `general.file_type` of docs/gguf.md in ggml, and those that llama.h added since.
constexpr FileType kFileTypes[] = {
    {0, "F32", "f32"},          {1, "F16", "f16"},        {2, "Q4_0", "q4_0"},      {3, "Q4_1", "q4_1"},
    {7, "Q8_0", "q8_0"},        {8, "Q5_0", "q5_0"},      {9, "Q5_1", "q5_1"},      {10, "Q2_K", "q2_k"},
    {11, "Q3_K_S", "q3_k"},     {12, "Q3_K_M", "q3_k"},   {13, "Q3_K_L", "q3_k"},   {14, "Q4_K_S", "q4_k"},
    {15, "Q4_K_M", "q4_k"},     {16, "Q5_K_S", "q5_k"},   {17, "Q5_K_M", "q5_k"},   {18, "Q6_K", "q6_k"},
    {19, "IQ2_XXS", "iq2_xxs"}, {20, "IQ2_XS", "iq2_xs"}, {21, "Q2_K_S", "q2_k"},   {22, "IQ3_XS", "iq3_xxs"},
    {23, "IQ3_XXS", "iq3_xxs"}, {24, "IQ1_S", "iq1_s"},   {25, "IQ4_NL", "iq4_nl"}, {26, "IQ3_S", "iq3_s"},
    {27, "IQ3_M", "iq3_s"},     {28, "IQ2_S", "iq2_xs"},  {29, "IQ2_M", "iq2_s"},   {30, "IQ4_XS", "iq4_xs"},
    {31, "IQ1_M", "iq1_m"},     {32, "BF16", "bf16"},     {36, "TQ1_0", "tq1_0"},   {37, "TQ2_0", "tq2_0"},
    {38, "MXFP4_MOE", "mxfp4"},
};
constexpr uint64_t kGuessed = 1024;  // a flag beside the number

}  // namespace

std::string quantization_of(const ModelSource& file) {
  std::map<std::string_view, uint64_t> bytes;
  for (const StoredTensor& t : file.tensors()) bytes[stored_name(t)] += t.stored;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return "";
  if (const auto number = file.metadata().unsigned_integer("general.file_type"))
    for (const FileType& t : kFileTypes) {
      // Every file has small tensors in f32.
      const bool there = t.number == 0 ? most->first == t.format : bytes.contains(t.format);
      if (t.number == (*number & ~kGuessed) && there) return t.name;
    }
  std::string name(most->first);
  for (char& c : name) c = char(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace gimbal
