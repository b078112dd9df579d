#include "gpu/launches.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "device/values.h"
#include "gpu_kernels.h"
#include "ops/op.h"
#include "packing/layout.h"
#include "tensor/format.h"

namespace gimbal::gpu {
namespace {

constexpr uint32_t kLanes = 64;  // of every group: LANES in the texts

uint32_t groups_for(uint64_t units, uint64_t each) { return uint32_t((units + each - 1) / each); }
// The claims of rows guarantee that these fit (gpu/rows.cpp).
uint32_t capacity(const gimbal_value& v) { return uint32_t(std::max<int64_t>(1, rows_of(v))); }
uint32_t width_of(const gimbal_value& v) { return uint32_t(row_values(v)); }

// One launch under construction, with its arguments as the struct that the kernel's text declares.
template <class Params>
class LaunchOf {
 public:
  explicit LaunchOf(OpPlan& plan) : plan_(plan) { static_assert(sizeof(Params) <= kMaxParamBytes); }
  Params p{};

  // The next binding: some bytes of a slot. Gives where they begin, in words of the binding: bindings begin
  // at multiples of the device's alignment.
  uint32_t bind(uint32_t slot, uint64_t offset, uint64_t bytes) {
    const uint64_t before = offset % plan_.limits.binding_alignment, all = (before + bytes + 3) / 4 * 4;
    if (all > plan_.limits.max_binding_bytes)
      plan_.failure = {Failure::Unsupported, format("an op binds {} bytes at once, but the device allows {}: "
                                                    "use a smaller 'context', 'batch' or 'cache_type'",
                                                    all, plan_.limits.max_binding_bytes)};
    launch_.place[launch_.bindings++] = {slot, uint32_t(before), offset - before, all};
    return uint32_t(before / 4);
  }
  uint32_t bind(const gimbal_value& v) { return bind(v.slot, v.offset, v.bytes); }
  uint32_t bind_nothing() { return launch_.bindings++, 0; }

  void after_those_before() { launch_.after_all = true; }

  // Values of a slot that are small and lie near each other, and where each begins in the binding: a device
  // binds few things, and bindings must not overlap (WebGPU).
  struct Near {
    const gimbal_value& value;
    uint32_t& at;
  };
  void bind_together(std::initializer_list<Near> all) {
    uint64_t begin = UINT64_MAX, end = 0;
    for (const Near& n : all)
      begin = std::min(begin, n.value.offset), end = std::max(end, n.value.offset + n.value.bytes);
    const uint32_t at = bind(all.begin()->value.slot, begin, end - begin);
    for (const Near& n : all) n.at = at + uint32_t((n.value.offset - begin) / 4);
  }

  // The rows that a value's extent gives the step, `at_once` to a group; `each`: groups for one.
  void launch(uint32_t groups, const gimbal_value& rows, uint32_t at_once = 1, uint32_t each = 1) {
    p.rows = capacity(rows), p.extent = rows.extent;
    launch_.groups[0] = groups, launch_.groups[1] = groups_for(p.rows, at_once) * each;
    submit();
  }
  // Groups that go through the rows themselves.
  void launch_all(uint32_t groups, const gimbal_value& rows, uint32_t others = 1) {
    p.rows = capacity(rows), p.extent = rows.extent;
    launch_.groups[0] = groups, launch_.groups[1] = others;
    submit();
  }

 private:
  void submit() {
    for (uint32_t n : launch_.groups)
      if (n > plan_.limits.max_groups)
        plan_.failure = {
            Failure::Unsupported,
            format("an op needs {} groups, but the device launches at most {}: use a smaller 'batch'", n,
                   plan_.limits.max_groups)};
    std::memcpy(launch_.params, &p, sizeof p);
    plan_.launches.push_back(launch_);
  }

  OpPlan& plan_;
  PlannedLaunch launch_;
};

// A matrix of packed tiles, in parts that can be bound at once and lie in one piece of the buffer.
struct Tiles {
  uint64_t bytes, total, at_once;  // of a tile; tiles; tiles of a part, at most
  // Tiles of the part that begins with tile `first`.
  uint64_t part(const OpPlan& o, const gimbal_value& w, uint64_t first) const {
    const uint64_t begin = w.offset + first * bytes, room = (o.cuts.behind(w.slot, begin) - begin) / bytes;
    return std::min({at_once, total - first, std::max<uint64_t>(room, 1)});
  }
  Tiles(OpPlan& o, const gimbal_value& w)
      : bytes(uint64_t(packing::tile_bytes(DType(w.dtype), w.dim[0]))),
        total(groups_for(uint64_t(w.dim[1]), packing::kTileRows)) {
    const Limits& most = o.limits;
    const uint64_t room =
        most.max_binding_bytes - std::min<uint64_t>(most.max_binding_bytes, most.binding_alignment);
    at_once = std::clamp<uint64_t>(std::min(room, most.part_bytes) / bytes, 1, most.max_groups);
  }
};

// A group has some tiles, and some rows of x.
struct GroupShape {
  uint32_t tiles, rows;
};
constexpr GroupShape kLoops = {1, 4}, kUnits = {4, 32}, kFewByUnits = {1, 8};
template <class Params>
void plan_product(OpPlan& o, GroupShape shape) {
  const gimbal_value &w = o.in(0), &x = o.in(1);
  const DTypeInfo& type = info(DType(x.dtype));
  const Tiles tiles(o, w);
  for (uint64_t first = 0, n = 0; first < tiles.total; first += n) {
    n = tiles.part(o, w, first);
    LaunchOf<Params> l(o);
    l.p.weights_at = l.bind(w.slot, w.offset + first * tiles.bytes, n * tiles.bytes);
    l.p.x_at = l.bind(x);
    l.p.has_bias = o.op.inputs == 3;
    l.p.bias_at = l.p.has_bias ? l.bind(o.in(2)) : l.bind_nothing();
    l.p.y_at = l.bind(o.out());
    l.p.columns = uint32_t(w.dim[0]), l.p.outputs = uint32_t(w.dim[1]);
    l.p.tile_words = uint32_t(tiles.bytes / 4), l.p.first_tile = uint32_t(first);
    l.p.tiles = uint32_t(n);
    l.p.x_row_words = uint32_t(x.dim[0] / type.block * type.bytes / 4);
    l.launch(groups_for(n, shape.tiles), o.out(), shape.rows);
  }
}

// With experts, or with one matrix, which is then the only one. `by_slot`: a group has one slot of a row.
template <class Params>
void plan_experts(OpPlan& o, bool by_slot) {
  const gimbal_value &w = o.in(0), &x = o.in(1);
  const DTypeInfo& type = info(DType(x.dtype));
  const Tiles tiles(o, w);
  const bool alone = OpKind(o.op.kind) == OpKind::MatMul;
  const int bias = alone ? 2 : 3;
  const auto n = uint32_t(o.out().dim[0]);
  for (uint64_t first = 0, part = 0; first < tiles.total; first += part) {
    part = tiles.part(o, w, first);
    LaunchOf<Params> l(o);
    l.p.weights_at = l.bind(w.slot, w.offset + first * tiles.bytes, part * tiles.bytes);
    l.p.x_at = l.bind(x);
    l.p.has_bias = o.op.inputs > bias, l.p.has_routes = !alone && o.op.inputs > 2;
    l.p.bias_at = l.p.has_bias ? l.bind(o.in(bias)) : l.bind_nothing();
    l.p.routes_at = l.p.has_routes ? l.bind(o.in(2)) : l.bind_nothing();
    l.p.y_at = l.bind(o.out());
    l.p.columns = uint32_t(w.dim[0]), l.p.outputs = n, l.p.experts = uint32_t(w.dim[1]) / n;
    l.p.slots = alone ? 1 : uint32_t(o.out().dim[1]), l.p.x_slots = alone ? 1 : uint32_t(x.dim[1]);
    l.p.tile_words = uint32_t(tiles.bytes / 4);
    l.p.first_tile = uint32_t(first), l.p.part_tiles = uint32_t(part);
    l.p.first_group = alone ? l.p.first_tile : 0;
    l.p.x_row_words = uint32_t(x.dim[0] / type.block * type.bytes / 4);
    const uint32_t groups = alone ? l.p.part_tiles : groups_for(n, 16) + (n % 16 != 0);
    if (by_slot) l.launch(groups, o.out(), 1, l.p.slots);
    else l.launch_all(groups, o.out(), l.p.experts);
  }
}

template <class Params>
void plan_embedding(OpPlan& o) {
  const gimbal_value& table = o.in(0);
  const Tiles tiles(o, table);
  for (uint64_t first = 0, n = 0; first < tiles.total; first += n) {
    n = tiles.part(o, table, first);
    LaunchOf<Params> l(o);
    l.p.weights_at = l.bind(table.slot, table.offset + first * tiles.bytes, n * tiles.bytes);
    l.p.tokens_at = l.bind(o.in(1));
    l.p.y_at = l.bind(o.out());
    l.p.columns = uint32_t(table.dim[0]), l.p.vocabulary = uint32_t(table.dim[1]);
    l.p.tile_words = uint32_t(tiles.bytes / 4);
    l.p.first_row = uint32_t(first * packing::kTileRows), l.p.some_rows = uint32_t(n * packing::kTileRows);
    l.launch(groups_for(l.p.columns, kLanes), o.out());
  }
}

// Which of the texts serves a weight format depends on its activations: each has its own struct of arguments.
void plan_few_or_one(OpPlan& o, bool by_slot) {
  switch (format_of(DType(o.in(0).dtype)).x) {
    case DType::A8_32: return plan_experts<expert_mat_mul_a8_32_params>(o, by_slot);
    case DType::A8_ROW: return plan_experts<expert_mat_mul_a8_row_params>(o, by_slot);
    case DType::A8_256: return plan_experts<expert_mat_mul_a8_256_params>(o, by_slot);
    default: return plan_experts<expert_mat_mul_f32_params>(o, by_slot);
  }
}

template <class Params>
void plan_cache_write(OpPlan& o) {
  const gimbal_value &cache = o.in(0), &x = o.in(1), &pages = o.in(4);
  LaunchOf<Params> l(o);
  l.p.cache_at = l.bind(cache), l.p.x_at = l.bind(x), l.p.position_at = l.bind(o.in(2));
  l.p.sequence_at = l.bind(o.in(3)), l.p.pages_at = l.bind(pages);
  l.p.head_dim = uint32_t(x.dim[0]), l.p.heads = uint32_t(x.dim[1]);
  l.p.is_key = o.op.param.i[0] != 0, l.p.sequence_pages = uint32_t(pages.dim[0]);
  l.p.head_words = uint32_t(packing::cache_head_bytes(DType(cache.dtype), l.p.is_key, cache.dim[0]) / 4);
  l.launch(l.p.heads, x);
}

}  // namespace

void plan_mat_mul(OpPlan& o) {
  switch (format_of(DType(o.in(0).dtype)).x) {
    case DType::A8_32: return plan_product<mat_mul_a8_32_params>(o, kLoops);
    case DType::A8_ROW: return plan_product<mat_mul_a8_row_params>(o, kLoops);
    case DType::A8_256: return plan_product<mat_mul_a8_256_params>(o, kLoops);
    default: return plan_product<mat_mul_f32_params>(o, kLoops);
  }
}
// The arguments are those of mat_mul: kernels/product_params.inc.
static void plan_by_units(OpPlan& o, GroupShape shape) {
  if (format_of(DType(o.in(0).dtype)).x == DType::A8_32) plan_product<mat_mul_a8_32_params>(o, shape);
  else plan_product<mat_mul_a8_256_params>(o, shape);
}
void plan_mat_matrix(OpPlan& o) { plan_by_units(o, kUnits); }
void plan_mat_matrix_few(OpPlan& o) { plan_by_units(o, kFewByUnits); }
void plan_mat_few(OpPlan& o) { plan_few_or_one(o, false); }
void plan_mat_vec(OpPlan& o) { plan_few_or_one(o, true); }
void plan_embed(OpPlan& o) {
  switch (format_of(DType(o.in(0).dtype)).x) {
    case DType::A8_32: return plan_embedding<embed_a8_32_params>(o);
    case DType::A8_ROW: return plan_embedding<embed_a8_row_params>(o);
    case DType::A8_256: return plan_embedding<embed_a8_256_params>(o);
    default: return plan_embedding<embed_f32_params>(o);
  }
}
void plan_cache_write_floats(OpPlan& o) { plan_cache_write<cache_write_floats_params>(o); }
void plan_cache_write_blocks(OpPlan& o) { plan_cache_write<cache_write_blocks_params>(o); }

void plan_quantize(OpPlan& o) {
  const uint32_t block = info(DType(o.out().dtype)).block;
  LaunchOf<quantize_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.y_at = l.bind(o.out());
  l.p.blocks = uint32_t(o.out().dim[0]) / block;
  l.launch(groups_for(uint64_t(l.p.blocks) * block / 4, kLanes), o.out());  // a lane has four values
}
void plan_quantize_row(OpPlan& o) {
  LaunchOf<quantize_row_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.y_at = l.bind(o.out());
  l.p.blocks = uint32_t(o.out().dim[0]) / info(DType(o.out().dtype)).block;
  l.launch(1, o.out());
}

void plan_rms_norm(OpPlan& o) {
  LaunchOf<rms_norm_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.weight_at = l.bind(o.in(1)), l.p.y_at = l.bind(o.out());
  l.p.width = uint32_t(o.in(0).dim[0]);
  l.p.groups = width_of(o.out()) / l.p.width;
  l.p.epsilon = float(o.op.param.f[0]);
  l.launch(l.p.groups, o.out());
}

void plan_norm(OpPlan& o) {
  LaunchOf<norm_params> l(o);
  // WebGPU binds no range twice.
  const bool same = o.op.inputs > 2 && o.op.in[1] == o.op.in[2];
  l.p.has_weight = o.op.inputs > 1, l.p.has_bias = same ? 2 : o.op.inputs > 2;
  l.p.x_at = l.bind(o.in(0));
  l.p.weight_at = l.p.has_weight ? l.bind(o.in(1)) : l.bind_nothing();
  l.p.bias_at = l.p.has_bias == 1 ? l.bind(o.in(2)) : l.bind_nothing();
  l.p.y_at = l.bind(o.out());
  l.p.width = uint32_t(o.in(0).dim[0]), l.p.groups = width_of(o.out()) / l.p.width;
  l.p.weights = l.p.has_weight ? uint32_t(o.in(1).dim[0]) : l.p.width;
  l.p.kind = uint32_t(o.op.param.i[0]), l.p.epsilon = float(o.op.param.f[0]);
  l.launch(l.p.groups, o.out());
}

void plan_route(OpPlan& o) {
  LaunchOf<route_params> l(o);
  l.p.has_bias = o.op.inputs > 1;
  l.p.logits_at = l.bind(o.in(0)), l.p.bias_at = l.p.has_bias ? l.bind(o.in(1)) : l.bind_nothing();
  l.p.y_at = l.bind(o.out());
  l.p.experts = uint32_t(o.in(0).dim[0]), l.p.k = uint32_t(o.op.param.i[0]);
  l.p.sigmoid = Gating(o.op.param.i[1]) == Gating::Sigmoid, l.p.normalised = o.op.param.i[2] != 0;
  l.p.groups = uint32_t(o.op.param.i[3]), l.p.used = uint32_t(o.op.param.i[4]);
  l.p.factor = float(o.op.param.f[0]);
  l.launch(1, o.out());
}

void plan_combine(OpPlan& o) {
  LaunchOf<combine_params> l(o);
  const bool scales = o.op.inputs > 2;
  l.p.x_at = l.bind(o.in(0)), l.p.routes_at = l.bind(o.in(1));
  l.p.scales_at = scales ? l.bind(o.in(2)) : l.bind_nothing(), l.p.y_at = l.bind(o.out());
  l.p.width = uint32_t(o.in(0).dim[0]), l.p.slots = uint32_t(o.in(0).dim[1]);
  l.p.experts = scales ? uint32_t(o.in(2).dim[0]) : 0;
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_short_conv(OpPlan& o) {
  LaunchOf<short_conv_params> l(o);
  l.p.has_bias = o.op.inputs > 5;
  l.p.x_at = l.bind(o.in(0)), l.p.taps_at = l.bind(o.in(1));
  l.p.sequence_at = l.bind(o.in(3)), l.p.pages_at = l.bind(o.in(4));
  l.p.bias_at = l.p.has_bias ? l.bind(o.in(5)) : l.bind_nothing();
  l.p.state_at = l.bind(o.in(2)), l.p.y_at = l.bind(o.out());
  l.p.channels = uint32_t(o.in(0).dim[0]), l.p.count = uint32_t(o.in(1).dim[0]) / l.p.channels;
  l.p.page = uint32_t(o.in(2).dim[0]), l.p.sequence_pages = uint32_t(o.in(4).dim[0]);
  l.launch_all(groups_for(l.p.channels, kLanes), o.out());
}

void plan_selective_scan(OpPlan& o) {
  LaunchOf<selective_scan_params> l(o);
  const gimbal_value &x = o.in(0), &b = o.in(3);
  l.p.x_at = l.bind(x), l.p.step_at = l.bind(o.in(1)), l.p.a_at = l.bind(o.in(2)), l.p.b_at = l.bind(b);
  l.p.c_at = l.bind(o.in(4));
  l.bind_together({{o.in(6), l.p.sequence_at}, {o.in(7), l.p.pages_at}});
  l.p.state_at = l.bind(o.in(5)), l.p.y_at = l.bind(o.out());
  l.p.head_dim = uint32_t(x.dim[0]), l.p.heads = uint32_t(x.dim[1]);
  l.p.size = uint32_t(b.dim[0]), l.p.groups = uint32_t(b.dim[1]), l.p.by_place = o.in(2).dim[0] != x.dim[1];
  l.p.page = uint32_t(o.in(5).dim[0]), l.p.sequence_pages = uint32_t(o.in(7).dim[0]);
  l.launch_all(groups_for(uint64_t(l.p.head_dim) * l.p.heads, kLanes), o.out());
}

void plan_delta_rule(OpPlan& o) {
  LaunchOf<delta_rule_params> l(o);
  const gimbal_value &q = o.in(0), &v = o.in(2);
  l.p.q_at = l.bind(q), l.p.k_at = l.bind(o.in(1)), l.p.v_at = l.bind(v);
  l.p.rate_at = l.bind(o.in(3)), l.p.decay_at = l.bind(o.in(4));
  l.bind_together({{o.in(6), l.p.sequence_at}, {o.in(7), l.p.pages_at}});
  l.p.state_at = l.bind(o.in(5)), l.p.y_at = l.bind(o.out());
  l.p.keys = uint32_t(q.dim[0]), l.p.few = uint32_t(q.dim[1]);
  l.p.values = uint32_t(v.dim[0]), l.p.heads = uint32_t(v.dim[1]);
  l.p.modulo = HeadMap(o.op.param.i[0]) == HeadMap::Modulo;
  l.p.page = uint32_t(o.in(5).dim[0]), l.p.sequence_pages = uint32_t(o.in(7).dim[0]);
  l.launch_all(groups_for(uint64_t(l.p.values) * l.p.heads, kLanes), o.out());
}

void plan_gated_rule(OpPlan& o) {
  LaunchOf<gated_rule_params> l(o);
  const gimbal_value &q = o.in(0), &v = o.in(3);
  l.p.q_at = l.bind(q), l.p.decay_at = l.bind(o.in(1)), l.p.k_at = l.bind(o.in(2)), l.p.v_at = l.bind(v);
  l.p.erases = o.op.inputs > 7;
  l.p.erase_at = l.p.erases ? l.bind(o.in(7)) : l.bind_nothing();
  l.bind_together({{o.in(5), l.p.sequence_at}, {o.in(6), l.p.pages_at}});
  l.p.state_at = l.bind(o.in(4)), l.p.y_at = l.bind(o.out());
  l.p.keys = uint32_t(q.dim[0]), l.p.heads = uint32_t(q.dim[1]);
  l.p.values = uint32_t(v.dim[0]), l.p.few = uint32_t(v.dim[1]);
  l.p.before = o.op.param.i[0] != 0, l.p.complement = o.op.param.i[1] != 0;
  l.p.page = uint32_t(o.in(4).dim[0]), l.p.sequence_pages = uint32_t(o.in(6).dim[0]);
  l.launch_all(groups_for(uint64_t(l.p.values) * l.p.heads, kLanes), o.out());
}

void plan_concat(OpPlan& o) {
  const bool two = o.op.inputs > 1;
  LaunchOf<concat_params> l(o);
  l.p.a_at = l.bind(o.in(0)), l.p.b_at = two ? l.bind(o.in(1)) : l.bind_nothing(), l.p.y_at = l.bind(o.out());
  l.p.a_dim = uint32_t(o.in(0).dim[0]), l.p.from_b = two ? uint32_t(o.in(1).dim[0]) : 0;
  l.p.from_a = uint32_t(o.out().dim[0]) - l.p.from_b;
  l.p.heads = width_of(o.out()) / uint32_t(o.out().dim[0]);
  l.p.b_heads = two ? width_of(o.in(1)) / l.p.from_b : 1, l.p.first = two ? 0 : uint32_t(o.op.param.i[0]);
  l.launch(groups_for(width_of(o.out()), kLanes), o.out());
}

void plan_rope(OpPlan& o) {
  const gimbal_value &x = o.in(0), &table = o.in(1);
  LaunchOf<rope_params> l(o);
  l.p.x_at = l.bind(x), l.p.table_at = l.bind(table), l.p.y_at = l.bind(o.out());
  l.p.head_dim = uint32_t(x.dim[0]), l.p.heads = uint32_t(x.dim[1]), l.p.rotated = uint32_t(table.dim[0]);
  l.p.halves = RopePairs(o.op.param.i[0]) == RopePairs::Halves, l.p.first = uint32_t(o.op.param.i[1]);
  l.launch(groups_for(uint64_t(l.p.head_dim + 1) / 2 * l.p.heads, kLanes), o.out());
}

void plan_hadamard(OpPlan& o) {
  LaunchOf<hadamard_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.y_at = l.bind(o.out());
  l.p.run = uint32_t(o.op.param.i[0]), l.p.runs = width_of(o.out()) / l.p.run;
  l.p.factor = hadamard_factor(l.p.run);
  l.launch(l.p.runs, o.out());
}

void plan_elementwise(OpPlan& o) {
  LaunchOf<elementwise_params> l(o);
  l.p.a_at = l.bind(o.in(0)), l.p.b_at = o.op.inputs > 1 ? l.bind(o.in(1)) : l.bind_nothing();
  l.p.y_at = l.bind(o.out());
  l.p.width = width_of(o.out()), l.p.factor = float(o.op.param.f[0]);
  l.p.share = o.op.inputs > 1 ? uint32_t(o.out().dim[0] / o.in(1).dim[0]) : 1;
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_add_scaled(OpPlan& o) {
  LaunchOf<add_scaled_params> l(o);
  l.p.a_at = l.bind(o.in(0)), l.p.b_at = l.bind(o.in(1)), l.p.factors_at = l.bind(o.in(2));
  l.p.y_at = l.bind(o.out());
  l.p.width = width_of(o.out());
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_select_rows(OpPlan& o) {
  LaunchOf<select_rows_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.wanted_at = l.bind(o.in(1)), l.p.y_at = l.bind(o.out());
  l.p.width = width_of(o.out()), l.p.x_rows = capacity(o.in(0));
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_index_scores(OpPlan& o) {
  const gimbal_value &q = o.in(0), &keys = o.in(1), &pages = o.in(5);
  LaunchOf<index_scores_params> l(o);
  l.p.q_at = l.bind(q), l.p.keys_at = l.bind(keys), l.p.weights_at = l.bind(o.in(2));
  l.bind_together({{o.in(3), l.p.position_at}, {o.in(4), l.p.sequence_at}, {pages, l.p.pages_at}});
  l.p.y_at = l.bind(o.out());
  l.p.head_dim = uint32_t(q.dim[0]), l.p.heads = uint32_t(q.dim[1]);
  l.p.sequence_pages = uint32_t(pages.dim[0]), l.p.width = width_of(o.out()), l.p.hidden = kHidden;
  l.p.key_words = uint32_t(packing::cache_head_bytes(DType(keys.dtype), true, keys.dim[0]) / 4);
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_keep_top(OpPlan& o) {
  LaunchOf<keep_top_params> l(o);
  l.p.x_at = l.bind(o.in(0)), l.p.top_at = l.bind(o.in(1)), l.p.y_at = l.bind(o.out());
  l.p.width = width_of(o.out()), l.p.k = uint32_t(o.in(1).dim[0] / 2), l.p.hidden = kHidden;
  l.launch(groups_for(l.p.width, kLanes), o.out());
}

void plan_attention(OpPlan& o) {
  const gimbal_value &q = o.in(0), &keys = o.in(1), &values = o.in(2), &pages = o.in(5);
  LaunchOf<attention_params> l(o);
  const bool by_position = o.op.param.i[4] != 0, has_seen = o.op.inputs > 6 && !by_position,
             has_added = o.op.inputs > 7;
  const auto distances = int32_t(o.op.param.i[3]);
  // -1: sinks; below: as many pages of numbers for positions.
  l.p.distances = by_position                   ? -1 - int32_t(o.in(6).dim[0] / kPagePositions)
                  : has_added && distances == 0 ? -1
                                                : distances;
  l.p.q_at = l.bind(q), l.p.keys_at = l.bind(keys), l.p.values_at = l.bind(values);
  if (has_seen)
    l.bind_together({{o.in(3), l.p.position_at},
                     {o.in(4), l.p.sequence_at},
                     {pages, l.p.pages_at},
                     {o.in(6), l.p.seen_at}});
  else l.bind_together({{o.in(3), l.p.position_at}, {o.in(4), l.p.sequence_at}, {pages, l.p.pages_at}});
  l.p.added_at = by_position ? l.bind(o.in(6)) : has_added ? l.bind(o.in(7)) : l.bind_nothing();
  l.p.y_at = l.bind(o.out());
  l.p.head_dim = uint32_t(q.dim[0]), l.p.heads = uint32_t(q.dim[1]), l.p.kv_heads = uint32_t(keys.dim[1]);
  l.p.value_dim = uint32_t(values.dim[0]);
  l.p.alibi_heads = std::bit_floor(l.p.heads);
  l.p.cap = float(o.op.param.f[1]);
  l.p.alibi = float(o.op.param.f[2]) * -0.693147181f / float(l.p.alibi_heads);
  l.p.window = has_seen ? -1 : int32_t(o.op.param.i[1]), l.p.sequence_pages = uint32_t(pages.dim[0]),
  l.p.scale = float(o.op.param.f[0]);
  l.p.key_words = uint32_t(packing::cache_head_bytes(DType(keys.dtype), true, keys.dim[0]) / 4);
  l.p.value_words = uint32_t(packing::cache_head_bytes(DType(values.dtype), false, values.dim[0]) / 4);
  l.launch(l.p.heads, o.out());
}

// Runs of 64 values, merged again and again; in scratch memory, from one half to the other.
static void plan_order(OpPlan& o, uint64_t wanted, bool falling) {
  constexpr uint64_t kRun = 64;  // LANES of the text
  const gimbal_value& x = o.in(0);
  const auto width = uint64_t(x.dim[0]);
  const uint64_t keep = std::min(wanted, width), ways = keep <= kRun ? 16 : 8;
  auto pairs = [&](uint64_t run) { return (width + run - 1) / run * std::min(keep, run); };  // of a row
  uint64_t bytes[2] = {}, at[2] = {};
  for (int half = 0; half < 2; half++) {
    bytes[half] = uint64_t(
        packing::up(int64_t(8 * pairs(half ? kRun * ways : kRun) * capacity(x)), int64_t(kPieceAlignment)));
    at[half] = o.scratch_bytes, o.scratch_bytes += bytes[half];
  }
  for (uint64_t run = 0, turn = 0;; turn++) {
    const uint64_t made = run ? run * ways : kRun;
    const size_t to = turn % 2, from = 1 - to;
    LaunchOf<sort_params> l(o);
    l.p.x_at = l.bind(x);
    l.p.before_at = l.bind(Place::kScratch, at[from], bytes[from]);
    l.p.after_at = l.bind(Place::kScratch, at[to], bytes[to]);
    l.p.y_at = l.bind(o.out());
    l.p.width = uint32_t(width), l.p.keep = uint32_t(keep), l.p.wanted = uint32_t(wanted);
    l.p.run = uint32_t(run), l.p.ways = uint32_t(ways), l.p.flip = falling ? UINT32_MAX : 0;
    l.p.before_row = run ? uint32_t(2 * pairs(run)) : 0, l.p.after_row = uint32_t(2 * pairs(made));
    l.p.last = made >= width;
    if (run) l.after_those_before();
    l.launch(groups_for(run ? pairs(run) : width, kLanes), o.out());
    if (made >= width) return;
    run = made;
  }
}

void plan_sort(OpPlan& o) {
  plan_order(o, uint64_t(o.in(0).dim[0]), SortOrder(o.op.param.i[0]) == SortOrder::Falling);
}
void plan_top_k(OpPlan& o) { plan_order(o, uint64_t(o.op.param.i[0]), true); }

}  // namespace gimbal::gpu
