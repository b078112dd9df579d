// Transposed convolutions of one dim by their definition: x[i] w[k] belongs to the output i stride + k
// dilation - padding. Sizes as PyTorch has them: (n - 1) stride - 2 padding + dilation (kernel - 1) + output
// padding + 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

constexpr int64_t kLength = 5, kKernel = 3;

struct Case {
  int64_t stride, padding, dilation, output_padding;
};

std::vector<double> by_definition(const std::vector<float>& x, const std::vector<float>& w, const Case& c) {
  std::vector<double> out(
      size_t((kLength - 1) * c.stride - 2 * c.padding + c.dilation * (kKernel - 1) + c.output_padding + 1));
  for (int64_t i = 0; i < kLength; i++)
    for (int64_t k = 0; k < kKernel; k++) {
      const int64_t at = i * c.stride + k * c.dilation - c.padding;
      if (at >= 0 && at < int64_t(out.size())) out[size_t(at)] += double(x[size_t(i)]) * w[size_t(k)];
    }
  return out;
}

class ConvTranspose : public OnCpuQueue {};

TEST_F(ConvTranspose, AllSmallWindows) {
  const std::vector<float> x = {1, -2, 3, 5, -7}, w = {2, 4, -8};  // small integers: sums are exact
  int computed = 0, refused = 0;
  for (int64_t stride = 1; stride <= 3; stride++)
    for (int64_t padding = 0; padding <= 2; padding++)
      for (int64_t dilation = 1; dilation <= 3; dilation++)
        for (int64_t output_padding = 0; output_padding <= 3; output_padding++) {
          SCOPED_TRACE(testing::Message() << "stride " << stride << ", padding " << padding << ", dilation "
                                          << dilation << ", output padding " << output_padding);
          ConvOptions o;
          o.stride = {stride}, o.padding = {padding}, o.dilation = {dilation},
          o.output_padding = {output_padding};
          const Tensor y = conv_transpose(Tensor::from<float>(x, {1, 1, kLength}, *queue),
                                          Tensor::from<float>(w, {1, 1, kKernel}, *queue), o);
          if (output_padding >= std::max(stride, dilation)) {
            EXPECT_FALSE(y.ok()) << "PyTorch refuses it, too";
            refused++;
            continue;
          }
          const auto values = y.values<float>();
          ASSERT_TRUE(values) << values.error().message;
          EXPECT_EQ(std::vector<double>(values->begin(), values->end()),
                    by_definition(x, w, {stride, padding, dilation, output_padding}));
          computed++;
        }
  EXPECT_EQ(computed, 66);
  EXPECT_EQ(refused, 42);
}

}  // namespace
}  // namespace gimbal::test
