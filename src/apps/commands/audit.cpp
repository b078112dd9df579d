// gimbal audit: checks certificates of answers (docs/audit.md).
#include "audit/audit_many.h"

#include <random>

#include "apps/commands/certificate_input.h"
#include "apps/commands/command.h"
#include "apps/reports/stderr_sink.h"
#include "apps/reports/verdict_reports.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {
namespace {

class Audit final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positionals("CERTIFICATE", "files of `gimbal run --certificate`, or receipts of `gimbal serve`",
                  files_);
    a.whole("--sample", "N", "check N positions of the answer, drawn at random, in place of all", sample_, 1,
            1 << 30);
    a.whole("--seed", "N", "seed of that draw (default: a new one)", seed_, uint64_t(0), UINT64_MAX);
    input_.declare(a);
    a.example("gimbal run -p \"Once upon a time\" --certificate answer.json");
    a.example("gimbal audit answer.json");
    a.example("gimbal audit answer.json -m model.gguf --sample 16");
  }

  Result<int> run() override {
    if (files_.empty())
      return Error{Code::Usage, "there is no certificate to check", "give a file: gimbal audit answer.json"};
    if (!seed_) seed_ = std::random_device()();
    auto plan = input_.plan(quiet);
    if (!plan) return plan.error();
    std::vector<Audited> all;
    for (const std::string& file : files_) read_certificates(file, all);
    Progress bar("checking", !quiet && !json, Progress::Unit::Tokens);
    plan->how = {sample_, *seed_, [&](size_t done, size_t total) { bar.update(done, total); }};
    AuditMany(backend_registry(), std::move(*plan), stderr_sink(quiet)).run(all);
    note_unchecked_signatures(all);
    if (all.size() == 1 && !*all[0].result) return input_.worded(all[0].result->error());
    return print_all(all);
  }

 private:
  // Returns the worst exit code.
  int print_all(const std::vector<Audited>& items) const {
    int worst = kDone;
    Json all = Json::array();
    for (const Audited& item : items) {
      const Result<AuditResult>& r = *item.result;
      worst = std::max(worst, r ? exit_code(r->verdict) : int(exit_code(r.error().code)));
      if (json) {
        all.push_back(r ? audit_json(item) : Json{{"certificate", item.name}, {"error", r.error().message}});
        continue;
      }
      print((items.size() > 1 ? printable(item.name) + ": " : "") +
            (r ? audit_text(item) : "error: " + printable(r.error().message)) + "\n");
    }
    if (json) print_json(all.size() == 1 ? all[0] : all);
    return worst;
  }

  std::vector<std::string> files_;
  std::optional<int> sample_;
  std::optional<uint64_t> seed_;
  CertificateInput input_;
};

}  // namespace

std::unique_ptr<Command> make_audit() { return std::make_unique<Audit>(); }

}  // namespace gimbal
