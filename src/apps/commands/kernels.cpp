// gimbal kernels: the capability table, straight from the rows that also dispatch. --markdown prints it
// as a page.
#include "apps/commands/command.h"
#include "apps/toolkit/json.h"
#include "apps/toolkit/terminal.h"
#include "engine/kernel_list.h"
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
  }

  Result<int> run() override {
    if (json && markdown_)
      return Error{Code::Usage, "--json and --markdown exclude each other", "give only one of them"};
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

  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_kernels() { return std::make_unique<Kernels>(); }

}  // namespace gimbal
