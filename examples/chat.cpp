// A conversation by the chat template of the model's file, with a system prompt.
//   chat [MODEL]     questions on stdin, a line each
#include <gimbal/engine.h>

#include <cstdio>
#include <iostream>

int main(int argc, char** argv) {
  gimbal::Engine engine;
  auto model = engine.load(argc > 1 ? argv[1] : "default");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto sequence = model->new_sequence();
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().message.c_str()), 1;
  gimbal::ChatOptions options;
  options.max_tokens = 60;
  std::vector<gimbal::Message> messages = {{"system", "Answer in one sentence."}};
  for (std::string line; std::getline(std::cin, line); options.seed++) {
    messages.push_back({"user", line});
    auto reply = sequence->chat(messages, options, [](const gimbal::ReplyPiece& piece) {
      return std::printf("%s", piece.text.c_str()) >= 0 && std::fflush(stdout) == 0;
    });
    std::printf("\n");
    if (!reply) return std::fprintf(stderr, "%s\n", reply.error().message.c_str()), 1;
    messages.push_back(reply->message);
  }
}
