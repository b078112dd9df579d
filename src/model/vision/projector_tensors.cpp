#include "model/vision/projector_tensors.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr int kTaps = 3;                         // of a convolution along time
constexpr int64_t kMostMade = int64_t(1) << 26;  // values of a tensor that is read into memory
constexpr double kNoLimit = 1e30;                // as files write infinity

bool is_limit(std::string_view name) {
  return name.ends_with(".input_min") || name.ends_with(".input_max") || name.ends_with(".output_min") ||
         name.ends_with(".output_max");
}

}  // namespace

Error ProjectorTensors::malformed(const std::string& what) const {
  return {Code::Malformed, format("{}: {}", file_.path(), what), ""};
}

Status ProjectorTensors::add_input() { return v_.arch->sound ? add_taps() : add_kernel(); }

bool ProjectorTensors::taken(const StoredTensor& t) const {
  return std::find(taken_.begin(), taken_.end(), t.index) != taken_.end();
}

Result<bool> ProjectorTensors::remade(const StoredTensor& t, const std::string& as) {
  const std::string_view name = t.name;
  const auto done = [](const Status& ok) -> Result<bool> { return ok ? Result<bool>(true) : ok.error(); };
  if (name == "mm.input_projection.weight" && v_.arch->transposed_projection) return done(add_transposed(t));
  if (name == "mm.patch_merger.weight" && v_.arch->features_by_row) return done(add_reordered(t));
  if (name == "v.std_bias") return done(add_shift(t));
  if (is_limit(name)) return done(add_limits(t, as));
  return false;
}

Status ProjectorTensors::take(const char* name, std::vector<float>& to) {
  const StoredTensor* t = file_.tensors().find(name);
  if (!t) return Done{};
  auto values = values_of(file_, *t, kMostMade);
  if (!values) return values.error();
  to = std::move(*values), taken_.push_back(t->index);
  return Done{};
}

// [x, y, channel, width], or the same as a matrix. The kernels of two frames that show the same picture are
// one.
Status ProjectorTensors::add_kernel() {
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
  made_.add("patch_embd.weight", pixels, v_.width, std::move(sum));
  return Done{};
}

// Convolutions along time as products: the taps of a row side by side.
Status ProjectorTensors::add_taps() {
  for (const auto& [number, inputs] : {std::pair{1, v_.settings.mel_bins}, {2, v_.width}}) {
    const std::string name = format("a.conv1d.{}", number);
    const StoredTensor *t = file_.tensors().find(name + ".weight"), *b = file_.tensors().find(name + ".bias");
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
    made_.add(format("conv{}.weight", number), kTaps * inputs, v_.width, std::move(ordered));
    made_.add(format("conv{}.bias", number), v_.width, 1, std::move(*bias));
    taken_.push_back(t->index), taken_.push_back(b->index);
  }
  return Done{};
}

// Files have it as [text, width].
Status ProjectorTensors::add_transposed(const StoredTensor& t) {
  if (t.rank > 2) return malformed(format("tensor {} is no matrix", quoted(t.name)));
  auto values = values_of(file_, t, kMostMade);
  if (!values) return values.error();
  const auto rows = size_t(t.dim[0]), columns = size_t(t.dim[1]);
  std::vector<float> turned(values->size());
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++) turned[r * columns + c] = (*values)[c * rows + r];
  made_.add(std::string(t.name), t.dim[1], t.dim[0], std::move(turned));
  return Done{};
}

// Files order the features of neighbours by (channel, y, x); rows of this program by (y, x, channel).
// As a matrix, or as a kernel [x, y, channel, rows].
Status ProjectorTensors::add_reordered(const StoredTensor& t) {
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
  made_.add(std::string(t.name), columns, rows, std::move(ordered));
  return Done{};
}

// (x - bias) * scale as x * scale + shift.
Status ProjectorTensors::add_shift(const StoredTensor& t) {
  const StoredTensor* scale = file_.tensors().find("v.std_scale");
  if (!scale || scale->values() != v_.width || t.values() != v_.width)
    return malformed(format("tensors 'v.std_bias' and 'v.std_scale' must have {} values each", v_.width));
  auto shift = values_of(file_, t, kMostMade), factors = values_of(file_, *scale, kMostMade);
  if (!shift) return shift.error();
  if (!factors) return factors.error();
  for (size_t i = 0; i < shift->size(); i++)
    (*shift)[i] = float(-double((*shift)[i]) * double((*factors)[i]));
  made_.add("std_shift", v_.width, 1, std::move(*shift));
  return Done{};
}

// Of a product, the least and the greatest value of its inputs or outputs (Gemma 4): as the greatest
// distance from their middle, and the middle, if it is not 0.
Status ProjectorTensors::add_limits(const StoredTensor& t, const std::string& as) {
  const std::string_view name = t.name;
  const std::string head(name.substr(0, name.size() - 4)), product(name.substr(0, name.rfind('.')));
  if (!name.ends_with("_max") && file_.tensors().find(head + "_max"))
    return Done{};  // read with the greatest
  const StoredTensor *least = file_.tensors().find(head + "_min"),
                     *weight = file_.tensors().find(product + ".weight");
  if (!name.ends_with("_max") || !least || !weight || least->values() != 1 || t.values() != 1)
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
  const std::string limit = as.substr(0, as.size() - 4) + "_limit";
  made_.add(limit, 1, 1, {half});
  if (middle == 0) return Done{};
  const int64_t width = weight->dim[name.find(".input_") == std::string::npos ? 1 : 0];
  if (width < 1 || width > kMaxCount)
    return malformed(format("tensor '{}.weight' has {} values", product, width));
  const auto n = size_t(width);
  made_.add(limit + ".ones", width, 1, std::vector<float>(n, 1.0f));
  made_.add(limit + ".before", width, 1, std::vector<float>(n, -middle));
  made_.add(limit + ".behind", width, 1, std::vector<float>(n, middle));
  return Done{};
}

}  // namespace gimbal
