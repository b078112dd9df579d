// The names that kernels.def lists, read by the test itself, to compare tables of modules with.
#pragma once
#include <fstream>
#include <regex>
#include <set>
#include <span>
#include <string>

#include "gpu/runtime.h"
#include "tensor/format.h"

namespace gimbal::test {

inline std::set<std::string> names_in_kernels_def(const std::string& definition = "gpu/kernels.def") {
  std::ifstream file(std::string(GIMBAL_SOURCE_DIR) + "/src/" + definition);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    static const std::regex row(R"(^\s*SIMT_KERNEL\((\w+),.*)");
    static const std::regex formats(R"(^\s*SIMT_(FORMATS|BLOCKS)\((\w+),.*)");
    if (std::smatch m; std::regex_match(line, m, row)) names.insert(m[1]);
    else if (std::regex_match(line, m, formats))
      for (DType t : kAllDTypes)
        if (is_weight(format_of(t)) &&
            (m.str(1) == "FORMATS" || format_of(t).x == DType::A8_32 || format_of(t).x == DType::A8_256))
          names.insert(m.str(2) + "_" + info(first_alike(t)).name);
  }
  return names;
}

inline std::set<std::string> names_of(std::span<const gpu::KernelCode> table) {
  std::set<std::string> names;
  for (const gpu::KernelCode& k : table) names.emplace(k.name);
  return names;
}

}  // namespace gimbal::test
