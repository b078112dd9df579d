#include "files/tensor_table.h"

namespace gimbal {

const char* stored_name(const StoredTensor& t) {
  switch (t.ternary) {
    case Ternary::TL1: return "tl1";
    case Ternary::TL2: return "tl2";
    case Ternary::FourRows: return "i2_s";
    case Ternary::None: break;
  }
  return t.type == DType::I2_S64 ? "i2_s" : info(t.type).name;
}

bool TensorTable::add(StoredTensor t) {
  t.index = uint32_t(tensors_.size());
  if (!index_.emplace(t.name, t.index).second) return false;
  tensors_.push_back(t);
  return true;
}

const StoredTensor* TensorTable::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void TensorTable::unreadable(Error why) {
  if (!unreadable_) unreadable_ = std::move(why);
}

Status TensorTable::readable() const {
  if (unreadable_) return *unreadable_;
  return Done{};
}

}  // namespace gimbal
