// Weights in fewer bits: their size, their error, and products with them.
#include <gimbal/tensor.h>

#include <cstdio>

int main() {
  auto queue = gimbal::open_queue("cpu");
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().message.c_str()), 1;
  gimbal::Generator random(1, *queue);
  const auto w = random.normal({128, 512}), x = random.normal({4, 512});
  const auto exact = gimbal::linear(x, w);
  for (const char* name : {"q8_0", "q6_k", "q4_k", "q2_k"}) {
    const auto q = w.to(*gimbal::dtype_named(name));
    const auto y = gimbal::linear(x, q);
    const auto error = ((y - exact).map("sqr").mean() / exact.map("sqr").mean()).map("sqrt").values<float>();
    const auto blocks = q.bytes();
    if (!error || !blocks) return std::fprintf(stderr, "%s\n", y.error().message.c_str()), 1;
    std::printf("%-5s %6zu bytes, products off by %.4f\n", name, blocks->size(), double((*error)[0]));
  }
}
