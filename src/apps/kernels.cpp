// gimbal kernels: the capability table, straight from the rows that also dispatch. --markdown makes
// docs/kernels.md.
#include <algorithm>

#include "apps/command.h"
#include "apps/shared/json.h"
#include "apps/shared/terminal.h"
#include "discovery/registry.h"
#include "engine/kernel_names.h"
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

struct Entry {
  std::string device;
  gimbal_kernel_info row;
  std::string needs, missing;
};

class Kernels final : public Command {
 public:
  void declare(Arguments& a) override {
    a.flag("--markdown", "print a Markdown document about this build, the same on every machine", markdown_);
  }

  Result<int> run() override {
    if (json && markdown_)
      return Error{Code::Usage, "--json and --markdown each say how to print", "give only one of them"};
    // Kept open: the rows belong to their devices.
    std::vector<std::unique_ptr<Device>> devices;
    for (const BackendReport& backend : discover_backends()) {
      for (const DeviceReport& found : backend.devices) {
        auto opened = open_device({backend.backend, found.index, true});
        if (opened) devices.push_back(std::move(opened->device));
        else note("note: " + printable(opened.error().message));
      }
      if (backend.present && !backend.available)
        note(format("note: {}: {}", backend.backend, printable(backend.message)));
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
  // Only what differs from row to row: the first two inputs and the output.
  static std::string takes(const Entry& e) {
    const DTypeSet second = e.row.in[1].dtypes;
    return list(e.row.in[0].dtypes) + (second ? " with " + list(second) : "") + " to " +
           list(e.row.out[0].dtypes);
  }
  // All 0 where the row has none.
  static gimbal_limit limit(const Entry& e, gimbal_measure what) {
    for (const gimbal_limit& l : std::span(e.row.limits, e.row.n_limits))
      if (l.what == what && l.index == 0) {
        gimbal_limit found = l;
        if (found.max == INT64_MAX) found.max = 0;  // as it was before there were such lists
        return found;
      }
    return {};
  }
  static std::string limits(const Entry& e) {
    std::string out;
    for (const gimbal_limit& l : std::span(e.row.limits, e.row.n_limits)) {
      if (l.what != GIMBAL_ROWS && l.what != GIMBAL_DIM) continue;  // the others are the same for all rows
      out += (out.empty() ? "" : ", ") + std::string(l.name ? l.name : "");
      if (l.multiple) out += format(" a multiple of {}", l.multiple);
      if (l.min > 1) out += format(" from {}", l.min);
      if (l.max < INT64_MAX) out += format(" to {}", l.max);
    }
    return out;
  }

  static void print_as_json(const std::vector<Entry>& all) {
    Json rows = Json::array();
    for (const Entry& e : all)
      rows.push_back({{"kernel", e.row.name},
                      {"device", e.device},
                      {"variant", variant_of(e.row.name)},
                      {"op", info(OpKind(e.row.op)).name},
                      {"rank", e.row.rank},
                      {"numerics", numerics(e)},
                      {"in0", names_of(e.row.in[0].dtypes)},
                      {"in1", names_of(e.row.in[1].dtypes)},
                      {"out", names_of(e.row.out[0].dtypes)},
                      {"k_multiple", limit(e, GIMBAL_DIM).multiple},
                      {"min_rows", limit(e, GIMBAL_ROWS).min},
                      {"max_rows", limit(e, GIMBAL_ROWS).max},
                      {"needs", e.needs},
                      {"available", e.missing.empty()},
                      {"missing", e.missing}});
    print_json({{"kernels", std::move(rows)}});
  }

  static void print_for_people(const std::vector<Entry>& all) {
    int op = -1;
    Table table("llrll");
    auto flush = [&] {
      if (op >= 0) print(bold(info(OpKind(op)).name) + "\n" + table.text("  "));
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
            info(OpKind(op)).name));
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
