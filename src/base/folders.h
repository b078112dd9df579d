// The user's folders, from environment variables.
#pragma once
#include <string>

namespace gimbal {

// The variable's value; empty if not set.
std::string environment_variable(const char* name);

// "/home/me/.cache/gimbal"; empty if neither XDG_CACHE_HOME nor HOME is an absolute path.
std::string cache_folder();

// The download cache of Hugging Face tools: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, else "hub" in the folder
// below. Empty if that is empty, too.
std::string hub_cache_folder();
// "/home/me/.cache/huggingface" or HF_HOME: the folder with the access token. Empty as above.
std::string hub_home_folder();

// The file of this program; empty where the system does not tell it.
std::string program_path();
// The library that holds this code, such as libgimbal.so or a Python module; empty if the program does.
std::string library_path();

}  // namespace gimbal
