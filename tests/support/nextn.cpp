#include "support/nextn.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <span>

#include "base/file.h"
#include "base/format.h"
#include "support/golden.h"
#include "support/made_gguf.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

std::string layer_name(int i) { return format("blk.{}.", i); }

// Lists with a number for each layer get one more: that of the layer that is copied.
void copy_entry(MadeGguf& w, std::string_view key, MetadataEntry e, int layers, int copied) {
  auto* list = std::get_if<MetadataArray>(&e.value);
  std::string data;
  if (list && list->count == uint64_t(layers) && list->type != MetadataType::String) {
    data.assign(reinterpret_cast<const char*>(list->data.data()), list->data.size());
    const size_t each = data.size() / list->count;
    data += data.substr(size_t(copied) * each, each);
    list->count++, list->data = std::as_bytes(std::span(data));
  }
  w.add(key, e);
}

bool adds(std::string_view tensor) {
  for (const char* part : {"attn_output.", "ffn_down", "ssm_out."})
    if (tensor.find(part) != tensor.npos) return true;
  return false;
}

}  // namespace

std::string with_nextn(const std::string& model, const NextnParts& parts) {
  const ModelSource file = open_file(model);
  const std::string arch(*file.metadata().string("general.architecture"));
  const int layers = int(*file.metadata().unsigned_integer(arch + ".block_count"));
  const bool has_one = file.metadata().unsigned_integer(arch + ".nextn_predict_layers").value_or(0) > 0;
  int copied = layers - 1;
  while (copied > 0 && !file.tensors().find(layer_name(copied) + "attn_output.weight")) copied--;
  const int nextn = has_one ? layers - 1 : layers;

  MadeGguf w;
  for (const auto& [key, entry] : file.metadata())
    if (key != arch + ".block_count" && key != arch + ".nextn_predict_layers")
      copy_entry(w, key, entry, has_one || key.ends_with(".dimension_sections") ? -1 : layers, copied);
  w.u32(arch + ".block_count", uint32_t(nextn + 1)).u32(arch + ".nextn_predict_layers", 1);

  for (const StoredTensor& t : file.tensors()) {
    if (t.name.find(".nextn.") != t.name.npos) continue;
    const auto bytes = *file.read(t);
    std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (parts.still && adds(t.name)) data.assign(data.size(), '\0');
    w.tensor(t, data);
    const std::string from = layer_name(copied);
    if (!has_one && t.name.starts_with(from))
      w.tensor(layer_name(nextn) + std::string(t.name.substr(from.size())), {t.dim, t.dim + t.rank}, t.type,
               data);
  }
  const auto d = size_t(*file.metadata().unsigned_integer(arch + ".embedding_length"));
  std::mt19937 random(5);
  std::vector<float> joined(2 * d * d);
  for (size_t row = 0; row < d; row++)
    for (size_t column = 0; column < 2 * d; column++) {
      const float share = column < d ? parts.embedding : parts.state;
      joined[row * 2 * d + column] =
          parts.mixed         ? share * (float(random() % 2001) - 1000) / 1000 / std::sqrt(float(d))
          : column % d == row ? share
                              : 0;
    }
  const std::string own = layer_name(nextn) + "nextn.";
  w.floats(own + "eh_proj.weight", {int64_t(2 * d), int64_t(d)}, joined);
  for (const std::string norm : {"enorm", "hnorm", "shared_head_norm"})
    if (parts.own_norm || norm != "shared_head_norm")
      w.floats(own + norm + ".weight", {int64_t(d)}, std::vector<float>(d, 1));
  const std::string path = temporary_path("nextn-" + std::filesystem::path(model).filename().string());
  EXPECT_TRUE(write_file(path, w.build()));
  return path;
}

}  // namespace gimbal::test
