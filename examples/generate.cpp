// Continues a text: a complete program.
//   generate [MODEL [PROMPT]]
#include <gimbal/engine.h>

#include <cstdio>

int main(int argc, char** argv) {
  gimbal::Engine engine;
  auto model = engine.load(argc > 1 ? argv[1] : "default");
  if (!model)
    return std::fprintf(stderr, "%s\n%s\n", model.error().message.c_str(), model.error().remedy.c_str()), 1;
  auto sequence = model->new_sequence();
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().message.c_str()), 1;
  gimbal::TextOptions options;
  options.greedy = true, options.max_tokens = 40;
  auto text = sequence->generate(argc > 2 ? argv[2] : "Once upon a time", options);
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  std::printf("%s\n", text->text.c_str());
}
