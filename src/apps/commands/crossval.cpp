// gimbal crossval: a model on our devices beside the same model in a libllama.
#include <unistd.h>

#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/reports/verdict_reports.h"
#include "apps/serving/model_path.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/folders.h"
#include "base/json.h"
#include "crossval/crossval.h"

namespace gimbal {
namespace {

// Names, numbers and punctuation: pieces that tokenizers cut differently.
constexpr const char* kText =
    "Once upon a time, in 1887, a girl named Lily found 3.14 apples near the old mill. \"Who left them "
    "here?\" she "
    "asked. Nobody answered, so she went home and told her mother.";

class Crossval final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--library", "PATH", "the libllama shared library to compare with", library_);
    a.text("--text", "TEXT", "the text to compare (default: two short sentences)", text_);
    a.text("-f,--file", "FILE", "the text, from a file or pipe; -: stdin", file_);
    a.text("--tokens", "IDS", "token ids in place of a text, such as 1,403,407", tokens_);
    a.flag("--layers", "print a line for each layer", layers_);
    a.flag("--no-layers", "do not compare the outputs of layers, which loads the weights once more",
           no_layers_);
    a.whole("--greedy", "N", "compare N greedy tokens after the text (default 32); 0: none", greedy_, 0,
            4096);
    a.one_of("--reference", "auto (default): compute what rounding explains, in double precision; off",
             reference_, {"auto", "off"});
    a.whole("--time-limit", "SECONDS", "the longest silence of the library (default 120)", patience_, 1,
            86400);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal crossval model.gguf --library ./libllama.so");
    a.example("gimbal crossval model.gguf --library ./libllama.so -f text.txt --backend vulkan --layers");
  }

  Result<int> run() override {
    if (!library_)
      return Error{Code::Usage, "there is no library to compare with",
                   "give --library PATH of a libllama shared library"};
    if (int(text_.has_value()) + int(file_.has_value()) + int(tokens_.has_value()) > 1)
      return Error{Code::Usage, "--text, --file and --tokens each give the tokens", "give only one of them"};
    if (layers_ && no_layers_)
      return Error{Code::Usage, "--layers and --no-layers exclude each other", "give only one of them"};
    auto report = compare();
    // A library that fails is no failure of this program: the comparison has no result.
    if (!report && is_the_librarys(report.error())) return cannot(report.error());
    if (!report) return report.error();
    if (json) print_json(crossval_json(*report));
    else print(crossval_text(*report, layers_));
    return exit_code(report->verdict);
  }

 private:
  static bool is_the_librarys(const Error& e) { return std::string_view(e.reason).starts_with("library-"); }

  int cannot(const Error& e) const {
    if (json)
      print_json({{"verdict", name_of(crossval::Verdict::Unknown)},
                  {"reason", e.message},
                  {"remedy", e.remedy},
                  {"code", e.reason}});
    else
      print(format("{}: {}\n", bold(name_of(crossval::Verdict::Unknown)), printable(e.message)) +
            (e.remedy.empty() ? "" : format("  {}\n", printable(e.remedy))));
    return exit_code(crossval::Verdict::Unknown);
  }

  Result<crossval::CrossvalReport> compare() {
    auto options = engine_options(engine_);
    if (!options) return options.error();
    const std::chrono::seconds patience(patience_);
    auto library = llama::LlamaProcess::start({program_path(), "llama-worker"}, *library_, patience);
    if (!library) return library.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = check_generates(*source->file); !ok) return ok.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto path = ModelPath::of(*source);
    if (!path) return path.error();
    auto model = library->load(path->path());
    if (!model) return model.error();

    crossval::CrossvalSettings settings;
    if (auto ok = read_tokens(**tokenizer, settings); !ok) return ok.error();
    settings.greedy = greedy_, settings.layers = !no_layers_, settings.reference = reference_ == "auto";
    RunOptions& run = options->run;
    settings.window = std::min(run.context > 0 ? run.context : 512, int(settings.tokens.size()));
    run.context = context_for(*source->file, std::max(run.context, settings.window + greedy_ + 1));
    run.logit_rows = std::min(run.batch, 32);
    run.cache_type = DType::F32;  // as the library's, so that caches round nothing
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    auto loaded = engine.load(*source);
    if (!loaded) return loaded.error();
    settings.threads = threads_of(**loaded);
    Progress bar("comparing", !quiet && !json, Progress::Unit::Tokens);
    settings.progress = [&](const char*, size_t done, size_t all) { return bar.update(done, all), true; };
    return crossval::cross_validate(engine, **loaded, **tokenizer, *library, settings);
  }

  // The library rounds contexts up to 256 positions, and some models choose their rotation by the context.
  static int context_for(const ModelSource& file, int positions) {
    const auto config = configure(file);
    const int rounded = int(align_up(uint64_t(positions), 256));
    return config && rounded <= config->context ? rounded : positions;
  }

  // Those of our CPU, so that speeds compare.
  int threads_of(const LoadedModel& loaded) const {
    if (engine_.threads) return *engine_.threads;
    const int used = int(loaded.model->device().describe().threads);
    return used > 0 ? used : std::max(1, int(sysconf(_SC_NPROCESSORS_ONLN)));
  }

  Status read_tokens(const Tokenizer& tokenizer, crossval::CrossvalSettings& to) const {
    if (tokens_) {
      auto ids = parse_ids("--tokens", *tokens_);
      if (!ids) return ids.error();
      to.tokens = std::move(*ids);
    } else {
      to.text = text_.value_or(kText);
      if (file_) {
        auto text = read_text(*file_);
        if (!text) return text.error();
        to.text = std::move(*text);
      }
      to.tokens = tokenizer.encode(to.text, {.parse_special = false});
    }
    if (to.tokens.size() < 2)
      return Error{Code::Usage, format("there are {} tokens; 2 or more are needed", to.tokens.size()),
                   "give a longer text"};
    return Done{};
  }

  std::string model_;
  std::optional<std::string> library_, text_, file_, tokens_;
  bool layers_ = false, no_layers_ = false;
  int greedy_ = 32, patience_ = 120;
  std::string reference_ = "auto";
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_crossval() { return std::make_unique<Crossval>(); }

}  // namespace gimbal
