#include "runtime/embedding.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>

#include "base/format.h"
#include "model/hyperparameters.h"

namespace gimbal {
namespace {

// By Pooling, and by a file's numbers.
constexpr std::string_view kNames[] = {"none", "mean", "cls", "last", "rank"};
constexpr int kTextsInStep = 16;
constexpr int kMostRanks = 2;  // numbers of a reranker

// A text during its computation, with the results of its rows so far.
class Text {
 public:
  Text(size_t index, std::span<const int32_t> tokens, std::unique_ptr<Sequence> sequence)
      : index(index), tokens(tokens), sequence_(std::move(sequence)) {}

  const size_t index;
  const std::span<const int32_t> tokens;
  size_t added = 0;  // tokens added to batches

  void add_row(Batch& batch, Pooling pooling) {
    const bool wanted = pooling == Pooling::First  ? added == 0
                        : pooling == Pooling::Last ? added + 1 == tokens.size()
                                                   : true;
    batch.rows.push_back({sequence_.get(), tokens[added], int32_t(added), {.hidden = wanted}});
    added++;
  }

  void take(std::span<const float> row, Pooling pooling) {
    if (pooling == Pooling::None) {
      rows_.insert(rows_.end(), row.begin(), row.end());
      return;
    }
    sums_.resize(row.size());
    for (size_t i = 0; i < row.size(); i++) sums_[i] += double(row[i]);
  }

  std::vector<float> finish(const EmbedSettings& s, size_t width) {
    if (s.pooling == Pooling::Mean)
      for (double& x : sums_) x /= double(tokens.size());
    if (s.pooling != Pooling::None) return rounded(sums_, s.normalised && s.pooling != Pooling::Rank);
    std::vector<float> all;
    for (size_t at = 0; at < rows_.size(); at += width) {
      const std::vector<double> row(rows_.begin() + ptrdiff_t(at), rows_.begin() + ptrdiff_t(at + width));
      const std::vector<float> one = rounded(row, s.normalised);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  bool owns(const Row& row) const { return row.sequence == sequence_.get(); }

 private:
  static std::vector<float> rounded(const std::vector<double>& row, bool normalised) {
    double squares = 0;
    for (double x : row) squares += x * x;
    const double length = normalised && squares > 0 ? std::sqrt(squares) : 1;
    std::vector<float> all;
    for (double x : row) all.push_back(float(x / length));
    return all;
  }

  std::unique_ptr<Sequence> sequence_;
  std::vector<double> sums_;
  std::vector<float> rows_;
};

Status check_text(const ModelPlan& plan, std::span<const int32_t> tokens) {
  if (tokens.empty()) return Error{Code::Usage, "the text has no tokens", "give a text that is not empty"};
  for (int32_t t : tokens)
    if (t < 0 || t >= plan.config.vocabulary)
      return Error{
          Code::Usage,
          format("token {} is not in the model's vocabulary (0 to {})", t, plan.config.vocabulary - 1), ""};
  return plan.check_text(tokens.size());
}

Error about(size_t text, size_t texts, Error e) {
  if (texts > 1) e.message = format("text {} of {}: {}", text + 1, texts, e.message);
  return e;
}

}  // namespace

std::string name_of(Pooling p) { return std::string(kNames[size_t(p)]); }

std::optional<Pooling> pooling_named(std::string_view name) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) return std::nullopt;
  return Pooling(at - std::begin(kNames));
}

Result<std::optional<Pooling>> pooling_of(const Metadata& metadata) {
  Hyperparameters read(metadata, std::string(metadata.string("general.architecture").value_or("")));
  const int type = read.count("pooling_type", 0, 0);
  constexpr int kMost = int(std::size(kNames)) - 1;
  if (type > kMost)
    read.fail(Code::Malformed, format("pooling_type is {}; it must be from 0 to {}", type, kMost));
  if (read.error()) return *read.error();
  return type == 0 ? std::nullopt : std::optional(Pooling(type));
}

RunOptions embedding_options(RunOptions o, const Config& c, size_t texts) {
  o.hidden = true, o.logits = false;
  if (o.context == 0) o.context = default_context(c);
  o.batch = std::min(o.batch, o.context);
  o.logit_rows = o.batch;
  o.sequences = int(std::clamp<size_t>(texts, 1, size_t(std::min(kTextsInStep, o.batch))));
  // One text may be longer than a step. The others fit into it, and each may leave a page partly empty.
  o.cache_positions = int64_t(o.context) + o.batch + int64_t(o.sequences + 1) * kPagePositions;
  return o;
}

Status embed(Model& model, std::span<const std::vector<int32_t>> texts, const EmbedSettings& settings,
             const EmbeddingSink& sink, size_t first) {
  const ModelPlan& plan = model.plan();
  const RunOptions& o = plan.options;
  const int width = plan.width(Output::Hidden), room = std::min(o.batch, o.logit_rows);
  if (width == 0 || room < o.batch)
    return Error{Code::Usage, "the model was loaded to generate text, not for embeddings", ""};
  const bool ranks = width <= kMostRanks;
  // In an encoder the first token attends to all others, else the last one does.
  const Pooling rows = settings.pooling != Pooling::Rank ? settings.pooling
                       : plan.whole_texts                ? Pooling::First
                                                         : Pooling::Last;
  if (ranks && settings.pooling != Pooling::Rank)
    return Error{Code::Usage, "the model is a reranker: it gives one score per text, not an embedding",
                 "leave out the pooling; it is always rank"};
  if (!ranks && settings.pooling == Pooling::Rank)
    return Error{
        Code::Usage,
        format("{}: this is a reranker, and this version computes no rerankers of the architecture {}",
               plan.source, plan.config.arch),
        "use one of bert, qwen3 or qwen3vl"};
  for (size_t i = 0; i < texts.size(); i++)
    if (auto ok = check_text(plan, texts[i]); !ok) return about(i, texts.size(), ok.error());

  std::deque<Text> open;  // those of the step; the last may continue in the next
  Batch batch;
  batch.rows.reserve(size_t(o.batch));
  for (size_t next = first; next < texts.size() || !open.empty();) {
    batch.rows.clear();
    auto fill = [&](Text& t) {
      while (t.added < t.tokens.size() && int(batch.rows.size()) < room) t.add_row(batch, rows);
    };
    if (!open.empty()) fill(open.front());
    while (next < texts.size() && int(batch.rows.size()) < room && int(open.size()) < o.sequences &&
           !(plan.whole_texts && batch.rows.size() + texts[next].size() > size_t(room))) {
      auto sequence = model.new_sequence();
      if (!sequence) return sequence.error();
      open.emplace_back(next, texts[next], std::move(*sequence));
      fill(open.back());
      next++;
    }
    auto out = model.forward(batch);
    if (!out) return about(open.front().index, texts.size(), out.error());
    size_t k = 0, at = 0;
    for (Text& t : open)
      for (; at < batch.rows.size() && t.owns(batch.rows[at]); at++) {
        if (!batch.rows[at].wants.hidden) continue;
        const std::span<const float> row = out->hidden(k++);
        if (!std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
          return about(
              t.index, texts.size(),
              Error{Code::Malformed,
                    "the model's output is not a number (NaN): its weights are damaged, or the device "
                    "computes wrongly",
                    "Compare the file's checksum with the publisher's. If it is right, try the CPU."});
        t.take(row, settings.pooling);
      }
    while (!open.empty() && open.front().added == open.front().tokens.size()) {
      const std::vector<float> embedding = open.front().finish(settings, size_t(width));
      if (auto ok = sink(open.front().index, embedding); !ok) return ok;
      open.pop_front();
    }
  }
  return Done{};
}

}  // namespace gimbal
