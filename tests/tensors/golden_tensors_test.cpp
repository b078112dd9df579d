// Every operation of the tensor library against other people's numbers: mpmath, NumPy and exact integers
// (golden/tensors).
#include "tensors/golden_judge.h"

namespace gimbal::test {
namespace {

void check_family(const std::string& family) {
  const auto q = open_queue("cpu");
  ASSERT_TRUE(q) << q.error().message;
  const TensorCase file = read_json(golden_dir() + "/tensors/" + family + ".json");
  int failures = 0, n = 0;
  for (const TensorCase& c : file["cases"]) {
    if (c["op"] == "threefry4x32") continue;  // of the cipher alone: uniform and normal are made of it
    n++;
    const std::string wrong = judge_case(c, run_case(c, *q));
    if (!wrong.empty() && failures++ < 12)
      ADD_FAILURE() << family << ": " << c["name"].get<std::string>() << " " << wrong;
  }
  EXPECT_GT(n, 0);
  EXPECT_EQ(failures, 0) << "of " << n << " cases of " << family;
  const Status done = q->wait();
  EXPECT_TRUE(done) << done.error().message;
}

TEST(GoldenTensors, Casts) { check_family("cast"); }
TEST(GoldenTensors, Maps) { check_family("maps"); }
TEST(GoldenTensors, Comparisons) { check_family("compare"); }
TEST(GoldenTensors, Promotion) { check_family("promote"); }
TEST(GoldenTensors, Where) { check_family("where"); }
TEST(GoldenTensors, Moves) { check_family("moves"); }
TEST(GoldenTensors, Reductions) { check_family("reductions"); }
TEST(GoldenTensors, Softmax) { check_family("softmax"); }
TEST(GoldenTensors, CumSum) { check_family("cumsum"); }
TEST(GoldenTensors, Gather) { check_family("gather"); }
TEST(GoldenTensors, Sort) { check_family("sort"); }
TEST(GoldenTensors, Matmul) { check_family("matmul"); }
TEST(GoldenTensors, Conv) { check_family("conv"); }
TEST(GoldenTensors, Pool) { check_family("pool"); }
TEST(GoldenTensors, Upsample) { check_family("upsample"); }
TEST(GoldenTensors, Random) { check_family("random"); }
TEST(GoldenTensors, Views) { check_family("views"); }
TEST(GoldenTensors, Errors) { check_family("errors"); }

// Every format of weights, by ggml's own numbers; rows of it are views.
TEST(GoldenTensors, BlocksAreDecoded) {
  const auto q = open_queue("cpu");
  ASSERT_TRUE(q) << q.error().message;
  int formats = 0;
  for (const std::string& path : golden_files("dequant", ".json")) {
    const TensorCase file = read_json(path);
    const auto type = dtype_named(TensorCase(file["type"]).get<std::string>());
    ASSERT_TRUE(type) << path;
    formats++;
    for (const TensorCase& b : file["blocks"]) {
      const std::string raw = base64_decode(b["raw_b64"]);
      const std::vector<float> want = base64_floats(b["values_b64"]);
      const auto n = int64_t(want.size());
      const std::string twice = raw + raw;
      const Tensor x = Tensor::from_bytes(std::as_bytes(std::span(twice)), {2, n}, *type, *q);
      for (const Tensor& t : {x.to(DType::F32).select(0, 1), x.select(0, 1).to(DType::F32)}) {
        const auto got = t.values<float>();
        ASSERT_TRUE(got) << path << ": " << got.error().message;
        ASSERT_EQ(got->size(), want.size());
        for (size_t i = 0; i < want.size(); i++)
          ASSERT_TRUE((*got)[i] == want[i] || (std::isnan((*got)[i]) && std::isnan(want[i])))
              << path << " " << i;
      }
    }
  }
  EXPECT_GT(formats, 20);
}

}  // namespace
}  // namespace gimbal::test
