// Encoders of pictures: their rows against ref64, the same bits with other threads, prompts with their
// chunks, and projector files that are refused.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "base/result.h"
#include "files/gguf.h"
#include "media/picture.h"
#include "media/pieces.h"
#include "model/vision/made_tensors.h"
#include "model/vision/picture_prompt.h"
#include "runtime/picture_encoder.h"
#include "support/engine.h"
#include "support/pictures.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

// The pieces of a case's pictures, or sounds.
std::vector<Piece> pieces_of_case(const nlohmann::ordered_json& k, const PreprocessSettings& settings) {
  std::vector<Piece> all;
  for (const std::string name : k["images"]) {
    const auto bytes = read_file(vision_path(name), kMaxPictureBytes);
    EXPECT_TRUE(bytes) << name;
    auto pieces = [&]() -> Result<std::vector<Piece>> {
      if (name.ends_with(".wav")) {
        auto sound = decode_sound(*bytes);
        return sound ? pieces_of(settings, *sound, 0) : sound.error();
      }
      auto picture = decode_picture(*bytes);
      return picture ? pieces_of(settings, *picture, 0) : picture.error();
    }();
    EXPECT_TRUE(pieces) << name << ": " << (pieces ? "" : pieces.error().message);
    if (pieces) all.insert(all.end(), pieces->begin(), pieces->end());
  }
  return all;
}

struct OpenEncoder {
  VisionFile file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};

std::unique_ptr<OpenEncoder> open_encoder(const std::string& path, int patches, const std::string& device,
                                          bool interruptible = true) {
  auto gguf = open_gguf(path);
  EXPECT_TRUE(gguf);
  auto file = open_vision(*gguf);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  auto e = std::make_unique<OpenEncoder>();
  e->file = std::move(*file);
  e->device = open_one("cpu", 0, device);
  RunOptions options = encoder_options(e->file, patches, {});
  options.interruptible = interruptible;
  auto plan = make_model_plan(*e->file.source, *e->device, options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  if (!plan) return nullptr;
  auto model = Model::load(std::move(*plan), *e->file.source);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  if (!model) return nullptr;
  e->model = std::move(*model);
  return e;
}

class PictureEncoders : public ::testing::TestWithParam<const char*> {};

TEST_P(PictureEncoders, GiveTheReferencesRows) {
  const auto golden = read_json(vision_path(std::string(GetParam()) + ".json"));
  const std::string mmproj = vision_path(golden["mmproj"]);
  auto one = open_encoder(mmproj, 4096, "threads=1"), two = open_encoder(mmproj, 4096, "threads=2");
  ASSERT_TRUE(one && two);
  double all_cases = 0;
  constexpr double kExact = 1e-4;  // of f32 arithmetic; the reference asks for 2e-3
  for (const auto& k : golden["cases"]) {
    const std::vector<float> want = base64_floats(k["embedding_ref64"]);
    std::vector<float> got, again;
    size_t i = 0;
    for (const Piece& piece : pieces_of_case(k, one->file.settings)) {
      auto rows = PictureEncoder(*one->model, one->file).encode(piece),
           same = PictureEncoder(*two->model, two->file).encode(piece);
      ASSERT_TRUE(rows) << rows.error().message;
      ASSERT_TRUE(same) << same.error().message;
      const auto& of = k["pieces"][i++];
      EXPECT_EQ((*rows)->rows(), of["rows"].get<int>());
      EXPECT_EQ((*rows)->width(), k["embedding_width"].get<int>());
      EXPECT_EQ((*rows)->columns(), of.contains("grid") ? of["grid"][0].get<int>() : 0);
      got.insert(got.end(), (*rows)->values().begin(), (*rows)->values().end());
      again.insert(again.end(), (*same)->values().begin(), (*same)->values().end());
    }
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(got, again) << "other bits with two threads";
    double most = 0;
    for (size_t n = 0; n < want.size(); n++)
      most = std::max(most, std::fabs(double(got[n]) - double(want[n])));
    EXPECT_LE(most, kExact) << GetParam() << " " << k["name"];
    all_cases = std::max(all_cases, most);
  }
  std::printf("%s: rows differ from ref64 by at most %.2g\n", GetParam(), all_cases);
}

TEST_P(PictureEncoders, HavePromptsAsTheReference) {
  const auto golden = read_json(vision_path(std::string(GetParam()) + ".json"));
  auto file = open_vision(open_file(vision_path(golden["mmproj"])));
  ASSERT_TRUE(file);
  // A file of one version serves for the prompts of another.
  if (golden.contains("minicpmv_version")) file->settings.slices_together = golden["minicpmv_version"] == 2;
  const auto tokenizer = Tokenizer::create(open_file(vision_path(golden["text"])).metadata());
  ASSERT_TRUE(tokenizer);
  for (const auto& k : golden["cases"]) {
    std::vector<Piece> pieces;
    for (const auto& p : k["pieces"]) {
      Piece piece;
      piece.image = p["image"], piece.row = p.value("row", 0), piece.column = p.value("column", 0);
      piece.what = p["what"] == "tile"       ? PieceKind::Tile
                   : p["what"] == "overview" ? PieceKind::Overview
                   : p["what"] == "sound"    ? PieceKind::Sound
                                             : PieceKind::Whole;
      piece.width = p["width"], piece.height = p["height"];
      pieces.push_back(piece);
    }
    const std::string text = k["prompt"];
    const int pictures = int(k["images"].size());
    const auto chunks = picture_prompt(**tokenizer, file->settings, text, pieces, pictures);
    ASSERT_TRUE(chunks) << chunks.error().message;
    ASSERT_EQ(chunks->size(), k["chunks"].size()) << k["name"];
    for (size_t i = 0; i < chunks->size(); i++) {
      const auto& want = k["chunks"][i];
      if (want.contains("tokens"))
        EXPECT_EQ((*chunks)[i].tokens, want["tokens"].get<std::vector<Token>>()) << k["name"];
      else EXPECT_EQ((*chunks)[i].piece, want["piece"].get<int>()) << k["name"];
    }
    EXPECT_FALSE(picture_prompt(**tokenizer, file->settings, text + "<__media__>", pieces, pictures));
  }
}

// A clone has some of them.
std::vector<const char*> encoders() {
  std::vector<const char*> all = {
      "gemma3",    "llava-siglip", "llava-tiles", "idefics3",      "internvl",  "pixtral",    "qwen2vl",
      "qwen2.5vl", "qwen3vl",      "ultravox",    "gemma4v",       "gemma4uv",  "lfm2",       "lfm2-norm",
      "llama4",    "glm4v",        "glm-ocr",     "kimivl",        "paddleocr", "lightonocr", "janus",
      "minicpmv",  "minicpmv-2.5", "minicpmv46",  "minicpmv46-4x", "qwen2a",    "voxtral"};
  if (whole_collection())
    for (const char* more : {"gemma3-f16", "llava-clip", "mistral3"}) all.push_back(more);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families, PictureEncoders, ::testing::ValuesIn(encoders()), [](const auto& i) {
  std::string name = i.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// The file with another value of this key.
ModelSource with_number(const ModelSource& file, const char* key, double number) {
  auto made = std::make_shared<MadeTensors>(file);
  for (const StoredTensor& t : file.tensors()) made->add(t, std::string(t.name));
  Metadata metadata = file.metadata();
  const bool whole = number >= 0 && number == std::floor(number);
  metadata.put(key, whole ? MetadataEntry{MetadataType::U64, uint64_t(number)}
                          : MetadataEntry{MetadataType::F64, number});
  return ModelSource(file.file_format(), std::move(metadata), made->tensors(), made);
}

// Hostile numbers are errors before anything is computed.
TEST(ProjectorFiles, WithNumbersThatDoNotFitAreRefused) {
  const auto device = open_one("cpu", 0, "threads=1");
  struct Change {
    const char *file, *key;
    double number;
  };
  for (const Change& c : {Change{"gemma3", "clip.vision.attention.head_count", 0},
                          {"gemma3", "clip.vision.attention.head_count", 3},
                          {"gemma3", "clip.vision.attention.head_count", 1e9},
                          {"gemma3", "clip.vision.embedding_length", 31},
                          {"gemma3", "clip.vision.embedding_length", 0},
                          {"gemma3", "clip.vision.block_count", 0},
                          {"gemma3", "clip.vision.block_count", 3},
                          {"gemma3", "clip.vision.block_count", 1},
                          {"gemma3", "clip.vision.block_count", 1e9},
                          {"gemma3", "clip.vision.patch_size", 0},
                          {"gemma3", "clip.vision.patch_size", 6},
                          {"gemma3", "clip.vision.image_size", 1e6},
                          {"gemma3", "clip.vision.attention.layer_norm_epsilon", -1},
                          {"idefics3", "clip.vision.projector.scale_factor", 3},
                          {"idefics3", "clip.vision.projector.scale_factor", 0},
                          {"qwen3vl", "clip.vision.attention.head_count", 16},
                          {"qwen3vl", "clip.vision.patch_size", 8},
                          {"pixtral", "clip.vision.spatial_merge_size", 2},
                          {"gemma4v", "clip.vision.projector.scale_factor", 0},
                          {"gemma4v", "clip.vision.projector.scale_factor", 17},
                          {"gemma4v", "clip.vision.attention.head_count", 5},
                          {"gemma4uv", "clip.vision.projector.scale_factor", 3},
                          {"gemma4uv", "clip.vision.patch_size", 512},
                          {"lfm2", "clip.vision.projector.scale_factor", 3},
                          {"lfm2", "clip.vision.patch_size", 8},
                          {"llama4", "clip.vision.image_size", 8192},
                          {"llama4", "clip.vision.image_size", 36},
                          {"glm4v", "clip.vision.spatial_merge_size", 4},
                          {"glm4v", "clip.vision.attention.head_count", 12},
                          {"minicpmv", "clip.minicpmv_query_num", 0},
                          {"minicpmv", "clip.minicpmv_query_num", 6},
                          {"minicpmv", "clip.minicpmv_query_num", 1e9},
                          {"minicpmv", "clip.minicpmv_version", 0},
                          {"minicpmv46", "clip.vision.projector.scale_factor", 3},
                          {"minicpmv46", "clip.vision.image_size", 8192},
                          {"minicpmv46", "clip.vision.block_count", 0},
                          {"paddleocr", "clip.vision.image_max_pixels", 0},
                          {"paddleocr", "clip.vision.image_max_pixels", 100},
                          {"paddleocr", "clip.vision.image_max_pixels", 1e12},
                          {"lightonocr", "clip.vision.preproc_image_size", 9000},
                          {"kimivl", "clip.vision.projector.scale_factor", 4},
                          {"janus", "clip.vision.image_size", 28},
                          {"qwen2a", "clip.audio.num_mel_bins", 0},
                          {"voxtral", "clip.audio.projector.stack_factor", 7},
                          {"voxtral", "clip.audio.projector.stack_factor", 0}}) {
    const auto file = open_vision(
        with_number(open_file(vision_path(std::string("mmproj-") + c.file + ".gguf")), c.key, c.number));
    if (!file) {
      EXPECT_FALSE(file.error().message.empty());
      continue;
    }
    const auto plan = make_model_plan(*file->source, *device, encoder_options(*file, 64, {}));
    EXPECT_FALSE(plan) << c.file << " " << c.key << " " << c.number;
  }
}

// A file without one of its weights, which are all needed but these.
TEST(ProjectorFiles, WithoutAWeightAreRefused) {
  const auto device = open_one("cpu", 0, "threads=1");
  const auto may_be_missing = [](std::string_view name) {
    return name.ends_with("out_scale.weight") || name == "v.norm_embd.weight" ||
           name == "v.position_embd.weight" || name == "v.patch_embd.weight.1";
  };
  for (const char* name :
       {"gemma4v", "gemma4uv", "lfm2", "llama4", "glm4v", "minicpmv", "minicpmv46", "paddleocr"}) {
    const ModelSource file = open_file(vision_path(std::string("mmproj-") + name + ".gguf"));
    for (const StoredTensor& left_out : file.tensors()) {
      const std::string_view t = left_out.name;
      if (t.ends_with(".bias") || t.starts_with("v.blk.1.") || t == "resampler.pos_embed_k") continue;
      auto made = std::make_shared<MadeTensors>(file);
      for (const StoredTensor& other : file.tensors())
        if (other.index != left_out.index) made->add(other, std::string(other.name));
      const auto opened =
          open_vision(ModelSource(file.file_format(), file.metadata(), made->tensors(), made));
      if (!opened) {
        EXPECT_GT(opened.error().message.size(), 20u) << name << " " << t;
        continue;
      }
      const auto plan = make_model_plan(*opened->source, *device, encoder_options(*opened, 64, {}));
      if (!may_be_missing(t)) { EXPECT_FALSE(plan) << name << " without " << t; }
    }
  }
}

// Blocks that see a window alternate with others; without a pattern each sees all.
TEST(ProjectorFiles, MayHaveNoPatternOfWindows) {
  const auto device = open_one("cpu", 0, "threads=1");
  for (const double pattern : {0, 1, 2}) {
    const auto file = open_vision(
        with_number(open_file(vision_path("mmproj-qwen2.5vl.gguf")), "clip.vision.n_wa_pattern", pattern));
    ASSERT_TRUE(file) << file.error().message;
    const auto plan = make_model_plan(*file->source, *device, encoder_options(*file, 64, {}));
    EXPECT_TRUE(plan) << plan.error().message;
  }
}

// A product's limits are both there, in their order, or both beyond all numbers.
TEST(ProjectorFiles, WithLimitsOnOneSideAreRefused) {
  const ModelSource file = open_file(vision_path("mmproj-gemma3.gguf"));
  ASSERT_TRUE(file.tensors().find("v.blk.0.attn_q.weight"));
  for (const auto& [least, greatest, fits] : {std::tuple(-1e31f, 1e31f, true),
                                              {-2.0f, 2.0f, true},
                                              {-1e31f, 2.0f, false},
                                              {-2.0f, 1e31f, false},
                                              {2.0f, -2.0f, false}}) {
    auto made = std::make_shared<MadeTensors>(file);
    for (const StoredTensor& t : file.tensors()) made->add(t, std::string(t.name));
    made->add("v.blk.0.attn_q.input_min", 1, 1, {least});
    made->add("v.blk.0.attn_q.input_max", 1, 1, {greatest});
    const auto opened = open_vision(ModelSource(file.file_format(), file.metadata(), made->tensors(), made));
    EXPECT_EQ(bool(opened), fits) << least << " to " << greatest;
    if (!opened && !fits) {
      EXPECT_NE(opened.error().message.find("are no limits"), std::string::npos) << opened.error().message;
    }
  }
}

// Limits whose middle is not 0 shift the inputs of a product, or its outputs: one number for each column, or
// for each row.
TEST(ProjectorFiles, LimitsShiftAsManyValuesAsAProductHas) {
  const ModelSource file = open_file(vision_path("mmproj-gemma3.gguf"));
  const StoredTensor* up = file.tensors().find("v.blk.0.ffn_up.weight");
  ASSERT_TRUE(up);
  ASSERT_NE(up->dim[0], up->dim[1]);
  for (const auto& [side, dim] : {std::pair("input", 0), {"output", 1}}) {
    auto made = std::make_shared<MadeTensors>(file);
    for (const StoredTensor& t : file.tensors()) made->add(t, std::string(t.name));
    made->add(format("v.blk.0.ffn_up.{}_min", side), 1, 1, {-1});
    made->add(format("v.blk.0.ffn_up.{}_max", side), 1, 1, {3});
    const auto opened = open_vision(ModelSource(file.file_format(), file.metadata(), made->tensors(), made));
    ASSERT_TRUE(opened) << opened.error().message;
    size_t shifts = 0;
    for (const StoredTensor& t : opened->source->tensors()) {
      const std::string_view name = t.name;
      if (!name.ends_with("_limit.before") && !name.ends_with("_limit.behind")) continue;
      EXPECT_EQ(t.values(), up->dim[dim]) << name;
      shifts++;
    }
    EXPECT_EQ(shifts, 2u) << side;
  }
}

// Old files exchange ffn_up and ffn_down.
TEST(ProjectorFiles, WithOldNamesAreTheSame) {
  const ModelSource file = open_file(vision_path("mmproj-gemma3.gguf"));
  auto old = std::make_shared<MadeTensors>(file);
  for (const StoredTensor& t : file.tensors()) {
    std::string name(t.name);
    if (const size_t up = name.find(".ffn_up."), down = name.find(".ffn_down."); up != name.npos)
      name.replace(up, 8, ".ffn_down.");
    else if (down != name.npos) name.replace(down, 10, ".ffn_up.");
    old->add(t, name);
  }
  const auto opened = open_vision(file);
  const auto again = open_vision(ModelSource(file.file_format(), file.metadata(), old->tensors(), old));
  ASSERT_TRUE(opened && again);
  for (const StoredTensor& t : opened->source->tensors()) {
    const StoredTensor* same = again->source->tensors().find(t.name);
    ASSERT_TRUE(same) << t.name;
    const auto ours = opened->source->read(t), theirs = again->source->read(*same);
    ASSERT_TRUE(ours && theirs);
    EXPECT_TRUE(*ours == *theirs) << t.name;
  }
}

TEST(ProjectorFiles, AreToldFromModels) {
  const std::string folder = golden_dir() + "/vision/";
  const ModelSource text = open_file(folder + "text-gemma3.gguf"),
                    mmproj = open_file(folder + "mmproj-gemma3.gguf");
  const auto no_projector = open_vision(text);
  ASSERT_FALSE(no_projector);
  EXPECT_EQ(no_projector.error().code, Code::Usage);
  const auto no_model = configure(mmproj);
  ASSERT_FALSE(no_model);
  EXPECT_NE(no_model.error().message.find("mmproj"), std::string::npos) << no_model.error().message;
  ModelSource unknown = mmproj;
  unknown.set("clip.projector_type", "of the future");
  const auto refused = open_vision(unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Unsupported);
}

// A picture of 16 x 16 patches, which differ.
Piece many_patches(const VisionFile& file) {
  Piece piece;
  piece.width = piece.height = 16 * file.settings.patch;
  piece.rgb.resize(size_t(piece.width) * size_t(piece.height) * 3);
  for (size_t i = 0; i < piece.rgb.size(); i++) piece.rgb[i] = uint8_t(i * i / 7 + i);
  return piece;
}

uint64_t runs_of(const OpenEncoder& e) {
  uint64_t sum = 0;
  for (const ReceiptLine& line : e.model->receipt()) sum += line.runs;
  return sum;
}

std::vector<float> values_of(const Result<EmbeddingsPtr>& rows) {
  EXPECT_TRUE(rows) << (rows ? "" : rows.error().message);
  return rows ? std::vector<float>((*rows)->values().begin(), (*rows)->values().end()) : std::vector<float>();
}

// A step ends between layers, and the next picture has the bits that it has in an encoder of one part.
class LongPictures : public ::testing::TestWithParam<const char*> {};

TEST_P(LongPictures, EndBetweenLayers) {
  const std::string path = vision_path(std::string("mmproj-") + GetParam() + ".gguf");
  const auto whole = open_encoder(path, 264, "threads=2", false),
             parts = open_encoder(path, 264, "threads=2");
  ASSERT_TRUE(whole && parts);
  const Piece picture = many_patches(whole->file);
  const auto never = [](size_t, size_t) -> bool { return ADD_FAILURE() << "an encoder of one part", true; };
  const std::vector<float> want =
      values_of(PictureEncoder(*whole->model, whole->file).encode(picture, never));
  ASSERT_FALSE(want.empty());

  PictureEncoder encoder(*parts->model, parts->file);
  const int free_pages = parts->model->sequences().free_pages(0);
  std::vector<size_t> seen;
  size_t all = 0;
  const auto count = [&](size_t done, size_t of) { return all = of, seen.push_back(done), true; };
  EXPECT_EQ(values_of(encoder.encode(picture, count)), want);
  const uint64_t runs = runs_of(*parts);
  EXPECT_EQ(runs, runs_of(*whole));
  // Before the layers, each of them, and behind them.
  EXPECT_EQ(all, size_t(parts->model->config().layers) + 2);
  ASSERT_EQ(seen.size() + 1, all);
  uint64_t before = 0;
  for (size_t end = 1; end < all; end++) {
    EXPECT_EQ(seen[end - 1], end);
    const uint64_t at = runs_of(*parts);
    const auto ended = encoder.encode(picture, [&](size_t done, size_t) { return done < end; });
    ASSERT_FALSE(ended);
    EXPECT_STREQ(ended.error().reason, reason::kCancelled);
    const uint64_t computed = runs_of(*parts) - at;
    EXPECT_GT(computed, before) << "part " << end << " was left out";
    EXPECT_LT(computed, runs) << "nothing was left out behind part " << end;
    before = computed;
    EXPECT_EQ(values_of(encoder.encode(picture)), want) << "after a picture that ended behind part " << end;
  }
  EXPECT_EQ(parts->model->sequences().free_pages(0), free_pages);
}

INSTANTIATE_TEST_SUITE_P(Families, LongPictures,
                         ::testing::Values("qwen2.5vl", "gemma4v", "glm4v", "minicpmv", "minicpmv46"),
                         [](const auto& i) {
                           std::string name = i.param;
                           std::erase(name, '.');
                           return name;
                         });

// Rows of patches alone: there is one part.
TEST(PictureEncoder, NeedsNoLayers) {
  const auto e = open_encoder(vision_path("mmproj-gemma4uv.gguf"), 264, "threads=2");
  ASSERT_TRUE(e);
  EXPECT_EQ(values_of(PictureEncoder(*e->model, e->file).encode(many_patches(e->file))).size(), 256u * 48);
}

// A step of an encoder has patches, one of a text model none.
TEST(ProjectorFiles, TakePatchesAndNoTokens) {
  const auto e = open_encoder(golden_dir() + "/vision/mmproj-gemma3.gguf", 144, "threads=1");
  ASSERT_TRUE(e);
  auto s = e->model->new_sequence();
  ASSERT_TRUE(s);
  Batch b;
  b.rows.push_back({s->get(), 0, 0, {}});
  const auto refused = e->model->forward(b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Usage);
  Piece small;
  small.width = small.height = 30;
  small.rgb.resize(30 * 30 * 3);
  EXPECT_FALSE(PictureEncoder(*e->model, e->file).encode(small)) << "a piece of another size";
}

}  // namespace
}  // namespace gimbal::test
