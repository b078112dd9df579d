#include "crossval/crossval.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"
#include "crossval/our_layers.h"
#include "runtime/likelihood.h"
#include "runtime/sampler.h"
#include "runtime/session.h"

namespace gimbal::crossval {
namespace {

// Operations of all runs of the reference together: some ten seconds of a processor.
constexpr double kReferenceOperations = 2e10;
constexpr double kReferenceBytes = 4e9;  // of one weight in double precision
constexpr int kReferenceTokens = 48;
constexpr int kLayerTokens = 48;

class Crossval {
 public:
  Crossval(Engine& engine, const LoadedModel& loaded, const Tokenizer& tokenizer,
           llama::LlamaProcess& library, const CrossvalSettings& settings)
      : engine_(engine), loaded_(loaded), tokenizer_(tokenizer), library_(library), set_(settings) {}

  Result<CrossvalReport> run() {
    out_.library = library_.library(), out_.model = library_.model();
    out_.device = loaded_.model->device().id();
    const int vocabulary = loaded_.model->config().vocabulary;
    if (!set_.text.empty())
      if (auto ok = compare_ids(); !ok) return ok.error();
    if (out_.model.vocabulary != vocabulary) {
      out_.verdict = Verdict::Different;
      out_.reason = format("the vocabulary has {} tokens here, and {} in the library", vocabulary,
                           out_.model.vocabulary);
      return std::move(out_);
    }
    auto session = Session::create(*loaded_.model);
    if (!session) return session.error();
    session_ = std::move(*session);
    if (auto ok = compute_reference(); !ok) return ok.error();
    if (auto ok = compare_layers(); !ok) return ok.error();
    if (auto ok = compare_logits(); !ok) return ok.error();
    if (set_.greedy > 0)
      if (auto ok = compare_greedy(); !ok) return ok.error();
    decide(out_);
    return std::move(out_);
  }

 private:
  bool go_on(const char* doing, size_t done, size_t all) const {
    return !set_.progress || set_.progress(doing, done, all);
  }
  static Error cancelled() { return {Code::Failed, "cancelled", ""}; }

  std::span<const int32_t> window(size_t begin) const {
    const std::span<const int32_t> all(set_.tokens);
    return all.subspan(begin, std::min(all.size() - begin, size_t(set_.window)));
  }

  Status compare_ids() {
    auto theirs = library_.tokenize(set_.text, true, false);
    if (!theirs) return theirs.error();
    IdsCompared ids{.ours = set_.tokens.size(), .theirs = theirs->size()};
    const auto [a, b] = std::mismatch(set_.tokens.begin(), set_.tokens.end(), theirs->begin(), theirs->end());
    ids.same = a == set_.tokens.end() && b == theirs->end();
    ids.at = size_t(a - set_.tokens.begin());
    if (a != set_.tokens.end()) ids.our_id = *a, ids.our_piece = tokenizer_.piece(*a, true);
    if (b != theirs->end() && *b < tokenizer_.size())
      ids.their_id = *b, ids.their_piece = tokenizer_.piece(*b, true);
    out_.ids = std::move(ids);
    return Done{};
  }

  // The first tokens that the limits on work allow; 0 with a reason.
  Result<int> reference_tokens(const Device& host) {
    auto cost = reference_cost(*loaded_.source.file, host);
    if (!cost) return cost.error();
    const double most = kReferenceOperations / (cost->operations * (1 + kMovedRuns));
    if (most < 1 || cost->largest_bytes > kReferenceBytes) {
      out_.no_reference = format(
          "the model is too large for it: a token takes {:.2g} operations, and the largest weight {} in "
          "double "
          "precision",
          cost->operations * (1 + kMovedRuns), human_bytes(uint64_t(cost->largest_bytes)));
      return 0;
    }
    return int(std::min({most, double(kReferenceTokens), double(window(0).size())}));
  }

  Status compute_reference() {
    if (!set_.reference) {
      out_.no_reference = "it was turned off";
      return Done{};
    }
    auto host = engine_.open_host();
    if (!host) return host.error();
    auto tokens = reference_tokens(**host);
    if (!tokens) return tokens.error();
    if (*tokens == 0) return Done{};
    auto run = run_reference(*loaded_.source.file, **host, window(0).first(size_t(*tokens)),
                             {kMovedRuns, loaded_.model->context(), out_.model.half_values,
                              [&](size_t done, size_t all) { return go_on("reference", done, all); }});
    if (!run && run.error().code == Code::Unsupported) {
      out_.no_reference = run.error().message;
      return Done{};
    }
    if (!run) return run.error();
    reference_ = std::move(*run), out_.reference_tokens = *tokens;
    const ModelValues& exact = reference_.exact;
    const auto of = [&](auto pick) {
      std::vector<Rows> all;
      for (const ModelValues& m : reference_.moved) all.push_back(pick(m));
      return all;
    };
    for (size_t i = 0; i < exact.layers.size(); i++)
      layer_rounding_.emplace_back(
          exact.layers[i], Rounding(exact.layer[i], of([&](const ModelValues& m) { return m.layer[i]; })));
    logit_rounding_.emplace(exact.logits, of([](const ModelValues& m) { return m.logits; }));
    return Done{};
  }

  const Rounding* rounding_of(int layer) const {
    for (const auto& [number, rounding] : layer_rounding_)
      if (number == layer) return &rounding;
    return nullptr;
  }

  Status compare_layers() {
    if (!set_.layers) out_.no_layers = "they were not requested";
    else if (!out_.library.layers) out_.no_layers = "the library has no functions to read tensors";
    else if (out_.model.layers != loaded_.model->config().layers)
      out_.no_layers = format("the model has {} layers here, and {} in the library",
                              loaded_.model->config().layers, out_.model.layers);
    if (!out_.no_layers.empty()) return Done{};
    const auto first = window(0);
    const auto tokens = first.first(
        std::min(first.size(), size_t(out_.reference_tokens ? out_.reference_tokens : kLayerTokens)));
    if (!go_on("layers", 0, 1)) return cancelled();
    std::vector<std::optional<llama::TensorFrame>> theirs(
        static_cast<size_t>(std::max(0, out_.model.layers)));
    auto done = library_.logits(
        tokens, set_.threads, loaded_.model->context(), [](int, std::span<const float>) {},
        [&](const llama::TensorFrame& t) {
          const std::string prefix = "l_out-";
          if (!t.name.starts_with(prefix)) return;
          const int layer = std::atoi(t.name.c_str() + prefix.size());
          if (layer >= 0 && layer < int(theirs.size())) theirs[size_t(layer)] = t;
        });
    if (!done) return done.error();
    RunOptions options = engine_.options().run;
    auto ok =
        our_layers(*loaded_.source.file, loaded_.model->device(), options, tokens,
                   [&](int layer, int width, std::span<const float> rows) {
                     const auto& other = theirs[size_t(layer)];
                     if (!other || other->columns != width || other->rows * width != int(rows.size())) return;
                     Difference d{.what = format("layer {}", layer)};
                     for (int r = 0; r < other->rows; r++)
                       add_row(d, r, rows.subspan(size_t(r) * size_t(width), size_t(width)),
                               std::span(other->values).subspan(size_t(r) * size_t(width), size_t(width)),
                               rounding_of(layer));
                     out_.layers.push_back(std::move(d));
                   });
    // An architecture may keep no single stream of rows between its layers.
    if (!ok) out_.no_layers = format("ours cannot be computed one by one: {}", ok.error().message);
    else if (out_.layers.empty())
      out_.no_layers =
          "no single value of this architecture passes between layers and has the mark 'l_out' there";
    return Done{};
  }

  // The rows of one window, ours.
  Result<std::vector<float>> our_logits(std::span<const int32_t> tokens) {
    session_->rewind(0);
    std::vector<float> all;
    all.reserve(tokens.size() * size_t(out_.model.vocabulary));
    Status bad = Done{};
    auto ok = session_->advance(tokens, Session::Wanted::All, [&](size_t, std::span<const float> row) {
      if (bad) bad = check_logits(row);
      all.insert(all.end(), row.begin(), row.end());
    });
    if (!ok) return ok.error();
    if (!bad) return bad.error();
    return all;
  }

  Status compare_logits() {
    out_.logits.what = "logits";
    Mean ours_mean, theirs_mean;
    const auto width = size_t(out_.model.vocabulary);
    for (size_t begin = 0; begin < set_.tokens.size(); begin += size_t(set_.window)) {
      if (!go_on("logits", begin, set_.tokens.size())) return cancelled();
      const auto tokens = window(begin);
      auto ours = our_logits(tokens);
      if (!ours) return ours.error();
      // Rows of a later window have no reference of their own: the relative allowance counts.
      auto done = library_.logits(tokens, set_.threads, loaded_.model->context(),
                                  [&](int position, std::span<const float> row) {
                                    const auto mine =
                                        std::span(*ours).subspan(size_t(position) * width, width);
                                    add_row(out_.logits, int(begin) + position, mine, row,
                                            logit_rounding_ ? &*logit_rounding_ : nullptr);
                                    if (size_t(position) + 1 == tokens.size()) return;
                                    const auto next = size_t(tokens[size_t(position) + 1]);
                                    ours_mean.add(log_sum_exp(mine) - double(mine[next]));
                                    theirs_mean.add(log_sum_exp(row) - double(row[next]));
                                  },
                                  {});
      if (!done) return done.error();
    }
    out_.our_loss = ours_mean.value(), out_.their_loss = theirs_mean.value(), out_.scored = ours_mean.count();
    return Done{};
  }

  Status compare_greedy() {
    const auto first = window(0);
    const int room = std::min(set_.greedy, loaded_.model->context() - 1);
    const auto prompt = first.first(std::min(first.size(), size_t(loaded_.model->context() - room)));
    if (!go_on("greedy", 0, 1)) return cancelled();
    auto theirs = library_.greedy(prompt, room, set_.threads, loaded_.model->context());
    if (!theirs) return theirs.error();
    GreedyCompared g{.tokens = int(theirs->tokens.size())};
    session_->rewind(0);
    std::vector<float> row;
    const auto take = [&](size_t, std::span<const float> logits) {
      row.assign(logits.begin(), logits.end());
    };
    double start = now();
    if (auto ok = session_->advance(prompt, Session::Wanted::Last, take); !ok) return ok;
    out_.ours.prompt = double(prompt.size()) / std::max(1e-9, now() - start);
    start = now();
    for (int i = 0; i < g.tokens; i++) {
      const auto best = int32_t(std::max_element(row.begin(), row.end()) - row.begin());
      if (const int32_t other = theirs->tokens[size_t(i)]; g.same == i && best != other) {
        g.our_id = best, g.their_id = other;
        g.gap = double(row[size_t(best)]) - double(row[size_t(other)]);
        double squares = 0;
        for (float v : row) squares += double(v) * double(v);
        if (logit_rounding_) {
          g.allowed = logit_rounding_->allowed_difference(std::sqrt(squares / double(row.size())));
          g.tie = g.gap <= g.allowed;
        }
      }
      if (g.same == i && best == theirs->tokens[size_t(i)]) g.same++;
      if (i + 1 == g.tokens) break;
      if (auto ok = session_->advance(std::span(&best, 1), Session::Wanted::Last, take); !ok) return ok;
    }
    const double seconds = std::max(1e-9, now() - start);
    const int steps = std::max(1, g.tokens - 1);
    out_.ours.generation = double(steps) / seconds;
    out_.theirs = {double(prompt.size()) / std::max(1e-9, theirs->prompt_seconds),
                   double(steps) / std::max(1e-9, theirs->token_seconds)};
    out_.greedy = g;
    return Done{};
  }

  Engine& engine_;
  const LoadedModel& loaded_;
  const Tokenizer& tokenizer_;
  llama::LlamaProcess& library_;
  const CrossvalSettings& set_;
  CrossvalReport out_;
  std::unique_ptr<Session> session_;
  ReferenceRun reference_;
  std::vector<std::pair<int, Rounding>> layer_rounding_;
  std::optional<Rounding> logit_rounding_;
};

}  // namespace

Result<CrossvalReport> cross_validate(Engine& engine, const LoadedModel& loaded, const Tokenizer& tokenizer,
                                      llama::LlamaProcess& library, const CrossvalSettings& settings) {
  return Crossval(engine, loaded, tokenizer, library, settings).run();
}

}  // namespace gimbal::crossval
