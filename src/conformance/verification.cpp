#include "conformance/verification.h"

#include <set>

#include "base/format.h"
#include "conformance/conformance.h"

namespace gimbal {

Status verify_kernels(const Device& device, const std::vector<size_t>& kernels, KernelVerdicts& known,
                      const VerificationProgress& progress) {
  KernelChecks checks;
  for (size_t i : by_cases(device, kernels)) {
    const char* name = device.kernel(i).name;
    if (known.count(name)) continue;
    if (progress && !progress(name)) return Error{Code::Failed, "verification was cancelled", ""};
    auto report = checks.check(device, i);
    if (!report)
      return Error{
          report.error().code,
          format("{}: while its kernel {} was verified: {}", device.id(), name, report.error().message),
          report.error().remedy};
    KernelVerdict& v = known[name];
    v.cases = report->cases;
    v.passed = report->cases > 0 && report->failed == 0;
    if (report->failed)
      v.wrong = format("wrong numbers on this machine in {} of {} cases ({})", report->failed, report->cases,
                       report->failures.front());
    else if (report->cases == 0) v.wrong = "no conformance case reaches it: " + report->not_run;
  }
  return Done{};
}

std::vector<size_t> kernels_of(const std::vector<Choice>& choices) {
  std::set<size_t> all;
  for (const Choice& c : choices) all.insert(c.kernel);
  return {all.begin(), all.end()};
}

std::vector<Quarantined> quarantined(const KernelVerdicts& known) {
  std::vector<Quarantined> all;
  for (const auto& [name, v] : known)
    if (!v.passed) all.push_back({name, v.wrong});
  return all;
}

}  // namespace gimbal
