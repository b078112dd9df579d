#include "model/state.h"

#include <algorithm>

namespace gimbal {

StatePool sized(StatePool pool, int sequences, int context, int64_t positions, int batch, bool marks) {
  auto pages = [](int64_t n) { return (n + kPagePositions - 1) / kPagePositions; };
  if (pool.kind == StateKind::Recurrent) {
    pool.table = 1;
    pool.pages = sequences * (1 + kMaxCheckpoints + marks);
    return pool;
  }
  pool.table = int(pages(context));
  // A window may begin inside a page, so it touches one page more than its length.
  const int64_t each =
      pool.window ? std::min<int64_t>(pool.table, pages(int64_t(pool.window) + kWindowSlack + batch) + 1)
                  : pool.table;
  pool.pages = int(std::min(each * sequences, pool.window ? each * sequences : pages(positions)));
  return pool;
}

}  // namespace gimbal
