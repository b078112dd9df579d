// An operation of the program's own: chosen, counted and verified like any other.
#include <gimbal/custom_op.h>

#include <cstdio>

int main() {
  auto queue = gimbal::open_queue("cpu");
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().message.c_str()), 1;
  gimbal::CustomOp op;
  op.name = "triple";
  op.elements_per_part = 4096;  // threads share longer tensors
  op.cpu = [](std::span<const gimbal::HostView> in, const gimbal::HostTarget& out, gimbal::Part part) {
    const int64_t begin = part.index * 4096, end = std::min(begin + 4096, out.count());
    for (int64_t i = begin; i < end; i++) out.at<float>(i) = 3 * in[0].at<float>(i);
    return gimbal::Status(gimbal::Done{});
  };
  op.reference = [](std::span<const gimbal::ReferenceValues> in) -> gimbal::Result<gimbal::ReferenceValues> {
    auto y = in[0];
    for (double& v : y.values) v *= 3;
    return y;
  };
  auto triple = gimbal::custom_op(op);
  if (!triple) return std::fprintf(stderr, "%s\n", triple.error().message.c_str()), 1;
  auto verdict = triple->verify(*queue);
  if (!verdict) return std::fprintf(stderr, "%s\n", verdict.error().message.c_str()), 1;
  std::printf("verified: %d cases\n", verdict->cases);
  const auto x = gimbal::Tensor::from<float>({1, 2, 3, 4}, {2, 2}, *queue);
  std::puts((*triple)({x.t()}).text().c_str());
  for (const auto& [kernel, n] : queue->receipt())
    if (kernel == "cpu.custom.triple")
      std::printf("%s ran %llu times\n", kernel.c_str(), static_cast<unsigned long long>(n));
}
