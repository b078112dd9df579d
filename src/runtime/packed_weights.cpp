#include "runtime/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/hash.h"
#include "device/values.h"

namespace gimbal {
namespace {

// More hardly read faster from a disk, and take the processors from others.
constexpr unsigned kPrefaultThreads = 4;

// The identity of a weight in a file.
uint64_t what(const Program& p, size_t w, const TensorTable& tensors) {
  const WeightSource& from = p.sources[w];
  const gimbal_value& v = p.values[p.weights[w]];
  const StoredTensor& t = tensors[from.tensor];
  Hash hash;
  hash.add(t.name).add(uint64_t(from.first_row)).add(uint64_t(from.expert));
  hash.add(uint64_t(t.type)).add(uint64_t(t.ternary)).add(v.dtype).add(v.layout).add(v.bytes);
  for (int64_t d : v.dim) hash.add(uint64_t(d));
  return hash.value();
}

// By index into Program::weights: no op reads all of it in one step.
std::vector<bool> read_in_part(const Program& p) {
  std::vector<bool> whole(p.values.size());
  for (const gimbal_op& op : p.ops)
    for (int i = 0; i < op.inputs; i++) {
      const bool part =
          i == 0 && (OpKind(op.kind) == OpKind::Embed || OpKind(op.kind) == OpKind::ExpertMatMul);
      if (!part) whole[p.info[op.in[i]].root] = true;
    }
  std::vector<bool> part;
  for (uint16_t w : p.weights) part.push_back(!whole[w]);
  return part;
}

Error cannot(std::string why) { return {Code::Unsupported, std::move(why), ""}; }

}  // namespace

uint64_t sample_bytes(const gimbal_value& v, int64_t rows) {
  const int64_t all = rows_of(v);
  if (v.rank < 2 || all <= rows) return v.bytes;
  const int64_t tiles = (all + kSampleRows - 1) / kSampleRows;
  return v.layout == GIMBAL_PACKED ? v.bytes / uint64_t(tiles) : v.bytes / uint64_t(all) * uint64_t(rows);
}

size_t sample_distance(const Program& p) {
  constexpr uint64_t kSampled = 8 << 20;
  uint64_t all = 0;
  for (uint16_t w : p.weights) all += sample_bytes(p.values[w], kSampleRows);
  return size_t(1 + all / kSampled);
}

Status use_packed(ModelPlan& plan, size_t stage, const TensorTable& tensors,
                  std::shared_ptr<const PackedFile> file) {
  Stage& s = plan.stages[stage];
  if (!s.device->can_adopt()) return cannot(format("{} cannot compute from host memory", s.device->id()));
  if (file->layout() != s.device->backend())
    return Error{Code::Unsupported,
                 format("it has the layout of {}, not of {}", file->layout(), s.device->backend()),
                 "",
                 reason::kPackedUnusable,
                 "",
                 file->path()};
  // Every program of the stage has these weights, with its own numbers; views share their place.
  std::vector<std::vector<uint64_t>> places;
  for (const Bucket& bucket : s.buckets) {
    const Program& p = bucket.program;
    std::vector<uint64_t>& to = places.emplace_back(p.values.size());
    for (size_t w = 0; w < p.weights.size(); w++) {
      const gimbal_value& v = p.values[p.weights[w]];
      const PackedWeight* found = file->find(what(p, w, tensors));
      if (!found || found->bytes != v.bytes)
        return Error{
            Code::Unsupported,
            format("it has no '{}' in the format that {} needs", p.info[p.weights[w]].name, s.device->id()),
            "pack the model again, or remove the file",
            reason::kPackedUnusable,
            "",
            file->path()};
      to[p.weights[w]] = found->offset;
    }
  }
  for (size_t b = 0; b < s.buckets.size(); b++) {
    Program& p = s.buckets[b].program;
    for (size_t i = p.values.size(); i-- > 0;) {  // views follow their values
      gimbal_value& v = p.values[i];
      const uint16_t root = p.info[i].root;
      if (v.slot == uint32_t(Slot::Weights)) v.offset = v.offset - p.values[root].offset + places[b][root];
    }
  }
  if (auto ok = plan_disk_experts(s, plan.options.experts_from_disk); !ok) return ok;
  s.packed = std::move(file);
  return Done{};
}

std::unique_ptr<Prefault> prefault(const ModelPlan& plan, Prefault::Populate populate) {
  std::vector<Bytes> ranges;
  unsigned threads = 1;
  for (const Stage& s : plan.stages) {
    if (!s.packed || s.reads_experts()) continue;  // experts on disk are read, not mapped
    const Bytes all = s.packed->bytes();
    for (const FilePages::Range& r : pages_of(s, read_in_part(s.buckets[0].program)))
      ranges.push_back(all.subspan(size_t(r.begin), size_t(std::min<uint64_t>(r.end, all.size()) - r.begin)));
    threads = std::max(threads, s.device->describe().threads);
  }
  if (ranges.empty()) return nullptr;
  return std::make_unique<Prefault>(std::move(ranges), std::min(threads, kPrefaultThreads),
                                    std::move(populate));
}

Status check_readable(const ModelPlan& plan, const Prefault::Report& r) {
  if (!r.unreadable) return Done{};
  for (const Stage& s : plan.stages) {
    if (!s.packed) continue;
    if (auto ok = s.packed->unchanged(); !ok) return ok;
    const Bytes all = s.packed->bytes();
    if (r.unreadable < all.data() || r.unreadable >= all.data() + all.size()) continue;
    return Error{Code::Failed,
                 format("its bytes from {} on cannot be read", r.unreadable - all.data()),
                 "check the disk; then pack the model again, or remove the file",
                 reason::kPackedUnusable,
                 "",
                 s.packed->path()};
  }
  return Done{};
}

Status write_packed(const std::string& path, const ModelPlan& plan, const ModelSource& source,
                    const WeightProgress& progress) {
  const Device& device = plan.device();
  if (plan.split()) return cannot("the model lies on several devices, and weights are packed for one");
  if (!source.tensors().adapters().empty()) return cannot("packed weights cannot include adapters");
  if (!device.can_adopt())
    return cannot(format("{} cannot compute from host memory: its weights are loaded again at each start",
                         device.id()));
  const Program& p = plan.stages[0].buckets[0].program;
  PackedHead head{};
  std::copy(kPackedMagic.begin(), kPackedMagic.end(), head.magic);
  head.version = kPackedVersion, head.weights = uint32_t(p.weights.size());
  std::strncpy(head.layout, device.backend(), sizeof head.layout - 1);
  head.source = source.reader().identity();
  const uint64_t begin = align_up(sizeof head + p.weights.size() * sizeof(PackedWeight), kPackedPage);
  head.bytes = begin;
  std::vector<PackedWeight> table;
  uint64_t packed = 0, total = 0;
  for (uint16_t w : p.weights) total += p.values[w].bytes;
  auto file = DraftFile::create(path);
  if (!file) return file.error();
  std::vector<std::byte> first(size_t(begin), std::byte(0)), copy;
  if (auto ok = file->write(first.data(), first.size()); !ok) return ok;
  for (size_t w = 0; w < p.weights.size(); w++) {
    gimbal_value v = p.values[p.weights[w]];
    v.offset = 0;
    auto buffer = device.allocate(size_t(v.bytes));  // anew: padding is zero
    if (!buffer) return buffer.error();
    std::vector<WeightSlice> slices;
    add_slices(slices, 0, p, w, source.tensors());
    const Shape& shape = p.info[p.weights[w]].shape;
    const auto place = [&](const WeightSlice& s, std::vector<std::byte>& room) {
      return place_weight(device, *buffer, v, shape, source, s, room);
    };
    if (auto ok = for_slices(slices, device.describe().threads, {}, place); !ok) return ok;
    const auto* at = static_cast<const std::byte*>(device.host_pointer(*buffer));
    if (!at) {
      copy.resize(size_t(v.bytes));
      if (auto ok = device.read(*buffer, 0, copy.data(), copy.size()); !ok) return ok;
      at = copy.data();
    }
    const Bytes bytes(at, size_t(v.bytes));
    table.push_back({what(p, w, source.tensors()), head.bytes, v.bytes, hash_of(bytes)});
    constexpr std::byte kPadding[kAlignment] = {};
    const uint64_t padded = align_up(v.bytes, kAlignment);
    if (auto ok = file->write(bytes.data(), bytes.size()); !ok) return ok;
    if (auto ok = file->write(kPadding, size_t(padded - v.bytes)); !ok) return ok;
    head.bytes += padded;
    packed += v.bytes;
    if (progress && !progress(packed, total)) return Error{Code::Failed, "packing was cancelled", ""};
  }
  std::sort(table.begin(), table.end(),
            [](const PackedWeight& a, const PackedWeight& b) { return a.what < b.what; });
  auto raw = [](const void* data, size_t n) { return Bytes(static_cast<const std::byte*>(data), n); };
  const Bytes rows = raw(table.data(), table.size() * sizeof(PackedWeight));
  head.table = hash_of(rows);
  head.before = hash_of(raw(&head, offsetof(PackedHead, before)));
  std::memcpy(first.data(), &head, sizeof head);
  std::copy(rows.begin(), rows.end(), first.begin() + sizeof head);
  if (auto ok = file->rewrite(0, first.data(), first.size()); !ok) return ok;
  if (auto ok = file->sync(); !ok) return ok;
  return file->commit();
}

}  // namespace gimbal
