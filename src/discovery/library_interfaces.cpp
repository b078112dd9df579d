#include "discovery/library_validation.h"

namespace gimbal {

// The functions that the dual-backend roadmap requires.
const LibraryInterface& bitnet_interface() {
  static const LibraryInterface i{
      "libbitnet",
      {{"bitnet_model_new_from_file"}, {"bitnet_context_new"}, {"bitnet_tokenize"}, {"bitnet_eval"}},
      {}};
  return i;
}

// What gimbal calls of it (llama_functions.def), and generations by the functions that appeared with them.
const LibraryInterface& llama_interface() {
  static const LibraryInterface i = [] {
    LibraryInterface all{"libllama", {}, {}};
    enum Need { Optional, Required };
    const auto function = [&](Need need, std::vector<std::string> names) {
      if (need == Required) all.functions.push_back(std::move(names));
    };
#define GIMBAL_LLAMA_FUNCTION(member, result, parameters, need, ...) function(need, {__VA_ARGS__});
#include "discovery/llama_functions.def"
    const auto generation = [&](const char* release, const char* exports) {
      auto& known = all.generations;
      if (!known.empty() && known[0].exports == exports)
        return;  // a later one, which exports tell nothing of
      known.insert(known.begin(), {release, exports});
    };
#define GIMBAL_LLAMA_GENERATION(release, exports, lacks) generation(release, exports);
#include "discovery/llama_generations.def"
    all.generations[0].name += " or newer";
    return all;
  }();
  return i;
}

}  // namespace gimbal
