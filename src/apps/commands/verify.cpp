// gimbal verify: tests every kernel of a device on this machine against the double-precision reference; and
// a model against itself and against the CPU. Its output is suitable for bug reports.
#include <fnmatch.h>
#include <sys/utsname.h>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "conformance/conformance.h"
#include "engine/machine_cache.h"
#include "runtime/model_check.h"

namespace gimbal {
namespace {

class VerifyCommand final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model("also check this model: prompts cut in several ways, its first layers against the CPU", model_);
    a.text("--kernel", "PATTERN", "check only kernels whose name matches, such as 'cpu.avx2.*'", pattern_);
    gimbal::declare(a, engine_, Needs::Model);
  }

  Result<int> run() override {
    auto options = engine_options(engine_);
    if (!options) return options.error();
    options->refresh = true;  // verify the current state, not a remembered one
    options->tensors = true;
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    std::optional<ModelFile> source;
    if (!model_.empty()) {
      auto found = open_model(model_, engine_, quiet);
      if (!found) return found.error();
      source = std::move(*found);
    }
    auto opened = engine.open_device();
    if (!opened) return opened.error();
    const Device& d = *opened->device;
    Json rows = Json::array();
    Table table("llrl");
    int passed = 0, failed = 0, not_run = 0;
    std::vector<size_t> wanted;
    for (size_t i = 0; i < d.kernel_count(); i++)
      if (!pattern_ || fnmatch(pattern_->c_str(), d.kernel(i).name, 0) == 0) wanted.push_back(i);
    if (wanted.empty())
      return Error{Code::Usage, format("--kernel '{}' matches no kernel of {}", printable(*pattern_), d.id()),
                   "`gimbal kernels` lists them"};
    wanted = by_cases(d, std::move(wanted));
    KernelChecks checks;
    Progress bar("verifying", !quiet, Progress::Unit::Kernels);
    for (size_t done = 0; done < wanted.size(); done++) {
      bar.update(done, wanted.size());
      const size_t i = wanted[done];
      const std::string name = d.kernel(i).name;
      auto report = checks.check(d, i);
      if (!report) return report.error();
      const KernelReport& r = *report;
      const bool bad = r.failed > 0 || r.unreachable;
      const char* state = bad ? "failed" : r.cases ? "passed" : "not-run";
      (bad ? failed : r.cases ? passed : not_run)++;
      rows.push_back({{"kernel", name},
                      {"state", state},
                      {"cases", r.cases},
                      {"failed", r.failed},
                      {"worst_share_of_tolerance", r.worst},
                      {"bits", format("{:016x}", r.bits.value())},
                      {"not_run", r.not_run},
                      {"failures", r.failures}});
      table.row({bad       ? "\u2717"
                 : r.cases ? "\u2713"
                           : "-",
                 name, r.cases ? format("{} cases", r.cases) : "",
                 r.cases ? format("worst error {:.0f} % of the tolerance", 100 * r.worst)
                         : "not run: " + r.not_run});
      for (const std::string& f : r.failures) table.row({"", "  " + printable(f)});
    }
    std::vector<Trial> trials;
    if (source) {
      auto tried = try_out(engine, *source, d);
      if (!tried) return tried.error();
      trials = std::move(*tried);
    }
    for (const Trial& t : trials) (t.check.passed() ? passed : failed)++;
    if (json) {
      print_json({{"machine", machine()},
                  {"build", build_id()},
                  {"device", d.id()},
                  {"device_name", text_or_empty(d.describe().name)},
                  {"driver", text_or_empty(d.describe().driver)},
                  {"features", d.features()},
                  {"model", source ? Json(source->name) : Json()},
                  {"model_checks", trials_json(trials)},
                  {"fallbacks", sentences(opened->fallbacks)},
                  {"passed", passed},
                  {"failed", failed},
                  {"not_run", not_run},
                  {"kernels", std::move(rows)}});
    } else {
      print(format("gimbal {} ({}) on {}\n{}: {}{}\nfeatures: {}\n\n", GIMBAL_VERSION, build_id(), machine(),
                   d.id(), printable(text_or_empty(d.describe().name)),
                   d.describe().driver ? format(", driver {}", printable(d.describe().driver)) : "",
                   d.features()));
      print(table.text());
      for (const Trial& t : trials)
        print(format("{}  {}: {}: {}\n", t.check.passed() ? "\u2713" : "\u2717", printable(source->name),
                     t.what,
                     !t.check.passed() ? printable(t.check.wrong)
                     : t.check.equal   ? "the same bits"
                                       : format("differs by {:.2g} at most", t.check.worst)));
      print(format("\n{}: {} {} right, {} wrong, {} cannot run here\n", d.id(), passed,
                   source ? "kernels and trials" : "kernels", failed, not_run));
    }
    return failed ? kFailed : kDone;
  }

 private:
  struct Trial {
    std::string what;
    ModelCheck check;
  };

  static std::string text_or_empty(const char* text) { return text ? text : ""; }

  static std::string machine() {
    utsname u{};
    if (uname(&u) != 0) return "an unknown system";
    return format("{} {} {}", u.sysname, u.release, u.machine);
  }

  static Json trials_json(const std::vector<Trial>& trials) {
    Json all = Json::array();
    for (const Trial& t : trials)
      all.push_back({{"check", t.what},
                     {"passed", t.check.passed()},
                     {"same_bits", t.check.equal},
                     {"worst", t.check.worst},
                     {"wrong", t.check.wrong}});
    return all;
  }

  static Result<std::vector<Trial>> try_out(Engine& engine, const ModelFile& source, const Device& d) {
    RunOptions options = engine.options().run;
    std::vector<Trial> all;
    if (!is_host(d)) {
      if (auto cpu = engine.open_host()) {
        auto check = check_first_layers(*source.file, d, **cpu, options);
        if (!check) return check.error();
        all.push_back({format("its first layers against {}", (*cpu)->id()), *check});
      }
    }
    options.context = 64;
    auto plan = make_model_plan(*source.file, d, options);
    if (!plan) return plan.error();
    auto model = Model::load(std::move(*plan), *source.file);
    if (!model) return model.error();
    auto check = check_splits(**model);
    if (!check) return check.error();
    all.push_back({"a prompt in one batch, in two, and token by token", *check});
    return all;
  }

  std::string model_;
  std::optional<std::string> pattern_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<VerifyCommand>(); }

}  // namespace gimbal
