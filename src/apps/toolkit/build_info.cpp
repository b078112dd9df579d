#include "apps/toolkit/build_info.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <zlib.h>

#include <boost/version.hpp>

#include "base/format.h"
#include "base/json.h"
#include "discovery/report.h"

namespace gimbal {
namespace {

constexpr const char* kArchitectures[] = {
#define GIMBAL_ARCH(name) #name,
#include "model/archs.def"
#undef GIMBAL_ARCH
};

constexpr const char* kFormats[] = {
#define GIMBAL_FORMAT(id, name, ...) #name,
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
};

std::string line(const char* what, const std::string& text) { return format("{:<14}{}\n", what, text); }

}  // namespace

std::string build_info(const std::string& first, const std::vector<std::string>& backends) {
  std::string out = first + "\n" + line("compiler", GIMBAL_COMPILER ", " GIMBAL_BUILD_TYPE) +
                    line("options", GIMBAL_OPTIONS);
  for (const std::string& b : backends) {
    const auto tested = tested_hardware(b);
    out += line("backend", format("{}, {}", b,
                                  !tested           ? "which gimbal does not know"
                                  : tested->empty() ? "never tested on hardware"
                                                    : "tested on " + *tested));
  }
  out += line("architectures", format("{}: {}", std::size(kArchitectures), fmt::join(kArchitectures, ", ")));
  out += line("formats", format("{}: {}", std::size(kFormats), fmt::join(kFormats, ", ")));
  out += line("libraries",
              format("Boost {}.{}.{}, fmt {}.{}.{}, JSON for Modern C++ {}.{}.{}, PCRE2 {}.{}, zlib {}",
                     BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100,
                     FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
                     NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
                     PCRE2_MAJOR, PCRE2_MINOR, ZLIB_VERSION));
  return out;
}

}  // namespace gimbal
