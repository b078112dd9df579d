#include "llama/library_model.h"

#include <algorithm>
#include <climits>
#include <memory>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal::llama {
namespace {

constexpr int32_t kF32 = 0;           // GGML_TYPE_F32
constexpr int32_t kNoFlash = 0;       // LLAMA_FLASH_ATTN_TYPE_DISABLED
constexpr int kMostTokens = 1 << 20;  // of a request
constexpr int kStep = 512;            // tokens of a text that are computed at once

Error no_result(std::string message) { return {Code::Failed, std::move(message), ""}; }

using Context = std::unique_ptr<void, void (*)(void*)>;

}  // namespace

// The user data of the evaluation callback.
struct LibraryModel::Tap {
  const Functions& call;
  const TensorSink& sink;
  std::vector<float> values;
  std::string problem;

  // The output of a layer has this name in all architectures of the library that mark it.
  static bool wanted(const char* name) { return name && std::string_view(name).starts_with("l_out-"); }

  static bool called(void* tensor, bool asks, void* user) {
    Tap& tap = *static_cast<Tap*>(user);
    const char* name = tap.call.tensor_name(tensor);
    if (asks) return wanted(name);
    if (!wanted(name)) return true;
    return tap.read(tensor, name);
  }

  bool read(const void* tensor, const char* name) {
    const int32_t type = read_le<int32_t>(tensor);  // the first field in all generations
    const int64_t n = call.tensor_values(tensor), rows = call.tensor_rows(tensor);
    if (type != kF32 || n <= 0 || rows <= 0 || n % rows || n > (int64_t(1) << 28) ||
        !call.tensor_contiguous(tensor))
      return true;  // not shown: the comparison reports the layer as missing
    values.resize(size_t(n));
    call.tensor_read(tensor, values.data(), 0, values.size() * sizeof(float));
    return sink(name, rows, values);
  }
};

Result<LibraryModel> LibraryModel::load(const LlamaLibrary& library, const std::string& path) {
  LibraryModel out(library);
  const Functions& f = library.call();
  const auto& layout = library.generation().model;
  AnyStruct parameters = library.model_defaults();
  static const void* no_devices[] = {nullptr};  // the end of the list of GPUs
  set(parameters, layout, ModelField::devices, static_cast<const void*>(no_devices));
  set(parameters, layout, ModelField::n_gpu_layers, int32_t(0));
  out.model_ = f.load(path.c_str(), parameters);
  if (!out.model_) return no_result(format("it does not load {}", path));
  out.vocabulary_ = f.vocabulary ? f.vocabulary(out.model_) : out.model_;
  if (!out.vocabulary_) return no_result("it returns no vocabulary");
  out.vocabulary_size_ = f.tokens(out.vocabulary_);
  out.layers_ = f.layers(out.model_), out.width_ = f.width(out.model_);
  if (out.vocabulary_size_ < 1 || out.layers_ < 0 || out.width_ < 1)
    return no_result(format("it reports {} tokens, {} layers and a width of {}", out.vocabulary_size_,
                            out.layers_, out.width_));
  // Old releases refuse values in f32 without flash attention.
  for (const bool half : {false, true}) {
    out.half_values_ = half;
    if (auto context = out.new_context(1, {}, nullptr)) return f.free_context(*context), out;
  }
  return no_result("it makes no context for the model");
}

std::string LibraryModel::description() const {
  std::string text(256, 0);
  const int32_t n = library_->call().describe(model_, text.data(), text.size());
  text.resize(size_t(std::clamp<int32_t>(n, 0, int32_t(text.size()) - 1)));
  return text;
}

Result<std::vector<int32_t>> LibraryModel::tokenize(const std::string& text, bool add_special,
                                                    bool parse_special) const {
  if (text.size() > size_t(kMostTokens) * 16) return no_result("the text is longer than 16 MB");
  std::vector<int32_t> ids(text.size() + 16);
  for (int i = 0; i < 2; i++) {
    const int32_t n = library_->call().tokenize(vocabulary_, text.data(), int32_t(text.size()), ids.data(),
                                                int32_t(ids.size()), add_special, parse_special);
    if (n >= 0 && size_t(n) <= ids.size()) return ids.resize(size_t(n)), ids;
    if (n == INT32_MIN || -int64_t(n) > int64_t(text.size()) * 16 + 64) break;
    ids.resize(size_t(-n));
  }
  return no_result("it cannot tokenize the text");
}

Status LibraryModel::check(std::span<const int32_t> tokens) const {
  if (tokens.empty() || tokens.size() > size_t(kMostTokens))
    return Error{Code::Usage, format("{} tokens: expected from 1 to {}", tokens.size(), kMostTokens), ""};
  for (int32_t t : tokens)
    if (t < 0 || t >= vocabulary_size_)
      return Error{Code::Usage,
                   format("token {} is not in its vocabulary (0 to {})", t, vocabulary_size_ - 1), ""};
  return Done{};
}

Result<void*> LibraryModel::new_context(int positions, const RunSettings& settings, Tap* tap) const {
  const auto& layout = library_->generation().context;
  AnyStruct p = library_->context_defaults();
  const auto put = [&](ContextField f, auto value) { set(p, layout, f, value); };
  const int size = std::max(settings.context, positions);
  put(ContextField::n_ctx, size), put(ContextField::n_batch, std::max(positions, 32));
  put(ContextField::n_threads, settings.threads), put(ContextField::n_threads_batch, settings.threads);
  put(ContextField::offload_kqv, false), put(ContextField::op_offload, false);
  put(ContextField::n_ubatch, std::max(positions, 32));
  put(ContextField::type_k, kF32);
  if (!half_values_) put(ContextField::type_v, kF32);
  put(ContextField::flash_attn, false), put(ContextField::flash_attn_type, kNoFlash);
  if (tap) {
    put(ContextField::cb_eval, EvalCallback(Tap::called));
    put(ContextField::cb_eval_user_data, static_cast<void*>(tap));
  }
  void* context = library_->call().new_context(model_, p);
  if (!context) return no_result(format("it makes no context of {} positions", size));
  return context;
}

Status LibraryModel::decode(void* context, std::span<const int32_t> tokens, int first,
                            bool all_logits) const {
  const size_t n = tokens.size();
  std::vector<int32_t> ids(tokens.begin(), tokens.end()), positions(n), counts(n, 1);
  std::vector<int8_t> wanted(n, all_logits);
  int32_t sequence = 0;
  std::vector<int32_t*> sequences(n + 1, &sequence);
  sequences[n] = nullptr;
  for (size_t i = 0; i < n; i++) positions[i] = first + int32_t(i);
  wanted[n - 1] = 1;
  const TokenBatch batch{int32_t(n),    ids.data(),       nullptr,       positions.data(),
                         counts.data(), sequences.data(), wanted.data(), {}};
  if (const int32_t code = library_->call().decode(context, batch))
    return no_result(format("llama_decode returned {} for {} tokens from position {}", code, n, first));
  return Done{};
}

Result<std::span<const float>> LibraryModel::row(void* context, int index) const {
  const float* values = library_->call().logits(context, index);
  if (!values) return no_result(format("it has no logits of row {}", index));
  return std::span(values, size_t(vocabulary_size_));
}

Result<double> LibraryModel::logits(std::span<const int32_t> tokens, const RunSettings& settings,
                                    const RowSink& rows, const TensorSink& tensors) const {
  if (auto ok = check(tokens); !ok) return ok.error();
  Tap tap{library_->call(), tensors, {}, {}};
  auto made = new_context(int(tokens.size()), settings, tensors && library_->shows_layers() ? &tap : nullptr);
  if (!made) return made.error();
  const Context context(*made, library_->call().free_context);
  const double start = now();
  if (auto ok = decode(*made, tokens, 0, true); !ok) return ok.error();
  const double seconds = now() - start;
  for (int i = 0; i < int(tokens.size()); i++) {
    auto values = row(*made, i);
    if (!values) return values.error();
    if (!rows(i, *values)) return no_result("cancelled");
  }
  return seconds;
}

Result<LibraryModel::Times> LibraryModel::greedy(std::span<const int32_t> tokens, int count,
                                                 const RunSettings& settings, const TokenSink& sink) const {
  if (auto ok = check(tokens); !ok) return ok.error();
  RunSettings larger = settings;
  larger.context = std::max(settings.context, int(tokens.size()) + count);
  auto made = new_context(int(tokens.size()), larger, nullptr);
  if (!made) return made.error();
  const Context context(*made, library_->call().free_context);
  Times times;
  double before = now();
  if (auto ok = decode(*made, tokens, 0, false); !ok) return ok.error();
  auto values = row(*made, int(tokens.size()) - 1);
  times.prompt = now() - before;
  before = now();
  for (int i = 0; i < count; i++) {
    if (!values) return values.error();
    const auto best = int32_t(std::max_element(values->begin(), values->end()) - values->begin());
    if (!sink(best)) return no_result("cancelled");
    if (i + 1 == count) break;
    if (auto ok = decode(*made, std::span(&best, 1), int(tokens.size()) + i, false); !ok) return ok.error();
    values = row(*made, 0);
  }
  times.tokens = now() - before;
  return times;
}

Status LibraryModel::begin(const RunSettings& settings) {
  text_.reset();
  const auto& layout = library_->generation().context;
  AnyStruct p = library_->context_defaults();
  const auto put = [&](ContextField f, auto value) { set(p, layout, f, value); };
  positions_ = settings.context, held_ = 0;
  put(ContextField::n_ctx, positions_), put(ContextField::n_batch, kStep);
  put(ContextField::n_ubatch, kStep);
  put(ContextField::n_threads, settings.threads), put(ContextField::n_threads_batch, settings.threads);
  put(ContextField::offload_kqv, false), put(ContextField::op_offload, false);
  void* context = library_->call().new_context(model_, p);
  if (!context) return no_result(format("it makes no context of {} positions", positions_));
  text_ = {context, library_->call().free_context};
  return Done{};
}

Result<std::span<const float>> LibraryModel::advance(std::span<const int32_t> tokens) {
  if (!text_) return Error{Code::Usage, "there is no text to continue", ""};
  if (auto ok = check(tokens); !ok) return ok.error();
  if (tokens.size() > size_t(positions_ - held_))
    return Error{
        Code::Usage,
        format("{} tokens behind {}: the context has {} positions", tokens.size(), held_, positions_), ""};
  size_t last = 0;  // tokens of the last step
  for (; !tokens.empty(); tokens = tokens.subspan(last), held_ += int(last)) {
    last = std::min(tokens.size(), size_t(kStep));
    if (auto ok = decode(text_.get(), tokens.first(last), held_, false); !ok) return ok.error();
  }
  return row(text_.get(), int(last) - 1);
}

}  // namespace gimbal::llama
