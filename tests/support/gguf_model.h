// Files of the story model with other metadata.
#pragma once
#include <map>
#include <string>
#include <variant>

namespace gimbal::test {

using MetadataValues = std::map<std::string, std::variant<float, std::string>>;

// The model stories260K in f32, with these values in place of its own or besides. Gives the file's path.
std::string story_with(const std::string& name, const MetadataValues& values);

}  // namespace gimbal::test
