// The model's raw output: the most likely next tokens, and the kernels that computed them.
//   logits [MODEL [PROMPT]]
#include <gimbal/engine.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

int main(int argc, char** argv) {
  gimbal::Engine engine;
  auto model = engine.load(argc > 1 ? argv[1] : "default");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto sequence = model->new_sequence();
  if (!sequence) return std::fprintf(stderr, "%s\n", sequence.error().message.c_str()), 1;
  const gimbal::Tokenizer tokenizer = model->tokenizer();
  auto logits = sequence->logits(tokenizer.encode(argc > 2 ? argv[2] : "Once upon a"));
  if (!logits) return std::fprintf(stderr, "%s\n", logits.error().message.c_str()), 1;
  std::vector<gimbal::Token> ids(logits->size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + 5, ids.end(),
                    [&](auto a, auto b) { return (*logits)[size_t(a)] > (*logits)[size_t(b)]; });
  for (int i = 0; i < 5; i++)
    std::printf("%8.4f  %s\n", double((*logits)[size_t(ids[size_t(i)])]),
                tokenizer.decode({&ids[size_t(i)], 1}).c_str());
  for (const gimbal::ReceiptLine& l : model->receipt())
    if (l.runs)
      std::printf("%llu x %s on %s: %s\n", static_cast<unsigned long long>(l.runs), l.kernel.c_str(),
                  l.device.c_str(), l.why.c_str());
}
