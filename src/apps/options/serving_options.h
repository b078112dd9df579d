// The options of models that `gimbal serve` loads, in this process or in workers: those of the command line,
// and those of single models.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/options/options.h"
#include "apps/options/sharing_options.h"
#include "apps/toolkit/config_file.h"
#include "server/local_model.h"
#include "server/named_model.h"

namespace gimbal {

struct LoadOptions : SharingOptions {
  std::optional<std::string> draft, mmproj;
};

void declare(Arguments&, LoadOptions&);

// Errors: those of engine_options(CommonOptions).
Result<LoadSettings> load_settings(const LoadOptions&, const CommonOptions&);
// Errors: those of engine_options(DeviceSettings, ModelOptions).
Result<ServingOptions> serving_options(const LoadSettings&);

// Settings of single models: sections [model.NAME] in the file of --config, with options of `gimbal serve`,
// defaults of sampling and a system message.
struct ModelSection {
  std::string model;  // its name in the APIs
  LoadSettings settings;
  CommonOptions engine;                       // the same, as options
  std::optional<std::string> workers;         // as --workers
  bool has_context = false;                   // the operator's word, from here or the command line
  std::shared_ptr<const ModelPreset> preset;  // nullptr: it has no defaults for requests
};

class ModelSections {
 public:
  // One line of a section. `source`: where it stands, for errors.
  void add(const ConfigEntry&, const std::string& source);
  bool empty() const { return lines_.empty(); }
  // The settings of each section, over these of all models. Errors: Usage, naming file and line.
  Result<std::vector<ModelSection>> read(const CommonOptions&, const LoadOptions&,
                                         const std::optional<std::string>& workers) const;

 private:
  std::vector<std::pair<ConfigEntry, std::string>> lines_;
};

}  // namespace gimbal
