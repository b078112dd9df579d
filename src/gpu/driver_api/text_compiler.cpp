#include "gpu/driver_api/text_compiler.h"

#include <dlfcn.h>

#include <cstring>

#include "base/format.h"

namespace gimbal::gpu::driver_api {
namespace {

constexpr size_t kMostLog = 4096;

// A program of the library, as a handle that is destroyed with this.
class Program {
 public:
  Program(const TextCompiler& compiler, void* library) : compiler_(compiler), library_(library) {}
  ~Program() {
    if (handle_) (void)call("DestroyProgram", &handle_);
  }
  Program(const Program&) = delete;

  Failure make(std::string_view text, const std::vector<std::string>& options, std::vector<uint8_t>* out) {
    const std::string source(text);
    std::vector<const char*> words;
    for (const std::string& o : options) words.push_back(o.c_str());
    const char* const* none = nullptr;
    if (Failure f = call("CreateProgram", &handle_, source.c_str(), "kernel text", 0, none, none)) return f;
    if (Failure f = call("CompileProgram", handle_, int(words.size()), words.data()))
      return f.text += log(), f;
    const std::string code = compiler_.code;
    size_t bytes = 0;
    if (Failure f = call(format("Get{}Size", code), handle_, &bytes)) return f;
    out->resize(bytes);
    return call(format("Get{}", code), handle_, reinterpret_cast<char*>(out->data()));
  }

 private:
  template <class... A>
  Failure call(const std::string& name, A... arguments) {
    const std::string symbol = compiler_.prefix + name;
    int (*function)(A...) = nullptr;
    void* found = dlsym(library_, symbol.c_str());
    std::memcpy(&function, &found, sizeof found);
    if (!function)
      return {Failure::Unsupported, format("the library that compiles kernel texts has no {}", symbol)};
    const int error = function(arguments...);
    if (error == 0) return {};
    return {Failure::Invalid, format("{} refuses the kernel text (error {})", symbol, error)};
  }

  std::string log() {
    size_t bytes = 0;
    if (call("GetProgramLogSize", handle_, &bytes) || bytes < 2) return "";
    std::string text(bytes, '\0');
    if (call("GetProgramLog", handle_, text.data())) return "";
    return ":\n" + std::string(text.c_str()).substr(0, kMostLog);
  }

  const TextCompiler& compiler_;
  void* library_;
  void* handle_ = nullptr;
};

}  // namespace

Failure compile_text(const TextCompiler& c, const std::string& given, std::string_view text,
                     const std::vector<std::string>& options, std::vector<uint8_t>* out) {
  void* library = given.empty() ? nullptr : dlopen(given.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* const* name = c.libraries; given.empty() && *name && !library; name++)
    library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return {Failure::Unsupported, format("kernel texts need {}, which compiles them and cannot be loaded\n{}",
                                         given.empty() ? c.libraries[0] : given, c.get_library)};
  return Program(c, library).make(text, options, out);
}

}  // namespace gimbal::gpu::driver_api
