// gimbal backends (doctor): all backends, usable or not, with reason and remedy; the device that would be
// used; and the sandbox of workers. This process opens only the CPU: a broken driver cannot prevent the
// report about it.
#include <chrono>

#include "apps/commands/command.h"
#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reports/backends_json.h"
#include "apps/reports/next_steps.h"
#include "apps/reports/stderr_sink.h"
#include "apps/reports/verdict_reports.h"
#include "apps/toolkit/library_places.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "discovery/library_validation.h"
#include "discovery/named_kernels.h"
#include "discovery/registry.h"
#include "discovery/summary.h"
#include "engine/engine.h"
#include "engine/kernel_registry.h"
#include "inspection/loaded_libraries.h"
#include "workers/sandbox.h"

namespace gimbal {
namespace {

Json receipt_json(const Reloaded& r) {
  auto code = [](const Reloaded::Code& c) {
    return Json{{"plugin", text_or_null(c.plugin)}, {"build", text_or_null(c.build)}};
  };
  return {{"backend", r.backend},   {"before", code(r.before)}, {"now", code(r.now)},
          {"draining", r.draining}, {"devices", r.devices},     {"kernels", r.kernels}};
}

std::string receipt_text(const Reloaded& r) {
  auto code = [](const Reloaded::Code& c) {
    return c.build.empty() ? c.plugin
                           : format("{} (build {})", c.plugin.empty() ? "built in" : c.plugin, c.build);
  };
  const std::string before = code(r.before);
  return format("{} was replaced\n  before: {}{}\n  now: {}\n  verified: {} kernels on {}\n\n",
                display_name(r.backend), before.empty() ? "not there" : before,
                r.draining ? ", in use until its last model is closed" : "", code(r.now), r.kernels,
                fmt::join(r.devices, ", "));
}

Json sandbox_json(const SandboxTrial& t) {
  return {{"landlock", t.landlock ? Json(t.landlock) : Json()},
          {"in_force", t.sandbox.in_force},
          {"missing", t.sandbox.missing},
          {"forbids", t.forbidden},
          {"allows", t.possible}};
}

std::string sandbox_text(const SandboxTrial& t) {
  const auto list = [](const char* name, const std::vector<std::string>& of) {
    return of.empty() ? std::string() : format("  {}: {}\n", name, fmt::join(of, ", "));
  };
  return format("\nSandbox of a worker on the CPU ({}), tried now\n",
                t.landlock ? format("Landlock version {}", t.landlock) : "no Landlock in this kernel") +
         list("forbids", t.forbidden) + list("allows", t.possible) + list("in force", t.sandbox.in_force) +
         list("missing", t.sandbox.missing);
}

// Whether a C++ inference library is there that gimbal could compute with. Its file is read, not loaded.
Json cpp_ffi_json() {
  const LibrarySearch s = find_libraries(library_places());
  const FoundLibrary* l = s.of("llama");
  if (!l) l = s.of("bitnet");
  if (!l)
    return {{"available", false},
            {"path", nullptr},
            {"reason", s.failure ? s.failure->message : "no C++ inference library was found"}};
  LibraryDemand demand;
  demand.interface = l->kind == "llama" ? &llama_interface() : &bitnet_interface();
  demand.load = false;
  const LibraryValidation v = validate_library(l->path, demand);
  return {{"available", v.usable()}, {"path", l->path}, {"reason", v.usable() ? "" : error_of(v).message}};
}

Json capabilities_json(const BackendCapabilities& c) {
  Json kernels = Json::array();
  for (NamedKernel k : c.quantization_kernels) kernels.push_back(to_string(k));
  return {{"cpu_native", c.cpu_native},
          {"cuda", c.cuda},
          {"cpp_ffi", c.cpp_ffi},
          {"quantization_kernels", std::move(kernels)}};
}

class BackendsCommand final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--reload", "PLUGIN",
           "first replace a backend by this plugin file, in this process: it is verified, or refused",
           reload_);
    a.flag("--libraries", "also look into the libraries that this process has loaded, with the CPU open",
           libraries_);
    declare_choice(a, request_.allow_software, order_);
  }

  Result<int> run() override {
    auto order = backend_order(order_);
    if (!order) return order.error();
    request_.order = *order;
    const SandboxTrial sandbox = try_sandbox();  // before this process has threads
    std::optional<Reloaded> reloaded;
    if (reload_) {
      Engine engine(backend_registry(), {}, stderr_sink(quiet));
      auto done = engine.reload_backend(*reload_);
      if (!done) return done.error();
      reloaded = std::move(*done);
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto reports = discover_backends();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const auto best = choose_device(reports, request_);
    std::vector<Variant> variants;
    auto cpu = gimbal::open_device({"cpu", 0, true});
    if (cpu) variants = variants_of(*cpu->device);
    const auto next =
        next_steps({reports, best, find_models(), gpu_device_files(), find_command("pull") != nullptr});
    if (json)
      return print_as_json(reports, best, variants, taken.count(), reloaded, next, sandbox),
             exit_code_of(best);
    if (reloaded) print(printable(receipt_text(*reloaded), true));
    print_for_people(reports, best, variants);
    print(printable(sandbox_text(sandbox), true));
    if (libraries_) print("\nLibraries loaded now\n" + libraries_text(loaded_libraries()));
    print("\nWhat to do next\n");
    Table table("ll");
    for (const NextStep& step : next) table.row({printable(step.command), printable(step.why)});
    print(table.text("  "));
    return exit_code_of(best);
  }

 private:
  static int exit_code_of(const Result<DeviceChoice>& best) { return best ? kDone : kNoBackend; }

  void print_as_json(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                     const std::vector<Variant>& variants, double seconds,
                     const std::optional<Reloaded>& reloaded, const std::vector<NextStep>& next,
                     const SandboxTrial& sandbox) const {
    Json all = backends_json(reports, best, variants, seconds);
    all["sandbox"] = sandbox_json(sandbox);
    all["cpp_ffi"] = cpp_ffi_json();
    all["capabilities"] = capabilities_json(backend_capabilities(reports, all["cpp_ffi"]["available"]));
    if (libraries_) all["libraries"] = libraries_json(loaded_libraries());
    if (reloaded) all["reloaded"] = receipt_json(*reloaded);
    for (const NextStep& step : next) all["next"].push_back({{"command", step.command}, {"why", step.why}});
    print_json(all);
  }

  void print_for_people(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                        const std::vector<Variant>& variants) const {
    print(printable(backend_summary(reports, best), true));
    if (best) print(format("  why: {}\n", best->why));
    std::string line;
    for (const Variant& v : variants)
      line += (line.empty() ? "" : ", ") + v.name +
              (v.missing.empty() ? "" : format(" (no: needs {})", v.missing));
    if (!line.empty()) print(format("  instruction sets of the CPU's kernels: {}\n", line));
  }

  SelectionRequest request_;
  std::optional<std::string> order_, reload_;
  bool libraries_ = false;
};

}  // namespace

std::unique_ptr<Command> make_backends() { return std::make_unique<BackendsCommand>(); }

}  // namespace gimbal
