// A conversation that changes its instruction set: at each stop kernels of another variant compute the rows,
// and the tokens are those of a conversation that stayed.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/golden.h"
#include "support/moving.h"

namespace gimbal::test {
namespace {

// "avx2" of "cpu.avx2.mat_mul.q8_0".
std::string variant_of(const std::string& kernel) { return kernel.substr(4, kernel.find('.', 4) - 4); }

// A device for each instruction set of this CPU: one that opens with the kernels of that set and the lower
// ones alone.
std::map<std::string, std::unique_ptr<Device>> variants() {
  const auto all = open_one("cpu", 0, "threads=1");
  std::map<std::string, std::unique_ptr<Device>> devices;
  for (size_t i = 0; i < all->kernel_count(); i++) {
    const std::string kernel = all->kernel(i).name;
    if (all->kernel(i).needs & ~all->describe().features)
      continue;  // a CPU may lack one between two that it has
    if (kernel.ends_with(".mat_mul.q8_0") && !devices.count(variant_of(kernel)))
      devices[variant_of(kernel)] = open_one("cpu", 0, "threads=1\nvariant=" + variant_of(kernel));
  }
  return devices;
}

// Those that compute a step of one row.
std::set<std::string> variants_of(const ModelPlan& plan) {
  std::set<std::string> names;
  for (const auto& choice : plan.stages[0].buckets[plan.bucket_for(1)].choices)
    names.insert(variant_of(plan.device().kernel(choice.kernel).name));
  return names;
}

TEST(SwitchedVariants, TellTheSameStory) {
  const ModelSource file = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  RunOptions run;
  run.context = 200, run.batch = 16;
  const auto devices = variants();
  std::map<std::string, std::unique_ptr<Model>> models;
  for (const auto& [name, device] : devices) {
    auto m = load_on(*device, file, run);
    ASSERT_TRUE(m);
    if (variants_of(m->plan()).count(name)) models[name] = std::move(m);
    else std::printf("%s computes no step of one row\n", name.c_str());  // tiles of many rows
  }
  ASSERT_TRUE(models.count("baseline"));
  if (models.size() == 1) GTEST_SKIP() << "this CPU has the baseline alone";
  // There and back, so that each set follows each of its neighbours.
  std::vector<Model*> way;
  for (const auto& [name, model] : models) way.push_back(model.get());
  for (const auto& [name, model] : models) way.insert(way.begin(), model.get());
  std::printf("%zu instruction sets\n", models.size());
  check_moves(file, way, 8);
}

}  // namespace
}  // namespace gimbal::test
