// The file of --config and the user's own one: lines `NAME = VALUE` with names of options, in a subset of
// TOML.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct ConfigEntry {
  std::string name;
  std::vector<std::string> values;  // several: a list in brackets
  bool list = false;                // in brackets, even with one value or none
  int line = 0;                     // from 1 on
  std::string model = {};           // it stands in this model's section; empty: before the sections
};

// Comments begin with #. A value is "text" with JSON's escapes, 'text' without escapes, a bare word or
// number, or a list [several, of, these], which may span lines. Errors: Usage with `source` and the line,
// for invalid syntax, other tables than [model.NAME] and [model."NAME"], and repeated names.
Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& source);

// Errors: NotFound or Failed if the file cannot be read; those of parse_config().
Result<std::vector<ConfigEntry>> read_config(const std::string& path);

// "/home/me/.config/gimbal/config"; empty if neither XDG_CONFIG_HOME nor HOME is an absolute path.
std::string user_config_file();

}  // namespace gimbal
