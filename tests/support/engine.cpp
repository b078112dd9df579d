#include "support/engine.h"
#include "huggingface/folder.h"

#include <gtest/gtest.h>

#include <set>

namespace gimbal::test {

Result<Engine> open_engine(const std::string& path, const EngineOptions& options) {
  Engine e;
  auto choice = ternary_choice(options.kernel_config);
  if (!choice) return choice.error();
  auto file = open_source(path, *choice);
  if (!file) return file.error();
  e.file = std::make_unique<ModelSource>(std::move(*file));
  for (const Lora& l : options.lora)
    if (auto ok = add_lora(*e.file, l); !ok) return ok.error();
  auto device = open_device({options.backend, 0, true, options.device});
  if (!device) return device.error();
  e.device = std::move(device->device);
  auto plan = make_model_plan(*e.file, *e.device, options.run);
  if (!plan) return plan.error();
  auto model = Model::load(std::move(*plan), *e.file);
  if (!model) return model.error();
  e.model = std::move(*model);
  return e;
}

std::vector<float> Engine::logits(const std::vector<int32_t>& tokens, const std::vector<int>& positions,
                                  int split, int batch) {
  std::vector<float> all = all_logits(tokens, split, batch), out;
  const size_t vocabulary = size_t(model->config().vocabulary);
  for (int p : positions)
    out.insert(out.end(), all.begin() + long(size_t(p) * vocabulary),
               all.begin() + long(size_t(p + 1) * vocabulary));
  return out;
}

std::vector<float> Engine::all_logits(const std::vector<int32_t>& tokens, int split, int batch) {
  auto session = Session::create(*model);
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  if (batch) (*session)->limit_batch(batch);
  std::vector<float> out;
  for (size_t at = 0; at < tokens.size();) {
    size_t n = split ? std::min(size_t(split), tokens.size() - at) : tokens.size();
    auto ok = (*session)->advance(
        std::span(tokens).subspan(at, n), Session::Wanted::All,
        [&](size_t, std::span<const float> row) { out.insert(out.end(), row.begin(), row.end()); });
    if (!ok) {
      ADD_FAILURE() << ok.error().message;
      return out;
    }
    at += n;
  }
  return out;
}

Variants cpu_variants() {
  // The kernel names say which variants the build has: "cpu.<variant>.<op>.<format>".
  Variants v;
  auto device = open_device({"cpu", 0, true, "threads=1"});
  EXPECT_TRUE(bool(device));
  std::set<std::string> seen;
  for (size_t i = 0; i < device->device->kernel_count(); i++) {
    std::string name = device->device->kernel(i).name;
    name = name.substr(4, name.find('.', 4) - 4);
    if (!seen.insert(name).second) continue;
    auto forced = open_device({"cpu", 0, true, "threads=1\nvariant=" + name});
    if (forced) v.usable.push_back(name);
    else v.refused.push_back(forced.error().message);
  }
  return v;
}

}  // namespace gimbal::test
