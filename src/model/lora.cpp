#include "model/lora.h"

#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "files/gguf.h"

namespace gimbal {

AdapterSet applied(std::span<const float> scales) {
  AdapterSet all = 0;
  for (size_t i = 0; i < scales.size(); i++)
    if (scales[i] != 0) all |= AdapterSet(1) << i;
  return all;
}

std::vector<float> scales_at_start(const TensorTable& tensors) {
  std::vector<float> all;
  for (const Adapter& a : tensors.adapters()) all.push_back(a.scale);
  return all;
}

Status add_lora(ModelSource& model, const Lora& lora) {
  if (model.tensors().adapters().size() == kMaxAdapters)
    return Error{Code::Usage,
                 format("{}: {} has {} adapters already, the most for one model", gimbal::quoted(lora.path),
                        model.path(), kMaxAdapters),
                 "load fewer adapters"};
  auto file = open_gguf(lora.path);
  if (!file) return file.error();
  auto text = [&](const ModelSource& f, const char* key) {
    return std::string(f.metadata().string(key).value_or(""));
  };
  if (text(*file, "general.type") != "adapter" || text(*file, "adapter.type") != "lora")
    return Error{
        Code::Usage,
        format("{}: general.type is {} and adapter.type {}: this is not a LoRA adapter", file->path(),
               quoted(text(*file, "general.type")), quoted(text(*file, "adapter.type"))),
        "an adapter is made by llama.cpp's convert_lora_to_gguf.py"};
  const std::string own = text(*file, "general.architecture"), wanted = text(model, "general.architecture");
  if (own != wanted)
    return Error{Code::Usage,
                 format("{}: the adapter is for the architecture {}, the model's is {}", file->path(),
                        quoted(own), quoted(wanted)),
                 ""};
  const double alpha = file->metadata().number("adapter.lora.alpha").value_or(0);
  if (!std::isfinite(alpha) || !std::isfinite(lora.scale))
    return Error{Code::Malformed,
                 format("{}: adapter.lora.alpha is {}, the scale {}: expected finite numbers", file->path(),
                        alpha, lora.scale),
                 ""};
  if (file->metadata().find("adapter.alora.invocation_tokens"))
    return Error{
        Code::Unsupported,
        format("{}: the adapter begins to act at a certain text (aLoRA), which this version does not do",
               file->path()),
        "use an adapter that acts from the beginning"};
  for (const StoredTensor& t : file->tensors()) {
    std::string_view weight = t.name;
    if (!weight.ends_with(".lora_a") && !weight.ends_with(".lora_b"))
      return Error{Code::Unsupported,
                   format("{}: tensor {} is neither a lora_a nor a lora_b", file->path(), quoted(t.name)),
                   ""};
    weight.remove_suffix(7);
    if (!model.tensors().find(weight))
      return Error{Code::Malformed,
                   format("{}: tensor {} belongs to a weight that {} does not have", file->path(),
                          quoted(t.name), model.path()),
                   "the adapter was made for another model"};
  }
  return model.join(
      *file, {format(".{}", model.tensors().adapters().size() + 1), file->path(), float(alpha), lora.scale});
}

}  // namespace gimbal
