#include "apps/commands/bench_model.h"

#include "apps/commands/open_model.h"
#include "apps/reports/spread.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "runtime/random.h"

namespace gimbal {
namespace {

struct Cell {
  int depth, sequences;
  std::vector<double> generation;  // tokens per second of all together, one per repetition
};

int64_t largest(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

class SequenceBench {
 public:
  SequenceBench(const LoadedModel& l, const ModelBenchOptions& o, const SequenceBenchOptions& s)
      : loaded_(l), model_(*l.model), options_(o), wanted_(s), prompts_(s.depths.size()) {}

  Status measure(bool quiet) {
    const int rounds = options_.repetitions + 1;
    uint64_t total = 0, done = 0;
    for (int depth : wanted_.depths)
      for (int n : wanted_.sequences)
        total +=
            uint64_t(wanted_.shared ? depth : depth * n) + uint64_t(rounds) * uint64_t(n * options_.generate);
    Progress bar("measuring", !quiet, Progress::Unit::Tokens);
    auto report = [&](uint64_t tokens) { bar.update(done += tokens, total); };
    for (size_t d = 0; d < wanted_.depths.size(); d++)
      for (int n : wanted_.sequences)
        if (auto ok = measure(d, n, report); !ok) return ok.error();
    return Done{};
  }

  void print_as_json() const {
    Json depths = Json::array();
    for (size_t d = 0; d < wanted_.depths.size(); d++) {
      Json cells = Json::array();
      for (const Cell& c : cells_)
        if (c.depth == wanted_.depths[d])
          cells.push_back(
              {{"sequences", c.sequences}, {"generation_tokens_per_second", spread_json(c.generation)}});
      depths.push_back({{"depth", wanted_.depths[d]},
                        {"prompt_tokens_per_second", spread_json(prompts_[d])},
                        {"generation", std::move(cells)}});
    }
    print_json({{"model", loaded_.source.name},
                {"device", model_.device().id()},
                {"fallbacks", sentences(loaded_.fallbacks)},
                {"threads", model_.device().describe().threads},
                {"generated_tokens", options_.generate},
                {"repetitions", options_.repetitions},
                {"shared_prefix", wanted_.shared},
                {"depths", std::move(depths)}});
  }

  void print_for_people() const {
    const auto threads = int(model_.device().describe().threads);
    print(format("{} on {}{}, tokens/s of all sequences together, median of {}{}\n\n",
                 bold(printable(loaded_.source.name)), bold(model_.device().id()),
                 threads ? format(", {} threads", threads) : "", options_.repetitions,
                 wanted_.shared ? "; they share the preceding tokens" : ""));
    Table t("r" + std::string(wanted_.sequences.size() + 1, 'r'));
    std::vector<std::string> head = {"depth", "prompt"};
    for (int n : wanted_.sequences) head.push_back(n == 1 ? "1 sequence" : format("{}", n));
    t.row(head);
    for (size_t d = 0; d < wanted_.depths.size(); d++) {
      std::vector<std::string> row = {
          format("{}", wanted_.depths[d]),
          prompts_[d].empty() ? "-" : format("{:.1f}", spread(prompts_[d]).median)};
      for (const Cell& c : cells_)
        if (c.depth == wanted_.depths[d]) row.push_back(format("{:.1f}", spread(c.generation).median));
      t.row(row);
    }
    print(t.text());
  }

 private:
  using Report = std::function<void(uint64_t tokens)>;

  // `count` tokens after those that the sequence has.
  Status fill(Sequence& s, int count, const Report& report) {
    const int most = model_.plan().options.batch;
    for (int left = count, n = 0; left > 0; left -= n, report(uint64_t(n))) {
      n = std::min(left, most);
      batch_.rows.clear();
      for (int i = 0; i < n; i++) batch_.rows.push_back({&s, next_token(), s.computed() + i, {}});
      if (auto out = model_.forward(batch_); !out) return out.error();
    }
    return Done{};
  }

  Status measure(size_t depth_index, int n, const Report& report) {
    const int depth = wanted_.depths[depth_index];
    std::vector<std::unique_ptr<Sequence>> all;
    for (int i = 0; i < n; i++) {
      const bool copy = wanted_.shared && i > 0;
      auto one = copy ? all[0]->fork() : model_.new_sequence();
      if (!one) return one.error();
      all.push_back(std::move(*one));
      if (copy || depth == 0) continue;
      const double begin = now();
      if (auto ok = fill(*all.back(), depth, report); !ok) return ok.error();
      prompts_[depth_index].push_back(depth / (now() - begin));
    }
    Cell cell{depth, n, {}};
    int64_t sum = 0;
    const bool on_device = model_.plan().max_top() > 0;  // as the scheduler has it
    batch_.top = on_device;
    for (int r = -1; r < options_.repetitions; r++) {  // the first one is for warming up
      for (auto& s : all) s->truncate(depth);
      const double begin = now();
      for (int i = 0; i < options_.generate; i++) {
        batch_.rows.clear();
        for (auto& s : all)
          batch_.rows.push_back(
              {s.get(), next_token(), s->computed(), {.logits = !on_device, .top = on_device}});
        auto out = model_.forward(batch_);
        if (!out) return out.error();
        for (int k = 0; k < n; k++)
          sum += on_device ? int64_t(out->top(size_t(k)).ids[0]) : largest(out->logits(size_t(k)));
      }
      if (r >= 0) cell.generation.push_back(n * options_.generate / (now() - begin));
      report(uint64_t(n * options_.generate));
    }
    checksum_ += sum;
    cells_.push_back(std::move(cell));
    return Done{};
  }

  int32_t next_token() { return int32_t(random_.next() % uint64_t(model_.config().vocabulary)); }

  const LoadedModel& loaded_;
  Model& model_;
  const ModelBenchOptions& options_;
  const SequenceBenchOptions& wanted_;
  Random random_{1};  // the same tokens every time
  Batch batch_;
  std::vector<Cell> cells_;
  std::vector<std::vector<double>> prompts_;  // by depth: tokens per second
  int64_t checksum_ = 0;                      // keeps the compiler from removing the argmax
};

}  // namespace

Result<int> bench_sequences(const CommonOptions& common, const ModelBenchOptions& options,
                            const SequenceBenchOptions& wanted, bool json, bool quiet) {
  auto engine_wanted = engine_options(common);
  if (!engine_wanted) return engine_wanted.error();
  RunOptions& run = engine_wanted->run;
  const int deepest = *std::max_element(wanted.depths.begin(), wanted.depths.end()),
            most = *std::max_element(wanted.sequences.begin(), wanted.sequences.end());
  if (options.generate == 0)
    return Error{Code::Usage, "-n 0 leaves nothing to measure",
                 "give the number of tokens to generate for each sequence"};
  if (run.context == 0) run.context = deepest + options.generate;
  if (run.context < deepest + options.generate)
    return Error{Code::Usage,
                 format("--ctx {} is too small for a depth of {} and {} tokens", run.context, deepest,
                        options.generate),
                 "leave --ctx out, or make --depth and -n smaller"};
  run.sequences = most, run.logit_rows = most, run.batch = std::max(run.batch, most);
  auto source = open_model(options.model, common, quiet);
  if (!source) return source.error();
  if (auto ok = check_generates(*source->file); !ok) return ok.error();
  Engine engine(backend_registry(), std::move(*engine_wanted), stderr_sink(quiet));
  auto loaded = engine.load(*source);
  if (!loaded) return loaded.error();
  SequenceBench bench(**loaded, options, wanted);
  if (auto ok = bench.measure(quiet); !ok) return ok.error();
  if (json) bench.print_as_json();
  else bench.print_for_people();
  return kDone;
}

}  // namespace gimbal
