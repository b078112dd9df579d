// gimbal imatrix and gimbal choose, and a quantization that Ctrl-C interrupts, on the command line.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/cli.h"
#include "support/made_gguf.h"

namespace gimbal::test {
namespace {

std::string text_file() {
  static const std::string path = [] {
    std::string all;
    for (int i = 0; i < 30; i++)
      all += format(
          "Once upon a time there were {} little dogs. They ran to the big tree and saw a red bird. ", i);
    const std::string file = temporary_path("calibration.txt");
    EXPECT_TRUE(write_file(file, all));
    return file;
  }();
  return path;
}

TEST(ImatrixCommand, WritesBothFormsThatQuantizeTakes) {
  const std::string gguf = temporary_path("own.imatrix.gguf"), old = temporary_path("own.imatrix.dat");
  const Args base{"imatrix", story_file("f32"), "--text", text_file(), "--context", "64", "--chunks", "3"};
  const Json j = json_of(gimbal(with(base, {"-o", gguf, "--json"})));
  expect_keys(
      j, {"model", "device", "fallbacks", "windows", "window", "perplexity", "standard_error", "path",
          "format", "merged", "tensors", "matrices", "matrices_without_tokens", "all_windows", "complete"});
  EXPECT_EQ(j["windows"], 3);
  EXPECT_EQ(j["format"], "gguf");
  EXPECT_EQ(j["complete"], true);
  // Each layer of a dense llama has seven matrices, and the output one more; every token meets all.
  EXPECT_EQ(j["tensors"], 5 * 7 + 1);
  EXPECT_EQ(j["matrices"], 5 * 7 + 1);
  EXPECT_EQ(j["matrices_without_tokens"], 0);
  EXPECT_EQ(gimbal(with(base, {"-o", gguf})).code, 2) << "it exists";
  // The perplexity is that of `gimbal perplexity` on the same windows.
  const Ran people = gimbal(with(base, {"-o", old}));
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_SAYS(people.out, format("{:.4f}", j["perplexity"].get<double>()));
  std::vector<std::string> made;
  for (const std::string& file : {gguf, old}) {
    made.push_back(temporary_path("weighted.gguf"));
    const Ran r = gimbal(
        {"quantize", story_file("f32"), made.back(), "IQ3_XXS", "--imatrix", file, "--force", "--json"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(json_of(r)["without_importance"].empty()) << "every matrix has its weights";
  }
  const std::string same = temporary_path("threads.gguf");
  EXPECT_EQ(gimbal(with(base, {"-o", same, "-t", "1", "--batch", "5"})).code, 0);
  EXPECT_TRUE(*read_file(same) == *read_file(gguf)) << "the same bytes from any number of threads";
}

TEST(ImatrixCommand, ContinuesAndMerges) {
  const auto made = [](const std::string& name, const Args& more) {
    const std::string path = temporary_path(name);
    const Ran r = gimbal(with({"imatrix", story_file("f32"), "--context", "64", "-o", path}, more));
    EXPECT_EQ(r.code, 0) << r.err;
    return path;
  };
  const std::string all = made("all.gguf", {"--text", text_file(), "--chunks", "4"});
  const std::string first = made("first.gguf", {"--text", text_file(), "--chunks", "1"});
  const std::string rest = made("rest.gguf", {"--text", text_file(), "--chunks", "3", "--from-chunk", "1"});
  const std::string continued =
      made("continued.gguf", {"--text", text_file(), "--chunks", "3", "--from-chunk", "1", "--merge", first});
  const std::string merged = made("merged.gguf", {"--merge", first, "--merge", rest});
  // Sums are stored in f32, so the parts differ from the whole by a rounding: quantizing compares the
  // formats.
  const Json info = json_of(gimbal({"info", merged, "--json"}));
  for (const std::string& path : {all, continued, merged}) {
    const Json j = json_of(gimbal({"info", path, "--json"}));
    EXPECT_EQ(j["metadata"]["imatrix.chunk_count"], 4) << path;
    EXPECT_EQ(j["metadata"]["imatrix.chunk_size"], 64) << path;
  }
  EXPECT_EQ(gimbal({"imatrix", story_file("f32")}).code, 2) << "neither text nor matrix";
  const Ran no_text =
      gimbal({"imatrix", story_file("f32"), "--text", "/no/such/text", "-o", temporary_path("no")});
  EXPECT_EQ(no_text.code, 1);
  EXPECT_SAYS(no_text.err, "cannot read '/no/such/text'");
  EXPECT_EQ(gimbal({"imatrix", story_file("f32"), "--text", text_file(), "--ctx", "64", "--backend", "cpu",
                    "--device", "7", "-o", temporary_path("no")})
                .code,
            4)
      << "no such device";
  EXPECT_EQ(
      gimbal({"imatrix", golden_dir() + "/quant/q-f16.gguf", "--merge", first, "-o", temporary_path("no")})
          .code,
      3)
      << "of another model";
  EXPECT_EQ(gimbal({"imatrix", story_file("f32"), "--text", text_file(), "--from-chunk", "100000", "-o",
                    temporary_path("no")})
                .code,
            2);
}

TEST(ChooseCommand, ShowsTheCostOfEachAndChooses) {
  const Args base{"choose", story_file("f32"), "--text", text_file(), "--candidates", "original,Q8_0,Q2_K"};
  const Json all = json_of(gimbal(with(base, {"--json"})));
  expect_keys(all, {"model", "budget", "windows", "window", "chosen", "as_good", "candidates"});
  ASSERT_EQ(all["candidates"].size(), 3u);
  std::map<std::string, Json> of;
  for (const Json& c : all["candidates"]) of[c["mixture"]] = c;
  for (const char* name : {"original", "Q8_0", "Q2_K"}) {
    EXPECT_EQ(of[name]["choosable"], "yes") << name;
    EXPECT_GE(of[name]["nats_per_token"], of[all["chosen"]]["nats_per_token"]) << name;
  }
  // The loss of the model as it is, by the other command.
  const Json other = json_of(gimbal({"perplexity", story_file("f32"), "-f", text_file(), "--json"}));
  EXPECT_NEAR(of["original"]["perplexity"].get<double>(), other["perplexity"].get<double>(), 1e-9);

  const std::string budget = format("{}", of["Q8_0"]["planned_bytes"].get<uint64_t>());
  const Ran within = gimbal(with(base, {"--budget", budget, "--json"}));
  EXPECT_EQ(within.code, 0);
  EXPECT_EQ(json_of(within)["chosen"], "Q8_0");
  const Ran people = gimbal(with(base, {"--budget", budget}));
  EXPECT_SAYS(people.out, "over budget");
  EXPECT_SAYS(people.out, "gimbal quantize");
  const Ran none = gimbal(with(base, {"--budget", "1K", "--json"}));
  EXPECT_EQ(none.code, 5);
  EXPECT_TRUE(json_of(none)["chosen"].is_null());
  const Ran not_made = gimbal({"choose", golden_dir() + "/quant/q-f16.gguf", "--text", text_file(),
                               "--candidates", "IQ2_XXS,Q4_K_M", "--chunks", "1", "--ctx", "64"});
  EXPECT_EQ(not_made.code, 0) << not_made.err;
  EXPECT_SAYS(not_made.out, "cannot be made: iq2_xxs of tensor");
  EXPECT_EQ(gimbal(with(base, {"--budget", "much"})).code, 2);
  EXPECT_EQ(gimbal({"choose", story_file("f32"), "--budget", "1G"}).code, 2) << "no text";
  EXPECT_EQ(gimbal({"choose", story_file("f32"), "--text", text_file(), "--candidates", "Q9"}).code, 2);
}

// Threads: several encode.
TEST(QuantizeCommand, IsContinuedAfterCtrlC) {
  // Three windows of the encoder: the interruption is noticed between them.
  const std::string source = temporary_path("large.gguf"), out = temporary_path("large-q.gguf"),
                    whole = temporary_path("whole-q.gguf");
  {
    MadeGguf model;
    model.string("general.architecture", "llama");
    model.u32("llama.block_count", 3);
    std::string values(size_t(2) << 22, '\0');
    uint32_t x = 7;
    for (size_t i = 0; i < values.size(); i += 2) {
      const uint16_t half = uint16_t(0x2000 + ((x = x * 1664525u + 1013904223u) >> 20));
      std::memcpy(&values[i], &half, 2);
    }
    for (int i = 0; i < 3; i++)
      model.tensor(format("blk.{}.ffn_up.weight", i), {2048, 2048}, DType::F16, values);
    ASSERT_TRUE(write_file(source, model.build()));
  }
  const Args command{"quantize", source, out, "Q5_K_S", "--threads", "2"};
  const Ran stopped = gimbal(with(command, {"--json"}), {.interrupt_when_heard = true});
  EXPECT_EQ(stopped.code, 130) << stopped.out << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  const uint64_t there = std::filesystem::file_size(out + ".part");
  const Ran continued = gimbal(with(command, {"--json"}));
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(json_of(continued)["continued_bytes"], there);
  EXPECT_SAYS(continued.err, "continuing");
  EXPECT_FALSE(std::filesystem::exists(out + ".part"));
  ASSERT_EQ(gimbal({"quantize", source, whole, "Q5_K_S", "--threads", "1"}).code, 0);
  EXPECT_TRUE(*read_file(out) == *read_file(whole));

  std::filesystem::remove(out);
  EXPECT_EQ(gimbal(command, {.interrupt_when_heard = true}).code, 130);
  std::string bytes = *read_file(out + ".part");
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(out + ".part", bytes));
  const Ran anew = gimbal(command);
  EXPECT_EQ(anew.code, 0);
  EXPECT_SAYS(anew.err, "is damaged");
  EXPECT_TRUE(*read_file(out) == *read_file(whole));
}

}  // namespace
}  // namespace gimbal::test
