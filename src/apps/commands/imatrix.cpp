// gimbal imatrix: the importance matrix of a model over a text, for quantize --imatrix; also continued with
// more text, or put together of several.
#include <filesystem>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "base/fixed_math.h"
#include "base/json.h"
#include "calibration/importance_run.h"
#include "engine/engine.h"
#include "fetch/pull_event.h"

namespace gimbal {
namespace {

class Imatrix final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("-f,--text", "FILE", "the text, from a file or pipe; -: stdin", file_);
    a.text("-o,--output", "FILE", "the file to write (default imatrix.gguf)", out_);
    a.one_of("--output-format", "auto (default): the older form if FILE ends in .dat, else gguf; gguf; dat",
             format_, {"auto", "gguf", "dat"});
    a.texts("--merge", "FILE", "add this importance matrix (GGUF); may be repeated, and needs no text",
            merged_);
    a.whole("--chunks", "N", "use this number of windows of the text (default: all)", chunks_, 1, 1 << 30);
    a.whole("--from-chunk", "N", "leave out the first N windows, to continue an interrupted run", first_, 0,
            1 << 30);
    a.whole("--context", "N", "tokens of a window (default 512), as --ctx", engine_.context, 4, 1 << 24);
    a.flag("--without-output", "leave out output.weight, as llama-imatrix does", without_output_);
    a.flag("--force", "replace a file that exists", force_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal imatrix model-f16.gguf --text calibration.txt -o model.imatrix.gguf");
    a.example("gimbal imatrix model-f16.gguf --merge a.gguf --merge b.gguf -o both.gguf");
  }

  Result<int> run() override {
    if (!file_ && merged_.empty())
      return Error{Code::Usage, "there is no text",
                   "give --text FILE, or --merge FILE of an importance matrix"};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source =
        file_ ? open_model(model_, engine_, quiet) : open_header(model_, file_options(engine_), quiet);
    if (!source) return source.error();
    const ModelSource& file = *source->file;
    if (auto ok = may_write(file, out_, force_); !ok) return ok.error();
    for (const std::string& path : merged_)
      if (auto ok = merge(path); !ok) return ok.error();
    if (auto ok = sums_.check_made_for(file); !ok) return ok.error();
    Json j{{"model", source->name}};
    if (file_) {
      auto computed = compute(*source, std::move(*options), j);
      if (!computed) return computed.error();
    }
    if (without_output_) sums_.remove("output.weight");
    const bool old = format_ == "dat" || (format_ == "auto" && out_.ends_with(".dat"));
    if (auto ok = old ? sums_.write_old(out_) : sums_.write_gguf(out_); !ok) return ok.error();
    report(j, old);
    return stopped_ ? kInterrupted : kDone;
  }

 private:
  Status merge(const std::string& path) {
    auto other = ImportanceSums::open(path);
    if (!other) return other.error();
    return sums_.add(*other, path);
  }

  Status compute(const ModelFile& source, EngineOptions options, Json& j) {
    if (auto ok = check_generates(*source.file); !ok) return ok;
    auto tokenizer = Tokenizer::create(source.file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto text = read_text(*file_);
    if (!text) return text.error();
    auto windows = ScoredWindows::of(**tokenizer, *text,
                                     engine_.context ? engine_.context : ScoredWindows::kDefaultWindow);
    if (!windows) return windows.error();
    if (auto ok = windows->limit(first_, chunks_.value_or(INT32_MAX)); !ok) return ok;
    options.run = importance_options(options.run, windows->window());
    Engine engine(backend_registry(), std::move(options), stderr_sink(quiet));
    auto loaded = engine.load(source);
    if (!loaded) return loaded.error();
    InterruptGuard guard;
    Progress bar("reading", !quiet, Progress::Unit::Tokens);
    auto run = add_importance(*(*loaded)->model, *(*loaded)->source.file, *windows, sums_, [&](int done) {
      bar.update(uint64_t(done) * uint64_t(windows->window()),
                 uint64_t(windows->windows()) * uint64_t(windows->window()));
      return !InterruptGuard::interrupted();
    });
    if (!run) return run.error();
    if (run->windows == 0) return Error{Code::Failed, "interrupted", "", reason::kCancelled};
    stopped_ = run->windows < windows->windows();
    next_ = run->next;
    sums_.add_text(*file_);
    const double perplexity = fixed::exp(run->loss.value());
    j["device"] = (*loaded)->model->device().id(), j["fallbacks"] = sentences((*loaded)->fallbacks);
    j["windows"] = run->windows, j["window"] = windows->window();
    j["perplexity"] = perplexity, j["standard_error"] = perplexity * run->loss.standard_error();
    done_ =
        format("{} of {} windows of {} tokens, perplexity {:.4f} +- {:.4f}", run->windows, windows->windows(),
               windows->window(), perplexity, perplexity * run->loss.standard_error());
    return Done{};
  }

  void report(Json& j, bool old) const {
    size_t matrices = 0, empty = 0;
    for (const auto& [name, sums] : sums_.tensors())
      for (double rows : sums.rows) matrices++, empty += rows == 0;
    if (json) {
      j["path"] = out_, j["format"] = old ? "dat" : "gguf", j["merged"] = merged_;
      j["tensors"] = sums_.tensors().size(), j["matrices"] = matrices, j["matrices_without_tokens"] = empty;
      j["all_windows"] = sums_.windows, j["complete"] = !stopped_;
      print_json(j);
    } else {
      print(format("{}: {} matrices of {} tensors{}{}\n", printable(out_), matrices, sums_.tensors().size(),
                   done_.empty() ? "" : "; ", done_));
    }
    if (quiet) return;
    if (empty)
      note(format("{} matrices of experts got no token, and count as equally important: use a longer text",
                  empty));
    if (stopped_)
      note(format("interrupted: --merge {} --from-chunk {} continues", gimbal::quoted(out_), next_));
  }

  std::string model_, out_ = "imatrix.gguf", format_ = "auto";
  std::optional<std::string> file_;
  std::vector<std::string> merged_;
  std::optional<int> chunks_;
  int first_ = 0, next_ = 0;
  bool without_output_ = false, force_ = false, stopped_ = false;
  CommonOptions engine_;
  ImportanceSums sums_;
  std::string done_;
};

}  // namespace

std::unique_ptr<Command> make_imatrix() { return std::make_unique<Imatrix>(); }

}  // namespace gimbal
