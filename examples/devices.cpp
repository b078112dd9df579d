// Which devices there are, which one would hold a model of 7 billion parameters, and which one the model
// inside the library runs on: with every reason against the others.
//   devices [BACKEND]
#include <gimbal/engine.h>
#include <gimbal/memory.h>

#include <cstdio>

int main(int argc, char** argv) {
  gimbal::Options options;
  if (argc > 1) options.backend = argv[1];
  options.events = [](const gimbal::Event& e) {
    if (e.kind == gimbal::Event::Fallback)
      std::printf("not used: %s [%s] %s\n", e.what.c_str(), e.why.reason.c_str(), e.why.message.c_str());
    return true;
  };
  gimbal::Engine engine(options);
  for (const gimbal::Backend& b : engine.backends()) {
    if (!b.available)
      std::printf("%s: no [%s] %s; %s\n", b.name.c_str(), b.why_not.reason.c_str(), b.why_not.message.c_str(),
                  b.why_not.remedy.c_str());
    for (const gimbal::Device& d : b.devices)
      std::printf("%s: %s, %.2f GB free\n", d.id.c_str(), d.name.c_str(), double(d.memory_free) / 1e9);
  }
  gimbal::ModelShape mistral_7b;
  mistral_7b.width = 4096, mistral_7b.ff_width = 14336, mistral_7b.layers = 32, mistral_7b.vocabulary = 32000;
  mistral_7b.heads = 32, mistral_7b.kv_heads = 8;
  if (auto memory = gimbal::estimate_memory(mistral_7b)) {
    auto best = engine.best_device(memory->total_bytes());
    std::printf("Mistral 7B takes %.1f GB: %s\n", memory->total_gb(),
                best ? best->id.c_str() : best.error().message.c_str());
  }
  auto model = engine.load("default");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  for (const gimbal::Placement& p : model->placement())
    std::printf("%d layers on %s: %s\n", p.layers, p.device.c_str(), p.why.c_str());
}
