// Writes an answer with a certificate, and checks it as another machine would.
//   certificate [MODEL [PROMPT]]
#include <gimbal/engine.h>

#include <cstdio>

int main(int argc, char** argv) {
  gimbal::Engine engine;
  auto model = engine.load(argc > 1 ? argv[1] : "default");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto sequence = model->new_sequence();
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().message.c_str()), 1;
  gimbal::TextOptions options;
  options.seed = 7, options.max_tokens = 40, options.certificate = true;
  auto text = sequence->generate(argc > 2 ? argv[2] : "Once upon a time", options);
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  const std::string certificate = text->certificate->text();  // a line of JSON: store it, send it

  // The auditor: another process, on any machine with the model.
  gimbal::Engine auditor;
  auto received = gimbal::Certificate::parse(certificate);
  if (!received) return std::fprintf(stderr, "%s\n", received.error().message.c_str()), 1;
  auto audit = auditor.audit(*received);
  if (!audit) return std::fprintf(stderr, "%s\n", audit.error().message.c_str()), 1;
  if (audit->verdict != gimbal::Audit::Same)
    return std::printf("%s: %s\n", audit->subject.c_str(), audit->explanation.c_str()), 1;
  std::printf("the same: %d tokens and the logits behind them\n", audit->rows);
}
