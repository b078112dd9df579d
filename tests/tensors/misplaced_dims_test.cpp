// Moves of elements along a dim that a tensor does not have, or of a tensor that is an error itself: errors
// that say so, and no crash. Convolutions with too many dims, too. And pictures resized to a single element.
#include <gtest/gtest.h>

#include "tensors/cpu_queue.h"

namespace gimbal::test {
namespace {

class MisplacedDims : public OnCpuQueue {
 protected:
  Tensor counted() const { return Tensor::arange(0, 6, 1, DType::F32, *queue).reshape({2, 3}); }
  Tensor failed() const { return counted().map("no such function"); }
};

TEST_F(MisplacedDims, AreErrorsThatNameTheOperation) {
  const Tensor x = counted(), ids = Tensor::from<int64_t>({0, 1, 0, 1, 0, 1}, {2, 3}, *queue);
  for (const int dim : {2, -3, 100}) {
    for (const auto& [name, y] : {std::pair("gather", x.gather(ids, dim)), {"roll", x.roll(1, dim)}}) {
      ASSERT_FALSE(y.ok()) << name << " " << dim;
      EXPECT_EQ(y.error().code, Code::Usage);
      EXPECT_NE(y.error().message.find(name), std::string::npos) << y.error().message;
      EXPECT_NE(y.error().message.find(std::to_string(dim)), std::string::npos) << y.error().message;
      EXPECT_EQ(y.error().remedy, "from -2 to 1");
    }
  }
  EXPECT_EQ(*x.gather(ids, -2).values<float>(), (std::vector<float>{0, 4, 2, 3, 1, 5}));
  EXPECT_EQ(*x.roll(1, -1).values<float>(), (std::vector<float>{2, 0, 1, 5, 3, 4}));
}

TEST_F(MisplacedDims, AnErrorStaysTheFirstOne) {
  const std::string first = failed().error().message;
  EXPECT_NE(first.find("no such function"), std::string::npos) << first;
  const Tensor ids = Tensor::zeros({2, 3}, DType::I64, *queue);
  EXPECT_EQ(failed().repeat({2, 1}).error().message, first);
  EXPECT_EQ(failed().roll(1, 0).error().message, first);
  EXPECT_EQ(failed().gather(ids, 0).error().message, first);
  EXPECT_EQ(failed().upsample_bilinear2d(2, 2).error().message, first);
}

TEST_F(MisplacedDims, AConvolutionHasOneOrTwoSpatialDims) {
  const auto ones = [&](Dims shape) { return Tensor::full(shape, 1, DType::F32, *queue); };
  EXPECT_EQ(*conv(ones({1, 1, 3}), ones({1, 1, 2})).values<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(*conv(ones({1, 1, 2, 2}), ones({1, 1, 2, 2})).values<float>(), (std::vector<float>{4}));
  for (const Dims& shape : {Dims{1, 2}, Dims{1, 1, 2, 2, 2}})
    for (const Tensor& y : {conv(ones(shape), ones(shape)), conv_transpose(ones(shape), ones(shape))}) {
      ASSERT_FALSE(y.ok()) << shape.size();
      EXPECT_NE(y.error().message.find("three dimensions of both, or four"), std::string::npos)
          << y.error().message;
    }
}

// PyTorch's places without aligned corners: (i + 0.5) * before / after - 0.5, between the two on its sides.
TEST_F(MisplacedDims, PicturesShrinkToOneElement) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 1, 2, 2}, *queue);
  EXPECT_EQ(*x.upsample_bilinear2d(1, 1).values<float>(), (std::vector<float>{2.5f}));
  EXPECT_EQ(*x.upsample_bilinear2d(1, 2).values<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(*x.upsample_bilinear2d(2, 1).values<float>(), (std::vector<float>{1.5f, 3.5f}));
  EXPECT_FALSE(x.upsample_bilinear2d(0, 1).ok());
  EXPECT_FALSE(x.upsample_bilinear2d(1, 0).ok());
}

}  // namespace
}  // namespace gimbal::test
