// Many texts at once: their next tokens are computed together, and each text is as if it were alone.
//   batch [MODEL [PROMPT ...]]
#include <gimbal/engine.h>

#include <cstdio>

int main(int argc, char** argv) {
  std::vector<std::string> prompts(argv + (argc > 2 ? 2 : argc), argv + argc);
  if (prompts.empty()) prompts = {"Once upon a time", "The dog was", "One day, a little boy"};
  gimbal::Engine engine;
  gimbal::ModelOptions at_once;
  at_once.sequences = 8;  // more prompts wait
  auto model = engine.load(argc > 1 ? argv[1] : "default", at_once);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto batch = model->new_batch();
  if (!batch) return std::fprintf(stderr, "%s\n", batch.error().message.c_str()), 1;
  gimbal::TextOptions options;
  options.greedy = true, options.max_tokens = 30;
  auto texts = batch->generate(prompts, options);
  if (!texts) return std::fprintf(stderr, "%s\n", texts.error().message.c_str()), 1;
  for (size_t i = 0; i < prompts.size(); i++)
    std::printf("%s%s\n\n", prompts[i].c_str(), (*texts)[i].text.c_str());
}
