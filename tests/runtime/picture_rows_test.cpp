// Rows of pictures in a text: logits against ref64, over the reference data's own rows. Some models turn
// heads by time, line and column; one takes parts of a picture's rows behind its first layers; in Gemma 3 the
// rows of a picture see each other.
#include <gtest/gtest.h>

#include <cmath>

#include "model/vision/made_tensors.h"
#include "support/engine.h"
#include "support/pictures.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

// A prompt of the reference data: its inputs, and the position of the first token behind it.
struct PictureText {
  Inputs inputs;
  int next_position;
};

PictureText text_of(const nlohmann::ordered_json& golden, const nlohmann::ordered_json& k) {
  const int width = k["embedding_width"];
  const std::vector<float> all = base64_floats(k["embedding_ref64"]);
  std::vector<int32_t> tokens;
  std::vector<EmbeddingSpan> spans;
  size_t row = 0;
  for (const auto& chunk : k["chunks"]) {
    if (chunk.contains("tokens")) {
      for (int32_t t : chunk["tokens"]) tokens.push_back(t);
      continue;
    }
    const auto& piece = k["pieces"][chunk["piece"].get<size_t>()];
    const int rows = chunk["rows"], columns = piece.contains("grid") ? piece["grid"][0].get<int>() : 0;
    const auto begin = all.begin() + ptrdiff_t(row * size_t(width));
    spans.push_back({int(tokens.size()),
                     *Embeddings::create({begin, begin + ptrdiff_t(rows) * width}, width, columns,
                                         k["non_causal_images"].get<bool>()),
                     0, rows});
    tokens.insert(tokens.end(), size_t(rows), kNoToken);
    row += size_t(rows);
  }
  EXPECT_EQ(row * size_t(width), all.size()) << golden["mmproj"];
  EXPECT_EQ(tokens.size(), k["rows"].get<size_t>());
  return {Inputs(std::move(tokens), std::move(spans)), k["next_position"]};
}

// Logits of the wanted rows; batches of `n` rows.
std::vector<float> logits_at(Model& model, const Inputs& inputs, std::span<const int> wanted, int n) {
  auto s = model.new_sequence();
  EXPECT_TRUE(s);
  std::vector<float> out;
  for (int at = 0; at < int(inputs.size()); at += n) {
    Batch b;
    for (int i = at; i < std::min(at + n, int(inputs.size())); i++)
      b.rows.push_back({s->get(), inputs[size_t(i)], i, {.logits = std::ranges::count(wanted, i) > 0}});
    auto step = model.forward(b);
    if (!step) {
      ADD_FAILURE() << step.error().message;
      return out;
    }
    size_t k = 0;
    for (const Row& r : b.rows)
      if (r.wants.logits) out.insert(out.end(), step->logits(k).begin(), step->logits(k).end()), k++;
  }
  return out;
}

// A batch that ends inside a picture is refused and changes nothing; a session cuts between pictures.
void check_together(Model& model, const Inputs& inputs, std::span<const int> wanted,
                    std::span<const float> want) {
  const EmbeddingSpan& first = inputs.embeddings()[0];
  const size_t inside = size_t(first.position) + 1, vocabulary = size_t(model.config().vocabulary);
  {
    auto s = model.new_sequence();
    ASSERT_TRUE(s);
    Batch b;
    for (size_t i = 0; i < inside; i++) b.rows.push_back({s->get(), inputs[i], int(i), {}});
    auto refused = model.forward(b);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Usage);
    EXPECT_EQ((*s)->computed(), 0);
  }
  for (int batch : {first.rows, first.rows + 2}) {
    auto session = Session::create(model);
    ASSERT_TRUE(session);
    (*session)->limit_batch(batch);
    std::vector<float> last;
    auto ok = (*session)->advance(inputs, Session::Wanted::Last, [&](size_t, std::span<const float> row) {
      last.assign(row.begin(), row.end());
    });
    ASSERT_TRUE(ok) << ok.error().message;
    ASSERT_EQ(wanted.back(), int(inputs.size()) - 1);
    EXPECT_TRUE(std::ranges::equal(last, want.last(vocabulary))) << "other bits in batches of " << batch;
  }
  auto session = Session::create(model);
  ASSERT_TRUE(session);
  (*session)->limit_batch(first.rows - 1);
  auto ok = (*session)->advance(inputs, Session::Wanted::None, {});
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().field, std::string("batch"));
}

class PictureRows : public ::testing::TestWithParam<const char*> {};

TEST_P(PictureRows, GiveTheReferencesLogits) {
  const auto golden = read_json(vision_path(std::string(GetParam()) + ".json"));
  EngineOptions o;
  o.run.cache_type = DType::F32, o.run.embeddings = true, o.run.context = 512, o.run.batch = 256;
  o.run.logit_rows = 16;
  auto engine = open_engine(vision_path(golden["text"]), o);
  ASSERT_TRUE(engine) << engine.error().message;
  const size_t vocabulary = golden["n_vocab"];
  const double tolerance = golden["tolerance"]["logits"];
  for (const auto& k : golden["cases"]) {
    const PictureText text = text_of(golden, k);
    const std::vector<int> wanted = k["logit_rows"];
    // Of some texts there is no computation in double precision, but llama.cpp's of the same rows.
    const std::vector<float> want =
        base64_floats(k[k.contains("logits_ref64") ? "logits_ref64" : "logits_llamacpp"]);
    ASSERT_EQ(want.size(), wanted.size() * vocabulary);
    const std::vector<float> got = logits_at(*engine->model, text.inputs, wanted, 256);
    ASSERT_EQ(got.size(), want.size());
    double most = 0;
    for (size_t i = 0; i < want.size(); i++)
      most = std::max(most, std::fabs(double(got[i]) - double(want[i])));
    EXPECT_LE(most, tolerance) << GetParam() << " " << k["name"];
    std::printf("%s %s: logits differ by at most %.2g\n", GetParam(), k["name"].get<std::string>().c_str(),
                most);
    // A picture may be cut anywhere, unless its rows see each other.
    const bool together = k["non_causal_images"];
    for (int n : {1, 7})
      if (!together) { EXPECT_EQ(logits_at(*engine->model, text.inputs, wanted, n), got) << n << k["name"]; }
    if (together) check_together(*engine->model, text.inputs, wanted, got);

    // The tokens behind it, which begin at the position that the picture's shape leaves.
    EXPECT_EQ(RopePositions(text.inputs).add({1}).time, text.next_position);
    const std::vector<int32_t> greedy = k["greedy"];
    const std::vector<double> margins = k["greedy_margins"];
    Inputs answer = text.inputs;
    for (size_t i = 0; i + 1 < greedy.size(); i++) answer.push(greedy[i]);
    std::vector<int> rows;
    for (size_t i = 0; i < greedy.size(); i++) rows.push_back(int(text.inputs.size() + i) - 1);
    const std::vector<float> all = logits_at(*engine->model, answer, rows, together ? 256 : 5);
    ASSERT_EQ(all.size(), greedy.size() * vocabulary);
    for (size_t i = 0; i < greedy.size() && margins[i] >= 0.05; i++) {
      const auto row = all.begin() + ptrdiff_t(i * vocabulary);
      EXPECT_EQ(std::max_element(row, row + ptrdiff_t(vocabulary)) - row, greedy[i])
          << k["name"] << ", token " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PictureRows,
                         ::testing::Values("qwen2vl", "qwen2.5vl", "qwen3vl", "gemma3", "llava-siglip",
                                           "llava-tiles", "idefics3", "internvl", "pixtral", "gemma4v",
                                           "glm4v", "paddleocr"),
                         [](const auto& i) {
                           std::string name = i.param;
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

// Where a text model multiplies its tokens' embeddings, pictures' rows stay as they are: a row that is a
// token's multiplied embedding has the token's results.
TEST(RowsOfPictures, AreNotMultiplied) {
  std::vector<std::pair<std::string, float>> models{{vision_path("text-gemma3.gguf"), std::sqrt(48.0f)}};
  if (whole_collection()) models.emplace_back(golden_dir() + "/more/arch/minicpm.gguf", 12.0f);
  for (const auto& [path, scale] : models) {
    const ModelSource file = open_file(path);
    const StoredTensor* table = file.tensors().find("token_embd.weight");
    ASSERT_TRUE(table);
    const auto values = values_of(file, *table, int64_t(1) << 24);
    ASSERT_TRUE(values);
    const auto scale_of = file.metadata().number("minicpm.embedding_scale");
    EngineOptions o;
    o.run.cache_type = DType::F32, o.run.embeddings = true, o.run.context = 64, o.run.logit_rows = 16;
    auto engine = open_engine(path, o);
    ASSERT_TRUE(engine) << engine.error().message;
    const int width = engine->model->config().width, token = 300;
    std::vector<float> row(values->begin() + token * width, values->begin() + (token + 1) * width);
    for (float& v : row) v *= scale_of ? float(*scale_of) : scale;
    const Inputs tokens({5, token, 7});
    const Inputs with_row({5, kNoToken, 7}, {{1, *Embeddings::create(row, width), 0, 1}});
    const std::vector<int> all{0, 1, 2};
    EXPECT_EQ(logits_at(*engine->model, with_row, all, 8), logits_at(*engine->model, tokens, all, 8)) << path;
  }
}

TEST(RopePositions, OfAGridAreItsLinesAndColumns) {
  const int width = 2;
  const EmbeddingsPtr grid = *Embeddings::create(std::vector<float>(6 * width, 1.f), width, 3),
                      same = *Embeddings::create(std::vector<float>(6 * width, 1.f), width, 3),
                      row = *Embeddings::create(std::vector<float>(6 * width, 1.f), width);
  EXPECT_EQ(grid->digest(), same->digest());
  EXPECT_NE(grid->digest(), row->digest()) << "a grid and a sequence of the same numbers";
  EXPECT_FALSE(Embeddings::create(std::vector<float>(6 * width, 1.f), width, 4)) << "no whole lines";
  EXPECT_FALSE(Embeddings::create(std::vector<float>(6 * width, 1.f), width, -1));
  const auto none = [](int n) { return std::vector<int32_t>(size_t(n), kNoToken); };
  Inputs inputs({7, 8});
  const auto append = [&](const EmbeddingsPtr& of, int first, int rows) {
    inputs.append(Inputs(none(rows), {{0, of, first, rows}}));
  };
  append(grid, 0, 4), append(same, 4, 2), append(grid, 0, 6), inputs.push(9), append(row, 0, 2),
      inputs.push(9);
  const std::vector<RopePosition> want{{0, 0, 0}, {1, 1, 1},    {2, 2, 2},   {2, 2, 3}, {2, 2, 4},
                                       {2, 3, 2}, {2, 3, 3},    {2, 3, 4},   {5, 5, 5}, {5, 5, 6},
                                       {5, 5, 7}, {5, 6, 5},    {5, 6, 6},   {5, 6, 7}, {8, 8, 8},
                                       {9, 9, 9}, {10, 10, 10}, {11, 11, 11}};
  ASSERT_EQ(inputs.size(), want.size());
  // From every place of the text on.
  for (size_t from = 0; from <= inputs.size(); from++) {
    RopePositions places(InputView(inputs).first(from));
    for (size_t i = from; i < inputs.size(); i++)
      EXPECT_EQ(places.add(inputs[i]), want[i]) << from << " " << i;
  }
}

}  // namespace
}  // namespace gimbal::test
