// A stand-in for NVIDIA's libnvrtc, with its C interface: "compiles" to the options and the text; a text with
// `wrong` in it is refused with a log.
#include <cstring>
#include <string>

namespace {
struct Program {
  std::string text, code, log;
};
Program& program(void* p) { return *static_cast<Program*>(p); }
int copied(const std::string& from, char* to) { return std::memcpy(to, from.c_str(), from.size() + 1), 0; }
int size(const std::string& of, size_t* out) { return *out = of.size() + 1, 0; }
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
int nvrtcCreateProgram(void** out, const char* text, const char*, int, const char* const*,
                       const char* const*);
int nvrtcDestroyProgram(void** p);
int nvrtcCompileProgram(void* p, int n, const char* const* options);
int nvrtcGetPTXSize(void* p, size_t* out);
int nvrtcGetPTX(void* p, char* out);
int nvrtcGetProgramLogSize(void* p, size_t* out);
int nvrtcGetProgramLog(void* p, char* out);

int nvrtcCreateProgram(void** out, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  return *out = new Program{text, "", ""}, 0;
}
int nvrtcDestroyProgram(void** p) { return delete &program(*p), *p = nullptr, 0; }
int nvrtcCompileProgram(void* p, int n, const char* const* options) {
  Program& made = program(p);
  if (made.text.find("wrong") != std::string::npos) return made.log = "line 1: what is wrong?", 6;
  for (int i = 0; i < n; i++) made.code += options[i] + std::string("\n");
  made.code += made.text;
  return 0;
}
int nvrtcGetPTXSize(void* p, size_t* out) { return size(program(p).code, out); }
int nvrtcGetPTX(void* p, char* out) { return copied(program(p).code, out); }
int nvrtcGetProgramLogSize(void* p, size_t* out) { return size(program(p).log, out); }
int nvrtcGetProgramLog(void* p, char* out) { return copied(program(p).log, out); }
}
#pragma GCC visibility pop
