#include "engine/prompt_cache.h"

#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/machine_cache.h"
#include "runtime/row_range.h"

namespace gimbal {
namespace {

// magic, key, tokens and pools (counts), the tokens, the embeddings, the first page of each pool, pages,
// and a hash of all that. The first form is for a prompt without embeddings.
constexpr std::string_view kMagic = "gimbal-prompt-1\n", kMagicOfEmbeddings = "gimbal-prompt-3\n";
constexpr size_t kHead = 32;  // up to the tokens

// Identifies a model by its tensors' descriptions and the first bytes of each: another training changes the
// numbers everywhere.
Status add_model(const ModelSource& file, Hash& hash) {
  char begin[512];
  for (const StoredTensor& t : file.tensors()) {
    hash.add(t.name).add(uint64_t(t.type));
    for (int64_t d : t.dim) hash.add(uint64_t(d));
    const size_t bytes = std::min<uint64_t>(t.bytes, sizeof begin);
    if (auto ok = file.read(t, 0, begin, bytes); !ok) return ok;
    hash.add(std::string_view(begin, bytes));
  }
  for (const std::string& key : file.changed())
    if (const auto number = file.metadata().number(key)) hash.add(format("{} {}", key, *number));
    else if (key.find(".rope.") != key.npos) hash.add(key + " " + std::string(*file.metadata().string(key)));
  for (const Adapter& j : file.tensors().adapters()) hash.add(format("{} {}", j.alpha, j.scale));
  return Done{};
}

// Everything that the bytes in a file depend on. `adapters`: the session's own scales.
Result<uint64_t> key_of(const LoadedModel& loaded, const std::vector<float>& adapters) {
  Hash hash;
  for (float scale : adapters) hash.add(format("adapter {}", scale));
  if (loaded.model->plan().rotation.rotated) hash.add("rotated");
  if (auto ok = add_model(*loaded.source.file, hash); !ok) return ok.error();
  for (const Stage& stage : loaded.model->plan().stages) {
    hash.add(gimbal::key_of(*stage.device).dump());
    hash.add(uint64_t(loaded.model->plan().options.kernels.allow_fast));
    const Program& p = stage.buckets[0].program;
    for (const StateValue& s : p.states) {
      const gimbal_value& v = p.values[s.value];
      hash.add(p.info[s.value].name).add(uint64_t(s.pool)).add(uint64_t(s.layout)).add(uint64_t(v.dtype));
      hash.add(v.bytes / uint64_t(loaded.model->plan().pools[s.pool].pages));
    }
  }
  return hash.value();
}

template <class T>
std::string_view raw(const T* data, size_t n = 1) {
  return {reinterpret_cast<const char*>(data), n * sizeof(T)};
}

// Reads on from the current position.
struct Reader {
  const InputFile& file;
  uint64_t at = 0;
  Status operator()(void* to, size_t bytes) {
    auto ok = file.read(at, to, bytes);
    at += bytes;
    return ok;
  }
};

struct Head {
  char magic[16];
  uint64_t key;
  uint32_t tokens, pools;
};
static_assert(sizeof(Head) == kHead);

// Embeddings of a prompt, after their count: of each span this, and the values of all rows of its block.
struct SpanHead {
  int32_t position, first, rows, width, columns, rows_of_block;
};

template <class Put>
Status put_embeddings(const Inputs& inputs, Put put) {
  const auto n = uint32_t(inputs.embeddings().size());
  if (auto ok = put(raw(&n)); !ok) return ok;
  for (const EmbeddingSpan& s : inputs.embeddings()) {
    const SpanHead head{s.position, s.first, s.rows, s.of->width(), s.of->columns(), s.of->rows()};
    if (auto ok = put(raw(&head)); !ok) return ok;
    if (auto ok = put(raw(s.of->values().data(), s.of->values().size())); !ok) return ok;
  }
  return Done{};
}

Result<std::vector<EmbeddingSpan>> read_embeddings(Reader& read) {
  const Error damaged{Code::Malformed, "too short", ""};
  uint32_t n = 0;
  if (!read(&n, sizeof n)) return damaged;
  std::vector<EmbeddingSpan> all;
  for (uint32_t i = 0; i < n; i++) {
    SpanHead h{};
    if (!read(&h, sizeof h) || h.width < 1 || h.rows_of_block < 1) return damaged;
    const uint64_t values = uint64_t(h.width) * uint64_t(h.rows_of_block);
    if (values > (read.file.size() - read.at) / sizeof(float)) return damaged;
    std::vector<float> block(values);
    if (!read(block.data(), block.size() * sizeof(float))) return damaged;
    auto made = Embeddings::create(std::move(block), h.width, h.columns);
    if (!made) return made.error();
    if (!is_row_range(h.position, h.first, h.rows, h.rows_of_block)) return damaged;
    all.push_back({h.position, std::move(*made), h.first, h.rows});
  }
  return all;
}

// The hash at the end.
Result<bool> is_whole(const InputFile& file) {
  if (file.size() < kHead + 8) return false;
  Reader read{file};
  Hash hash;
  std::string piece;
  for (uint64_t left = file.size() - 8; left > 0; left -= piece.size()) {
    piece.resize(std::min<uint64_t>(left, 1 << 20));
    if (auto ok = read(piece.data(), piece.size()); !ok) return ok.error();
    hash.add(piece);
  }
  uint64_t written = 0;
  if (auto ok = read(&written, sizeof written); !ok) return ok.error();
  return written == hash.value();
}

RestoredPrompt unusable(const std::string& name, const char* why) {
  return {0, format("{} {}: the prompt is computed again", gimbal::quoted(name), why)};
}

}  // namespace

Result<RestoredPrompt> restore_prompt(const std::string& path, const LoadedModel& loaded, Session& session) {
  return restore_prompt(path, loaded, session.inputs().adapters(),
                        [&](const InputView& inputs, auto first, const Model::Page& page) {
                          return session.restore(inputs, first, page);
                        });
}

Result<RestoredPrompt> restore_prompt(const std::string& path, const LoadedModel& loaded,
                                      const std::vector<float>& adapters, const RestoreInto& into) {
  if (access(path.c_str(), F_OK) != 0) return RestoredPrompt{};
  auto file = InputFile::open(path);
  if (!file) return unusable(path, "cannot be read");
  return restore_prompt(*file, path, loaded, adapters, into);
}

Result<RestoredPrompt> restore_prompt(const InputFile& file, const std::string& name,
                                      const LoadedModel& loaded, const std::vector<float>& adapters,
                                      const RestoreInto& into) {
  auto no = [&](const char* why) { return unusable(name, why); };
  auto whole = is_whole(file);
  if (!whole || !*whole) return no("is not a prompt cache, or is damaged");
  Reader read{file};
  Head head{};
  if (!read(&head, sizeof head)) return no("is damaged");
  const std::string_view magic(head.magic, 16);
  if (magic != kMagic && magic != kMagicOfEmbeddings) return no("is not a prompt cache");
  auto key = key_of(loaded, adapters);
  if (!key) return key.error();
  const size_t pools = loaded.model->plan().pools.size();
  if (head.key != *key || head.pools != pools)
    return no("was made with another model, device, build or cache format, or other adapters");
  if (int64_t(head.tokens) >= loaded.model->context()) return no("has a longer prompt than the context");
  std::vector<int32_t> tokens(head.tokens);
  std::vector<uint32_t> first(pools);
  if (!read(tokens.data(), tokens.size() * 4)) return no("is damaged");
  std::vector<EmbeddingSpan> embeddings;
  if (magic == kMagicOfEmbeddings) {
    auto all = read_embeddings(read);
    if (!all) return no("is damaged");
    embeddings = std::move(*all);
  }
  if (!read(first.data(), first.size() * 4)) return no("is damaged");
  const Inputs inputs(std::move(tokens), std::move(embeddings));
  const ModelPlan& plan = loaded.model->plan();
  if (!check_inputs(inputs, plan.config.vocabulary, plan.embedding_width())) return no("is damaged");
  auto ok = into(inputs, first, [&](std::span<std::byte> page) -> Status {
    if (read.at + page.size() + 8 > file.size()) return Error{Code::Malformed, "too short", ""};
    return read(page.data(), page.size());
  });
  if (ok) return RestoredPrompt{int(head.tokens), ""};
  if (ok.error().code == Code::Malformed) return no("is damaged");
  return ok.error();
}

Status save_prompt(const std::string& path, const LoadedModel& loaded, const Sequence& s) {
  auto file = DraftFile::create(path);
  if (!file) return file.error();
  if (auto ok = save_prompt(*file, loaded, s); !ok) return ok;
  return file->commit();
}

Status save_prompt(DraftFile& file, const LoadedModel& loaded, const Sequence& s) {
  auto key = key_of(loaded, s.inputs().adapters());
  if (!key) return key.error();
  // In pieces of the same size as in the check.
  Hash hash;
  std::string piece;
  auto put = [&](std::string_view bytes) -> Status {
    for (size_t n; !bytes.empty(); bytes.remove_prefix(n)) {
      n = std::min<size_t>(bytes.size(), (1 << 20) - piece.size());
      piece += bytes.substr(0, n);
      if (piece.size() < 1 << 20) continue;
      hash.add(piece);
      if (auto ok = file.write(piece.data(), piece.size()); !ok) return ok;
      piece.clear();
    }
    return Done{};
  };
  const size_t pools = loaded.model->plan().pools.size();
  Head head{{}, *key, uint32_t(s.tokens().size()), uint32_t(pools)};
  const bool embedded = !s.inputs().embeddings().empty();
  std::ranges::copy(embedded ? kMagicOfEmbeddings : kMagic, head.magic);
  std::vector<uint32_t> first;
  for (size_t p = 0; p < pools; p++) first.push_back(uint32_t(s.first_page(p)));
  for (std::string_view part : {raw(&head), raw(s.tokens().data(), s.tokens().size())})
    if (auto ok = put(part); !ok) return ok;
  if (embedded)
    if (auto ok = put_embeddings(s.inputs(), put); !ok) return ok;
  if (auto ok = put(raw(first.data(), pools)); !ok) return ok;
  if (auto ok = loaded.model->save(
          s, [&](std::span<std::byte> page) { return put(raw(page.data(), page.size())); });
      !ok)
    return ok;
  if (!piece.empty()) {
    hash.add(piece);
    if (auto ok = file.write(piece.data(), piece.size()); !ok) return ok;
  }
  const uint64_t value = hash.value();
  if (auto ok = file.write(&value, sizeof value); !ok) return ok;
  return file.flush();
}

}  // namespace gimbal
