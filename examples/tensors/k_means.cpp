// k-means: points fall into the groups that they were drawn around. One step is a recorded function.
#include <gimbal/recorded.h>

#include <cstdio>

int main() {
  auto queue = gimbal::open_queue("cpu");
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().message.c_str()), 1;
  using gimbal::Tensor;
  gimbal::Generator random(7, *queue);
  const Tensor middles = Tensor::from<float>({-5, -5, 5, -5, 0, 6}, {3, 2}, *queue);
  const Tensor points = (random.normal({3, 100, 2}) + middles.unsqueeze(1)).reshape({300, 2});
  const auto step = gimbal::record(*queue, [](std::span<const Tensor> in) {
    const Tensor &x = in[0], &centres = in[1];
    const Tensor nearest = (x.unsqueeze(1) - centres).map("sqr").sum({2}).argmin({1});
    const Tensor sums = Tensor::zeros(centres.dims(), centres.dtype(), x.queue()).index_add(nearest, x, 0);
    const Tensor ones = Tensor::full({x.dim(0)}, 1, x.dtype(), x.queue());
    const Tensor counts = Tensor::zeros({centres.dim(0)}, x.dtype(), x.queue()).index_add(nearest, ones, 0);
    return std::vector{sums / counts.unsqueeze(1), counts};
  });
  Tensor centres = points.narrow(0, 0, 3, 100);  // one of each group
  for (int i = 0; i < 5; i++) {
    const std::vector<Tensor> in = {points, centres};
    auto next = step.run(in);
    if (!next) return std::fprintf(stderr, "%s\n", next.error().message.c_str()), 1;
    centres = (*next)[0];
    if (i == 4) std::puts((*next)[1].text().c_str());
  }
  std::puts(centres.map("round").text().c_str());
}
