#include "program/passes.h"

#include <algorithm>
#include <map>

#include "device/values.h"
#include "ops/op_def.h"

namespace gimbal {
namespace {

constexpr int kNoOp = -1;

// The ops that read and write each value, by the value that owns its memory.
struct Uses {
  std::vector<int> writer;
  std::vector<std::vector<size_t>> readers;

  explicit Uses(const Program& p) : writer(p.values.size(), kNoOp), readers(p.values.size()) {
    for (size_t i = 0; i < p.ops.size(); i++) {
      for (uint16_t in : inputs_of(p.ops[i])) readers[p.info[in].root].push_back(i);
      for (uint16_t out : outputs_of(p.ops[i])) writer[p.info[out].root] = int(i);
    }
  }
};

bool is_of_step_rows(const Program& p, uint16_t v) { return p.values[v].extent == GIMBAL_STEP_ROWS; }
bool can_be_selected(const Program& p, uint16_t v) {
  const Shape& s = p.info[v].shape;
  return s.type == DType::F32 && s.rank == 2;
}

// Row r of the result depends only on row r of the inputs, and there is no other output.
bool is_row_by_row(const Program& p, const gimbal_op& op) {
  const OpDef& meaning = def(OpKind(op.kind));
  const auto plain = [](const InputDef& i) {
    return i.role == Role::None || i.role == Role::Rows || i.role == Role::Weight;
  };
  return std::all_of(std::begin(meaning.inputs), std::end(meaning.inputs), plain) && op.outputs == 1 &&
         p.values[op.out[0]].slot == uint32_t(Slot::Work) && is_of_step_rows(p, op.out[0]);
}

class WantedRows {
 public:
  WantedRows(Program& p, uint16_t wanted) : p_(p), uses_(p), wanted_(wanted) {}

  // Finds the ops that compute wanted rows only. Iterates to a fixed point: an op whose inputs cannot be
  // selected keeps all rows, and so do the ops that it reads from.
  bool find() {
    std::vector<bool> keeps_all(p_.ops.size());
    for (bool again = true; again;) {
      again = false;
      moves_.assign(p_.ops.size(), false);
      for (size_t i = p_.ops.size(); i-- > 0;)
        moves_[i] = !keeps_all[i] && is_row_by_row(p_, p_.ops[i]) && is_read_in_wanted_rows(p_.ops[i].out[0]);
      for (size_t i = 0; i < p_.ops.size(); i++)
        if (moves_[i] && !takes_wanted_rows(p_.ops[i])) keeps_all[i] = again = true;
    }
    return std::find(moves_.begin(), moves_.end(), true) != moves_.end();
  }

  void apply(std::optional<Error>& failed) {
    const Program before = p_;
    p_.ops.clear(), p_.layer.clear();
    for (size_t v = 0; v < before.values.size(); v++)
      if (moves(before.info[v].root)) narrow(uint16_t(v));
    for (size_t i = 0; i < before.ops.size(); i++) {
      gimbal_op op = before.ops[i];
      if (is_select(op) && moves(before.info[op.in[0]].root)) continue;  // its input has only these rows now
      if (moves_[i]) {
        const OpDef& meaning = def(OpKind(op.kind));
        for (int k = 0; k < op.inputs; k++)
          if (meaning.inputs[k].role == Role::Rows && !moves(before.info[op.in[k]].root))
            op.in[k] = selected(op.in[k], before.layer[i], failed);
        op.out[0] = place_of_selected(before, op.out[0]);
      }
      p_.ops.push_back(op), p_.layer.push_back(before.layer[i]);
    }
  }

 private:
  bool is_select(const gimbal_op& op) const {
    return OpKind(op.kind) == OpKind::SelectRows && op.in[1] == wanted_;
  }
  bool moves(uint16_t root) const {
    return uses_.writer[root] != kNoOp && moves_[size_t(uses_.writer[root])];
  }

  // By ops that move, and by a select_rows, which then becomes unnecessary.
  bool is_read_in_wanted_rows(uint16_t v) const {
    int selects = 0;
    for (size_t i : uses_.readers[v]) {
      const bool select = is_select(p_.ops[i]) && p_.ops[i].in[0] == v;
      if (!select && !moves_[i]) return false;
      selects += select;
    }
    return !uses_.readers[v].empty() && selects <= 1;
  }
  bool takes_wanted_rows(const gimbal_op& op) const {
    const OpDef& meaning = def(OpKind(op.kind));
    for (int k = 0; k < op.inputs; k++)
      if (meaning.inputs[k].role == Role::Rows && !moves(p_.info[op.in[k]].root) &&
          !(is_of_step_rows(p_, op.in[k]) && can_be_selected(p_, op.in[k])))
        return false;
    return true;
  }

  void narrow(uint16_t v) {
    Shape& s = p_.info[v].shape;
    s.last() = p_.info[wanted_].shape.last();
    set_shape(p_.values[v], s);
    p_.values[v].extent = GIMBAL_OUT_ROWS;
    p_.values[v].bytes = uint64_t(s.bytes());
  }
  // The value for the result of a moving op: the output of its former select_rows, if it had one.
  uint16_t place_of_selected(const Program& before, uint16_t v) {
    for (size_t i : uses_.readers[v])
      if (is_select(before.ops[i])) {
        const uint16_t place = before.ops[i].out[0];
        p_.info[place].name = p_.info[v].name;
        for (ValueInfo& info : p_.info)
          if (info.root == v) info.root = place;
        return place;
      }
    return v;
  }
  // The wanted rows of a value that has all rows.
  uint16_t selected(uint16_t v, int layer, std::optional<Error>& failed) {
    auto [it, fresh] = selected_.try_emplace(v);
    if (fresh) {
      Shape s = p_.info[v].shape;
      s.last() = p_.info[wanted_].shape.last();
      it->second = p_.add(p_.info[v].name + ".wanted", s, Slot::Work, uint64_t(s.bytes()), GIMBAL_DENSE,
                          GIMBAL_OUT_ROWS, failed)
                       .id;
      gimbal_op op{};
      op.kind = uint16_t(OpKind::SelectRows);
      op.inputs = 2, op.in[0] = v, op.in[1] = wanted_;
      op.outputs = 1, op.out[0] = it->second;
      p_.ops.push_back(op), p_.layer.push_back(layer);
    }
    return it->second;
  }

  Program& p_;
  const Uses uses_;  // of the original program
  const uint16_t wanted_;
  std::vector<bool> moves_;                // of ops
  std::map<uint16_t, uint16_t> selected_;  // by value
};

}  // namespace

void compute_wanted_rows_only(Program& p, std::optional<Error>& failed) {
  for (const gimbal_op& op : p.ops)
    if (OpKind(op.kind) == OpKind::SelectRows && p.values[op.in[1]].extent == GIMBAL_OUT_ROWS) {
      WantedRows rows(p, op.in[1]);
      if (rows.find()) rows.apply(failed);
      return;
    }
}

}  // namespace gimbal
