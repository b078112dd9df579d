#include "backends/opencl/programs.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/format.h"

namespace gimbal::opencl {
namespace {

constexpr std::string_view kMark = "gimbal OpenCL program, format 1\n";
constexpr size_t kMaxLog = 2000;  // characters of a compiler's output

// FNV-1a, 64 bits.
uint64_t hash(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char c : bytes) h = (h ^ uint8_t(c)) * 0x100000001b3u;
  return h;
}

// A kept program: mark, then key and compiled program, each behind its size, then the hash of the latter.
void append(std::string* file, std::string_view part) {
  const uint64_t n = part.size();
  file->append(reinterpret_cast<const char*>(&n), 8);
  file->append(part);
}
std::optional<std::string_view> take(std::string_view* rest) {
  if (rest->size() < 8) return std::nullopt;
  const auto n = read_le<uint64_t>(rest->data());
  rest->remove_prefix(8);
  if (n > rest->size()) return std::nullopt;
  const std::string_view part = rest->substr(0, size_t(n));
  rest->remove_prefix(size_t(n));
  return part;
}

}  // namespace

Programs::Programs(const Api& api, cl_context context, cl_device_id device, std::string identity,
                   std::string folder)
    : api_(api),
      context_(context),
      device_(device),
      identity_(std::move(identity)),
      folder_(std::move(folder)) {}

Failure Programs::prepare() {
  if (folder_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!error && access(folder_.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (!error) return {};
  return {Failure::Invalid, format("cache={}: programs cannot be kept there: {}", folder_, error.message())};
}

Failure Programs::build(std::string_view kernel, std::span<const uint8_t> code, const std::string& options,
                        Program* out) {
  const char* text = reinterpret_cast<const char*>(code.data());
  const size_t bytes = code.size();
  const std::string key = identity_ + options + "\n" + std::string(text, bytes),
                    file = format("{}/{}-{:016x}.program", folder_, kernel, hash(key));
  if (!folder_.empty() && load(file, key, kernel, options, out)) return {};
  cl_int e = CL_SUCCESS;
  Program program(api_, api_.clCreateProgramWithSource(context_, 1, &text, &bytes, &e));
  if (e != CL_SUCCESS) return failure(e, format("kernel {}: clCreateProgramWithSource", kernel));
  if (Failure f = finish(program, kernel, options)) return f;
  counts_.compiled++;
  if (!folder_.empty()) keep(file, key, program);
  *out = std::move(program);
  return {};
}

Failure Programs::finish(const Program& program, std::string_view kernel, const std::string& options) {
  const cl_int e = api_.clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
  if (e == CL_SUCCESS) return {};
  Failure f = failure(e, format("kernel {}: clBuildProgram", kernel));
  size_t bytes = 0;
  if (api_.clGetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) ==
          CL_SUCCESS &&
      bytes > 1) {
    std::string log(bytes, '\0');
    if (api_.clGetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, bytes, log.data(),
                                   nullptr) == CL_SUCCESS)
      f.text += ". The driver's compiler reports:\n" + log.substr(0, std::min(kMaxLog, strlen(log.c_str())));
  }
  return f;
}

// A cached program that the driver rejects is compiled again and replaced.
bool Programs::load(const std::string& path, const std::string& key, std::string_view kernel,
                    const std::string& options, Program* out) {
  const auto file = read_file(path);
  if (!file || !file->starts_with(kMark)) return false;
  std::string_view rest = std::string_view(*file).substr(kMark.size());
  const auto kept_key = take(&rest), binary = take(&rest);
  if (!kept_key || *kept_key != key || !binary || rest.size() != 8 ||
      read_le<uint64_t>(rest.data()) != hash(*binary))
    return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
  const size_t size = binary->size();
  cl_int taken = CL_SUCCESS, e = CL_SUCCESS;
  Program program(api_, api_.clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &taken, &e));
  if (e != CL_SUCCESS || taken != CL_SUCCESS || finish(program, kernel, options)) return false;
  counts_.loaded++;
  *out = std::move(program);
  return true;
}

// Written under another name first, so that no process finds half a file. On failure the program is compiled
// again next time.
void Programs::keep(const std::string& path, const std::string& key, const Program& program) const {
  size_t size = 0;
  if (api_.clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
          CL_SUCCESS ||
      size == 0)
    return;
  std::string binary(size, '\0');
  auto* at = reinterpret_cast<unsigned char*>(binary.data());
  if (api_.clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof at, &at, nullptr) != CL_SUCCESS)
    return;
  std::string file(kMark);
  append(&file, key);
  append(&file, binary);
  const uint64_t sum = hash(binary);
  file.append(reinterpret_cast<const char*>(&sum), 8);
  const std::string own = format("{}.{}", path, getpid());
  if (!write_file(own, file) || std::rename(own.c_str(), path.c_str()) != 0) std::remove(own.c_str());
}

}  // namespace gimbal::opencl
