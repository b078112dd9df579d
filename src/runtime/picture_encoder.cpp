#include "runtime/picture_encoder.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {

RunOptions encoder_options(const VisionFile& v, int patches, const KernelPreference& kernels) {
  RunOptions o;
  o.context = o.batch = patches;
  o.logit_rows = std::max({1, patches / v.patches_per_row(), v.queries});
  o.cache_type = DType::F32, o.kernels = kernels;
  o.hidden = true, o.logits = false, o.interruptible = true, o.arch = &v.arch->model;
  return o;
}

Result<EmbeddingsPtr> PictureEncoder::encode(const Piece& piece, std::function<bool(size_t, size_t)> go_on) {
  auto patches = patch_rows(file_, piece);
  if (!patches) return patches.error();
  const PatchRows& p = *patches;
  if (int(p.rows.size()) > model_.context())
    return Error{Code::Usage,
                 format("a picture has {} patches, but its encoder was loaded for {}", p.rows.size(),
                        model_.context()),
                 ""};
  auto sequence = model_.new_sequence();
  if (!sequence) return sequence.error();
  Batch batch;
  batch.go_on = std::move(go_on);
  for (size_t i = 0; i < p.rows.size(); i++) {
    Row row(sequence->get(), 0, int32_t(i), {.hidden = p.rows[i].wanted});
    row.patch = &p.rows[i];
    batch.rows.push_back(row);
  }
  auto out = model_.forward(batch);
  if (!out) return out.error();
  const auto width = size_t(file_.row_width), columns = size_t(p.grid.columns);
  const bool breaks = !file_.line_break.empty();
  std::vector<float> values(size_t(p.grid.rows) * width);
  for (size_t k = 0; k < p.result.size(); k++) {
    const auto place = size_t(p.result[k]);
    const std::span<const float> row = out->hidden(k);
    std::copy(row.begin(), row.end(),
              values.begin() + ptrdiff_t((place + (breaks ? place / columns : 0)) * width));
  }
  for (size_t line = 0; breaks && line + 1 < size_t(p.grid.lines); line++)
    std::copy(file_.line_break.begin(), file_.line_break.end(),
              values.begin() + ptrdiff_t((line * (columns + 1) + columns) * width));
  auto rows = Embeddings::create(std::move(values), file_.row_width, file_.arch->grid ? p.grid.columns : 0,
                                 file_.together);
  if (!rows)
    return Error{Code::Malformed, format("{}: {}", file_.source->path(), rows.error().message),
                 "the encoder's weights are damaged, or the file is of another kind"};
  return *rows;
}

}  // namespace gimbal
