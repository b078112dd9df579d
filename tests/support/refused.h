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

// The error that planning the file ends with, if any; `look` sees the plan where there is none.
inline std::optional<Error> plan(const TinyLlama& spec, const RunOptions& options,
                                 const std::function<void(const ModelPlan&)>& look) {
  const std::string bytes = spec.build();
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  if (!file) return file.error();
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!device) return device.error();
  auto b = make_model_plan(*file, *device->device, options);
  if (!b) return b.error();
  if (look) look(*b);
  return std::nullopt;
}
inline std::optional<Error> plan(const TinyLlama& spec, int context = 0) {
  RunOptions options;
  options.context = context;
  return plan(spec, options, {});
}

// The ops of the model's first program for which `wanted` is true.
template <class Wanted>
std::vector<gimbal_op> ops_of(const TinyLlama& spec, const Wanted& wanted, const RunOptions& options = {}) {
  std::vector<gimbal_op> found;
  const auto e = plan(spec, options, [&](const ModelPlan& p) {
    for (const gimbal_op& op : p.stages[0].buckets[0].program.ops)
      if (wanted(op)) found.push_back(op);
  });
  EXPECT_FALSE(e) << e->message;
  return found;
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
