// Files that must be refused: a whole model changed in one way each, and words that the error must have.
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "discovery/registry.h"
#include "files/gguf.h"
#include "model/arch.h"
#include "runtime/model_plan.h"
#include "support/tiny_llama.h"

namespace gimbal::test {

// The error that planning the file ends with, if any.
inline std::optional<Error> plan(const TinyLlama& spec, int context = 0) {
  const std::string bytes = spec.build();
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  if (!file) return file.error();
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!device) return device.error();
  RunOptions options;
  options.context = context;
  auto b = make_model_plan(*file, *device->device, options);
  if (!b) return b.error();
  return std::nullopt;
}

struct Refused {
  const char* about;
  std::function<void(TinyLlama&)> change;
  Code code;
  std::vector<const char*> words;
};

// The same change to a file of another architecture.
template <class Change>
auto as(const char* arch, Change change) {
  return [arch, change](TinyLlama& s) {
    change(s);
    const auto keys = s.keys;
    s.keys.clear();
    for (auto& [key, value] : keys)
      s.keys[key.rfind("llama.", 0) == 0 ? std::string(arch) + key.substr(5) : key] = value;
    s.text("general.architecture", arch);
  };
}

inline void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& r : all) {
    TinyLlama spec;
    r.change(spec);
    const auto e = plan(spec);
    ASSERT_TRUE(e) << r.about << ": taken for a model";
    EXPECT_EQ(e->code, r.code) << r.about << ": " << e->message;
    for (const char* word : r.words)
      EXPECT_NE(e->message.find(word), std::string::npos) << word << " in: " << e->message;
  }
}

inline TinyTensor& tensor(TinyLlama& s, const std::string& name, std::vector<uint64_t> dims) {
  return s.tensors[name] = TinyTensor{std::move(dims)};
}
inline void flags(TinyLlama& s, const std::string& key, const std::vector<uint8_t>& values) {
  std::string list = le<uint32_t>(kBool) + le<uint64_t>(values.size());
  for (uint8_t v : values) list += le(v);
  s.keys["llama." + key] = {kArray, list};
}

}  // namespace gimbal::test
