// gimbal choose: the mixture of formats that predicts a text best within a memory budget, and the cost of
// each.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "base/bytes.h"
#include "base/fixed_math.h"
#include "base/json.h"
#include "calibration/mixture_choice.h"
#include "engine/explanation.h"
#include "fetch/pull_event.h"

namespace gimbal {
namespace {

constexpr const char* kAsItIs = "original";

std::string name_of(const MixtureCost& c) { return c.mixture.empty() ? kAsItIs : c.mixture; }

double bits_of(const MixtureCost& c) {
  return c.totals.values ? 8 * double(c.totals.bytes) / double(c.totals.values) : 0;
}

class Choose final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--budget", "SIZE",
           "the most memory that the plan may take: 6GB, 500M (default: what fits this machine)", budget_);
    a.text("-f,--text", "FILE", "the text to predict, from a file or pipe; -: stdin", file_);
    a.text("--candidates", "LIST",
           "mixtures to compare, such as original,Q6_K,Q4_K_M (default: the usual ones)", candidates_);
    a.text("--imatrix", "FILE", "importance of the inputs, as for quantize", importance_);
    a.whole("--chunks", "N", "use this number of windows of 512 tokens (default: all)", chunks_, 1, 1 << 30);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal choose model-f16.gguf --budget 6GB --text sample.txt");
    a.example(
        "gimbal choose model-f16.gguf --budget 6GB --text sample.txt --candidates Q6_K,Q5_K_M --ctx 8192");
  }

  Result<int> run() override {
    auto parsed = budget_ ? bytes_named(*budget_) : UINT64_MAX;
    if (!parsed)
      return Error{Code::Usage,
                   format("--budget: expected a size such as 6GB or 500M, got {}", gimbal::quoted(*budget_)),
                   ""};
    if (!file_) return Error{Code::Usage, "there is no text", "give --text FILE"};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = check_generates(*source->file); !ok) return ok.error();
    if (!source->file->tensors().adapters().empty())
      return Error{Code::Usage, "a model with adapters has no mixtures",
                   "merge them first: gimbal convert MODEL OUT.gguf --lora FILE"};
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto text = read_text(*file_);
    if (!text) return text.error();
    auto windows = ScoredWindows::of(**tokenizer, *text, ScoredWindows::kDefaultWindow);
    if (!windows) return windows.error();
    if (auto ok = windows->limit(0, chunks_.value_or(INT32_MAX)); !ok) return ok.error();
    std::optional<Importance> importance;
    if (importance_) {
      auto opened = Importance::open(*importance_);
      if (!opened) return opened.error();
      importance = std::move(*opened);
    }
    const ChoiceWork work{*source, importance ? &*importance : nullptr, *parsed};
    auto costs = planned(work, *options);
    if (!costs) return costs.error();
    if (auto ok = measure(work, std::move(*options), *windows, *costs); !ok) return ok.error();
    const size_t best = least_loss(*costs);
    if (json) print_as_json(work, *windows, *costs, best);
    else print_for_people(work, *windows, *costs, best);
    return best == SIZE_MAX ? kOutOfMemory : kDone;
  }

 private:
  std::vector<std::string> names() const {
    if (candidates_) return split(*candidates_, ',');
    std::vector<std::string> all = usual_mixtures();
    all.insert(all.begin(), kAsItIs);
    return all;
  }

  Result<std::vector<MixtureCost>> planned(const ChoiceWork& work, const EngineOptions& options) {
    EngineOptions own = options;
    Engine engine(backend_registry(), std::move(own), stderr_sink(true));
    std::vector<MixtureCost> costs;
    for (const std::string& name : names()) {
      auto cost = plan_mixture(engine, work, name == kAsItIs ? "" : name);
      if (!cost) return cost.error();
      costs.push_back(std::move(*cost));
    }
    std::sort(costs.begin(), costs.end(), [](const MixtureCost& a, const MixtureCost& b) {
      return a.totals.bytes != b.totals.bytes ? a.totals.bytes > b.totals.bytes : a.mixture < b.mixture;
    });
    return costs;
  }

  Status measure(const ChoiceWork& work, EngineOptions options, const ScoredWindows& text,
                 std::vector<MixtureCost>& costs) {
    Engine engine(backend_registry(), measuring_options(std::move(options), text.window()),
                  stderr_sink(true));
    InterruptGuard guard;
    for (MixtureCost& cost : costs) {
      if (cost.choosable != Choosable::Yes) continue;
      Progress bar(format("measuring {}", name_of(cost)), !quiet, Progress::Unit::Tokens);
      const auto ok = measure_mixture(engine, work, text, cost, [&](int done) {
        bar.update(uint64_t(done) * uint64_t(text.window()),
                   uint64_t(text.windows()) * uint64_t(text.window()));
        return !InterruptGuard::interrupted();
      });
      if (!ok && InterruptGuard::interrupted())
        return Error{Code::Failed, "interrupted", "", reason::kCancelled};
      if (!ok) return ok;
    }
    return Done{};
  }

  // The smallest candidate whose loss cannot be told from the least one: within two standard errors.
  static size_t smallest_as_good(const std::vector<MixtureCost>& costs, size_t best) {
    size_t found = best;
    for (size_t i = 0; i < costs.size(); i++) {
      const Mean more = excess_loss(costs[i], costs[best]);
      if (more.count() && more.value() <= 2 * more.standard_error() &&
          costs[i].planned < costs[found].planned)
        found = i;
    }
    return found;
  }

  void print_as_json(const ChoiceWork& work, const ScoredWindows& text, const std::vector<MixtureCost>& costs,
                     size_t best) const {
    Json j{{"model", work.model.name}, {"budget", nullptr}, {"windows", text.windows()},
           {"window", text.window()},  {"chosen", nullptr}, {"as_good", nullptr}};
    if (budget_) j["budget"] = work.budget;
    if (best != SIZE_MAX) {
      j["chosen"] = name_of(costs[best]);
      if (const size_t small = smallest_as_good(costs, best); small != best)
        j["as_good"] = name_of(costs[small]);
    }
    j["candidates"] = Json::array();
    for (const MixtureCost& c : costs) {
      Json one{{"mixture", name_of(c)},
               {"choosable", gimbal::name_of(c.choosable)},
               {"reason", with_options(c.why)},
               {"bytes", c.totals.bytes},
               {"bits_per_weight", bits_of(c)},
               {"planned_bytes", c.planned},
               {"devices", Json::array()},
               {"host", {{"sessions", c.memory.host.sessions}, {"total", c.memory.host.total}}},
               {"perplexity", nullptr}};
      for (const DeviceMemory& d : c.memory.devices) {
        Json memory = report_json(d.plan);
        memory["device"] = d.device;
        one["devices"].push_back(std::move(memory));
      }
      if (c.loss.count()) {
        const double perplexity = fixed::exp(c.loss.value());
        const Mean more = excess_loss(c, costs[best]);
        one["perplexity"] = perplexity, one["standard_error"] = perplexity * c.loss.standard_error();
        one["nats_per_token"] = c.loss.value(), one["tokens_scored"] = c.loss.count();
        one["excess_nats"] = more.value(), one["excess_standard_error"] = more.standard_error();
      }
      j["candidates"].push_back(std::move(one));
    }
    print_json(j);
  }

  void print_for_people(const ChoiceWork& work, const ScoredWindows& text,
                        const std::vector<MixtureCost>& costs, size_t best) const {
    Table t("lrrrrrl");
    t.row({"mixture", "weights", "bits", "plan", "perplexity", "excess loss", ""});
    for (const MixtureCost& c : costs) {
      const bool made = c.choosable != Choosable::NotMade;
      std::string perplexity = "-", excess = "-";
      if (c.loss.count()) {
        const double value = fixed::exp(c.loss.value());
        const Mean more = excess_loss(c, costs[best]);
        perplexity = format("{:.4f} +- {:.4f}", value, value * c.loss.standard_error());
        excess = &c == &costs[best] ? "0" : format("{:.5f} +- {:.5f}", more.value(), more.standard_error());
      }
      t.row({name_of(c), made ? human_bytes(c.totals.bytes) : "-", made ? format("{:.2f}", bits_of(c)) : "-",
             c.planned ? human_bytes(c.planned) : "-", perplexity, excess,
             c.choosable == Choosable::Yes
                 ? &c == &costs[best] ? "chosen" : ""
                 : format("{}: {}", gimbal::name_of(c.choosable), printable(with_options(c.why)))});
    }
    print(t.text());
    if (best == SIZE_MAX) {
      print("\nNo candidate fits.\n");
      return;
    }
    print(format("\n{} predicts best, of {} tokens in {} windows", bold(name_of(costs[best])),
                 costs[best].loss.count(), text.windows()));
    if (const size_t small = smallest_as_good(costs, best); small != best)
      print(format("; {} takes {} less, and its loss is within two standard errors", name_of(costs[small]),
                   human_bytes(costs[best].planned - costs[small].planned)));
    print(costs[best].mixture.empty()
              ? ".\n"
              : format(".\n  gimbal quantize {} OUT.gguf {}{}\n", printable(work.model.path),
                       costs[best].mixture, importance_ ? " --imatrix " + printable(*importance_) : ""));
    for (const MixtureCost& c : costs)
      if (!quiet && c.mixture.empty() && c.loss.count() && &c != &costs[best])
        note(
            "the original loses more on this text than what was made of it: a longer and more varied text "
            "says more");
  }

  std::string model_;
  std::optional<std::string> budget_, file_, candidates_, importance_;
  std::optional<int> chunks_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_choose() { return std::make_unique<Choose>(); }

}  // namespace gimbal
