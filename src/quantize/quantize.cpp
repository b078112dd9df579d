#include "quantize/quantize.h"

#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/gguf_writer.h"
#include "quantize/tensor_encoder.h"
#include "tensor/format.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

constexpr std::string_view kVersionKey = "gimbal.quantize.version", kRulesKey = "gimbal.quantize.rules",
                           kSourceKey = "gimbal.quantize.source_sha256",
                           kImportanceKey = "gimbal.quantize.importance_sha256";
constexpr uint32_t kBlockVersion = 2;  // general.quantization_version of all files since 2023

bool replaced(std::string_view key) {
  return key.starts_with("split.") || key.starts_with("gimbal.quantize.") || key == "general.file_type" ||
         key == "general.quantization_version";
}

uint64_t bytes_as(const StoredTensor& t, DType type) {
  return uint64_t(row_bytes(type, t.dim[0]) * (t.values() / t.dim[0]));
}

uint32_t parts_of(const QuantizeWork& work) {
  uint32_t parts = 1;
  if (work.keep_split)
    for (const StoredTensor& t : work.source.tensors()) parts = std::max(parts, t.part + 1);
  return parts;
}

// The writers of all parts, and the tensors of each.
struct Parts {
  std::vector<GgufWriter> writers;
  std::vector<std::vector<const StoredTensor*>> tensors;
};

Parts parts_for(const QuantizeWork& work, const std::vector<TensorFormat>& formats) {
  const uint32_t count = parts_of(work);
  Parts parts{writers_of_parts(count, work.source.tensors().size()), {}};
  parts.tensors.resize(count);
  GgufWriter& first = parts.writers[0];
  const Metadata& m = work.source.metadata();
  for (std::string_view key : m.keys())
    if (!replaced(key)) first.add(key, *m.find(key));
  first.u32("general.quantization_version", kBlockVersion);
  first.u32("general.file_type", work.derivation.rules.mixture.file_type);
  first.u32(kVersionKey, kEncoderVersion);
  first.string(kRulesKey, work.derivation.rules.text());
  first.string(kSourceKey, work.derivation.source_sha256);
  if (!work.derivation.importance_sha256.empty())
    first.string(kImportanceKey, work.derivation.importance_sha256);
  for (const StoredTensor& t : work.source.tensors()) {
    const uint32_t part = count > 1 ? t.part : 0;
    parts.writers[part].tensor(t.name, formats[t.index].format, {t.dim, t.rank});
    parts.tensors[part].push_back(&t);
  }
  return parts;
}

Status fits(const StoredTensor& t, const std::vector<float>& weights, const std::string& model) {
  const auto wanted = uint64_t(t.dim[0] * t.dim[2] * t.dim[3]);
  if (weights.size() == wanted) return Done{};
  return Error{Code::Malformed,
               format("{}: the importance matrix has {} weights for tensor {}, expected {}", model,
                      weights.size(), quoted(t.name), wanted),
               "it was made for another model"};
}

// Formats. Fails if one needs an importance that the matrix lacks.
Result<std::vector<TensorFormat>> checked_formats(const QuantizeWork& work, QuantizedTotals& totals) {
  if (auto ok = work.source.tensors().readable(); !ok) return ok.error();
  auto formats = formats_of(work.source, work.derivation.rules, work.importance);
  if (!formats) return formats.error();
  for (const StoredTensor& t : work.source.tensors()) {
    const TensorFormat& f = (*formats)[t.index];
    totals.from_bytes += t.bytes, totals.values += uint64_t(t.values());
    totals.bytes += f.quantized ? bytes_as(t, f.format) : t.bytes;
    totals.quantized += f.quantized, totals.substituted += f.substituted && f.quantized;
    if (!f.quantized) continue;
    if (!can_decode(t.type))
      return Error{Code::Unsupported,
                   format("{}: tensor {} has the format {}, which has no values to quantize",
                          work.source.path(), quoted(t.name), stored_name(t)),
                   ""};
    totals.requantized += info(t.type).block > 1;
    const std::vector<float>* weights = work.importance ? work.importance->find(t.name) : nullptr;
    if (weights) {
      if (auto ok = fits(t, *weights, work.source.path()); !ok) return ok.error();
    } else if (f.needs_importance) {
      return Error{Code::Usage,
                   format("{} of tensor {} needs an importance matrix{}", info(f.format).name, quoted(t.name),
                          work.importance ? ", and the given one has nothing for it" : ""),
                   "give one (an imatrix file), or choose a larger mixture"};
    } else if (work.importance && info(f.format).block > 1) totals.without_importance.emplace_back(t.name);
  }
  return formats;
}

// One of the files: its number, and how its tensors are made, or passed over.
struct PartWork {
  size_t number;
  const GgufWriter& writer;
  GgufWriter::Read read;
  std::function<Status(size_t tensor, uint64_t offset, size_t bytes)> skip;
};

// Passes each part to a sink in turn.
using PartSink = std::function<Status(const PartWork&)>;
Status for_parts(const QuantizeWork& work, const PartSink& sink) {
  QuantizedTotals totals;
  auto formats = checked_formats(work, totals);
  if (!formats) return formats.error();
  TensorEncoder encoder(work.source, *formats, work.importance, work.threads,
                        [&](uint64_t done) { return !work.progress || work.progress(done, totals.values); });
  const Parts parts = parts_for(work, *formats);
  for (size_t i = 0; i < parts.writers.size(); i++) {
    const auto read = [&](size_t tensor, uint64_t offset, void* to, size_t bytes) {
      return encoder.read(*parts.tensors[i][tensor], offset, to, bytes);
    };
    const auto skip = [&](size_t tensor, uint64_t offset, size_t bytes) {
      return encoder.skip(*parts.tensors[i][tensor], offset, bytes);
    };
    if (auto ok = sink({i, parts.writers[i], read, skip}); !ok) return ok;
  }
  return Done{};
}

}  // namespace

Result<QuantizedTotals> plan_quantization(const QuantizeWork& work) {
  QuantizedTotals totals;
  auto formats = checked_formats(work, totals);
  if (!formats) return formats.error();
  return totals;
}

std::vector<std::string> paths_of(const QuantizeWork& work, const std::string& path) {
  return paths_of_parts(path, parts_of(work));
}

Status quantize(const QuantizeWork& work, const std::string& path) {
  const std::vector<std::string> paths = paths_of(work, path);
  std::vector<GrowingFile> files;
  const auto made = for_parts(work, [&](const PartWork& part) -> Status {
    auto opened = GrowingFile::open(paths[part.number], work.piece);
    if (!opened) return opened.error();
    GrowingFile& file = files.emplace_back(std::move(*opened));
    bool begun = false;
    return part.writer.write(
        [&](size_t tensor, uint64_t offset, void* to, size_t bytes) {
          return file.holds(bytes) ? part.skip(tensor, offset, bytes) : part.read(tensor, offset, to, bytes);
        },
        [&](const void* data, size_t bytes) -> Status {
          if (begun) return file.write(data, bytes);
          begun = true;
          auto found = file.begin(data, bytes);
          if (!found) return found.error();
          if (work.found) work.found(file, *found);
          return file.write(data, bytes);
        });
  });
  if (!made) {
    // Another try would fail at the same place, unless it was interrupted or the disk is full.
    if (made.error().code != Code::Failed)
      for (GrowingFile& file : files) file.drop();
    return made;
  }
  for (GrowingFile& file : files)
    if (auto ok = file.commit(); !ok) return ok;
  return Done{};
}

Result<Derivation> derivation_of(const ModelSource& quantized) {
  const Metadata& m = quantized.metadata();
  const auto version = m.unsigned_integer(kVersionKey);
  const auto rules = m.string(kRulesKey), source = m.string(kSourceKey);
  if (!version || !rules || !source)
    return Error{Code::Usage, format("{} does not say how it was made", quantized.path()),
                 "only files that gimbal quantized have a derivation"};
  if (*version != kEncoderVersion)
    return Error{Code::Unsupported,
                 format("{} was made by version {} of the encoders, this program has version {}",
                        quantized.path(), *version, kEncoderVersion),
                 "check it with the gimbal that made it"};
  auto parsed = QuantizeRules::parsed(*rules);
  if (!parsed) return parsed.error();
  return Derivation{*parsed, std::string(*source), std::string(m.string(kImportanceKey).value_or(""))};
}

Status check_quantized(const QuantizeWork& work, const std::string& path) {
  const std::vector<std::string> paths = paths_of(work, path);
  return for_parts(work, [&](const PartWork& part) -> Status {
    const std::string& compared = paths[part.number];
    auto file = InputFile::open(compared);
    if (!file) return file.error();
    std::string found;
    uint64_t at = 0;
    const auto compare = [&](const void* data, size_t bytes) -> Status {
      found.resize(bytes);
      if (file->size() - std::min(at, file->size()) < bytes)
        return Error{Code::Failed,
                     format("{} has {} bytes; made again, it has more", quoted(compared), file->size()), ""};
      if (auto ok = file->read(at, found.data(), bytes); !ok) return ok;
      const auto* made = static_cast<const char*>(data);
      for (size_t i = 0; i < bytes; i++)
        if (found[i] != made[i])
          return Error{
              Code::Failed,
              format("{} differs from what its source gives, first at byte {}", quoted(compared), at + i),
              "the file was changed, or made otherwise than it says"};
      at += bytes;
      return Done{};
    };
    if (auto ok = part.writer.write(part.read, compare); !ok) return ok;
    if (at == file->size()) return Done{};
    return Error{Code::Failed,
                 format("{} has {} bytes; made again, it has {}", quoted(compared), file->size(), at), ""};
  });
}

}  // namespace gimbal
