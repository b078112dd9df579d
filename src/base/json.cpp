// cold: compiled for size
#include "base/json.h"

namespace gimbal {

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

}  // namespace gimbal

template class nlohmann::basic_json<nlohmann::ordered_map>;
