#include "apps/json.h"

#include "apps/terminal.h"

namespace gimbal {

void print_json(const Json& j, bool one_line) {
  print(j.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace));
  print("\n");
}

}  // namespace gimbal
