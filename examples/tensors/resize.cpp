// A picture in other sizes: drawn, made smaller and larger, and the error of the way back.
#include <gimbal/tensor.h>

#include <cstdio>

int main() {
  auto queue = gimbal::open_queue("cpu");
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().message.c_str()), 1;
  using gimbal::Tensor;
  const Tensor y = Tensor::arange(0, 64, 1, gimbal::DType::F32, *queue).unsqueeze(1), x = y.t();
  const Tensor picture = ((x * 0.1).map("sin") * (y * 0.07).map("cos")).reshape({1, 1, 64, 64});
  const Tensor small = picture.avg_pool2d({4, 4}, {4, 4});
  const Tensor large = small.upsample_bilinear2d(64, 64);
  const auto error = (large - picture).map("abs").mean().values<float>();
  if (!error) return std::fprintf(stderr, "%s\n", error.error().message.c_str()), 1;
  std::puts(small.map("sign").sum({0, 1}).to(gimbal::DType::I32).text().c_str());
  std::printf("mean error of 64 x 64 from 16 x 16: %.4f\n", double((*error)[0]));
}
