// Models over several devices, for tests: a list of devices and layers in, logits out.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/backends.h"
#include "files/gguf.h"
#include "runtime/session.h"

namespace gimbal::test {

inline ModelSource open_file(const std::string& path) {
  auto f = open_gguf(path);
  if (f) return std::move(*f);
  ADD_FAILURE() << f.error().message;
  std::abort();
}

// Of the backends that the test is linked with; nothing is chosen.
inline std::unique_ptr<Device> open_one(const std::string& backend, int index = 0,
                                        const std::string& options = "") {
  for (LinkedBackends entry = linked_backends(); *entry; ++entry) {
    if (backend != (*entry)()->name) continue;
    auto d = Device::open(*(*entry)(), index, options);
    if (d) return std::move(*d);
    ADD_FAILURE() << d.error().message;
  }
  std::fprintf(stderr, "no device %s:%d\n", backend.c_str(), index);
  std::abort();
}

inline Result<std::unique_ptr<Model>> load_placed(const ModelSource& file,
                                                  const std::vector<Placement>& where,
                                                  const RunOptions& run) {
  auto b = make_model_plan(file, where, run);
  if (!b) return b.error();
  return Model::load(std::move(*b), file);
}

// On one device; nullptr, and a failure of the test, if it cannot be loaded.
inline std::unique_ptr<Model> load_on(Device& device, const ModelSource& file, const RunOptions& run) {
  auto plan = make_model_plan(file, device, run);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return nullptr;
  auto made = Model::load(std::move(*plan), file);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

// Logits of every token, from a session of its own that gets `split` tokens at a time (0: all at once).
inline std::vector<float> logits_of(Model& model, std::span<const int32_t> tokens, size_t split = 0) {
  std::vector<float> all;
  auto s = Session::create(model);
  if (!s) {
    ADD_FAILURE() << s.error().message;
    return all;
  }
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = split ? std::min(split, tokens.size() - at) : tokens.size();
    auto ok =
        (*s)->advance(tokens.subspan(at, n), Session::Wanted::All,
                      [&](size_t, std::span<const float> r) { all.insert(all.end(), r.begin(), r.end()); });
    if (!ok) {
      ADD_FAILURE() << ok.error().message;
      return all;
    }
    at += n;
  }
  return all;
}

inline std::vector<int32_t> any_tokens(int n, int vocabulary = 512) {
  std::vector<int32_t> t;
  uint32_t x = 4242;
  for (int i = 0; i < n; i++) t.push_back(int32_t((x = x * 1664525u + 1013904223u) >> 8) % vocabulary);
  return t;
}

// Where two lists of logits first differ; empty when their bits are the same.
inline std::string bits_differ(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty())
    return std::to_string(a.size()) + " and " + std::to_string(b.size()) + " values";
  for (size_t i = 0; i < a.size(); i++)
    if (std::memcmp(&a[i], &b[i], 4) != 0)
      return "at " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " + std::to_string(b[i]);
  return "";
}

}  // namespace gimbal::test
