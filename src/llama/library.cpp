#include "llama/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "device/library.h"

namespace gimbal::llama {
namespace {

namespace fs = std::filesystem;

enum Need { Required, Optional };

Error refused(const std::string& path, const std::string& why, const std::string& remedy) {
  return {Code::Unsupported, format("the library {} cannot be used: {}", path, why), remedy,
          "library-refused"};
}

// The loader reports a missing library as "NAME: cannot open shared object file: ...".
std::string missing_library(const std::string& said) {
  const size_t end = said.find(": cannot open shared object file");
  return end == std::string::npos ? "" : said.substr(0, end);
}

// Packages of npm contain the libraries in one folder, and some of them search another one. So a missing
// library is loaded from the folder of the one that needs it.
void* open_with_neighbours(const std::string& path, std::string& said, int depth = 0) {
  std::set<std::string> tried;
  for (;;) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    said = dlerror();
    const std::string name = missing_library(said);
    const fs::path neighbour = fs::path(path).parent_path() / name;
    std::error_code e;
    if (name.empty() || name.find('/') != std::string::npos || depth > 8 || !tried.insert(name).second ||
        !fs::is_regular_file(neighbour, e))
      return nullptr;
    std::string why;
    if (!open_with_neighbours(neighbour.string(), why, depth + 1)) return nullptr;
  }
}

template <class Function>
void find(void* handle, Function& to, std::vector<std::string>& missing, Need need,
          std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!to) to = reinterpret_cast<Function>(dlsym(handle, name));
  if (!to && need == Required) missing.push_back(*names.begin());
}

}  // namespace

Result<std::unique_ptr<LlamaLibrary>> LlamaLibrary::open(const std::string& path) {
  std::error_code e;
  const fs::path real = fs::canonical(path, e);
  if (e) return refused(path, e.message(), "give the path of a libllama shared library");
  {
    auto mapped = MappedFile::open(real.string());
    if (!mapped) return refused(path, mapped.error().message, "give the path of a libllama shared library");
    if (auto whole = check_elf_library(mapped->bytes()); !whole)
      return refused(path, "it " + whole.error().message, "give a libllama that was built for this machine");
  }
  std::unique_ptr<LlamaLibrary> out(new LlamaLibrary);
  out->path_ = real.string();
  std::string said;
  out->handle_ = open_with_neighbours(out->path_, said);
  if (!out->handle_)
    return refused(path, said,
                   missing_library(said).empty()
                       ? "give a libllama that was built for this system"
                       : "install the missing library, or put it into the library's folder");
  std::vector<std::string> missing;
  Functions& f = out->functions_;
#define GIMBAL_LLAMA_FUNCTION(member, result, parameters, need, ...) \
  find(out->handle_, f.member, missing, need, {__VA_ARGS__});
#include "discovery/llama_functions.def"
  if (!missing.empty())
    return refused(path, format("expected a libllama, found a library without {}", fmt::join(missing, ", ")),
                   "give the path of a libllama shared library");
  const MeasuredStruct model = measure(f.model_parameters), context = measure(f.context_parameters);
  auto found =
      identify(model, context, [&](const char* name) { return dlsym(out->handle_, name) != nullptr; });
  if (!found) return refused(path, found.error().message, found.error().remedy);
  out->generation_ = *found;
  out->model_defaults_ = model.value, out->context_defaults_ = context.value;
  out->load_cpu_code();
  f.initialize();
  return out;
}

// Some releases have their kernels for CPUs in libraries of their own, which rate themselves for this CPU: 0
// is unusable. Code for GPUs is not loaded.
void LlamaLibrary::load_cpu_code() {
  constexpr int kCpu = 0;  // GGML_BACKEND_DEVICE_TYPE_CPU
  const Functions& f = functions_;
  if (!f.device_of_type || f.device_of_type(kCpu) || !f.load_code) return;
  std::string best;
  int best_score = 0;
  std::error_code e;
  for (const auto& entry : fs::directory_iterator(fs::path(path_).parent_path(), e)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("libggml-cpu") || !name.ends_with(".so")) continue;
    void* handle = dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto score = handle ? reinterpret_cast<int (*)()>(dlsym(handle, "ggml_backend_score")) : nullptr;
    const int n = score ? score() : handle ? 1 : 0;
    if (n > best_score || (n == best_score && n > 0 && entry.path().string() < best))
      best = entry.path().string(), best_score = n;
    if (handle) dlclose(handle);
  }
  if (!best.empty()) f.load_code(best.c_str());
  else if (f.load_all_code) f.load_all_code();
}

bool LlamaLibrary::shows_layers() const {
  const Functions& f = functions_;
  return f.tensor_name && f.tensor_values && f.tensor_rows && f.tensor_contiguous && f.tensor_read;
}

std::string LlamaLibrary::description() const {
  const char* text = functions_.system ? functions_.system() : nullptr;
  return text ? text : "";
}

}  // namespace gimbal::llama
