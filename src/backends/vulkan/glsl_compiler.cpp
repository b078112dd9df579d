#include "backends/vulkan/glsl_compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/format.h"
#include "base/vendor_libraries.h"

namespace gimbal::vulkan {
namespace {

using gpu::Failure;

// The part of shaderc/shaderc.h that this file uses; its C interface is stable.
constexpr int kComputeShader = 2, kVulkan = 0, kSuccess = 0;
constexpr uint32_t kVulkan12 = 1u << 22 | 2u << 12;

struct Shaderc {
  void* (*compiler_initialize)();
  void (*compiler_release)(void*);
  void* (*compile_options_initialize)();
  void (*compile_options_release)(void*);
  void (*compile_options_set_target_env)(void*, int target, uint32_t version);
  void* (*compile_into_spv)(void* compiler, const char* text, size_t bytes, int kind, const char* file,
                            const char* entry, void* options);
  int (*result_get_compilation_status)(void*);
  size_t (*result_get_length)(void*);
  const char* (*result_get_bytes)(void*);
  const char* (*result_get_error_message)(void*);
  void (*result_release)(void*);
};

template <class F>
bool find(void* library, const char* name, F* out) {
  void* symbol = dlsym(library, format("shaderc_{}", name).c_str());
  std::memcpy(out, &symbol, sizeof symbol);
  return symbol;
}

void* opened(const std::string& given) {
  if (!given.empty()) return dlopen(given.c_str(), RTLD_NOW | RTLD_LOCAL);
  constexpr VendorLibraryFiles kNames = compiler_files("vulkan");
  for (size_t i = 0; kNames[i]; i++)
    if (void* library = dlopen(kNames[i], RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

Failure functions_of(void* library, Shaderc* out) {
  Shaderc s{};
#define FIND(name) find(library, #name, &s.name)
  const bool all = FIND(compiler_initialize) && FIND(compiler_release) && FIND(compile_options_initialize) &&
                   FIND(compile_options_release) && FIND(compile_options_set_target_env) &&
                   FIND(compile_into_spv) && FIND(result_get_compilation_status) && FIND(result_get_length) &&
                   FIND(result_get_bytes) && FIND(result_get_error_message) && FIND(result_release);
#undef FIND
  if (!all) return {Failure::Unsupported, "the shaderc library here lacks functions of its C interface"};
  *out = s;
  return {};
}

Failure refused(const std::string& log) {
  constexpr size_t kMostLog = 4096;
  return {Failure::Invalid, format("shaderc refuses the kernel text:\n{}", log.substr(0, kMostLog))};
}

Failure compile_by_library(void* library, std::string_view text, std::vector<uint32_t>* words) {
  Shaderc s{};
  if (Failure f = functions_of(library, &s)) return f;
  const std::unique_ptr<void, void (*)(void*)> compiler(s.compiler_initialize(), s.compiler_release),
      options(s.compile_options_initialize(), s.compile_options_release);
  if (!compiler || !options) return {Failure::OutOfMemory, "shaderc gives no compiler"};
  s.compile_options_set_target_env(options.get(), kVulkan, kVulkan12);
  const std::unique_ptr<void, void (*)(void*)> result(
      s.compile_into_spv(compiler.get(), text.data(), text.size(), kComputeShader, "kernel text", "main",
                         options.get()),
      s.result_release);
  if (!result) return {Failure::OutOfMemory, "shaderc gives no result"};
  if (s.result_get_compilation_status(result.get()) != kSuccess)
    return refused(s.result_get_error_message(result.get()));
  words->resize(s.result_get_length(result.get()) / 4);
  std::memcpy(words->data(), s.result_get_bytes(result.get()), words->size() * 4);
  return {};
}

// A folder of one user that ends with this.
struct PrivateFolder {
  std::string path = (std::filesystem::temp_directory_path() / "gimbal-text-XXXXXX").string();
  bool made = mkdtemp(path.data());
  ~PrivateFolder() {
    std::error_code ignored;
    if (made) std::filesystem::remove_all(path, ignored);
  }
};

// The same compiler as a program. Debian 12's libshaderc.so.1 lacks symbols that only this program has, so no
// other program can load it.
Failure compile_by_program(std::string_view text, std::vector<uint32_t>* words) {
  const PrivateFolder folder;
  const std::string in = folder.path + "/text.comp", out = folder.path + "/text.spv",
                    log = folder.path + "/log";
  if (!folder.made || !write_file(in, std::string(text)))
    return {Failure::Unsupported, format("the kernel text cannot be written to {}", folder.path)};
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&streams, 1, log.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&streams, 1, 2);
  std::string arguments[] = {"glslc", "--target-env=vulkan1.2", "-O0", in, "-o", out};
  char* words_of_command[std::size(arguments) + 1] = {};
  for (size_t i = 0; i < std::size(arguments); i++) words_of_command[i] = arguments[i].data();
  pid_t child = -1;
  const int error = posix_spawnp(&child, "glslc", &streams, nullptr, words_of_command, environ);
  posix_spawn_file_actions_destroy(&streams);
  int status = 0;
  while (!error && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (error || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    return {Failure::Unsupported,
            "kernel texts need shaderc, which compiles them: neither libshaderc.so.1 can be loaded nor glslc "
            "be run\ninstall it (Debian: the package glslc)"};
  const auto module = read_file(out);
  if (status != 0 || !module) {
    const auto said = read_file(log);
    return refused(said ? *said : said.error().message);
  }
  words->resize(module->size() / 4);
  std::memcpy(words->data(), module->data(), words->size() * 4);
  return {};
}

// SPIR-V 1.6, sections 2.3 (layout of a module) and 3.42 (instructions).
constexpr uint32_t kHeaderWords = 5, kOpExtInst = 12, kOpDecorate = 71, kNoContraction = 42;
bool rounds(uint32_t op) {  // FNegate, FAdd, FSub, FMul, FDiv, FRem, FMod, VectorTimesScalar, Dot, OpExtInst
  constexpr uint32_t kRounding[] = {127, 129, 131, 133, 136, 140, 141, 142, 148, kOpExtInst};
  return std::find(std::begin(kRounding), std::end(kRounding), op) != std::end(kRounding);
}
bool makes_type_or_value(uint32_t op) { return (op >= 19 && op <= 52) || op == 59; }

// No a * b + c becomes one operation, and no sum is added in another order.
Failure forbid_contraction(std::vector<uint32_t>& words) {
  std::vector<uint32_t> marks;
  size_t types = 0;
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t length = words[at] >> 16, op = words[at] & 0xffff;
    if (length == 0 || length > words.size() - at)
      return {Failure::Invalid, "shaderc gave a module that is no SPIR-V"};
    if (!types && makes_type_or_value(op)) types = at;
    if (rounds(op) && length > 2)
      marks.insert(marks.end(), {3u << 16 | kOpDecorate, words[at + 2], kNoContraction});
    at += length;
  }
  words.insert(words.begin() + long(types), marks.begin(), marks.end());
  return {};
}

}  // namespace

Failure compile_glsl(const std::string& given, std::string_view text, std::vector<uint8_t>* spirv) {
  std::vector<uint32_t> words;
  void* library = opened(given);
  if (!library && !given.empty())
    return {Failure::Unsupported, format("kernel texts need shaderc, and {} cannot be loaded", given)};
  if (Failure f = library ? compile_by_library(library, text, &words) : compile_by_program(text, &words))
    return f;
  if (Failure f = forbid_contraction(words)) return f;
  spirv->resize(words.size() * 4);
  std::memcpy(spirv->data(), words.data(), spirv->size());
  return {};
}

}  // namespace gimbal::vulkan
