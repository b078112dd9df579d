// The file of --config: lines `NAME = VALUE` with the names of the options, in the part of TOML that this
// needs.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct ConfigEntry {
  std::string name;
  std::vector<std::string> values;  // several: they stood in brackets
  bool list = false;                // brackets, also around one or none
  int line = 0;                     // from 1 on
};

// Comments begin with #. A value is "text" with the escapes of JSON, 'text' as it stands, a word or number
// without quotes, or [several, of, these], over several lines if wanted. Errors: Usage with `source` and the
// line, for what is none of this, for a table and for a name that stands there twice.
Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& source);

// Errors: NotFound or Failed for a file that cannot be read; those of parse_config().
Result<std::vector<ConfigEntry>> read_config(const std::string& path);

}  // namespace gimbal
