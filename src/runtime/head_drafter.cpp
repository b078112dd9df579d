#include "runtime/head_drafter.h"

#include <algorithm>

#include "runtime/block_drafter.h"
#include "runtime/nextn_drafter.h"

namespace gimbal {

void set_head_options(const DraftHead& head, RunOptions& o) {
  o.arch = head.arch;
  if (!head.block) return;
  o.logit_rows = BlockDrafter::rows_of(head);
  o.batch = std::max(o.batch, o.logit_rows);
}

Result<std::unique_ptr<Drafter>> make_head_drafter(Model& model, const DraftHead* head) {
  const auto any = [](auto made) -> Result<std::unique_ptr<Drafter>> {
    if (!made) return made.error();
    return std::unique_ptr<Drafter>(std::move(*made));
  };
  if (head && head->block) return any(BlockDrafter::create(model, *head));
  return any(NextnDrafter::create(model, head));
}

}  // namespace gimbal
