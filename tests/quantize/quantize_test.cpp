// Whole files: the same bytes from any number of threads, from every compiler and on every machine; and a
// check that makes a file again notices one changed byte.
#include "quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "files/gguf.h"
#include "quantize/tensor_encoder.h"
#include "support/golden.h"
#include "support/made_gguf.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal::test {
namespace {

// Two layers, stacked experts in one; rows of 256 and of 96.
std::string made_model(float odd = 0.5f) {
  MadeGguf file;
  file.string("general.architecture", "llama");
  file.u32("llama.block_count", 2);
  file.u32("llama.attention.head_count", 4);
  uint32_t x = 26;
  const auto matrix = [&](const char* name, const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    std::vector<float> values;
    for (int64_t i = 0; i < n; i++)
      values.push_back(float(int32_t(x = x * 1664525u + 1013904223u) >> 8) / float(1 << 24));
    values[values.size() / 2] = odd;
    file.floats(name, dims, values);
  };
  matrix("token_embd.weight", {256, 40});
  matrix("blk.0.attn_norm.weight", {256});
  matrix("blk.0.attn_v.weight", {256, 32});
  matrix("blk.0.ffn_down.weight", {96, 256});
  matrix("blk.1.ffn_down_exps.weight", {256, 24, 3});
  matrix("blk.1.ffn_gate_inp.weight", {256, 3});
  return file.build();
}

Importance made_importance() {
  Importance all;
  std::vector<float> weights;
  for (int i = 0; i < 3 * 256; i++) weights.push_back(float(1 + i % 13));
  all.add("blk.1.ffn_down_exps.weight", weights);
  weights.resize(256);
  all.add("blk.0.attn_v.weight", weights);
  return all;
}

struct QuantizedFile {
  std::string path, bytes;
};

QuantizedFile quantized_as(const ModelSource& source, const char* mixture, const Importance* importance,
                           int threads) {
  const Derivation derivation{{*mixture_named(mixture), false, {}, {}, {}}, "0123", importance ? "4567" : ""};
  QuantizedFile made{temporary_path(std::string("made-") + mixture + std::to_string(threads)), ""};
  const auto ok = quantize({source, derivation, importance, threads, false, {}}, made.path);
  EXPECT_TRUE(ok) << ok.error().message;
  made.bytes = *read_file(made.path);
  return made;
}

struct FilePin {
  const char* mixture;
  bool importance;
  uint64_t hash;  // of the file, by g++ 12 on x86-64
};
const FilePin kFilePins[] = {
#include "quantize/file_pins.inc"
};

TEST(QuantizedFiles, TheSameBytesEverywhereAndFromAnyNumberOfThreads) {
  const std::string model = made_model();
  const auto source = parse_gguf(std::as_bytes(std::span(model)), "made");
  ASSERT_TRUE(source) << source.error().message;
  const Importance importance = made_importance();
  size_t pins = 0;
  for (const char* mixture :
       {"Q4_K_M", "Q2_K", "Q5_K_S", "Q3_K_L", "Q6_K", "Q8_0", "Q4_0", "IQ4_XS", "IQ3_M", "IQ2_M", "BF16"})
    for (const bool with : {false, true}) {
      if (!with && std::string_view(mixture).starts_with("IQ2")) continue;
      const Importance* given = with ? &importance : nullptr;
      const QuantizedFile one = quantized_as(*source, mixture, given, 1),
                          four = quantized_as(*source, mixture, given, 4);
      EXPECT_TRUE(one.bytes == four.bytes) << mixture;
      const uint64_t hash = Hash().add(std::string_view(one.bytes)).value();
      const bool pinned = pins < std::size(kFilePins);
      EXPECT_TRUE(pinned && kFilePins[pins].hash == hash && kFilePins[pins].importance == with &&
                  std::string_view(kFilePins[pins].mixture) == mixture)
          << mixture;
      if (testing::Test::HasFailure())
        std::printf("    {\"%s\", %s, 0x%016llx},\n", mixture, with ? "true" : "false",
                    (unsigned long long)hash);
      pins++;
    }
  EXPECT_EQ(pins, std::size(kFilePins));
}

TEST(QuantizedFiles, SayHowTheyWereMadeAndAreCheckedByMakingThemAgain) {
  const std::string model = made_model();
  const auto source = parse_gguf(std::as_bytes(std::span(model)), "made");
  ASSERT_TRUE(source);
  const QuantizedFile made = quantized_as(*source, "Q4_K_M", nullptr, 2);
  const auto file = open_gguf(made.path);
  ASSERT_TRUE(file);
  const auto said = derivation_of(*file);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->source_sha256, "0123");
  EXPECT_STREQ(said->rules.mixture.name, "Q4_K_M");
  EXPECT_EQ(file->metadata().unsigned_integer("general.file_type"), 15u);
  EXPECT_EQ(file->tensors().find("blk.0.ffn_down.weight")->type, DType::Q5_0) << "rows of 96: not Q4_K";
  EXPECT_EQ(file->tensors().find("blk.1.ffn_gate_inp.weight")->type, DType::F32);
  const QuantizeWork work{*source, *said, nullptr, 2, false, {}};
  const auto same = check_quantized(work, made.path);
  EXPECT_TRUE(same) << same.error().message;
  std::string changed = made.bytes;
  changed[changed.size() - 40] ^= 4;
  ASSERT_TRUE(write_file(made.path, changed));
  const auto differs = check_quantized(work, made.path);
  ASSERT_FALSE(differs);
  EXPECT_NE(differs.error().message.find("byte " + std::to_string(changed.size() - 40)), std::string::npos)
      << differs.error().message;
  ASSERT_TRUE(write_file(made.path, made.bytes.substr(0, made.bytes.size() - 1)));
  EXPECT_FALSE(check_quantized(work, made.path));
  ASSERT_TRUE(write_file(made.path, made.bytes + "x"));
  EXPECT_FALSE(check_quantized(work, made.path));
  EXPECT_FALSE(derivation_of(*source)) << "the source says nothing";
}

TEST(QuantizedFiles, ValuesAreNearTheSource) {
  const std::string model = made_model();
  const auto source = parse_gguf(std::as_bytes(std::span(model)), "made");
  ASSERT_TRUE(source);
  const QuantizedFile made = quantized_as(*source, "Q5_K_S", nullptr, 1);
  const auto file = open_gguf(made.path);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->tensors().size(), source->tensors().size());
  const Derivation derivation{{*mixture_named("Q5_K_S"), false, {}, {}, {}}, "", ""};
  const auto in_memory = quantized_source({*source, derivation});
  ASSERT_TRUE(in_memory) << in_memory.error().message;
  for (const StoredTensor& t : source->tensors()) {
    const StoredTensor& q = file->tensors()[t.index];
    const StoredTensor& m = in_memory->tensors()[t.index];
    EXPECT_TRUE(m.type == q.type && m.bytes == q.bytes) << t.name;
    EXPECT_TRUE(*in_memory->read(m) == *file->read(q)) << "encoded while it is read: " << t.name;
    // From the middle of a row to that of another one.
    std::vector<std::byte> part(q.bytes / 2), same(part.size());
    ASSERT_TRUE(in_memory->read(m, q.bytes / 3, part.data(), part.size()));
    ASSERT_TRUE(file->read(q, q.bytes / 3, same.data(), same.size()));
    EXPECT_TRUE(part == same) << t.name;
    EXPECT_FALSE(in_memory->read(m, q.bytes - 1, part.data(), 2)) << "beyond the end";
    EXPECT_EQ(q.name, t.name);
    std::vector<float> want(size_t(t.values())), got(want.size());
    decode_tensor(t.type, source->read(t)->data(), t.values(), want.data());
    decode_tensor(q.type, file->read(q)->data(), t.values(), got.data());
    for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 0.04) << t.name << " " << i;
  }
}

TEST(QuantizedFiles, RefuseWhatCannotBeQuantized) {
  const std::string model = made_model(NAN);
  const auto source = parse_gguf(std::as_bytes(std::span(model)), "made");
  ASSERT_TRUE(source);
  const std::string path = temporary_path("refused.gguf");
  Derivation derivation{{*mixture_named("Q4_0"), false, {}, {}, {}}, "0123", ""};
  const auto odd = quantize({*source, derivation, nullptr, 2, false, {}}, path);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::Malformed);
  EXPECT_NE(odd.error().message.find("token_embd.weight"), std::string::npos) << odd.error().message;
  EXPECT_FALSE(std::filesystem::exists(path) || std::filesystem::exists(path + ".part")) << "nothing is left";
  derivation.rules.mixture = *mixture_named("IQ2_XXS");
  const auto needs = quantize({*source, derivation, nullptr, 2, false, {}}, path);
  ASSERT_FALSE(needs);
  EXPECT_NE(needs.error().message.find("importance"), std::string::npos);
  Importance other;
  other.add("blk.0.attn_v.weight", std::vector<float>(255, 1.0f));
  derivation.rules.mixture = *mixture_named("Q4_K_M");
  EXPECT_FALSE(plan_quantization({*source, derivation, &other, 2, false, {}}));
  const std::string good = made_model();
  const auto readable = parse_gguf(std::as_bytes(std::span(good)), "made");
  const auto stopped =
      quantize({*readable, derivation, nullptr, 2, false, [](uint64_t, uint64_t) { return false; }}, path);
  EXPECT_FALSE(stopped);
  EXPECT_FALSE(std::filesystem::exists(path));
}

// An interrupted run, one that is killed, and what remains of other rules.
TEST(QuantizedFiles, AreContinuedWithTheSameBytes) {
  const std::string model = made_model();
  const auto source = parse_gguf(std::as_bytes(std::span(model)), "made");
  ASSERT_TRUE(source);
  const QuantizedFile whole = quantized_as(*source, "Q4_K_M", nullptr, 1);
  const std::string path = temporary_path("continued.gguf");
  const Derivation derivation{{*mixture_named("Q4_K_M"), false, {}, {}, {}}, "0123", ""};
  // Progress is called for each tensor: the third ends the run.
  struct Seen {
    GrowingFile::Found found = GrowingFile::Found::Nothing;
    uint64_t kept = 0, last = 0, total = 0, first = UINT64_MAX;
    bool rises = true;
  };
  const auto run = [&](const Derivation& of, const std::function<bool(int)>& goes_on, Seen& seen) {
    int calls = 0;
    QuantizeWork work{*source, of, nullptr, 2, false, {}};
    work.progress = [&](uint64_t done, uint64_t total) {
      seen.rises = seen.rises && done >= seen.last && done <= total;
      seen.first = std::min(seen.first, done), seen.last = done, seen.total = total;
      return goes_on(calls++);
    };
    work.found = [&](const GrowingFile& part, GrowingFile::Found found) {
      seen.found = found, seen.kept = part.kept();
    };
    work.piece = 1000;
    return quantize(work, path);
  };
  const auto until_third = [](int call) { return call < 2; };
  const auto always = [](int) { return true; };
  Seen first, second;
  EXPECT_FALSE(run(derivation, until_third, first));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(path + ".part"));
  ASSERT_TRUE(run(derivation, always, second));
  EXPECT_EQ(second.found, GrowingFile::Found::Same);
  EXPECT_GT(second.kept, 1000u);
  EXPECT_TRUE(second.rises) << "skipped tensors count";
  EXPECT_EQ(second.last, second.total);
  EXPECT_TRUE(*read_file(path) == whole.bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));

  std::filesystem::remove(path);
  Seen killed, after;
  EXPECT_EXIT((void)run(
                  derivation, [](int call) { return call < 2 || raise(SIGKILL) == 0; }, killed),
              testing::KilledBySignal(SIGKILL), "");
  ASSERT_TRUE(run(derivation, always, after));
  EXPECT_EQ(after.found, GrowingFile::Found::Same);
  EXPECT_GT(after.kept, 1000u);
  EXPECT_TRUE(*read_file(path) == whole.bytes);

  std::filesystem::remove(path);
  Seen other, own;
  EXPECT_FALSE(run({{*mixture_named("Q5_K_M"), false, {}, {}, {}}, "0123", ""}, until_third, other));
  ASSERT_TRUE(run(derivation, always, own));
  EXPECT_EQ(own.found, GrowingFile::Found::Other);
  EXPECT_TRUE(*read_file(path) == whole.bytes);

  std::filesystem::remove(path);
  Seen damaged, anew;
  EXPECT_FALSE(run(derivation, until_third, damaged));
  std::string bytes = *read_file(path + ".part");
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(path + ".part", bytes));
  ASSERT_TRUE(run(derivation, always, anew));
  EXPECT_EQ(anew.found, GrowingFile::Found::Damaged);
  EXPECT_TRUE(*read_file(path) == whole.bytes);
}

// Experts of more rows than a thread encodes at a time: each row has the importance of its own expert.
TEST(TensorEncoders, ExpertsHaveImportanceOfTheirOwn) {
  constexpr int64_t kWidth = 256, kRows = 64, kExperts = 4;
  std::vector<float> values, weights;
  uint32_t x = 5;
  const auto next = [&] { return float((x = x * 1664525u + 1013904223u) >> 8) / float(1 << 24); };
  for (int64_t i = 0; i < kWidth * kRows * kExperts; i++) values.push_back(next() - 0.5f);
  for (int64_t i = 0; i < kWidth * kExperts; i++) weights.push_back(next());
  MadeGguf model;
  model.floats("blk.0.ffn_up_exps.weight", {kWidth, kRows, kExperts}, values);
  const std::string bytes = model.build();
  const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "made");
  ASSERT_TRUE(file) << file.error().message;
  Importance importance;
  importance.add("blk.0.ffn_up_exps.weight", weights);
  const std::vector<TensorFormat> formats = {{.format = DType::Q4_K, .quantized = true}};
  const auto row = row_bytes(DType::Q4_K, kWidth);
  std::vector<uint8_t> found(size_t(row * kRows * kExperts)), expected(found.size());
  TensorEncoder encoder(*file, formats, &importance, 2, {});
  const auto ok =
      encoder.read(*file->tensors().find("blk.0.ffn_up_exps.weight"), 0, found.data(), found.size());
  ASSERT_TRUE(ok) << ok.error().message;
  for (int64_t r = 0; r < kRows * kExperts; r++)
    encode(DType::Q4_K, values.data() + r * kWidth, kWidth, expected.data() + r * row,
           weights.data() + r / kRows * kWidth);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace gimbal::test
