#include "model/vision/vision_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "model/vision/made_tensors.h"
#include "model/vision/patch_positions.h"
#include "model/vision/projector_tensors.h"

namespace gimbal {
namespace {

constexpr int kSquare = 4;  // patches of a square

class VisionOpener {
 public:
  VisionOpener(const ModelSource& file, VisionFile& v)
      : file_(file),
        v_(v),
        keys_(v.arch->sound ? kSoundKeys : kVisionKeys),
        made_(std::make_shared<MadeTensors>(file)),
        tensors_(file, v, *made_) {}

  Status open() {
    Hyperparameters read(file_.metadata(), keys_);
    v_.width = read.count("embedding_length");
    const int layers = v_.arch->blocks ? read.count("block_count") : 0;
    if (read.error()) return *read.error();
    if (v_.arch->squares)
      if (auto ok = read_merger(layers); !ok) return ok;
    if (size_t(layers) > file_.tensors().size())
      return malformed(format("{} blocks, but the file has only {} tensors", layers, file_.tensors().size()));
    if (auto ok = tensors_.add_input(); !ok) return ok;
    for (auto [name, to] : {std::pair{"v.class_embd", &v_.class_row},
                            {"v.patch_embd.bias", &v_.bias},
                            {"v.position_embd.weight", &v_.positions},
                            {"v.token_embd.img_break", &v_.line_break},
                            {"a.position_embd.weight", &v_.positions}})
      if (v_.arch->sound == (name[0] == 'a') && !(to == &v_.bias && v_.arch->own_bias))
        if (auto ok = tensors_.take(name, *to); !ok) return ok;
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

  Status add(const StoredTensor& t) {
    if (tensors_.taken(t)) return Done{};
    const std::string_view name = t.name;
    // A file may have an encoder of the other kind, too.
    if (v_.arch->sound != (name.starts_with("a.") || name.starts_with("mm.a."))) return Done{};
    if (name.starts_with("v.vit_merger.") && v_.patches_per_row() == kSquare) return Done{};  // not used
    const auto remade = tensors_.remade(t, new_name(name));
    if (!remade) return remade.error();
    if (*remade) return Done{};
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

  Status check_tables() const {
    const auto width = size_t(v_.width);
    for (const auto& [name, values] :
         {std::pair{"v.class_embd", &v_.class_row}, {"v.patch_embd.bias", &v_.bias}})
      if (!values->empty() && values->size() != width)
        return malformed(format("tensor '{}' has {} values, not {}", name, values->size(), width));
    if (v_.settings.queries && v_.has_class_row())
      return malformed("this projector's encoder has queries and no class row, but the file has one");
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
    if (patches + v_.queries >= kMostPatches)
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
  ProjectorTensors tensors_;
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
