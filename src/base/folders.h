// Where this user's things lie, as the environment says.
#pragma once
#include <string>

namespace gimbal {

// The variable's value; empty when it is not set.
std::string environment_variable(const char* name);

// "/home/me/.cache/gimbal"; empty when neither XDG_CACHE_HOME nor HOME is an absolute path.
std::string cache_folder();

// Where Hugging Face's programs keep the files that they have loaded: HF_HUB_CACHE, else below HF_HOME, else
// below the user's cache. Empty when none of them is set.
std::string hub_cache_folder();
// "/home/me/.cache/huggingface" or HF_HOME, above it: the token lies there. Empty as before.
std::string hub_home_folder();

}  // namespace gimbal
