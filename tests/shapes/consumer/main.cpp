// The embedded model tells a story, by the installed headers and libraries alone.
#include <cstdio>

#include "discovery/registry.h"
#include "gimbal_config.h"
#include "model/embedded_model.h"
#include "runtime/generate.h"

using namespace gimbal;

static int failed(const Error& e) { return std::fprintf(stderr, "%s\n", e.message.c_str()), 1; }

int main() {
  std::fprintf(stderr, "gimbal %s with %s\n", GIMBAL_INSTALLED_VERSION, GIMBAL_INSTALLED_BACKENDS);
  auto file = Gguf::parse(embedded_model(), "embedded");
  if (!file) return failed(file.error());
  auto tokenizer = Tokenizer::create(*file);
  if (!tokenizer) return failed(tokenizer.error());
  auto device = init_backend(BackendPreference::Cpu, true);
  if (!device) return failed(device.error());
  auto blueprint = make_blueprint(*file, *device->device, {});
  if (!blueprint) return failed(blueprint.error());
  auto model = Model::load(std::move(*blueprint));
  if (!model) return failed(model.error());
  auto session = Session::create(**model);
  if (!session) return failed(session.error());
  GenerateSettings settings;
  settings.sampler.greedy = true, settings.most_tokens = 12;
  auto told = generate(**session, **tokenizer, (*tokenizer)->encode("Once upon a time"), settings,
                       [](std::string_view text, Token) {
                         return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
                       });
  if (!told) return failed(told.error());
  std::puts("");
}
