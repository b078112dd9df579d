// gimbal perplexity: how well a model predicts a text, with its standard error; and how far its predictions
// are from those of another format of the model.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/saved_logits.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/fixed_math.h"
#include "base/json.h"
#include "engine/engine.h"
#include "runtime/likelihood.h"
#include "runtime/sampler.h"
#include "runtime/scored_windows.h"

namespace gimbal {
namespace {

// Sums over all predictions.
struct Scores {
  Mean loss;                         // nats of a token
  Mean saved_loss, divergence, top;  // against saved logits; top: 1 where both have the same likeliest token
  double max_divergence = 0;
};

size_t likeliest(std::span<const float> row) {
  return size_t(std::max_element(row.begin(), row.end()) - row.begin());
}

class Perplexity final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("-f,--file", "FILE", "the text, from a file or pipe; without it or with -: stdin", file_);
    a.text("--save-logits", "FILE", "also write the logits, for --against", save_);
    a.text("--against", "FILE", "compare with logits that were saved for the same text", against_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal perplexity model-f16.gguf -f wiki.test.raw --save-logits f16.logits");
    a.example("gimbal perplexity model-q4_k_m.gguf -f wiki.test.raw --against f16.logits");
  }

  Result<int> run() override {
    if (!file_ && stdin_is_terminal())
      return Error{Code::Usage, "there is no text", "give --file FILE, or write the text to stdin"};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = check_generates(*source->file); !ok) return ok.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto text = read_text(file_.value_or("-"));
    if (!text) return text.error();
    if (options->run.context == 0) options->run.context = ScoredWindows::kDefaultWindow;
    auto windows = ScoredWindows::of(**tokenizer, *text, options->run.context);
    if (!windows) return windows.error();
    shape_.window = windows->window(), shape_.windows = windows->windows(), shape_.scored = windows->scored();
    options->run.logit_rows = std::min<int>(options->run.batch, 32);
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    auto loaded = engine.load(*source);
    if (!loaded) return loaded.error();
    shape_.vocabulary = (*loaded)->model->config().vocabulary;
    if (auto ok = open_files(*source); !ok) return ok.error();
    auto session = Session::create(*(*loaded)->model);
    if (!session) return session.error();

    Progress bar("reading", !quiet, Progress::Unit::Tokens);
    for (int32_t w = 0; w < shape_.windows; w++) {
      bar.update(uint64_t(w) * uint64_t(shape_.window), uint64_t(shape_.windows) * uint64_t(shape_.window));
      if (auto ok = score(**session, *windows, windows->tokens(w)); !ok) return ok.error();
    }
    if (out_)
      if (auto ok = out_->close(); !ok) return ok.error();
    report(**loaded);
    return kDone;
  }

 private:
  Status open_files(const ModelFile& source) {
    if (against_) {
      auto saved = SavedLogits::open(*against_);
      if (!saved) return saved.error();
      const LogitsShape& s = saved->shape();
      if (s != shape_)
        return Error{
            Code::Usage,
            format("{} has {} windows of {} tokens and a vocabulary of {}; here there are {} of {}, and {}",
                   gimbal::quoted(*against_), s.windows, s.window, s.vocabulary, shape_.windows,
                   shape_.window, shape_.vocabulary),
            "give the same text and the same --ctx, and a model with the same vocabulary"};
      saved_ = std::move(*saved);
    }
    if (!save_) return Done{};
    auto out = BinaryOutput::open(save_, [&](const std::string& p) {
      return source.file->is(p) || (file_ && p == *file_) || (against_ && p == *against_);
    });
    if (!out) return out.error();
    out_.emplace(std::move(*out));
    return write_shape(*out_, shape_);
  }

  Status score(Session& session, const ScoredWindows& windows, const std::vector<Token>& window) {
    if (out_)
      if (auto ok = out_->write(window.data(), window.size() * sizeof(Token)); !ok) return ok;
    std::vector<float> saved(saved_ ? size_t(shape_.vocabulary) : 0);
    if (saved_) {
      std::vector<Token> theirs(window.size());
      if (auto ok = saved_->read(std::span(theirs)); !ok) return ok;
      if (theirs != window)
        return Error{Code::Usage, format("{} was made from another text", gimbal::quoted(*against_)),
                     "give the text that its logits were saved with"};
    }
    return windows.score(session, window, ScoredWindows::Rows::Scored,
                         [&](std::span<const float> row, Token next) { return take(row, next, saved); });
  }

  // One prediction: `next` is the token that follows.
  Status take(std::span<const float> row, Token next, std::vector<float>& saved) {
    if (auto ok = check_logits(row); !ok) return ok;
    scores_.loss.add(log_sum_exp(row) - row[size_t(next)]);
    if (out_)
      if (auto ok = out_->write(row.data(), row.size_bytes()); !ok) return ok;
    if (!saved_) return Done{};
    if (auto ok = saved_->read(std::span(saved)); !ok) return ok;
    if (auto ok = check_logits(saved); !ok)
      return Error{Code::Failed, format("{} contains invalid logits", gimbal::quoted(*against_)), ""};
    const double d = divergence(saved, row);
    scores_.saved_loss.add(log_sum_exp(saved) - saved[size_t(next)]);
    scores_.divergence.add(d);
    scores_.max_divergence = std::max(scores_.max_divergence, d);
    scores_.top.add(likeliest(saved) == likeliest(row));
    return Done{};
  }

  void report(const LoadedModel& loaded) const {
    const Scores& s = scores_;
    const double perplexity = fixed::exp(s.loss.value());
    if (json) {
      Json j{{"model", loaded.source.name},
             {"device", loaded.model->device().id()},
             {"fallbacks", sentences(loaded.fallbacks)},
             {"perplexity", perplexity},
             {"standard_error", perplexity * s.loss.standard_error()},
             {"nats_per_token", s.loss.value()},
             {"tokens_scored", s.loss.count()},
             {"windows", shape_.windows},
             {"window", shape_.window},
             {"against", nullptr}};
      if (saved_)
        j["against"] = {{"perplexity", fixed::exp(s.saved_loss.value())},
                        {"divergence", s.divergence.value()},
                        {"divergence_standard_error", s.divergence.standard_error()},
                        {"max_divergence", s.max_divergence},
                        {"top_1_agreement", s.top.value()},
                        {"top_1_standard_error", s.top.standard_error()}};
      print_json(j);
      return;
    }
    Table t("lll");
    t.row({"perplexity", format("{:.4f}", perplexity),
           format("+- {:.4f}", perplexity * s.loss.standard_error())});
    t.row({"scored", format("{} tokens", s.loss.count()),
           format("in {} windows of {}, the second half of each", shape_.windows, shape_.window)});
    if (saved_) {
      t.row({"saved model", format("{:.4f}", fixed::exp(s.saved_loss.value())), "its perplexity"});
      t.row({"divergence", format("{:.6f}", s.divergence.value()),
             format("+- {:.6f} nats a token from the saved model (Kullback-Leibler), at most {:.4f}",
                    s.divergence.standard_error(), s.max_divergence)});
      t.row({"agreement", format("{:.2f} %", 100 * s.top.value()),
             format("+- {:.2f} % of the most likely tokens are the same", 100 * s.top.standard_error())});
    }
    print(t.text());
  }

  std::string model_;
  std::optional<std::string> file_, save_, against_;
  CommonOptions engine_;
  LogitsShape shape_;
  std::optional<SavedLogits> saved_;
  std::optional<BinaryOutput> out_;
  Scores scores_;
};

}  // namespace

std::unique_ptr<Command> make_perplexity() { return std::make_unique<Perplexity>(); }

}  // namespace gimbal
