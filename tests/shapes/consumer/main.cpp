// A program of another project, by the installed headers and libraries alone: it prints the device
// and the reason, writes a story, and completes it when that device is lost on the way.
//   consumer BACKEND [PLUGIN_FOLDER]
#include <gimbal/engine.h>
#include <gimbal/gimbal_config.h>

#include <cstdio>

#if __has_include("device/registry.h") || __has_include(<gimbal/device/registry.h>)
#error "a header of the library's own is visible to programs"
#endif

using namespace gimbal;

static int failed(const Error& e) {
  return std::fprintf(stderr, "%s\n%s\n", e.message.c_str(), e.remedy.c_str()), 1;
}

int main(int argc, char** argv) {
  std::fprintf(stderr, "gimbal %s with %s\n", GIMBAL_INSTALLED_VERSION, GIMBAL_INSTALLED_BACKENDS);
  Options options;
  options.backend = argc > 1 ? argv[1] : "auto";
  options.numerics = Numerics::Fast;
  if (argc > 2) options.plugin_folders = {argv[2]};
  options.events = [](const Event& e) {
    static constexpr const char* kNames[] = {"chosen", "fallback", "ignored", "note", "recovered"};
    if (e.kind < Event::Verifying)
      std::fprintf(stderr, "%s: %s, %s: %s\n", kNames[e.kind], e.what.c_str(), e.instead.c_str(),
                   e.why.message.c_str());
    return true;
  };
  Engine engine(options);
  auto model = engine.load("default");
  if (!model) return failed(model.error());
  for (const Placement& p : model->placement())
    std::fprintf(stderr, "on %s: %s\n", p.device.c_str(), p.why.c_str());
  auto sequence = model->new_sequence();
  if (!sequence) return failed(sequence.error());
  TextOptions settings;
  settings.greedy = true, settings.max_tokens = 12;
  auto told = sequence->generate("Once upon a time", settings, [](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  });
  if (!told) return failed(told.error());
  std::puts("");
  uint64_t runs = 0;
  for (const ReceiptLine& l : model->receipt()) runs += l.runs;
  std::fprintf(stderr, "%llu runs, at last on %s\n", static_cast<unsigned long long>(runs),
               sequence->device().c_str());
  return runs == 0;
}
