// gimbal bench: the speed of a model, or of every kernel, absolute and relative to the peak of this machine.
#include "apps/commands/bench_kernels.h"
#include "apps/commands/bench_model.h"
#include "apps/commands/command.h"

namespace gimbal {
namespace {

class BenchCommand final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.whole("-p,--prompt-tokens", "N", "tokens of the prompt; 0: skip it (default 512)", prompt_, 0, 1 << 20);
    a.whole("-n,--generate-tokens", "N", "tokens to generate; 0: skip it (default 128)", generate_, 0,
            1 << 20);
    a.whole("-r,--repetitions", "N", "measurements; their median is shown (default 5)", repetitions_, 1,
            1000);
    a.flag("--measure-again", "measure the machine's limits again; ignore the cache", measure_again_);
    a.whole("--limit-megabytes", "N",
            "memory to read for the CPU's limit (default 1074, or four times the largest cache)",
            engine_.limit_megabytes, 1, 1 << 20);
    a.text("--draft", "auto|ngram|mtp|MODEL|scripted:P",
           "also generate a text with drafts and without; scripted:P knows the text and is right with the "
           "probability P, to measure the speed with a drafter of that quality",
           draft_);
    a.section("Several sequences, and long ones");
    a.text("--sequences", "LIST", "generate this many sequences together, one column each (such as 1,2,4,8)",
           sequences_);
    a.text("--depth", "LIST", "preceding tokens of each sequence, one line each (such as 0,4096)", depths_);
    a.flag("--shared-prefix", "all sequences share the preceding tokens, which are stored once", shared_);
    a.section("Kernel benchmarks");
    a.flag("--kernels", "measure kernels instead of a model: those that would be chosen here", kernels_);
    a.text("--kernel", "PATTERN", "only kernels whose name matches, such as '*.mat_mul.*'", pattern_);
    a.flag("--all", "also kernels that would not be chosen", all_);
    a.text("--rows", "LIST",
           "rows (tokens computed at once) to measure with, one column each (default 1,512)", rows_);
    a.whole("--milliseconds", "N", "duration of each measurement (default 200)", milliseconds_, 1, 60000);
    a.whole("--megabytes", "N", "size of the weights or KV cache read with few rows (default 1000)",
            megabytes_, 1, 1 << 16);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal bench model.gguf -p 512 -n 128 -t 2");
    a.example("gimbal bench model.gguf --sequences 1,2,4,8,16 --depth 0,4096 -n 32");
    a.example("gimbal bench --kernels --kernel '*.mat_mul.q4_*'");
  }

  Result<int> run() override {
    struct Given {
      const char* option;
      bool given;
    };
    if (!kernels_) {
      for (const Given& g :
           {Given{"--kernel", bool(pattern_)}, Given{"--all", all_}, Given{"--rows", bool(rows_)},
            Given{"--milliseconds", bool(milliseconds_)}, Given{"--megabytes", bool(megabytes_)}})
        if (g.given)
          return Error{Code::Usage,
                       format("{} is for measuring kernels, but this measures a model", g.option),
                       "add --kernels, or leave it out"};
      const ModelBenchOptions o{model_,
                                prompt_.value_or(512),
                                generate_.value_or(128),
                                repetitions_.value_or(5),
                                measure_again_,
                                engine_.limit_megabytes,
                                draft_};
      return sequences_ || depths_ || shared_ ? sequences(o) : bench_model(engine_, o, json, quiet);
    }
    for (const Given& g : {Given{"MODEL", !model_.empty()}, Given{"-p", bool(prompt_)},
                           Given{"-n", bool(generate_)}, Given{"-r", bool(repetitions_)},
                           Given{"--ctx", bool(engine_.context)}, Given{"--batch", bool(engine_.batch)},
                           Given{"--draft", bool(draft_)}, Given{"--sequences", bool(sequences_)},
                           Given{"--depth", bool(depths_)}, Given{"--shared-prefix", shared_}})
      if (g.given)
        return Error{Code::Usage, format("{} has no effect with --kernels, which needs no model", g.option),
                     "leave out one of them"};
    KernelBenchOptions o;
    o.pattern = pattern_, o.all = all_, o.measure_again = measure_again_,
    o.limit_megabytes = engine_.limit_megabytes;
    o.milliseconds = milliseconds_.value_or(o.milliseconds), o.megabytes = megabytes_.value_or(o.megabytes);
    if (rows_) {
      auto rows = list("--rows", *rows_, 1, 4096, "1,8,512");
      if (!rows) return rows.error();
      o.rows = *rows;
    }
    return bench_kernels(engine_, o, json, quiet);
  }

 private:
  static Result<std::vector<int>> list(const char* option, const std::string& text, int least, int most,
                                       const char* example) {
    const std::string remedy = format("for example: {} {}", option, example);
    auto ids = parse_ids(option, text);
    if (!ids) return Error{ids.error().code, ids.error().message, remedy};
    if (ids->empty()) return Error{Code::Usage, format("{} names no number", option), remedy};
    for (int32_t n : *ids)
      if (n < least || n > most)
        return Error{Code::Usage, format("{} must be from {} to {}, not {}", option, least, most, n), remedy};
    return std::vector<int>(ids->begin(), ids->end());
  }
  Result<int> sequences(const ModelBenchOptions& o) {
    if (prompt_)
      return Error{Code::Usage, "-p has no effect with --sequences and --depth",
                   "give the number of preceding tokens with --depth"};
    if (draft_)
      return Error{Code::Usage, "--draft has no effect with --sequences and --depth", "measure one of them"};
    auto sequences = list("--sequences", sequences_.value_or("1"), 1, 1024, "1,2,4,8"),
         depths = list("--depth", depths_.value_or("0"), 0, 1 << 20, "0,4096");
    if (!sequences) return sequences.error();
    if (!depths) return depths.error();
    return bench_sequences(engine_, o, {*sequences, *depths, shared_}, json, quiet);
  }

  std::string model_;
  std::optional<int> prompt_, generate_, repetitions_, milliseconds_, megabytes_;
  std::optional<std::string> pattern_, rows_, sequences_, depths_, draft_;
  bool kernels_ = false, all_ = false, measure_again_ = false, shared_ = false;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace gimbal
