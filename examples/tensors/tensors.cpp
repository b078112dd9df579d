// Tensors in a minute: views, arithmetic, a recorded function with its plan, a file.
//   tensors [DEVICE]
#include <gimbal/recorded.h>

#include <cstdio>

int main(int argc, char** argv) {
  auto queue = gimbal::open_queue(argc > 1 ? argv[1] : "cpu");
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().message.c_str()), 1;
  const auto x = gimbal::Tensor::arange(0, 12, 1, gimbal::DType::F32, *queue).reshape({3, 4});
  std::puts(x.t().flip(0).text().c_str());  // views copy nothing
  std::puts((x.softmax(-1).sum({1}) * 2).text().c_str());
  auto layer =
      gimbal::record(*queue, {{gimbal::DType::F32, {3, 4}}}, [&](std::span<const gimbal::Tensor> in) {
        return std::vector{(in[0].matmul(in[0].t()) * 0.1).map("gelu")};
      });
  if (!layer) return std::fprintf(stderr, "%s\n", layer.error().message.c_str()), 1;
  const auto plan = layer->plan();
  std::printf("recorded: %zu operations, %llu bytes of work\n", plan->operations,
              static_cast<unsigned long long>(plan->work));
  auto y = layer->run(std::span(&x, 1));
  if (!y) return std::fprintf(stderr, "%s\n", y.error().message.c_str()), 1;
  std::puts((*y)[0].text().c_str());
}
