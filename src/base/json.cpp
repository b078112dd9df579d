// cold: compiled for size
#include "base/json.h"

namespace gimbal {

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }
std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace gimbal

template class nlohmann::basic_json<nlohmann::ordered_map>;
