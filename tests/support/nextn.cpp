#include "support/nextn.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/file.h"
#include "base/format.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

std::string layer_name(int i) { return format("blk.{}.", i); }

// Lists with a number for each layer get one more: that of the layer that is copied.
void copy_entry(GgufWriter& w, std::string_view key, const GgufEntry& e, int layers, int copied) {
  const auto type = uint32_t(e.type);
  if (const auto* list = std::get_if<GgufArray>(&e.value)) {
    std::string data(reinterpret_cast<const char*>(list->data.data()), list->data.size());
    uint64_t n = list->count;
    if (n == uint64_t(layers) && list->type != GgufType::String) {
      const size_t each = data.size() / n;
      data += data.substr(size_t(copied) * each, each), n++;
    }
    w.raw(key, kArray, le(uint32_t(list->type)) + le(n) + data);
  } else if (const auto* text = std::get_if<std::string_view>(&e.value)) {
    w.string(key, *text);
  } else if (const auto* flag = std::get_if<bool>(&e.value)) {
    w.boolean(key, *flag);
  } else if (const auto* number = std::get_if<double>(&e.value)) {
    if (type == kF32) w.f32(key, float(*number));
    else w.scalar(key, kF64, *number);
  } else if (const auto* whole = std::get_if<uint64_t>(&e.value)) {
    w.scalar(key, kU64, *whole);
  } else {
    w.scalar(key, kI64, std::get<int64_t>(e.value));
  }
}

bool adds(std::string_view tensor) {
  for (const char* part : {"attn_output.", "ffn_down", "ssm_out."})
    if (tensor.find(part) != tensor.npos) return true;
  return false;
}

}  // namespace

std::string with_nextn(const std::string& model, const NextnParts& parts) {
  const Gguf file = open_file(model);
  const std::string arch(*file.string("general.architecture"));
  const int layers = int(*file.unsigned_integer(arch + ".block_count"));
  const bool has_one = file.unsigned_integer(arch + ".nextn_predict_layers").value_or(0) > 0;
  int copied = layers - 1;
  while (copied > 0 && !file.tensor(layer_name(copied) + "attn_output.weight")) copied--;
  const int nextn = has_one ? layers - 1 : layers;

  GgufWriter w;
  for (const auto& [key, entry] : file.metadata())
    if (key != arch + ".block_count" && key != arch + ".nextn_predict_layers")
      copy_entry(w, key, entry, has_one ? -1 : layers, copied);
  w.u32(arch + ".block_count", uint32_t(nextn + 1)).u32(arch + ".nextn_predict_layers", 1);

  for (const GgufTensor& t : file.tensors()) {
    if (t.name.find(".nextn.") != t.name.npos) continue;
    const auto bytes = *file.read(t);
    std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (parts.still && adds(t.name)) data.assign(data.size(), '\0');
    const std::vector<uint64_t> dims(t.dim, t.dim + t.rank);
    w.tensor(t.name, dims, info(t.type).gguf, data);
    const std::string from = layer_name(copied);
    if (!has_one && t.name.starts_with(from))
      w.tensor(layer_name(nextn) + std::string(t.name.substr(from.size())), dims, info(t.type).gguf, data);
  }
  const auto d = size_t(*file.unsigned_integer(arch + ".embedding_length"));
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
  w.floats(own + "eh_proj.weight", {2 * d, d}, joined);
  for (const std::string norm : {"enorm", "hnorm", "shared_head_norm"})
    if (parts.own_norm || norm != "shared_head_norm")
      w.floats(own + norm + ".weight", {d}, std::vector<float>(d, 1));
  const std::string path = temporary_path("nextn-" + std::filesystem::path(model).filename().string());
  EXPECT_TRUE(write_file(path, w.build()));
  return path;
}

}  // namespace gimbal::test
