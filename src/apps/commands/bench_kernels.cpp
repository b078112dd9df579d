#include "apps/commands/bench_kernels.h"

#include <fnmatch.h>

#include <algorithm>

#include "apps/reports/limits.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "conformance/conformance.h"
#include "conformance/kernel_speed.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

constexpr int kFewRows = 64;  // below that a product waits for memory, from here on it computes

struct Line {
  size_t kernel;
  DType format;
  std::vector<std::optional<KernelSpeed>> speeds;  // one per requested number of rows
  std::string trouble;                             // the reason for a missing speed
};

// The main number: bytes read for few rows, operations for many. Ops whose data fit a cache have no limit.
struct Rating {
  double rate = 0;  // bytes or operations per second
  bool bytes = true;
  const char* limit = nullptr;
  std::optional<double> share;
};
Rating rate(OpKind kind, const KernelSpeed& s, int asked, const std::optional<Limits>& l) {
  Rating r;
  const bool product = def(kind).product;
  r.bytes = !product || asked < kFewRows;
  r.rate =
      (r.bytes ? s.cost.bytes_read + (product ? 0 : s.cost.bytes_written) : s.cost.operations) / s.seconds;
  if (!product) return r;
  r.limit = r.bytes ? "read" : s.int8 ? "int8" : "fp32";
  if (l) r.share = r.rate / (r.bytes ? l->read : s.int8 ? l->int8 : l->fp32);
  return r;
}

std::string cell(OpKind kind, const std::optional<KernelSpeed>& s, const std::optional<Limits>& l,
                 int asked) {
  if (!s) return "-";
  const Rating r = rate(kind, *s, asked, l);
  std::string text = r.bytes ? format("{:.1f} GB/s", r.rate / 1e9) : human_operations(r.rate);
  if (r.share) text += format(" {:3.0f} %", 100 * *r.share);
  if (s->rows != asked) text += format(" ({} rows)", s->rows);
  return text;
}

// Memory that a kernel's own layout of the weights takes, against the file's.
double inflation(const KernelSpeed& s, OpKind kind) {
  return def(kind).product && def(kind).has(Role::Weight) && s.cost.bytes_read > 0
             ? double(s.memory) / s.cost.bytes_read
             : 1;
}

class KernelBench {
 public:
  KernelBench(const OpenedDevice& opened, const RunOptions& run, const KernelBenchOptions& options)
      : opened_(opened), device_(*opened.device), options_(options), timer_(device_) {
    request_.bytes = uint64_t(options.megabytes) * 1000000;
    request_.kernels = run.kernels;
    request_.kernels.strict = false;
    request_.only_chosen = !options.all;
  }

  Status run(bool quiet) {
    std::vector<Line> candidates;
    const uint32_t features = device_.describe().features;
    bool named = false;
    for (size_t i = 0; i < device_.kernel_count(); i++) {
      const gimbal_kernel_info& row = device_.kernel(i);
      if (options_.pattern && fnmatch(options_.pattern->c_str(), row.name, 0) != 0) continue;
      named = true;
      if (row.needs & ~features) continue;
      for (DType t : formats_of(row)) candidates.push_back({i, t, {}, ""});
    }
    if (!named)
      return Error{
          Code::Usage,
          format("--kernel '{}' matches no kernel of {}", printable(*options_.pattern), device_.id()),
          "`gimbal kernels` lists them"};
    Progress bar("measuring", !quiet, Progress::Unit::Kernels);
    for (size_t i = 0; i < candidates.size(); i++) {
      bar.update(i, candidates.size());
      Line& line = candidates[i];
      // Measurements in a cache stabilize sooner.
      const bool product = def(OpKind(device_.kernel(line.kernel).op)).product;
      request_.seconds = options_.milliseconds / (product ? 1e3 : 4e3);
      bool any = false;
      for (int rows : options_.rows) {
        request_.rows = rows;
        auto speed = timer_.measure(line.kernel, line.format, request_);
        if (!speed && speed.error().code != Code::Unsupported) return speed.error();
        if (!speed) line.trouble = speed.error().message;
        line.speeds.push_back(speed ? std::move(*speed) : std::nullopt);
        any = any || line.speeds.back();
      }
      if (any || !line.trouble.empty()) lines_.push_back(std::move(line));
    }
    if (lines_.empty())
      return Error{Code::Usage,
                   format("no kernel that is named '{}' would be chosen on {}",
                          printable(options_.pattern.value_or("*")), device_.id()),
                   options_.all ? "`gimbal kernels` shows the requirements of the others"
                                : "add --all to measure those too that another kernel outranks"};
    limits_ = device_limits(device_, options_.measure_again, options_.limit_megabytes, quiet);
    double largest = 0;
    for (const Line& line : lines_)
      for (size_t i = 0; i < line.speeds.size(); i++)  // a fast row's limit is another one
        if (line.speeds[i] && device_.kernel(line.kernel).numerics != GIMBAL_FAST)
          largest = std::max(largest, rate(OpKind(device_.kernel(line.kernel).op), *line.speeds[i],
                                           options_.rows[i], limits_)
                                          .share.value_or(0));
    doubt_limits(largest);
    std::stable_sort(lines_.begin(), lines_.end(), [&](const Line& a, const Line& b) {
      return device_.kernel(a.kernel).op < device_.kernel(b.kernel).op;
    });
    return Done{};
  }

  void print_for_people() const {
    print(format("{} by {}{}\n", bold("kernels"), bold(device_.id()),
                 limits_ ? "; % of its limits: " + limits_text(*limits_) : ""));
    int op = -1;
    std::string align = "ll";
    for (size_t i = 0; i < options_.rows.size(); i++) align += 'r';
    align += 'l';
    Table table(align);
    auto flush = [&] {
      if (op >= 0) print("\n" + bold(info(OpKind(op)).name) + "\n" + table.text("  "));
      table = Table(align);
    };
    for (const Line& line : lines_) {
      const gimbal_kernel_info& row = device_.kernel(line.kernel);
      if (row.op != op) {
        flush(), op = row.op;
        std::vector<std::string> head{"kernel", "shape"};
        for (int rows : options_.rows) head.push_back(format("{} row{}", rows, rows == 1 ? "" : "s"));
        head.push_back("");
        table.row(head);
      }
      std::vector<std::string> cells{row.name, ""};
      std::string remark = line.trouble.empty() ? "" : "not measured: " + line.trouble;
      for (size_t i = 0; i < line.speeds.size(); i++) {
        const auto& s = line.speeds[i];
        cells.push_back(cell(OpKind(row.op), s, limits_, options_.rows[i]));
        if (!s) continue;
        cells[1] = s->shape;
        if (const double more = inflation(*s, OpKind(row.op)); more > 1.1 && options_.rows[i] < kFewRows)
          remark = format("in memory {:.1f} times the file's bytes", more);
      }
      cells.push_back(remark);
      table.row(cells);
    }
    flush();
  }

  void print_as_json() const {
    Json kernels = Json::array();
    for (const Line& line : lines_) {
      const gimbal_kernel_info& row = device_.kernel(line.kernel);
      Json measurements = Json::array();
      std::string shape;
      for (size_t i = 0; i < line.speeds.size(); i++) {
        if (!line.speeds[i]) continue;
        const KernelSpeed& s = *line.speeds[i];
        const Rating r = rate(OpKind(row.op), s, options_.rows[i], limits_);
        shape = s.shape;
        measurements.push_back({{"rows", options_.rows[i]},
                                {"rows_computed", s.rows},
                                {"ops", s.ops},
                                {"passes", s.passes},
                                {"seconds", s.seconds},
                                {"bytes_read", s.cost.bytes_read},
                                {"bytes_written", s.cost.bytes_written},
                                {"operations", s.cost.operations},
                                {"memory_bytes", s.memory},
                                {"bytes_per_second", (s.cost.bytes_read + s.cost.bytes_written) / s.seconds},
                                {"operations_per_second", s.cost.operations / s.seconds},
                                {"limit", r.limit ? Json(r.limit) : Json()},
                                {"share", r.share ? Json(*r.share) : Json()}});
      }
      kernels.push_back({{"op", info(OpKind(row.op)).name},
                         {"kernel", row.name},
                         {"format", info(line.format).name},
                         {"shape", shape},
                         {"measurements", std::move(measurements)},
                         {"not_measured", line.trouble}});
    }
    print_json({{"device", device_.id()},
                {"fallbacks", sentences(opened_.fallbacks)},
                {"limits", limits_json(limits_)},
                {"kernels", std::move(kernels)}});
  }

 private:
  const OpenedDevice& opened_;
  const Device& device_;
  const KernelBenchOptions& options_;
  SpeedRequest request_;
  KernelTimer timer_;
  std::optional<Limits> limits_;
  std::vector<Line> lines_;
};

}  // namespace

Result<int> bench_kernels(const CommonOptions& common, const KernelBenchOptions& options, bool json,
                          bool quiet) {
  auto wanted = engine_options(common);
  if (!wanted) return wanted.error();
  Engine engine(backend_registry(), std::move(*wanted), stderr_sink(quiet));
  auto opened = engine.open_device();
  if (!opened) return opened.error();
  KernelBench bench(*opened, engine.options().run, options);
  if (auto ok = bench.run(quiet); !ok) return ok.error();
  if (json) bench.print_as_json();
  else bench.print_for_people();
  return 0;
}

}  // namespace gimbal
