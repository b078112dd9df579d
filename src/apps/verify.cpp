// gimbal verify: every kernel of a device, checked on this very machine against the double-precision
// reference.
#include <fnmatch.h>

#include "apps/command.h"
#include "apps/json.h"
#include "apps/options.h"
#include "apps/terminal.h"
#include "program/conformance.h"

namespace gimbal {
namespace {

class Verify final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--kernel", "PATTERN", "only kernels with such a name: 'cpu.avx2.*'", pattern_);
    gimbal::declare(a, engine_, Needs::Device);
  }

  Result<int> run() override {
    auto opened = gimbal::open_device(engine_, quiet);
    if (!opened) return opened.error();
    const Device& d = *opened->device;
    Json rows = Json::array();
    Table table("llrl");
    int passed = 0, failed = 0, not_run = 0;
    Progress bar("verifying", !quiet);
    for (size_t i = 0; i < d.kernel_count(); i++) {
      bar.update(i, d.kernel_count());
      const std::string name = d.kernel(i).name;
      if (pattern_ && fnmatch(pattern_->c_str(), name.c_str(), 0) != 0) continue;
      auto report = check_kernel(d, i);
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
    if (passed + failed + not_run == 0)
      return Error{Code::Usage, format("--kernel '{}' matches no kernel of {}", printable(*pattern_), d.id()),
                   "`gimbal kernels` lists them"};
    if (json) {
      print_json({{"device", d.id()},
                  {"fallbacks", opened->fallbacks},
                  {"passed", passed},
                  {"failed", failed},
                  {"not_run", not_run},
                  {"kernels", std::move(rows)}});
    } else {
      print(table.text());
      print(format("\n{}: {} kernels give the right numbers, {} do not, {} cannot run here\n", d.id(), passed,
                   failed, not_run));
    }
    return failed ? kFailed : kDone;
  }

 private:
  std::optional<std::string> pattern_;
  EngineOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

}  // namespace gimbal
