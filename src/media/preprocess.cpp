#include "media/preprocess.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// Of hostile files: no real one comes near.
constexpr uint64_t kMaxInputSide = 8192, kMaxPatchSide = 512, kMaxMerge = 16, kMaxMelBins = 512,
                   kMaxStack = 64;
constexpr size_t kMaxPinpoints = 256;
constexpr int kMaxTilesOfPinpoint = 256, kMaxQueries = 4096;
constexpr int64_t kMaxPixels = 40'000'000;  // of a limit in a file

enum class Merging : uint8_t {
  None,  // 1
  Key,   // by the file's keys
  Two,   // by spatial_merge_size
  Fixed  // whatever the file says
};

struct Family {
  std::string_view projector;
  PieceRule rule;
  Merging merging;
  int usual;               // the merge factor of files without a key
  int min_rows, max_rows;  // Free, Split; 0: image_min_pixels and image_max_pixels
  ResampleFilter filter = ResampleFilter::Bicubic;
  std::array<uint8_t, 3> border = {0, 0, 0};
};

constexpr Family kFamilies[] = {
    {"gemma3", PieceRule::Square, Merging::Key, 4, 0, 0, ResampleFilter::Bilinear},
    {"gemma4v", PieceRule::Free, Merging::Key, 3, 70, 1120},
    {"gemma4uv", PieceRule::Free, Merging::Key, 3, 70, 1120},
    {"mlp", PieceRule::Square, Merging::None, 1, 0, 0, ResampleFilter::Bicubic, {122, 116, 104}},
    {"janus_pro", PieceRule::Square, Merging::None, 1, 0, 0, ResampleFilter::Bicubic, {127, 127, 127}},
    {"internvl", PieceRule::Pinpoints, Merging::Key, 1, 0, 0},
    {"llama4", PieceRule::Pinpoints, Merging::Key, 1, 0, 0},
    {"idefics3", PieceRule::Refined, Merging::Key, 1, 0, 0},
    {"qwen2vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"qwen2.5vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"qwen3vl_merger", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"glm4v", PieceRule::Free, Merging::Two, 2, 8, 4096},
    {"pixtral", PieceRule::Free, Merging::Key, 1, 8, 1024},
    {"lightonocr", PieceRule::Longest, Merging::Key, 1, 0, 0},
    {"kimivl", PieceRule::Free, Merging::Key, 2, 8, 1024},
    {"paddleocr", PieceRule::Free, Merging::Fixed, 2, 0, 0},
    {"lfm2", PieceRule::Split, Merging::Key, 2, 64, 256, ResampleFilter::Bilinear},
    {"resampler", PieceRule::Slices, Merging::None, 1, 0, 0},
    {"minicpmv4_6", PieceRule::Slices, Merging::Key, 4, 0, 0},
    {"ultravox", PieceRule::Sound, Merging::Key, 1, 0, 0},
    {"voxtral", PieceRule::Sound, Merging::Key, 4, 0, 0},
    {"qwen2a", PieceRule::Sound, Merging::Fixed, 2, 0, 0},
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
  if (family.merging == Merging::None || family.merging == Merging::Fixed) return family.usual;
  if (family.merging == Merging::Two || !reader.has("projector.scale_factor"))
    return reader.size("spatial_merge_size", kMaxMerge, family.usual);
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

// Of llama4: up to three tiles a side, but not one alone.
Status count_sides(const ClipReader& reader, PreprocessSettings& s) {
  constexpr int kMostSide = 3;
  for (int columns = 1; columns <= kMostSide; columns++)
    for (int rows = columns == 1 ? 2 : 1; rows <= kMostSide; rows++)
      if (auto ok = add_pinpoint(reader, int64_t(columns) * s.image_size, int64_t(rows) * s.image_size, s);
          !ok)
        return ok.error();
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

// The limits of PieceRule::Free and Split, in rows of the family or in pixels of the file.
Status read_limits(const ClipReader& reader, const Family& family, PreprocessSettings& s) {
  const int64_t pixels = int64_t(s.patch) * s.merge * s.patch * s.merge;
  if (family.max_rows) {
    s.min_pixels = family.min_rows * pixels, s.max_pixels = family.max_rows * pixels;
    return Done{};
  }
  const auto least = reader.size("image_min_pixels", kMaxPixels),
             most = reader.size("image_max_pixels", kMaxPixels);
  if (!least) return least.error();
  if (!most) return most.error();
  if (*most < *least || *most < pixels)
    return reader.malformed("image_max_pixels", format("at least {}", std::max<int64_t>(*least, pixels)));
  s.min_pixels = *least, s.max_pixels = *most;
  return Done{};
}

// Of MiniCPM-V: the versions up to 2.5 put one pair of marks around all slices, and have 96 rows a piece.
Status read_slices(const Metadata& metadata, const ClipReader& reader, PreprocessSettings& s) {
  if (s.projector != "resampler") {
    if (s.merge != 2 && s.merge != 4) return reader.malformed("projector.scale_factor", "2 or 4");
    return Done{};
  }
  const ClipReader of_file(metadata, "clip.");
  const auto version = of_file.size("minicpmv_version", 1'000'000, 2);
  if (!version) return version.error();
  const auto queries = of_file.size("minicpmv_query_num", kMaxQueries, *version == 2 ? 96 : 64);
  if (!queries) return queries.error();
  s.queries = *queries, s.slices_together = *version == 2;
  return Done{};
}

Result<PreprocessSettings> sound_settings(const ClipReader& reader, const Family& family,
                                          PreprocessSettings s) {
  auto bins = reader.size("num_mel_bins", kMaxMelBins);
  const auto stack = family.merging == Merging::Fixed
                         ? Result<int>(family.usual)
                         : reader.size("projector.stack_factor", kMaxStack, family.usual);
  if (!bins) return bins.error();
  if (!stack) return stack.error();
  s.mel_bins = *bins, s.stack = *stack;
  return s;
}

}  // namespace

int64_t most_patches_of(const PreprocessSettings& s) {
  const int64_t row = int64_t(s.patch) * s.merge, side = s.image_size / s.patch,
                joined = int64_t(s.merge) * s.merge;
  int64_t most = std::max(side * side, s.max_pixels / (row * row) * joined);
  if (s.rule == PieceRule::Split)
    most = std::max(most, int64_t(kSplitSide / s.patch) * (kSplitSide / s.patch));
  if (s.rule == PieceRule::Slices) most += 4 * side * s.merge;  // sides are rounded to whole rows
  if (s.rule == PieceRule::Longest) {
    const int64_t longest = (s.longest_side + row - 1) / row * s.merge;
    most = std::max(most, longest * longest);
  }
  return most;
}

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
  if (s.rule == PieceRule::Sound) return sound_settings(reader, *family, std::move(s));

  const auto patch = reader.size("patch_size", kMaxPatchSide),
             side = reader.size("image_size", kMaxInputSide);
  const auto merge = merge_of(reader, *family);
  if (!patch) return patch.error();
  if (!side) return side.error();
  if (!merge) return merge.error();
  s.patch = *patch, s.image_size = *side, s.merge = *merge;
  s.filter = family->filter, s.border = family->border;
  if (s.projector == "gemma4uv") {  // its patches are those that become a row
    if (*patch * *merge > int(kMaxPatchSide))
      return reader.malformed("projector.scale_factor", "smaller patches");
    s.patch *= s.merge, s.merge = 1;
  }
  const bool free = s.rule == PieceRule::Free || s.rule == PieceRule::Split;
  if (!free && s.image_size < s.patch * s.merge)
    return reader.malformed("image_size", format("at least {} pixels, one row", s.patch * s.merge));
  if (auto ok = reader.three_numbers("image_mean", true, s.mean); !ok) return ok.error();
  if (auto ok = reader.three_numbers("image_std", false, s.std); !ok) return ok.error();
  if (free) {
    if (auto ok = read_limits(reader, *family, s); !ok) return ok.error();
    if (s.rule == PieceRule::Split && kSplitSide % (s.patch * s.merge))
      return reader.malformed("patch_size", format("tiles of {} pixels of whole rows", kSplitSide));
  } else if (s.rule == PieceRule::Slices) {
    if (auto ok = read_slices(metadata, reader, s); !ok) return ok.error();
  } else if (s.projector == "llama4") {
    if (auto ok = count_sides(reader, s); !ok) return ok.error();
  } else if (s.projector == "mlp" && reader.has("image_grid_pinpoints")) {
    s.rule = PieceRule::Pinpoints;
    if (auto ok = read_pinpoints(reader, s); !ok) return ok.error();
  } else if (s.rule == PieceRule::Pinpoints) {
    if (auto ok = count_grids(reader, s); !ok) return ok.error();
  } else if (s.rule == PieceRule::Refined || s.rule == PieceRule::Longest) {
    const int usual = s.rule == PieceRule::Longest ? s.image_size : 0;
    const auto longest = reader.size("preproc_image_size", kMaxInputSide, usual);
    if (!longest) return longest.error();
    s.longest_side = *longest;
  }
  return s;
}

}  // namespace gimbal
