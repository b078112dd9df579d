#include "media/preprocess.h"

#include <cmath>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// Of hostile files: no real one comes near.
constexpr uint64_t kMaxInputSide = 8192, kMaxPatchSide = 512, kMaxMerge = 16, kMaxMelBins = 512,
                   kMaxStack = 64;
constexpr size_t kMaxPinpoints = 256;
constexpr int kMaxTilesOfPinpoint = 256;

enum class Merging : uint8_t { None, Key, Two };  // 1; by the file's keys; 2

struct Family {
  std::string_view projector;
  PieceRule rule;
  Merging merging;
  int usual_merge;         // without a key
  int min_rows, max_rows;  // Free
};

constexpr Family kFamilies[] = {
    {"gemma3", PieceRule::Square, Merging::Key, 4, 0, 0},
    {"mlp", PieceRule::Square, Merging::None, 1, 0, 0},
    {"internvl", PieceRule::Pinpoints, Merging::Key, 1, 0, 0},
    {"idefics3", PieceRule::Refined, Merging::Key, 1, 0, 0},
    {"qwen2vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"qwen2.5vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"qwen3vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"pixtral", PieceRule::Free, Merging::Key, 1, 8, 1024},
    {"ultravox", PieceRule::Sound, Merging::None, 1, 0, 0},
};

// The checked lookups of one file.
class ClipReader {
 public:
  ClipReader(const Metadata& metadata, std::string_view prefix) : metadata_(metadata), prefix_(prefix) {}

  Error malformed(std::string_view key, std::string_view expected) const {
    return Error{Code::Malformed,
                 format("{}: '{}{}': expected {}", metadata_.source(), prefix_, key, expected),
                 "download or convert the projector file again"};
  }
  Result<int> size(std::string_view key, uint64_t most, std::optional<int> without = {}) const {
    const std::string name = format("{}{}", prefix_, key);
    const auto value = metadata_.unsigned_integer(name);
    if (!value && !metadata_.contains(name) && without) return *without;
    if (!value || *value < 1 || *value > most) return malformed(key, format("a number from 1 to {}", most));
    return int(*value);
  }
  Status three_numbers(std::string_view key, bool may_be_zero, float (&out)[3]) const {
    const MetadataArray* array = metadata_.array(format("{}{}", prefix_, key));
    const std::vector<float> values = array && array->count <= 16 ? array->floats() : std::vector<float>();
    if (values.size() < 3) return malformed(key, "three numbers");
    for (size_t i = 0; i < 3; i++) {
      if (!std::isfinite(values[i]) || (!may_be_zero && values[i] == 0))
        return malformed(key, "three finite numbers other than 0");
      out[i] = values[i];
    }
    return Done{};
  }
  bool has(std::string_view key) const { return metadata_.contains(format("{}{}", prefix_, key)); }
  const MetadataArray* array(std::string_view key) const {
    return metadata_.array(format("{}{}", prefix_, key));
  }

 private:
  const Metadata& metadata_;
  std::string_view prefix_;
};

Result<int> merge_of(const ClipReader& reader, const Family& family) {
  if (family.merging == Merging::None) return 1;
  if (family.merging == Merging::Two || !reader.has("projector.scale_factor"))
    return reader.size("spatial_merge_size", kMaxMerge, family.usual_merge);
  return reader.size("projector.scale_factor", kMaxMerge);
}

Status add_pinpoint(const ClipReader& reader, int64_t width, int64_t height, PreprocessSettings& s) {
  const int side = s.image_size;
  if (width < side || height < side || width % side || height % side || width > int64_t(kMaxInputSide) * 8 ||
      height > int64_t(kMaxInputSide) * 8 || (width / side) * (height / side) > kMaxTilesOfPinpoint)
    return reader.malformed("image_grid_pinpoints",
                            format("multiples of {}, of at most {} tiles", side, kMaxTilesOfPinpoint));
  s.pinpoints.emplace_back(int(width), int(height));
  return Done{};
}

Status read_pinpoints(const ClipReader& reader, PreprocessSettings& s) {
  const MetadataArray* array = reader.array("image_grid_pinpoints");
  const std::vector<int64_t> sides =
      array && array->count <= 2 * kMaxPinpoints ? array->integers() : std::vector<int64_t>();
  if (sides.empty() || sides.size() % 2) return reader.malformed("image_grid_pinpoints", "pairs of numbers");
  for (size_t i = 0; i < sides.size(); i += 2)
    if (auto ok = add_pinpoint(reader, sides[i], sides[i + 1], s); !ok) return ok.error();
  return Done{};
}

// Of internvl: all grids of so many tiles.
Status count_grids(const ClipReader& reader, PreprocessSettings& s) {
  const auto least = reader.size("preproc_min_tiles", 64, 1), most = reader.size("preproc_max_tiles", 64, 12);
  if (!least) return least.error();
  if (!most) return most.error();
  for (int columns = *least; columns <= *most; columns++)
    for (int rows = *least; rows <= *most; rows++)
      if (columns * rows <= *most)
        if (auto ok = add_pinpoint(reader, columns * s.image_size, rows * s.image_size, s); !ok)
          return ok.error();
  if (s.pinpoints.empty()) return reader.malformed("preproc_max_tiles", "room for one grid of tiles");
  return Done{};
}

Result<PreprocessSettings> sound_settings(const ClipReader& reader, PreprocessSettings s) {
  auto bins = reader.size("num_mel_bins", kMaxMelBins);
  const auto stack = reader.size("projector.stack_factor", kMaxStack, 1);
  if (!bins) return bins.error();
  if (!stack) return stack.error();
  s.mel_bins = *bins, s.stack = *stack;
  return s;
}

}  // namespace

Result<PreprocessSettings> preprocess_settings(const Metadata& metadata) {
  std::optional<std::string_view> name;
  for (const char* key : {"clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"})
    if (!name) name = metadata.string(key);
  if (!name)
    return Error{Code::Malformed, format("{} names no projector ('clip.projector_type')", metadata.source()),
                 "expected the projector file (mmproj) that belongs to the model"};
  const Family* family = nullptr;
  std::string known;
  for (const Family& f : kFamilies) {
    if (f.projector == *name) family = &f;
    known += (known.empty() ? "" : ", ") + std::string(f.projector);
  }
  if (!family)
    return Error{Code::Unsupported,
                 format("{}: the projector {} is not known", metadata.source(), quoted(*name)),
                 "known: " + known};

  PreprocessSettings s;
  s.projector = *name;
  s.rule = family->rule;
  const ClipReader reader(metadata, s.rule == PieceRule::Sound ? "clip.audio." : "clip.vision.");
  if (s.rule == PieceRule::Sound) return sound_settings(reader, std::move(s));

  const auto patch = reader.size("patch_size", kMaxPatchSide),
             side = reader.size("image_size", kMaxInputSide);
  const auto merge = merge_of(reader, *family);
  if (!patch) return patch.error();
  if (!side) return side.error();
  if (!merge) return merge.error();
  s.patch = *patch, s.image_size = *side, s.merge = *merge;
  s.min_rows = family->min_rows, s.max_rows = family->max_rows;
  if (s.rule != PieceRule::Free && s.image_size < s.patch * s.merge)
    return reader.malformed("image_size", format("at least {} pixels, one row", s.patch * s.merge));
  if (auto ok = reader.three_numbers("image_mean", true, s.mean); !ok) return ok.error();
  if (auto ok = reader.three_numbers("image_std", false, s.std); !ok) return ok.error();
  if (s.projector == "mlp" && reader.has("image_grid_pinpoints")) {
    s.rule = PieceRule::Pinpoints;
    if (auto ok = read_pinpoints(reader, s); !ok) return ok.error();
  } else if (s.rule == PieceRule::Pinpoints) {
    if (auto ok = count_grids(reader, s); !ok) return ok.error();
  } else if (s.rule == PieceRule::Refined) {
    const auto longest = reader.size("preproc_image_size", kMaxInputSide, 0);
    if (!longest) return longest.error();
    s.longest_side = *longest;
  }
  return s;
}

}  // namespace gimbal
