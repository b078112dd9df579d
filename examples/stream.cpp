// A conversation on stdin and stdout: each line continues the same text, and is answered as it is
// generated.
//   stream [MODEL]
#include <gimbal/engine.h>

#include <cstdio>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  gimbal::Engine engine;
  auto model = engine.load(argc > 1 ? argv[1] : "default");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto sequence = model->new_sequence();
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().message.c_str()), 1;
  gimbal::TextOptions options;
  options.seed = 1, options.max_tokens = 30;
  for (std::string line; std::getline(std::cin, line); options.seed++) {
    auto answer = sequence->generate(line, options, [](std::string_view piece) {
      return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
    });
    std::printf("\n");
    if (!answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
    if (!answer || answer->finish == gimbal::Finish::ContextFull) sequence->rewind(0);  // a new text
  }
}
