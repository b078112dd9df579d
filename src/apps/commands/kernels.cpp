// gimbal kernels: the capability table, straight from the rows that also dispatch. --markdown prints it
// as a page.
#include <fnmatch.h>

#include "apps/commands/command.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/kernel_list.h"
#include "engine/kernel_registry.h"
#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

std::vector<std::string> names_of(DTypeSet set) {
  std::vector<std::string> all;
  for (DType t : kAllDTypes)
    if (has(set, t)) all.push_back(info(t).name);
  return all;
}

class Kernels final : public Command {
 public:
  void declare(Arguments& a) override {
    a.flag("--markdown", "print a Markdown document about this build, the same on every machine", markdown_);
    a.flag("--names",
           "list the kernels of the registry by name: which of them this machine can compute, or why not",
           names_);
    a.text("--capable", "NAME",
           "whether this machine can compute a kernel, by its name or a pattern of --names or of this list: "
           "exit code 0 or 1",
           capable_);
  }

  Result<int> run() override {
    if (json && markdown_)
      return Error{Code::Usage, "--json and --markdown exclude each other", "give only one of them"};
    if (int(markdown_) + int(names_) + int(capable_.has_value()) > 1)
      return Error{Code::Usage, "--markdown, --names and --capable exclude each other",
                   "give only one of them"};
    if (names_) return print_names(), int(kDone);
    if (capable_) return answer_capable();
    const KernelList found = list_kernels(backend_registry());
    for (const std::string& n : found.notes) note("note: " + printable(n));
    const std::vector<ListedKernel>& all = found.kernels;
    if (json) print_as_json(all);
    else if (markdown_) print_markdown(all);
    else print_for_people(all);
    return kDone;
  }

 private:
  static std::string list(DTypeSet set) { return fmt::to_string(fmt::join(names_of(set), ", ")); }
  static const char* numerics(const ListedKernel& e) { return e.exact ? "exact" : "fast"; }
  // Only what differs from row to row: the first two inputs and the output.
  static std::string takes(const ListedKernel& e) {
    return list(e.first) + (e.second ? " with " + list(e.second) : "") + " to " + list(e.output);
  }

  static void print_as_json(const std::vector<ListedKernel>& all) {
    Json rows = Json::array();
    for (const ListedKernel& e : all)
      rows.push_back({{"kernel", e.name},
                      {"device", e.device},
                      {"variant", e.variant},
                      {"op", info(OpKind(e.op)).name},
                      {"rank", e.rank},
                      {"numerics", numerics(e)},
                      {"in0", names_of(e.first)},
                      {"in1", names_of(e.second)},
                      {"out", names_of(e.output)},
                      {"k_multiple", e.k_multiple},
                      {"min_rows", e.min_rows},
                      {"max_rows", e.max_rows},
                      {"needs", e.needs},
                      {"available", e.missing.empty()},
                      {"missing", e.missing}});
    print_json({{"kernels", std::move(rows)}});
  }

  static void print_for_people(const std::vector<ListedKernel>& all) {
    int op = -1;
    Table table("llrll");
    auto flush = [&] {
      if (op >= 0) print(bold(info(OpKind(op)).name) + "\n" + table.text("  "));
      table = Table("llrll");
    };
    for (const ListedKernel& e : all) {
      if (e.op != op) flush(), op = e.op;
      table.row(
          {e.name, takes(e), format("rank {}", e.rank),
           format("{}{}{}", numerics(e), e.limits.empty() ? "" : ", ", e.limits),
           e.missing.empty() ? "\u2713" : format("\u2717 needs {}, which {} lacks", e.missing, e.device)});
    }
    flush();
  }

  static void print_markdown(const std::vector<ListedKernel>& all) {
    print(
        "# Kernels\n\nWritten by `gimbal kernels --markdown`. A kernel exists if and only if it has a row "
        "here; the highest rank that fits an op computes it.\n");
    int op = -1;
    for (const ListedKernel& e : all) {
      if (e.op != op) {
        op = e.op;
        print(format(
            "\n## {}\n\n| kernel | takes | rank | numerics | needs | limits |\n|---|---|---|---|---|---|\n",
            info(OpKind(op)).name));
      }
      print(format("| `{}` | {} | {} | {} | {} | {} |\n", e.name, takes(e), e.rank, numerics(e), e.needs,
                   e.limits));
    }
  }

  void print_names() const {
    const KernelCapabilities all = kernel_registry(discover_backends());
    if (json) return print_json(registry_json(all));
    Table table("lll");
    for (const NamedKernelState& k : all.kernels)
      table.row({k.name, k.capable() ? "\u2713" : "\u2717",
                 k.capable() ? format("{} on {}", fmt::join(k.rows, ", "), fmt::join(k.devices, ", "))
                             : printable(k.why_not)});
    print(table.text() + format("\nSIMD level of the CPU: {}. CUDA: {}.\n", to_string(all.simd_level),
                                all.cuda_available ? "available" : "not available"));
  }

  Result<int> answer_capable() const {
    const KernelCapabilities all = kernel_registry(discover_backends());
    if (const auto known = all.is_capable_of(*capable_)) {
      const NamedKernelState& k = all.kernels[size_t(*parse_named_kernel(*capable_))];
      return say(*known, *known ? fmt::to_string(fmt::join(k.devices, ", ")) : k.why_not);
    }
    bool found = false;
    std::string lacks;
    for (const ListedKernel& k : list_kernels(backend_registry()).kernels)
      if (fnmatch(capable_->c_str(), k.name.c_str(), 0) == 0) {
        if (k.missing.empty()) return say(true, k.device);
        found = true, lacks = format("{} lacks {}", k.device, k.missing);
      }
    if (found) return say(false, lacks);
    std::vector<std::string> names;
    for (const NamedKernelState& k : all.kernels) names.push_back(k.name);
    const auto similar = nearest(*capable_, names);
    return Error{Code::Usage, format("--capable: there is no kernel {}", gimbal::quoted(*capable_)),
                 similar ? format("did you mean {}?", *similar)
                         : "`gimbal kernels --names` and `gimbal kernels` list all"};
  }

  int say(bool capable, const std::string& why) const {
    if (json)
      print_json({{"name", *capable_}, {"capable", capable}, {capable ? "devices" : "why_not", why}}, true);
    else print(format("{}: {}\n", capable ? "yes" : "no", printable(why)));
    return capable ? kDone : kFailed;
  }

  bool markdown_ = false, names_ = false;
  std::optional<std::string> capable_;
};

}  // namespace

std::unique_ptr<Command> make_kernels() { return std::make_unique<Kernels>(); }

}  // namespace gimbal
