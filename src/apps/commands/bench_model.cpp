#include "apps/commands/bench_model.h"

#include <algorithm>

#include "apps/commands/bench_drafts.h"
#include "apps/commands/open_model.h"
#include "apps/reports/run_report.h"
#include "apps/reports/spread.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "device/values.h"
#include "engine/explanation.h"
#include "model/arch.h"
#include "ops/op_def.h"
#include "runtime/random.h"
#include "runtime/session.h"

namespace gimbal {
namespace {

constexpr double kFitsACache = 64e6;  // bytes

// Most memory that the process had at one time, as the kernel counted it.
uint64_t peak_memory() {
  std::FILE* f = std::fopen("/proc/self/status", "re");
  unsigned long kilobytes = 0;
  for (char line[256]; f && std::fgets(line, sizeof line, f);)
    if (std::sscanf(line, "VmHWM: %lu", &kilobytes) == 1) break;
  if (f) std::fclose(f);
  return uint64_t(kilobytes) * 1024;
}

struct Numbers {
  std::vector<double> prompt, generation;  // tokens per second, one per repetition
  std::vector<double> first_token;         // seconds
  double weight_bytes = 0;                 // of a token
  PromptWork work;                         // of the prompt
  uint64_t peak = 0;
  std::optional<Limits> limits;
  std::optional<DraftSpeed> drafts;

  double bytes_per_second() const { return spread(generation).median * weight_bytes; }
  double operations_per_second(int tokens) const { return spread(prompt).median / tokens * work.operations; }
  bool int8() const { return work.int8_share >= 0.5; }
  double compute_limit() const { return int8() ? limits->int8 : limits->fp32; }
};

class ModelBench {
 public:
  ModelBench(const LoadedModel& l, const ModelBenchOptions& o)
      : loaded_(l), model_(*l.model), device_(model_.device()), options_(o) {}

  Status measure(bool quiet) {
    auto session = Session::create(*loaded_.model);
    if (!session) return session.error();
    Session& s = **session;
    Random random(1);  // the same tokens every time
    const auto vocabulary = uint64_t(model_.config().vocabulary);
    const int prompt = options_.prompt, generate = options_.generate;
    std::vector<int32_t> tokens(size_t(std::max(prompt, generate + 1)));
    for (int32_t& t : tokens) t = int32_t(random.next() % vocabulary);
    for (const Stage& stage : model_.plan().stages)
      n_.weight_bytes += weight_bytes_per_token(stage.buckets[model_.plan().bucket_for(1)].program);
    n_.work = prompt_work(model_.plan(), prompt);
    Progress bar("measuring", !quiet, Progress::Unit::Tokens);
    const auto total = uint64_t(prompt + generate) * uint64_t(options_.repetitions + 1);
    uint64_t done = 0;
    int best = 0;
    auto choose = [&](size_t, std::span<const float> logits) {
      best = int(std::max_element(logits.begin(), logits.end()) - logits.begin());
    };
    for (int r = -1; r < options_.repetitions; r++) {  // the first one is for warming up
      if (prompt > 0) {
        s.rewind(0);
        const double begin = now();
        // Batch by batch, as the session would: so that a long prompt has its progress.
        for (int at = 0, n = 0; at < prompt; at += n, bar.update(done += uint64_t(n), total)) {
          n = std::min(prompt - at, s.batch());
          const auto wanted = at + n == prompt ? Session::Wanted::Last : Session::Wanted::None;
          if (auto ok = s.advance(std::span(tokens).subspan(size_t(at), size_t(n)), wanted, choose); !ok)
            return ok.error();
        }
        const double taken = now() - begin;
        if (r >= 0) n_.prompt.push_back(prompt / taken), n_.first_token.push_back(taken);
      }
      if (generate > 0) {
        s.rewind(0);
        if (auto ok = s.advance(std::span(tokens).first(1), Session::Wanted::None, {}); !ok)
          return ok.error();
        const double begin = now();
        for (int i = 1; i <= generate; i++)
          if (auto ok = s.advance(std::span(tokens).subspan(size_t(i), 1), Session::Wanted::Last, choose);
              !ok)
            return ok.error();
        if (r >= 0) n_.generation.push_back(generate / (now() - begin));
        bar.update(done += uint64_t(generate), total);
      }
    }
    n_.peak = peak_memory();
    n_.limits = device_limits(device_, options_.measure_again, options_.limit_megabytes, quiet);
    if (n_.limits && n_.weight_bytes >= kFitsACache) doubt_limits(n_.bytes_per_second() / n_.limits->read);
    if (n_.limits && prompt > 0 && !n_.work.fast)
      doubt_limits(n_.operations_per_second(prompt) / n_.compute_limit());
    return Done{};
  }

  void add(DraftSpeed drafts) { n_.drafts = std::move(drafts); }

  void print_as_json() const {
    auto share = [&](const std::vector<double>& measured, double rate, double limit) -> Json {
      if (measured.empty() || !n_.limits) return nullptr;
      return rate / limit;
    };
    const double operations = n_.prompt.empty() ? 0 : n_.operations_per_second(options_.prompt);
    print_json(
        {{"model", loaded_.source.name},
         {"device", device_.id()},
         {"fallbacks", sentences(loaded_.fallbacks)},
         {"threads", device_.describe().threads},
         {"prompt_tokens", options_.prompt},
         {"generated_tokens", options_.generate},
         {"repetitions", options_.repetitions},
         {"prompt_tokens_per_second", spread_json(n_.prompt)},
         {"generation_tokens_per_second", spread_json(n_.generation)},
         {"first_token_seconds", spread_json(n_.first_token)},
         {"draft", n_.drafts ? as_json(*n_.drafts) : Json()},
         {"prompt_operations", n_.work.operations},
         {"prompt_operations_per_second", operations},
         {"prompt_limit", n_.int8() ? "int8" : "fp32"},
         {"prompt_share", n_.limits ? share(n_.prompt, operations, n_.compute_limit()) : Json()},
         {"weight_bytes_per_token", n_.weight_bytes},
         {"weight_bytes_per_second", n_.bytes_per_second()},
         {"memory_bytes_per_second", n_.limits ? Json(n_.limits->read) : Json()},
         {"memory_share", n_.limits ? share(n_.generation, n_.bytes_per_second(), n_.limits->read) : Json()},
         {"limits", limits_json(n_.limits)},
         {"load_seconds", loaded_.load_seconds},
         {"peak_memory_bytes", n_.peak},
         {"memory", report_json(memory_of_devices(model_.plan()))},
         {"kernels", report_json(count_kernels(model_.plan(), model_.plan().bucket_for(1)))}});
  }

  void print_for_people() const {
    const int threads = int(device_.describe().threads);
    print(format("{} on {}{}, median of {} (lowest to highest)\n\n", bold(printable(loaded_.source.name)),
                 bold(device_.id()), threads ? format(", {} threads", threads) : "", options_.repetitions));
    Table t("lrl");
    auto speed = [&](const std::string& what, const std::vector<double>& v) {
      const Spread s = spread(v);
      t.row({what, format("{:.2f} tokens/s", s.median), format("({:.2f} to {:.2f})", s.least, s.most)});
    };
    if (!n_.prompt.empty()) {
      speed(format("prompt of {}", options_.prompt), n_.prompt);
      const double rate = n_.operations_per_second(options_.prompt);
      t.row({"  computed", human_operations(rate),
             n_.limits ? format("{:.0f} % of the {} limit", 100 * rate / n_.compute_limit(),
                                n_.int8() ? "int8" : "fp32")
                       : ""});
    }
    if (!n_.generation.empty()) {
      speed(format("generation of {}", options_.generate), n_.generation);
      const double rate = n_.bytes_per_second();
      t.row({"  weights read", format("{:.2f} GB/s", rate / 1e9),
             format("{}{} a token{}",
                    n_.limits ? format("{:.0f} % of the memory's speed, ", 100 * rate / n_.limits->read) : "",
                    human_bytes(uint64_t(n_.weight_bytes)),
                    n_.weight_bytes < kFitsACache ? " (not reliable: a cache may hold them)" : "")});
    }
    if (n_.drafts) add_rows(t, *n_.drafts);
    if (!n_.first_token.empty())
      t.row({"first token", format("{:.1f} ms", spread(n_.first_token).median * 1e3),
             "from the prompt to the logits of the first token"});
    t.row({"loading", format("{:.1f} ms", loaded_.load_seconds * 1e3), ""});
    t.row({"peak memory", human_bytes(n_.peak), "of the whole process"});
    print(t.text());
    if (n_.limits) print(format("limits: {}\n", limits_text(*n_.limits)));
    const ModelPlan& plan = model_.plan();
    const std::string one = matrix_kernels(plan.bucket_for(1)),
                      many = matrix_kernels(plan.bucket_for(n_.prompt.empty() ? 1 : plan.options.batch));
    print(format("\nmatrices computed by {}{} (`gimbal explain` says why)\n", one,
                 one == many ? "" : "; of prompts: " + many));
  }

 private:
  std::string matrix_kernels(size_t bucket) const {
    std::string kernels;
    for (const KernelCount& k : count_kernels(model_.plan(), bucket))
      if (k.op == "mat_mul") kernels += (kernels.empty() ? "" : ", ") + k.kernel;
    return kernels;
  }

  const LoadedModel& loaded_;
  const Model& model_;
  const Device& device_;
  const ModelBenchOptions& options_;
  Numbers n_;
};

}  // namespace

PromptWork prompt_work(const ModelPlan& b, int tokens) {
  PromptWork w;
  double int8 = 0, fp32 = 0;
  const gimbal_step all{tokens, 1};
  for (const Stage& stage : b.stages) {
    const Bucket& bucket = stage.buckets[b.bucket_for(b.options.batch)];
    const Program& p = bucket.program;
    for (const Choice& c : bucket.choices) w.fast |= stage.device->kernel(c.kernel).numerics == GIMBAL_FAST;
    for (const gimbal_op& op : p.ops) {
      const OpKind kind{op.kind};
      if (!def(kind).product) continue;
      const auto inputs = p.input_shapes(op, all);
      double operations = cost(kind, inputs, p.output_shape(op, all)).operations;
      if (!def(kind).has(Role::Cache)) (info(inputs[1].type).gguf == kNotInFiles ? int8 : fp32) += operations;
      else {  // token i attends to itself and to all earlier ones, within its window
        const int64_t limit = def(kind).integer(params_of(op), "window", 0),
                      window = limit > 0 ? limit : tokens;
        double looks = 0;
        for (int i = 1; i <= tokens; i++) looks += double(std::min<int64_t>(i, window));
        operations *= tokens ? looks / tokens : 0;
      }
      w.operations += operations;
    }
  }
  w.int8_share = int8 + fp32 > 0 ? int8 / (int8 + fp32) : 0;
  return w;
}

// Beyond the positions that a model was trained on, only who names a context wants to wait for numbers.
static void end_at_context(const ModelSource& file, ModelBenchOptions& o, bool quiet) {
  const auto config = configure(file);
  const int most = config ? config->context : 0;
  const auto cut = [&](const char* option, int& tokens, int limit) {
    if (most <= 0 || tokens <= limit) return;
    if (!quiet)
      note(format("note: {} {}: measured with {}, up to the model's context; --ctx N asks for more", option,
                  tokens, limit));
    tokens = limit;
  };
  cut("-p", o.prompt, most);
  cut("-n", o.generate, most - 1 - (o.draft ? kDraftPrompt : 0));
}

Result<int> bench_model(const CommonOptions& common, const ModelBenchOptions& wanted, bool json, bool quiet) {
  ModelBenchOptions options = wanted;
  auto engine_wanted = engine_options(common);
  if (!engine_wanted) return engine_wanted.error();
  RunOptions* run = &engine_wanted->run;
  if (options.draft && (*options.draft == "off" || options.generate == 0))
    return Error{Code::Usage, "--draft measures a text with drafts, but drafts are off",
                 "leave it out, or name a source of drafts and a number of tokens"};
  if (options.prompt == 0 && options.generate == 0)
    return Error{Code::Usage, "-p 0 and -n 0 leave nothing to measure", "give at least one of them"};
  auto source = open_model(options.model, common, quiet);
  if (!source) return source.error();
  if (auto ok = check_generates(*source->file); !ok) return ok.error();
  if (run->context == 0) end_at_context(*source->file, options, quiet);
  const int least = std::max(options.prompt, (options.draft ? kDraftPrompt : 0) + options.generate + 1);
  if (run->context == 0) run->context = std::max(least, 2);
  if (run->context < least)
    return Error{Code::Usage, format("--ctx {} is too small for {} tokens", run->context, least),
                 "leave --ctx out, or make -p and -n smaller"};
  DraftSource drafts;
  if (options.draft) {
    auto opened = open_draft_source(*options.draft, *engine_wanted, *source, quiet);
    if (!opened) return opened.error();
    drafts = std::move(*opened);
  }
  Engine engine(backend_registry(), std::move(*engine_wanted), stderr_sink(quiet));
  auto loaded = engine.load(*source);
  if (!loaded) return loaded.error();
  ModelBench bench(**loaded, options);
  if (auto ok = bench.measure(quiet); !ok) return ok.error();
  if (options.draft) {
    auto speed = bench_drafts(*(*loaded)->model, drafts, options.generate, options.repetitions);
    if (!speed) return speed.error();
    bench.add(std::move(*speed));
  }
  if (json) bench.print_as_json();
  else bench.print_for_people();
  return kDone;
}

}  // namespace gimbal
