// The order in which the CPU runs a program's ops must be one that the program allows. Checked by brute
// force, work item against work item and byte range against byte range, on random programs whose values share
// memory in every way, and on whole models with the memory that they are given.
// Threads: those of the pool that runs the schedule.
#include "backends/cpu/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/format.h"
#include "discovery/registry.h"
#include "files/gguf.h"
#include "ops/op_def.h"
#include "runtime/model_plan.h"
#include "support/cpu_rows.h"
#include "support/golden.h"

namespace gimbal::cpu {
namespace {

struct TestProgram {
  std::vector<gimbal_value> values;
  std::vector<gimbal_op> ops;
  std::vector<uint32_t> row_inputs;
  gimbal_program view() const { return {values.data(), values.size(), ops.data(), ops.size()}; }
};

// ---- the checker: knows what a work item touches, and nothing of how schedules are made
struct Touch {
  uint32_t slot;
  uint64_t begin, end;
  bool write;
};
using Item = std::vector<Touch>;

int rows_of(const TestProgram& p, const gimbal_op& op) {
  const gimbal_value& v = value_of_rows(op, p.values.data());
  return v.dim[v.rank - 1];
}

// What each work item of an op touches. An op that is not by row: one item, which touches everything.
std::vector<Item> items_of(const TestProgram& p, size_t index) {
  const gimbal_op& op = p.ops[index];
  const uint32_t mask = p.row_inputs[index];
  std::vector<Item> items(mask ? size_t(rows_of(p, op)) : 1);
  for (size_t r = 0; r < items.size(); r++)
    for (int i = -1; i < op.inputs; i++) {
      const gimbal_value& v = p.values[i < 0 ? op.out[0] : op.in[i]];
      const bool by_row = mask && (i < 0 ? v.layout == GIMBAL_DENSE : (mask >> i & 1) != 0);
      const uint64_t row = v.bytes / uint64_t(v.dim[v.rank - 1]);
      if (by_row) items[r].push_back({v.slot, v.offset + r * row, v.offset + (r + 1) * row, i < 0});
      else items[r].push_back({v.slot, v.offset, v.offset + v.bytes, i < 0});
    }
  return items;
}

bool clash(const Item& a, const Item& b) {
  for (const Touch& x : a)
    for (const Touch& y : b)
      if ((x.write || y.write) && x.slot == y.slot && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

// Why this order may give other results than the program's; empty when it cannot.
std::string fault(const TestProgram& p, const Schedule& s) {
  struct Place {
    size_t level, group, position;
  };
  constexpr size_t kNowhere = ~size_t(0);
  std::vector<Place> at(p.ops.size(), {kNowhere, 0, 0});
  size_t ops = 0, groups = 0;
  for (size_t f = 0; f < s.levels.size(); f++) {
    if (s.levels[f].begin != groups) return "a group is left out";
    for (; groups < s.levels[f].end; groups++) {
      const Group& c = s.groups[groups];
      if (c.begin != ops || c.begin == c.end) return "an op is left out";
      for (; ops < c.end; ops++) {
        const uint32_t op = s.order[ops], first = s.order[c.begin];
        if (op >= p.ops.size() || at[op].level != kNowhere) return "not every op once";
        at[op] = {f, groups, ops};
        if (op == first) continue;
        const gimbal_value &a = value_of_rows(p.ops[op], p.values.data()),
                           &b = value_of_rows(p.ops[first], p.values.data());
        if (!p.row_inputs[op] || !p.row_inputs[first] || a.extent != b.extent ||
            rows_of(p, p.ops[op]) != rows_of(p, p.ops[first]))
          return "a group of ops that do not compute the same rows";
      }
    }
    const Group& c = s.groups[s.levels[f].begin];
    const bool single = s.levels[f].end - s.levels[f].begin == 1 && p.row_inputs[s.order[c.begin]] &&
                        rows_of(p, p.ops[s.order[c.begin]]) == 1;
    if (single != s.levels[f].single) return "a level that is wrong about its items";
  }
  if (ops != p.ops.size()) return "not every op once";
  std::vector<std::vector<Item>> items;
  for (size_t i = 0; i < p.ops.size(); i++) items.push_back(items_of(p, i));
  for (size_t j = 0; j < p.ops.size(); j++)
    for (size_t i = 0; i < j; i++) {
      if (at[i].level < at[j].level) continue;
      const bool fused = at[i].group == at[j].group && at[i].position < at[j].position;
      for (size_t a = 0; a < items[i].size(); a++)
        for (size_t b = 0; b < items[j].size(); b++)
          if (!(fused && a == b) && clash(items[i][a], items[j][b]))
            return format("item {} of op {} must come before item {} of op {}", a, i, b, j);
    }
  return "";
}

// ---- random programs
struct Random {
  std::mt19937 engine;
  int below(int n) { return int(engine() % unsigned(n)); }
};

bool overlap(const gimbal_value& a, const gimbal_value& b) {
  return a.slot == b.slot && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TestProgram random_program(Random& r) {
  TestProgram p;
  const int slots = 1 + r.below(2), places = 2 + r.below(60);
  for (int n = 3 + r.below(12); n-- > 0;) {
    gimbal_value v{};
    v.slot = uint32_t(r.below(slots)), v.rank = 2;
    v.layout = r.below(8) ? GIMBAL_DENSE : GIMBAL_CACHE;
    v.extent = r.below(6) ? GIMBAL_STEP_ROWS : GIMBAL_OUT_ROWS;
    v.dim[0] = r.below(3) ? 8 : 16, v.dim[1] = r.below(4) ? 3 : 1, v.dim[2] = v.dim[3] = 1;
    v.bytes = uint64_t(v.dim[0]) * uint64_t(v.dim[1]);
    v.offset = 8 * uint64_t(r.below(places));
    p.values.push_back(v);
  }
  const int n = int(p.values.size());
  for (int left = 1 + r.below(14), tries = 0; left > 0 && tries < 500; tries++) {
    gimbal_op op{};
    op.outputs = 1, op.out[0] = uint16_t(r.below(n));
    for (int k = 1 + r.below(3); k-- > 0;) op.in[op.inputs++] = uint16_t(r.below(n));
    op.kind = uint16_t(r.below(4) == 0 ? OpKind::CacheWrite : OpKind::Add);
    if (op.kind == uint16_t(OpKind::CacheWrite)) {
      if (op.inputs < 2 || p.values[op.out[0]].layout != GIMBAL_CACHE) continue;
      op.in[0] = op.out[0];
    }
    const gimbal_value &out = p.values[op.out[0]], &rows = value_of_rows(op, p.values.data());
    bool over_itself = false;  // never planned
    uint32_t mask = 0;
    for (int i = 0; i < op.inputs; i++) {
      const gimbal_value& in = p.values[op.in[i]];
      over_itself |= op.in[i] != op.out[0] && overlap(in, out);
      over_itself |= op.in[i] == op.out[0] && !(op.kind == uint16_t(OpKind::CacheWrite) && i == 0);
      if (in.extent == rows.extent && in.dim[1] == rows.dim[1] && r.below(6)) mask |= 1u << i;
    }
    if (over_itself) continue;
    if (op.kind == uint16_t(OpKind::CacheWrite)) mask &= ~1u;
    p.ops.push_back(op);
    p.row_inputs.push_back(r.below(4) ? mask : 0);
    left--;
  }
  return p;
}

// Two neighbouring levels as one.
Schedule without_the_wait_after(Schedule s, size_t level) {
  s.levels[level].end = s.levels[level + 1].end;
  s.levels[level].single = false;
  s.levels.erase(s.levels.begin() + long(level) + 1);
  return s;
}

TEST(Schedule, RandomProgramsKeepEveryDependenceAndNoWaitIsWasted) {
  Random r{std::mt19937(11)};
  int ops = 0, levels = 0, fused = 0, beside = 0, moved = 0;
  for (int round = 0; round < 20000; round++) {
    const TestProgram p = random_program(r);
    const Schedule s = make_schedule(p.view(), p.row_inputs);
    ASSERT_EQ(fault(p, s), "") << "program " << round;
    for (size_t f = 0; f + 1 < s.levels.size(); f++)
      ASSERT_NE(fault(p, without_the_wait_after(s, f)), "") << "program " << round << ", level " << f;
    ops += int(s.order.size()), levels += int(s.levels.size());
    for (const Group& c : s.groups) fused += c.end - c.begin > 1;
    for (const Level& f : s.levels) beside += f.end - f.begin > 1;
    moved += !std::is_sorted(s.order.begin(), s.order.end());
  }
  // The programs are such that there is something to be found, and to be got wrong.
  EXPECT_GT(fused, 2000);
  EXPECT_GT(beside, 2000);
  EXPECT_GT(moved, 2000);
  EXPECT_LT(levels, ops * 4 / 5);
}

// x -> a -> b -> c, and d of x between them, which has memory: the ops from the first writer of a value
// without memory to the last reader are one group, in their order, and wait for what any of them reads.
TEST(Schedule, OpsAroundAValueWithoutMemoryAreOneGroup) {
  TestProgram p;
  const auto add_value = [&](uint32_t slot, uint64_t offset) {
    gimbal_value v{};
    v.slot = slot, v.offset = offset, v.rank = 1, v.bytes = 32;
    for (int64_t& dim : v.dim) dim = 1;
    v.dim[0] = 8;
    p.values.push_back(v);
    return uint16_t(p.values.size() - 1);
  };
  const auto add_op = [&](uint16_t in, uint16_t second, uint16_t out) {
    gimbal_op op{};
    op.kind = uint16_t(OpKind::Map), op.inputs = 2, op.in[0] = in, op.in[1] = second, op.outputs = 1,
    op.out[0] = out;
    p.ops.push_back(op);
    p.row_inputs.push_back(0);
  };
  const uint16_t x = add_value(0, 0), e = add_value(0, 64), a = add_value(GIMBAL_LOCAL, 0),
                 b = add_value(GIMBAL_LOCAL, 64), d = add_value(0, 128), c = add_value(0, 192),
                 y = add_value(0, 256);
  add_op(x, x, e);  // another op, which the last of the group reads
  add_op(x, x, a), add_op(a, x, b), add_op(x, x, d), add_op(b, e, c);
  add_op(c, d, y);
  EXPECT_EQ(first_of_parts(p.view()), (std::vector<uint32_t>{0, 1, 1, 1, 1, 5}));
  const Schedule s = make_schedule(p.view(), p.row_inputs);
  EXPECT_EQ(s.order, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  ASSERT_EQ(s.groups.size(), 3u);
  EXPECT_EQ(s.levels.size(), 3u);
  EXPECT_EQ(s.groups[1].begin, 1u);
  EXPECT_EQ(s.groups[1].end, 5u);
  EXPECT_FALSE(s.groups[0].parts);
  EXPECT_TRUE(s.groups[1].parts);
  EXPECT_FALSE(s.groups[2].parts);
}

TEST(Schedule, TheCheckerSeesOtherFaults) {
  Random r{std::mt19937(12)};
  int changed = 0, seen = 0;
  for (int round = 0; round < 2000; round++) {
    const TestProgram p = random_program(r);
    Schedule s = make_schedule(p.view(), p.row_inputs);
    for (const Group& c : s.groups)  // the order inside of groups, reversed
      std::reverse(s.order.begin() + c.begin, s.order.begin() + c.end);
    const bool any =
        std::any_of(s.groups.begin(), s.groups.end(), [](auto& c) { return c.end - c.begin > 1; });
    changed += any, seen += any && fault(p, s) != "";
    ASSERT_TRUE(any || fault(p, s) == "");
    if (s.order.size() > 1) {
      s.order[0] = s.order[1];
      ASSERT_EQ(fault(p, s).empty(), false);
    }
  }
  EXPECT_GT(seen, changed / 4);
}

TEST(Schedule, KnowsWhichInputsAreOverwrittenLater) {
  Random r{std::mt19937(13)};
  int overwritten = 0, kept = 0;
  for (int round = 0; round < 2000; round++) {
    const TestProgram p = random_program(r);
    for (size_t i = 0; i < p.ops.size(); i++) {
      bool expected = false;
      for (size_t j = i + 1; j < p.ops.size(); j++)
        for (int k = 0; k < p.ops[i].inputs; k++)
          expected |= overlap(p.values[p.ops[i].in[k]], p.values[p.ops[j].out[0]]);
      ASSERT_EQ(overwritten_later(p.view(), i), expected) << "program " << round << ", op " << i;
      (expected ? overwritten : kept)++;
    }
  }
  EXPECT_GT(overwritten, 1000);
  EXPECT_GT(kept, 1000);
}

TEST(Schedule, NoOpsNoLevels) {
  const Schedule s = make_schedule({nullptr, 0, nullptr, 0}, {});
  EXPECT_TRUE(s.levels.empty());
  EXPECT_EQ(s.shared_levels(), 0);
}

// Thousands of ops must not take long: it is in the way of the first token.
TEST(Schedule, LongProgramsOfDependentOps) {
  TestProgram p;
  for (int i = 0; i < 2; i++)
    p.values.push_back({0, 0, 2, GIMBAL_DENSE, GIMBAL_STEP_ROWS, uint64_t(64 * i), 64, {32, 2}, {1, 32}});
  for (int i = 0; i < 20000; i++) {
    gimbal_op op{};
    op.outputs = 1, op.out[0] = i % 2, op.inputs = 1, op.in[0] = (i + 1) % 2;
    p.ops.push_back(op);
    p.row_inputs.push_back(i % 3 ? 1 : 0);
  }
  const Schedule s = make_schedule(p.view(), p.row_inputs);
  EXPECT_EQ(s.order.size(), p.ops.size());
  // One op of a kind that takes all rows, then two by row.
  EXPECT_EQ(s.levels.size(), 2 * p.ops.size() / 3 + 1);
}

// ---- whole models, with the flags of the kernels that were chosen
struct Planned {
  std::unique_ptr<ModelSource> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<ModelPlan> plan;
};
Planned plan(const std::string& path, int batch) {
  Planned p;
  auto file = open_gguf(path);
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!file || !device) return p;
  p.file = std::make_unique<ModelSource>(std::move(*file));
  p.device = std::move(device->device);
  RunOptions o;
  o.context = 256, o.batch = batch, o.logit_rows = batch;
  auto b = make_model_plan(*p.file, *p.device, o);
  if (b) p.plan = std::make_unique<ModelPlan>(std::move(*b));
  return p;
}
TestProgram as_test_program(const Device& d, const Program& program) {
  TestProgram p{program.values, program.ops, {}};
  const test::CpuRows rows(d);
  for (const gimbal_op& op : p.ops)
    p.row_inputs.push_back(rows[op.kernel].by_row ? def(OpKind(op.kind)).row_inputs() : 0);
  return p;
}

// Every activation in a place of its own.
TestProgram without_shared_memory(TestProgram p, const Program& program) {
  uint64_t end = 0;
  for (size_t v = 0; v < p.values.size(); v++) {
    if (p.values[v].slot != uint32_t(Slot::Work)) continue;
    const uint16_t root = program.info[v].root;
    p.values[v].offset = root == v ? end : p.values[root].offset;
    end += align_up(p.values[v].bytes, 64);
  }
  return p;
}

// The memory of a program for one row is planned so that no product has to wait for a preempted thread.
TEST(Schedule, NoInputOfAProductOfOneRowIsOverwritten) {
  int products = 0, overwritten_in_batches = 0;
  for (const char* format : {"q8_0", "q4_0", "f16"}) {
    const auto planned = plan(test::golden_dir() + "/stories/stories260K-" + format + ".gguf", 5);
    ASSERT_TRUE(planned.plan);
    const test::CpuRows rows(*planned.device);
    for (const Bucket& bucket : planned.plan->last().buckets)
      for (size_t i = 0; i < bucket.program.ops.size(); i++) {
        if (!rows[bucket.program.ops[i].kernel].item_outputs) continue;
        const bool overwritten = overwritten_later(bucket.program.view(), i);
        if (bucket.rows > 1) {
          overwritten_in_batches += overwritten;
          continue;
        }
        EXPECT_FALSE(overwritten) << format << ", op " << i;
        products++;
      }
  }
  EXPECT_GT(products, 0);
  EXPECT_GT(overwritten_in_batches, 0);  // where memory is shared
}

// A view that goes backwards begins at its last element in memory.
TEST(Schedule, ViewsReachBackwards) {
  TestProgram p;
  auto add_value = [&](uint64_t offset, int64_t n, int64_t stride) {
    gimbal_value v{};
    v.slot = 3, v.rank = 1, v.offset = offset, v.bytes = uint64_t(n) * 4;
    std::fill(std::begin(v.dim), std::end(v.dim), 1);
    v.dim[0] = n, v.stride[0] = stride, v.layout = stride == 1 ? GIMBAL_DENSE : GIMBAL_STRIDED;
    v.dtype = uint8_t(DType::F32);
    p.values.push_back(v);
  };
  add_value(0, 16, 1), add_value(60, 16, -1), add_value(64, 16, 1), add_value(128, 16, 1);
  auto add_op = [&](uint16_t in, uint16_t out) {
    gimbal_op op{};
    op.kind = uint16_t(OpKind::Cast), op.inputs = op.outputs = 1, op.in[0] = in, op.out[0] = out;
    p.ops.push_back(op), p.row_inputs.push_back(0);
  };
  add_op(3, 0), add_op(1, 2);  // writes all of [0, 64), then reads it from its end on
  EXPECT_EQ(make_schedule(p.view(), p.row_inputs).levels.size(), 2u);
}

TEST(Schedule, LlamaWaitsFiveTimesALayer) {
  for (const char* format : {"q8_0", "q4_0"}) {
    const auto planned = plan(test::golden_dir() + "/stories/stories260K-" + format + ".gguf", 5);
    ASSERT_TRUE(planned.plan);
    const int layers = planned.plan->config.layers;
    ASSERT_EQ(planned.plan->last().buckets.size(), 4u);
    for (const Bucket& bucket : planned.plan->last().buckets) {
      const TestProgram p = as_test_program(*planned.device, bucket.program);
      const Schedule s = make_schedule(p.view(), p.row_inputs);
      // For one token: q k v; attention; the output of attention; gate and up; down. In the end the logits.
      // What lies between is by row, and one row is for one thread.
      if (bucket.rows == 1) {
        EXPECT_EQ(s.shared_levels(), 5 * layers + 1);
        continue;
      }
      // For many: also the rows between them, where sum, norm and quantization are one level. Behind the last
      // attention the choice of rows. Values that share memory cost some: turned keys lie where q was, with
      // other rows.
      EXPECT_LE(s.shared_levels(), 11 * layers + 5);
      const TestProgram roomy = without_shared_memory(p, bucket.program);
      EXPECT_EQ(make_schedule(roomy.view(), roomy.row_inputs).shared_levels(), 10 * layers + 2);
    }
  }
}

TEST(Schedule, ModelsKeepEveryDependence) {
  int models = 0;
  for (const char* folder : {"stories", "arch", "quant"})
    for (const std::string& path : test::golden_files(folder, ".gguf")) {
      const auto planned = plan(path, 3);
      if (!planned.plan) continue;  // an architecture or a format that does not run; counted below
      for (const Bucket& bucket : planned.plan->last().buckets) {
        const TestProgram p = as_test_program(*planned.device, bucket.program);
        const Schedule s = make_schedule(p.view(), p.row_inputs);
        ASSERT_EQ(fault(p, s), "") << path << ", " << bucket.rows << " rows";
        EXPECT_LE(s.levels.size() * 4, p.ops.size() * 3) << path << ", " << bucket.rows << " rows";
      }
      models++;
    }
  EXPECT_GE(models, 12);
}

}  // namespace
}  // namespace gimbal::cpu
