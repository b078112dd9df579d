// gimbal explain: the kernel of every op, the reason, and why not the others. A run uses the same kernels.
#include <algorithm>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/run_report.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/explanation.h"

namespace gimbal {
namespace {

class Explain final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.flag("--all", "list every op on its own line, equal ones too", all_);
    a.text("--mmproj", "FILE", "also explain the encoder of pictures in this projector file", mmproj_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal explain model.gguf --prefer-kernel 'cpu.avx2.*'");
  }

  Result<int> run() override {
    auto planned = plan_model(model_, engine_, quiet, &Engine::plan_verified, "off", mmproj_);
    if (!planned) return planned.error();
    if (json) print_as_json(*planned);
    else print_for_people(planned->model);
    if (!json && planned->image) print_image(*planned->image);
    return kDone;
  }

 private:
  // `one`, `several`: the purposes of the buckets with one row and with more.
  static Json buckets_json(const ModelPlan& b, const char* one, const char* several) {
    Json buckets = Json::array();
    for (size_t which : b.distinct_buckets()) {
      std::vector<ExplainedOp> ops;
      for (const Stage& stage : b.stages) {
        const Bucket& bucket = stage.buckets[which];
        std::vector<ExplainedOp> here =
            explain_ops(*stage.device, bucket.program, bucket.choices, b.options.kernels);
        for (size_t i = 0; i < here.size(); i++) {
          here[i].moved = with_options(moved_by(b, bucket, i));
          ops.push_back(std::move(here[i]));
        }
      }
      buckets.push_back({{"purpose", which == b.bucket_for(1) ? one : several},
                         {"rows", b.stages[0].buckets[which].rows},
                         {"ops", report_json(ops)}});
    }
    return buckets;
  }

  static void print_as_json(const Planned& planned) {
    const PlannedModel& p = planned.model;
    const ModelPlan& b = p.plan;
    Json leading = Json::array();
    for (const TopLogitsProgram& l : b.last().top)
      leading.push_back(
          {{"k", l.k},
           {"ops", report_json(explain_ops(b.device(), l.program, l.choices, b.options.kernels))}});
    Json j = {{"model", p.source.name},
              {"device", b.device().id()},
              {"device_reason", reason_of(p.opened)},
              {"placement", report_json(worded_placement(b, p.opened))},
              {"kv_type", info(b.options.cache_type).name},
              {"kv_rotation", report_json(RotationChoice{b.rotation.rotated, with_options(b.rotation.why)})},
              {"fallbacks", sentences(p.fallbacks)},
              {"buckets", buckets_json(b, "generation", "prompt")},
              {"leading", std::move(leading)}};
    if (const PlannedModel* i = planned.image.get())
      j["image"] = {{"model", i->source.name},
                    {"device", i->plan.device().id()},
                    {"device_reason", reason_of(i->opened)},
                    {"buckets", buckets_json(i->plan, "picture", "picture")}};
    print_json(j);
  }

  void print_image(const PlannedModel& p) const {
    const ModelPlan& b = p.plan;
    print(format("\n{} on {} ({})\n", bold(printable(p.source.name)), bold(b.device().id()), p.opened.why));
    for (size_t which : b.distinct_buckets()) {
      print(format("\n{}\n",
                   bold(format("Pictures: up to {} patches a step", b.stages[0].buckets[which].rows))));
      for (const Stage& stage : b.stages) print_stage(b, stage, stage.buckets[which]);
    }
  }

  // Alternatives by reason: "not cpu.avx2.mat_mul.f16, ...: does not take q8_0". Kernels for other formats
  // are many and their reason is plain: they are counted.
  static std::string alternatives(const Device& d, const std::vector<Rejected>& rejected) {
    constexpr size_t kNamed = 4;
    std::string out;
    for (const auto& [why, kernels] : by_reason(rejected, d)) {
      if (kernels.size() > kNamed) out += format("      not {} others: {}\n", kernels.size(), why);
      else out += format("      not {}: {}\n", fmt::join(kernels, ", "), why);
    }
    return out;
  }

  struct Group {
    std::string op, why, others, kernel;
    int ops = 0;
  };

  // `moved`: of every op, with_options(moved_by()); empty: none was moved.
  static std::vector<Group> groups(const Device& d, const Program& program,
                                   const std::vector<Choice>& choices, const KernelPreference& wish,
                                   const std::vector<std::string>& moved) {
    std::vector<Group> all;
    for (size_t i = 0; i < program.ops.size(); i++) {
      const gimbal_op& op = program.ops[i];
      const Choice& c = choices[i];
      Group g{format("{} {}", info(OpKind(op.kind)).name, info(DType(program.values[op.in[0]].dtype)).name),
              why_chosen(c, wish), alternatives(d, rejections(program, op, d, wish)), d.kernel(c.kernel).name,
              1};
      if (!moved.empty() && !moved[i].empty()) g.why += format("; on {} by {}", d.id(), moved[i]);
      auto same = std::find_if(all.begin(), all.end(), [&](const Group& o) {
        return o.op == g.op && o.kernel == g.kernel && o.why == g.why && o.others == g.others;
      });
      if (same != all.end()) same->ops++;
      else all.push_back(std::move(g));
    }
    return all;
  }

  void print_for_people(const PlannedModel& p) const {
    const ModelPlan& b = p.plan;
    if (b.split()) {
      print(format("{} on {} devices\n", bold(printable(p.source.name)), device_count(b)));
      for (const std::string& line : placement_lines(p)) print(format("  {}\n", line));
    } else {
      print(format("{} on {} ({})\n", bold(printable(p.source.name)), bold(b.device().id()),
                   b.stages[0].why.empty() ? p.opened.why : with_options(b.stages[0].why)));
    }
    for (const std::string& line : packed_lines(b)) print(format("  weights {}\n", line));
    print(format("  KV cache in {}\n", cache_line(b)));
    for (size_t which : b.distinct_buckets()) {
      print(format("\n{}\n", bold(which == b.bucket_for(1) ? "Generation: one token a step"
                                                           : format("Prompt: up to {} tokens a step",
                                                                    b.stages[0].buckets[which].rows))));
      for (const Stage& stage : b.stages) print_stage(b, stage, stage.buckets[which]);
    }
    for (const TopLogitsProgram& l : b.last().top) {
      print(
          format("\n{}\n", bold(l.k == 1 ? "After a step, for greedy sampling: the largest logit"
                                         : format("After a step, for --top-k: the {} largest logits", l.k))));
      print_ops(b.device(), l.program, l.choices, b.options.kernels);
    }
    if (b.last().top.empty())
      print(format("\nAfter a step all logits are copied from {}: it has no kernel for the largest.\n",
                   b.device().id()));
  }

  void print_stage(const ModelPlan& b, const Stage& stage, const Bucket& bucket) const {
    const Device& d = *stage.device;
    if (b.split()) {
      uint64_t given = 0;
      size_t times = 0;
      for (const StagePart& part : bucket.parts) {
        for (const Transfer& h : part.in) given += h.row_bytes;
        times += !part.in.empty();
      }
      print(format("{}: {}{}{}\n", bold(d.id()), contents(stage),
                   given ? format(", after {} per token through the host", human_bytes(given)) : "",
                   times > 1 ? format(" in {} transfers", times) : ""));
    }
    std::vector<std::string> moved;
    for (size_t i = 0; i < bucket.rules.size(); i++) moved.push_back(with_options(moved_by(b, bucket, i)));
    print_ops(d, bucket.program, bucket.choices, b.options.kernels, moved);
  }

  void print_ops(const Device& d, const Program& program, const std::vector<Choice>& choices,
                 const KernelPreference& wish, const std::vector<std::string>& moved = {}) const {
    if (all_) {
      const bool any = std::any_of(moved.begin(), moved.end(), [](auto& m) { return !m.empty(); });
      Table t(any ? "llllll" : "lllll");
      for (size_t i = 0; i < program.ops.size(); i++) {
        const gimbal_op& op = program.ops[i];
        std::vector<std::string> row = {printable(program.output(op).name), info(OpKind(op.kind)).name,
                                        to_string(program.output(op).shape), d.kernel(choices[i].kernel).name,
                                        why_chosen(choices[i], wish)};
        if (any) row.push_back(printable(moved[i]));
        t.row(row);
      }
      print(t.text("  "));
      return;
    }
    for (const Group& g : groups(d, program, choices, wish, moved))
      print(format("  {}, {} op{}: {}, {}\n{}", g.op, g.ops, g.ops == 1 ? "" : "s", bold(g.kernel), g.why,
                   dim(g.others)));
  }

  std::string model_;
  std::optional<std::string> mmproj_;
  bool all_ = false;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

}  // namespace gimbal
