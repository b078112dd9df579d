// gimbal kernels: the capability table, straight from the rows that also dispatch. --markdown makes
// docs/kernels.md.
#include <algorithm>

#include "apps/command.h"
#include "apps/json.h"
#include "apps/kernel_names.h"
#include "apps/terminal.h"
#include "discovery/registry.h"
#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

std::vector<std::string> names_of(DTypeSet set) {
  std::vector<std::string> all;
  for (int t = 0; t < int(DType::Count); t++)
    if (has(set, DType(t))) all.push_back(info(DType(t)).name);
  return all;
}

struct Entry {
  std::string device;
  gimbal_kernel_info row;
  std::string needs, missing;
};

class Kernels final : public Command {
 public:
  void declare(Arguments& a) override {
    a.flag("--markdown", "as a document about this build, whatever machine it runs on", markdown_);
  }

  Result<int> run() override {
    // Kept open: the rows belong to their devices.
    std::vector<std::unique_ptr<Device>> devices;
    for (const BackendReport& backend : discover_backends()) {
      for (const DeviceReport& found : backend.devices) {
        auto opened = open_device({backend.backend, found.index, true});
        if (opened) devices.push_back(std::move(opened->device));
        else note("note: " + printable(opened.error().message));
      }
      if (backend.present && !backend.available)
        note(format("note: {}: {}", backend.backend, printable(backend.reason)));
    }
    std::vector<Entry> all;
    for (const auto& d : devices) {
      const gimbal_device_info about = d->describe();
      for (size_t i = 0; i < d->kernel_count(); i++)
        all.push_back(
            {d->id(), d->kernel(i), needs_of(d->kernel(i), about), missing_of(d->kernel(i), about)});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Entry& a, const Entry& b) { return a.row.op < b.row.op; });
    if (json) print_as_json(all);
    else if (markdown_) print_markdown(all);
    else print_for_people(all);
    return kDone;
  }

 private:
  static std::string list(DTypeSet set) { return fmt::to_string(fmt::join(names_of(set), ", ")); }
  static const char* numerics(const Entry& e) { return e.row.numerics == GIMBAL_EXACT ? "exact" : "fast"; }
  // Only what decides: the second input of an op with one input means nothing.
  static std::string takes(const Entry& e) {
    const bool two = kOps[e.row.op].most_inputs > 1;
    return list(e.row.in0) + (two ? " with " + list(e.row.in1) : "") + " to " + list(e.row.out);
  }
  static std::string limits(const Entry& e) {
    std::string out;
    if (e.row.k_multiple > 1) out += format("rows of a multiple of {} values", e.row.k_multiple);
    if (e.row.min_rows) out += format("{}{} rows and more", out.empty() ? "" : ", ", e.row.min_rows);
    if (e.row.max_rows) out += format("{}at most {} rows", out.empty() ? "" : ", ", e.row.max_rows);
    return out;
  }

  static void print_as_json(const std::vector<Entry>& all) {
    Json rows = Json::array();
    for (const Entry& e : all)
      rows.push_back({{"kernel", e.row.name},
                      {"device", e.device},
                      {"variant", variant_of(e.row.name)},
                      {"op", kOps[e.row.op].name},
                      {"rank", e.row.rank},
                      {"numerics", numerics(e)},
                      {"in0", names_of(e.row.in0)},
                      {"in1", names_of(e.row.in1)},
                      {"out", names_of(e.row.out)},
                      {"k_multiple", e.row.k_multiple},
                      {"min_rows", e.row.min_rows},
                      {"max_rows", e.row.max_rows},
                      {"needs", e.needs},
                      {"available", e.missing.empty()},
                      {"missing", e.missing}});
    print_json({{"kernels", std::move(rows)}});
  }

  static void print_for_people(const std::vector<Entry>& all) {
    int op = -1;
    Table table("llrll");
    auto flush = [&] {
      if (op >= 0) print(bold(kOps[op].name) + "\n" + table.text("  "));
      table = Table("llrll");
    };
    for (const Entry& e : all) {
      if (e.row.op != op) flush(), op = e.row.op;
      table.row(
          {e.row.name, takes(e), format("rank {}", e.row.rank),
           format("{}{}{}", numerics(e), limits(e).empty() ? "" : ", ", limits(e)),
           e.missing.empty() ? "\u2713" : format("\u2717 needs {}, which {} lacks", e.missing, e.device)});
    }
    flush();
  }

  static void print_markdown(const std::vector<Entry>& all) {
    print(
        "# Kernels\n\nWritten by `gimbal kernels --markdown`. A kernel exists if and only if it has a row "
        "here; the highest rank that fits an op computes it.\n");
    int op = -1;
    for (const Entry& e : all) {
      if (e.row.op != op) {
        op = e.row.op;
        print(format(
            "\n## {}\n\n| kernel | takes | rank | numerics | needs | limits |\n|---|---|---|---|---|---|\n",
            kOps[op].name));
      }
      print(format("| `{}` | {} | {} | {} | {} | {} |\n", e.row.name, takes(e), e.row.rank, numerics(e),
                   e.needs, limits(e)));
    }
  }

  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_kernels() { return std::make_unique<Kernels>(); }

}  // namespace gimbal
