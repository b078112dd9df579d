#include "model/vision/vision_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "model/vision/made_tensors.h"
#include "model/vision/patch_positions.h"

namespace gimbal {
namespace {

constexpr int kTaps = 3;                         // of a convolution along time
constexpr int64_t kMostMade = int64_t(1) << 26;  // values of a tensor that is read into memory
constexpr double kNoLimit = 1e30;                // as files write infinity
constexpr int kSquare = 4;                       // patches of a square

class VisionOpener {
 public:
  VisionOpener(const ModelSource& file, VisionFile& v)
      : file_(file),
        v_(v),
        keys_(v.arch->sound ? kSoundKeys : kVisionKeys),
        made_(std::make_shared<MadeTensors>(file)) {}

  Status open() {
    Hyperparameters read(file_.metadata(), keys_);
    v_.width = read.count("embedding_length");
    const int layers = v_.arch->blocks ? read.count("block_count") : 0;
    if (read.error()) return *read.error();
    if (v_.arch->squares)
      if (auto ok = read_merger(layers); !ok) return ok;
    if (size_t(layers) > file_.tensors().size())
      return malformed(format("{} blocks, but the file has only {} tensors", layers, file_.tensors().size()));
    if (auto ok = v_.arch->sound ? add_taps() : add_kernel(); !ok) return ok;
    for (auto [name, to] : {std::pair{"v.class_embd", &v_.class_row},
                            {"v.patch_embd.bias", &v_.bias},
                            {"v.position_embd.weight", &v_.positions},
                            {"v.token_embd.img_break", &v_.line_break},
                            {"a.position_embd.weight", &v_.positions}})
      if (v_.arch->sound == (name[0] == 'a') && !(to == &v_.bias && v_.arch->own_bias))
        if (auto ok = take(name, *to); !ok) return ok;
    for (const StoredTensor& t : file_.tensors())
      if (auto ok = add(t); !ok) return ok;
    if (!made_->complete()) return malformed("two tensors would have one name");
    if (auto ok = check_tables(); !ok) return ok;
    return finish();
  }

 private:
  Error malformed(const std::string& what) const {
    return {Code::Malformed, format("{}: {}", file_.path(), what), ""};
  }

  // A table for the host; it is no weight of the program.
  Status take(const char* name, std::vector<float>& to) {
    const StoredTensor* t = file_.tensors().find(name);
    if (!t) return Done{};
    auto values = values_of(file_, *t, kMostMade);
    if (!values) return values.error();
    to = std::move(*values), taken_.push_back(t->index);
    return Done{};
  }

  // Behind which block squares of patches become one (MiniCPM-V 4.6): the first of wa_layer_indexes.
  Status read_merger(int layers) {
    const std::string key = keys_ + ".wa_layer_indexes";
    const MetadataArray* list = file_.metadata().array(key);
    const std::vector<int64_t> all = list && list->count <= 64 ? list->integers() : std::vector<int64_t>();
    if (!all.empty()) merger_layer_ = all[0];
    if (merger_layer_ >= 0 && merger_layer_ < layers) return Done{};
    return malformed(
        format("'{}' names block {}; the file has blocks 0 to {}", key, merger_layer_, layers - 1));
  }

  // [x, y, channel, width], or the same as a matrix. The kernels of two frames that show the same picture are
  // one.
  Status add_kernel() {
    const int patch = v_.settings.patch;
    const int64_t pixels = 3 * int64_t(patch) * patch;
    std::vector<float> sum;
    for (const char* name : {"v.patch_embd.weight", "v.patch_embd.weight.1"}) {
      const StoredTensor* t = file_.tensors().find(name);
      if (!t && !sum.empty()) break;
      if (!t) return malformed(format("tensor '{}' is missing", name));
      const bool is_kernel =
          t->dim[0] == patch && t->dim[1] == patch && t->dim[2] == 3 && t->dim[3] == v_.width;
      if (!is_kernel && (t->rank != 2 || t->dim[0] != pixels || t->dim[1] != v_.width))
        return malformed(format("tensor '{}' is {} x {} x {} x {}; the metadata requires {} x {} x 3 x {}",
                                name, t->dim[0], t->dim[1], t->dim[2], t->dim[3], patch, patch, v_.width));
      auto values = values_of(file_, *t, kMostMade);
      if (!values) return values.error();
      if (sum.empty()) sum = std::move(*values);
      else
        for (size_t i = 0; i < sum.size(); i++) sum[i] += (*values)[i];
      taken_.push_back(t->index);
    }
    made_->add("patch_embd.weight", pixels, v_.width, std::move(sum));
    return Done{};
  }

  // Convolutions along time as products: the taps of a row side by side.
  Status add_taps() {
    for (const auto& [number, inputs] : {std::pair{1, v_.settings.mel_bins}, {2, v_.width}}) {
      const std::string name = format("a.conv1d.{}", number);
      const StoredTensor *t = file_.tensors().find(name + ".weight"),
                         *b = file_.tensors().find(name + ".bias");
      if (!t || !b) return malformed(format("tensor '{}' or its bias is missing", name));
      if (t->dim[0] != kTaps || t->dim[1] != inputs || t->dim[2] != v_.width || t->dim[3] != 1 ||
          b->values() != v_.width)
        return malformed(format("tensor '{}' is not {} x {} x {}", name, kTaps, inputs, v_.width));
      auto values = values_of(file_, *t, kMostMade), bias = values_of(file_, *b, kMostMade);
      if (!values) return values.error();
      if (!bias) return bias.error();
      std::vector<float> ordered(values->size());
      const auto in = size_t(inputs), taps = size_t(kTaps);
      for (size_t row = 0; row < size_t(v_.width); row++)
        for (size_t i = 0; i < in; i++)
          for (size_t tap = 0; tap < taps; tap++)
            ordered[row * in * taps + tap * in + i] = (*values)[(row * in + i) * taps + tap];
      made_->add(format("conv{}.weight", number), kTaps * inputs, v_.width, std::move(ordered));
      made_->add(format("conv{}.bias", number), v_.width, 1, std::move(*bias));
      taken_.push_back(t->index), taken_.push_back(b->index);
    }
    return Done{};
  }

  Status add(const StoredTensor& t) {
    if (std::find(taken_.begin(), taken_.end(), t.index) != taken_.end()) return Done{};
    const std::string_view name = t.name;
    // A file may have an encoder of the other kind, too.
    if (v_.arch->sound != (name.starts_with("a.") || name.starts_with("mm.a."))) return Done{};
    if (name == "mm.input_projection.weight" && v_.arch->transposed_projection) return add_transposed(t);
    if (is_limit(name)) return add_limits(t);
    if (name == "v.std_bias") return add_shift(t);
    if (name.starts_with("v.vit_merger.") && v_.patches_per_row() == kSquare) return Done{};  // not used
    if (name == "mm.patch_merger.weight" && v_.arch->features_by_row) return add_reordered(t);
    made_->add(t, new_name(name));
    return Done{};
  }

  // Of old files, "ffn_down" is what others call "ffn_up".
  std::string new_name(std::string_view name) const {
    std::string n(name.starts_with("v.") || name.starts_with("a.") ? name.substr(2) : name);
    if (n.starts_with("vit_merger.")) return format("blk.{}.{}", merger_layer_, n);
    if (n.starts_with("deepstack."))
      if (const size_t dot = n.find('.', 10); dot != std::string::npos)
        return "blk." + n.substr(10, dot - 10) + ".deepstack" + n.substr(dot);
    const size_t at = n.find(".ffn_");
    if (!v_.arch->legacy_names || at == std::string::npos || !n.starts_with("blk.")) return n;
    const StoredTensor* down = file_.tensors().find("v." + n.substr(0, at) + ".ffn_down.weight");
    if (!down || down->dim[0] != v_.width) return n;
    const std::string head = n.substr(0, at), tail = n.substr(at);
    if (tail.starts_with(".ffn_up.")) return head + ".ffn_down." + tail.substr(8);
    if (tail.starts_with(".ffn_down.")) return head + ".ffn_up." + tail.substr(10);
    return n;
  }

  Result<std::vector<float>> matrix(const StoredTensor& t) const {
    if (t.rank > 2) return malformed(format("tensor {} is no matrix", quoted(t.name)));
    return values_of(file_, t, kMostMade);
  }

  // Files have it as [text, width].
  Status add_transposed(const StoredTensor& t) {
    auto values = matrix(t);
    if (!values) return values.error();
    const auto rows = size_t(t.dim[0]), columns = size_t(t.dim[1]);
    std::vector<float> turned(values->size());
    for (size_t r = 0; r < rows; r++)
      for (size_t c = 0; c < columns; c++) turned[r * columns + c] = (*values)[c * rows + r];
    made_->add(std::string(t.name), t.dim[1], t.dim[0], std::move(turned));
    return Done{};
  }

  // Files order the features of neighbours by (channel, y, x); rows of this program by (y, x, channel).
  // As a matrix, or as a kernel [x, y, channel, rows].
  Status add_reordered(const StoredTensor& t) {
    const int64_t near = v_.patches_per_row(), side = v_.settings.merge;
    const bool is_kernel = t.rank == 4 && t.dim[0] == side && t.dim[1] == side && t.dim[2] == v_.width;
    const int64_t columns = is_kernel ? near * v_.width : t.dim[0], rows = t.dim[is_kernel ? 3 : 1];
    if (columns != near * v_.width || (!is_kernel && t.rank > 2))
      return malformed(format("tensor {} has {} columns; {} neighbours of width {} have {}", quoted(t.name),
                              columns, near, v_.width, near * v_.width));
    auto values = values_of(file_, t, kMostMade);
    if (!values) return values.error();
    std::vector<float> ordered(values->size());
    for (int64_t r = 0; r < rows; r++)
      for (int64_t place = 0; place < near; place++)
        for (int64_t c = 0; c < v_.width; c++)
          ordered[size_t(r * columns + place * v_.width + c)] =
              (*values)[size_t(r * columns + c * near + place)];
    made_->add(std::string(t.name), columns, rows, std::move(ordered));
    return Done{};
  }

  // (x - bias) * scale as x * scale + shift.
  Status add_shift(const StoredTensor& t) {
    const StoredTensor* scale = file_.tensors().find("v.std_scale");
    if (!scale || scale->values() != v_.width || t.values() != v_.width)
      return malformed(format("tensors 'v.std_bias' and 'v.std_scale' must have {} values each", v_.width));
    auto shift = values_of(file_, t, kMostMade), factors = values_of(file_, *scale, kMostMade);
    if (!shift) return shift.error();
    if (!factors) return factors.error();
    for (size_t i = 0; i < shift->size(); i++)
      (*shift)[i] = float(-double((*shift)[i]) * double((*factors)[i]));
    made_->add("std_shift", v_.width, 1, std::move(*shift));
    return Done{};
  }

  static bool is_limit(std::string_view name) {
    return name.ends_with(".input_min") || name.ends_with(".input_max") || name.ends_with(".output_min") ||
           name.ends_with(".output_max");
  }

  // Of a product, the least and the greatest value of its inputs or outputs (Gemma 4): as the greatest
  // distance from their middle, and the middle, if it is not 0.
  Status add_limits(const StoredTensor& t) {
    const std::string_view name = t.name;
    if (!name.ends_with("_max")) return Done{};  // read with the greatest
    const std::string head(name.substr(0, name.size() - 4)), product(name.substr(0, name.rfind('.')));
    const StoredTensor *least = file_.tensors().find(head + "_min"),
                       *weight = file_.tensors().find(product + ".weight");
    if (!least || !weight || least->values() != 1 || t.values() != 1)
      return malformed(
          format("tensor {} limits a product, but the other limit or the product is missing, or they "
                 "are not one number each",
                 quoted(t.name)));
    auto high = values_of(file_, t, 1), low = values_of(file_, *least, 1);
    if (!high) return high.error();
    if (!low) return low.error();
    const double from = double((*low)[0]), to = double((*high)[0]);
    const bool open[] = {!(from > -kNoLimit), !(to < kNoLimit)};
    if (open[0] && open[1]) return Done{};
    if (open[0] != open[1] || !(from <= to))
      return malformed(format("tensor {}: values from {} to {} are no limits", quoted(t.name), from, to));
    const auto middle = float((from + to) / 2), half = float(to - double(middle));
    const std::string limit = new_name(head + "_limit");
    made_->add(limit, 1, 1, {half});
    if (middle == 0) return Done{};
    const int64_t width = weight->dim[name.find(".input_") == std::string::npos ? 1 : 0];
    if (width < 1 || width > kMaxCount)
      return malformed(format("tensor '{}.weight' has {} values", product, width));
    const auto n = size_t(width);
    made_->add(limit + ".ones", width, 1, std::vector<float>(n, 1.0f));
    made_->add(limit + ".before", width, 1, std::vector<float>(n, -middle));
    made_->add(limit + ".behind", width, 1, std::vector<float>(n, middle));
    return Done{};
  }

  Status check_tables() const {
    const auto width = size_t(v_.width);
    for (const auto& [name, values] :
         {std::pair{"v.class_embd", &v_.class_row}, {"v.patch_embd.bias", &v_.bias}})
      if (!values->empty() && values->size() != width)
        return malformed(format("tensor '{}' has {} values, not {}", name, values->size(), width));
    if (v_.arch->sound && v_.positions.size() == width * size_t(kSoundRows)) return Done{};
    if (v_.arch->sound)
      return malformed(format("tensor 'a.position_embd.weight' is not {} x {}", width, kSoundRows));
    if (v_.arch->positions == PatchPositions::None) {
      if (v_.positions.empty() && v_.class_row.empty()) return Done{};
      return malformed("this projector's patches have no table of positions, but the file has one");
    }
    if (v_.positions.empty() && v_.arch->positions == PatchPositions::Cubic) return Done{};
    if (v_.positions.empty() || v_.positions.size() % width)
      return malformed("tensor 'v.position_embd.weight' is missing, or its rows have another width");
    const int64_t rows = int64_t(v_.positions.size() / width) - v_.has_class_row();
    const int64_t side = v_.settings.image_size / v_.settings.patch;
    const bool fits = v_.arch->positions == PatchPositions::Table ? rows == side * side
                                                                  : table_side(v_.arch->positions, rows) > 0;
    if (!fits || rows == 0)
      return malformed(format("tensor 'v.position_embd.weight' has {} rows for patches; {} expected", rows,
                              v_.arch->positions == PatchPositions::Axes
                                  ? std::string("two lists are")
                                  : format("a square of {} x {} patches is", side, side)));
    return Done{};
  }

  // The last product's rows, and those of the parts for layers of the text model.
  Status finish() {
    int64_t width = 0;
    for (const char* last : {"mm.a.fc.weight", "mm.a.mlp.2.weight", "resampler.proj.weight", "mm.down.weight",
                             "mm.input_projection.weight", "mm.model.fc.weight", "mm.model.mlp.3.weight",
                             "mm.3.weight", "mm.2.weight", "mm.1.weight", "mm.0.weight"})
      if (const StoredTensor* t = made_->tensors().find(last); t && width == 0) width = t->dim[1];
    v_.queries = v_.settings.queries;
    for (const StoredTensor& t : made_->tensors())
      if (t.name.ends_with(".deepstack.fc2.weight")) width += t.dim[1];
    if (width < 1 || width > kMaxCount) return malformed("no last product, or one of another shape");
    v_.row_width = int(width);
    if (!v_.line_break.empty() && v_.line_break.size() != size_t(width))
      return malformed(
          format("tensor 'v.token_embd.img_break' has {} values, not {}", v_.line_break.size(), width));
    const int64_t joined = v_.patches_per_row();
    int64_t patches = (kSoundRows + joined - 1) / joined * joined;
    if (!v_.arch->sound) { patches = most_patches_of(v_.settings); }
    if (patches >= kMostPatches)
      return malformed(
          format("pictures of {} patches; this version computes at most {}", patches, kMostPatches));
    v_.most_patches = int(patches) + v_.has_class_row() + v_.queries;
    const auto& apart = v_.arch->not_together;
    v_.together = v_.arch->together && std::find(apart.begin(), apart.end(), v_.row_width) == apart.end();
    Metadata metadata = file_.metadata();
    const auto put = [&](const std::string& key, uint64_t number) {
      metadata.put(made_->keep(keys_ + key), {MetadataType::U64, number});
    };
    metadata.put("general.architecture", {MetadataType::String, made_->keep(keys_)});
    put(".context_length", uint64_t(kMostPatches)), put(".patches_per_row", uint64_t(joined));
    if (!v_.arch->blocks) put(".block_count", 1), put(".attention.head_count", 1);
    if (v_.arch->squares) put(".merger_layer", uint64_t(merger_layer_));
    if (v_.queries) put(".queries", uint64_t(v_.queries));
    // A row of a picture is made of larger patches than the file's key says.
    if (!v_.arch->sound) put(".patch_size", uint64_t(v_.settings.patch));
    if (auto d = file_.metadata().unsigned_integer(keys_ + ".attention.head_dim"))
      put(".attention.key_length", *d);
    ModelSource source(file_.file_format(), std::move(metadata), made_->tensors(), made_);
    v_.source = std::make_shared<const ModelSource>(std::move(source));
    return Done{};
  }

  const ModelSource& file_;
  VisionFile& v_;
  const std::string keys_;  // their prefix
  std::shared_ptr<MadeTensors> made_;
  std::vector<uint32_t> taken_;
  int64_t merger_layer_ = 0;
};

}  // namespace

bool is_projector_file(const Metadata& m) { return m.string("general.architecture") == "clip"; }

Result<VisionFile> open_vision(const ModelSource& file) {
  if (!is_projector_file(file.metadata()))
    return Error{Code::Usage,
                 format("{}: this is no projector file (mmproj): its architecture is {}", file.path(),
                        quoted(file.metadata().string("general.architecture").value_or("unknown"))),
                 "give the mmproj file that belongs to the model", "", "mmproj"};
  if (auto ok = file.tensors().readable(); !ok) return ok.error();
  auto settings = preprocess_settings(file.metadata());
  if (!settings) return settings.error();
  const VisionArch* arch = find_vision(settings->projector);
  if (!arch)
    return Error{
        Code::Unsupported,
        format("{}: projector {} is not supported by this version", file.path(), quoted(settings->projector)),
        format("supported: {}", fmt::join(vision_names(), ", "))};
  VisionFile v;
  v.arch = arch, v.settings = std::move(*settings);
  if (auto ok = VisionOpener(file, v).open(); !ok) return ok.error();
  return v;
}

}  // namespace gimbal
