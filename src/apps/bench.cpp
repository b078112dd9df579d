// gimbal bench: how fast prompts and generation are here, and how near to what the memory allows.
#include <algorithm>
#include <chrono>

#include "apps/bandwidth.h"
#include "apps/command.h"
#include "apps/run_report.h"
#include "apps/terminal.h"
#include "ops/cost.h"
#include "runtime/random.h"
#include "runtime/session.h"

namespace gimbal {
namespace {

constexpr uint64_t kBuffer = 512 << 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Spread {
  double median = 0, least = 0, most = 0;
};
Spread spread(std::vector<double> v) {
  if (v.empty()) return {};
  std::sort(v.begin(), v.end());
  const size_t half = v.size() / 2;
  return {v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2, v.front(), v.back()};
}

// Most memory that the process had at one time, as the kernel counted it.
uint64_t peak_memory() {
  std::FILE* f = std::fopen("/proc/self/status", "re");
  unsigned long kilobytes = 0;
  for (char line[256]; f && std::fgets(line, sizeof line, f);)
    if (std::sscanf(line, "VmHWM: %lu", &kilobytes) == 1) break;
  if (f) std::fclose(f);
  return uint64_t(kilobytes) * 1024;
}

// Bytes of weights that a token needs: every matrix whole, one row of an embedding table.
double weight_bytes_per_token(const Bucket& b) {
  double bytes = 0;
  const gimbal_step one{1, 1};
  for (const gimbal_op& op : b.program.ops) {
    if (OpKind(op.kind) == OpKind::Embed) {
      bytes +=
          cost(OpKind::Embed, b.program.input_shapes(op, one), b.program.output_shape(op, one)).bytes_read;
      continue;
    }
    for (int i = 0; i < op.inputs; i++)
      if (b.program.values[op.in[i]].slot == uint32_t(Slot::Weights))
        bytes += double(b.program.info[op.in[i]].shape.bytes());
  }
  return bytes;
}

struct Numbers {
  std::vector<double> prompt, generation;  // tokens per second, one per repetition
  std::vector<double> first_token;         // seconds
  double weight_bytes = 0;
  uint64_t peak = 0;
};

class Bench final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("MODEL", kModelHelp, model_);
    a.whole("-p,--prompt-tokens", "N", "tokens of the prompt; 0: skip it (default 512)", prompt_, 0, 1 << 20);
    a.whole("-n,--generate-tokens", "N", "tokens to generate; 0: skip it (default 128)", generate_, 0,
            1 << 20);
    a.whole("-r,--repetitions", "N", "measurements; their median is shown (default 5)", repetitions_, 1,
            1000);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal bench model.gguf -p 512 -n 128 -t 2");
  }

  Result<int> run() override {
    auto options = run_options(engine_);
    if (!options) return options.error();
    const int prompt = prompt_.value_or(512), generate = generate_.value_or(128);
    if (prompt == 0 && generate == 0)
      return Error{Code::Usage, "-p 0 and -n 0 leave nothing to measure", "give at least one of them"};
    if (options->context == 0) options->context = std::max({prompt, generate + 1, 2});
    if (options->context < std::max(prompt, generate + 1))
      return Error{
          Code::Usage,
          format("--ctx {} is too small for {} tokens", options->context, std::max(prompt, generate + 1)),
          "leave --ctx out, or make -p and -n smaller"};
    auto source = open_model_file(model_);
    if (!source) return source.error();
    auto loaded = load_model(std::move(*source), engine_, *options, true);
    if (!loaded) return loaded.error();
    auto numbers = measure(*loaded->model, prompt, generate);
    if (!numbers) return numbers.error();
    const int threads = std::max<int>(1, int(loaded->model->device().describe().threads));
    auto memory = measure_read_bandwidth(threads, kBuffer);
    if (!memory) return memory.error();
    if (json) print_as_json(*loaded, *numbers, *memory, prompt, generate);
    else print_for_people(*loaded, *numbers, *memory, prompt, generate);
    return kDone;
  }

 private:
  Result<Numbers> measure(Model& model, int prompt, int generate) const {
    auto session = Session::create(model);
    if (!session) return session.error();
    Session& s = **session;
    Random random(1);  // the same tokens every time
    const auto vocabulary = uint64_t(model.config().vocabulary);
    std::vector<int32_t> tokens(size_t(std::max(prompt, generate + 1)));
    for (int32_t& t : tokens) t = int32_t(random.next() % vocabulary);
    Numbers n;
    n.weight_bytes = weight_bytes_per_token(model.blueprint().buckets.front());
    const int repetitions = repetitions_.value_or(5);
    Progress bar("measuring", !quiet);
    int best = 0;
    auto choose = [&](size_t, std::span<const float> logits) {
      best = int(std::max_element(logits.begin(), logits.end()) - logits.begin());
    };
    for (int r = -1; r < repetitions; r++) {  // the first one is for warming up
      if (prompt > 0) {
        s.rewind(0);
        const double begin = now();
        if (auto ok = s.advance(std::span(tokens).first(size_t(prompt)), Session::Wanted::Last, choose); !ok)
          return ok.error();
        const double taken = now() - begin;
        if (r >= 0) n.prompt.push_back(prompt / taken), n.first_token.push_back(taken);
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
        if (r >= 0) n.generation.push_back(generate / (now() - begin));
      }
      bar.update(uint64_t(r + 2), uint64_t(repetitions + 1));
    }
    n.peak = peak_memory();
    return n;
  }

  static Json spread_json(const std::vector<double>& v) {
    if (v.empty()) return {};
    const Spread s = spread(v);
    return {{"median", s.median}, {"min", s.least}, {"max", s.most}};
  }

  void print_as_json(const LoadedModel& l, const Numbers& n, const Bandwidth& memory, int prompt,
                     int generate) const {
    const double speed = spread(n.generation).median * n.weight_bytes;
    const Blueprint& b = l.model->blueprint();
    Json kernels = Json::array();
    for (const KernelCount& k : count_kernels(l.model->device(), b.buckets.front()))
      kernels.push_back({{"op", k.op}, {"kernel", k.kernel}, {"ops", k.ops}});
    print_json({{"model", l.source.name},
                {"device", l.model->device().id()},
                {"fallbacks", l.opened.fallbacks},
                {"threads", memory.threads},
                {"prompt_tokens", prompt},
                {"generated_tokens", generate},
                {"repetitions", repetitions_.value_or(5)},
                {"prompt_tokens_per_second", spread_json(n.prompt)},
                {"generation_tokens_per_second", spread_json(n.generation)},
                {"first_token_seconds", spread_json(n.first_token)},
                {"weight_bytes_per_token", n.weight_bytes},
                {"weight_bytes_per_second", speed},
                {"memory_bytes_per_second", memory.bytes_per_second},
                {"memory_share", speed / memory.bytes_per_second},
                {"load_seconds", l.load_seconds},
                {"peak_memory_bytes", n.peak},
                {"memory", memory_json(b.memory)},
                {"kernels", std::move(kernels)}});
  }

  void print_for_people(const LoadedModel& l, const Numbers& n, const Bandwidth& memory, int prompt,
                        int generate) const {
    const Device& d = l.model->device();
    print(format("{} on {}, {} threads, median of {} (lowest to highest)\n\n", bold(printable(l.source.name)),
                 bold(d.id()), memory.threads, repetitions_.value_or(5)));
    Table t("lrl");
    auto speed = [&](const std::string& what, const std::vector<double>& v) {
      const Spread s = spread(v);
      t.row({what, format("{:.2f} tokens/s", s.median), format("({:.2f} to {:.2f})", s.least, s.most)});
    };
    if (!n.prompt.empty()) speed(format("prompt of {}", prompt), n.prompt);
    if (!n.generation.empty()) {
      speed(format("generation of {}", generate), n.generation);
      const double rate = spread(n.generation).median * n.weight_bytes;
      const bool cached = n.weight_bytes < 64e6;
      t.row({"weights read", format("{:.2f} GB/s", rate / 1e9),
             format("{} a token; {:.0f} % of the memory's speed{}", human_bytes(uint64_t(n.weight_bytes)),
                    100 * rate / memory.bytes_per_second,
                    cached ? " (says little: a cache may hold them)" : "")});
    }
    if (!n.first_token.empty())
      t.row({"first token", format("{:.1f} ms", spread(n.first_token).median * 1e3),
             "from the prompt to the numbers of the first token"});
    t.row({"loading", format("{:.1f} ms", l.load_seconds * 1e3), ""});
    t.row({"peak memory", human_bytes(n.peak), "of the whole process"});
    t.row({"memory speed", format("{:.2f} GB/s", memory.bytes_per_second / 1e9),
           format("{} threads adding up a buffer of {}, best of {} passes", memory.threads,
                  human_bytes(memory.buffer), memory.passes)});
    print(t.text());
    std::string kernels;
    for (const KernelCount& k : count_kernels(d, l.model->blueprint().buckets.front()))
      if (k.op == "mat_mul") kernels += (kernels.empty() ? "" : ", ") + k.kernel;
    print(format("\nmatrices computed by {} (`gimbal explain` says why)\n", kernels));
  }

  std::string model_;
  std::optional<int> prompt_, generate_, repetitions_;
  EngineOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<Bench>(); }

}  // namespace gimbal
