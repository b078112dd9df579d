#include "gpu/depends.h"

#include <algorithm>
#include <cstdlib>

namespace gimbal::gpu {

template <class F>
void Depends::each_place(const char* variable, const std::string& otherwise, F add) {
  const char* value = std::getenv(variable);
  const std::string list = value && *value ? value : otherwise;
  text_ += std::string(variable) + "\n";
  for (size_t at = 0, end; at < list.size(); at = end + 1) {
    end = std::min(list.find(':', at), list.size());
    if (end == at) continue;
    const std::string place = list.substr(at, end - at);
    if (place[0] == '/' && place.find_first_of("*\n") == place.npos) add(place);
    else complete_ = false;
  }
}

Depends& Depends::places(const char* variable, const std::string& otherwise, const std::string& below) {
  each_place(variable, otherwise, [&](const std::string& place) { text_ += place + below + "\n"; });
  return *this;
}

Depends& Depends::files(const char* variable) {
  each_place(variable, "", [&](const std::string& place) { text_ += place + "\n" + place + "/*\n"; });
  return *this;
}

Depends& Depends::also(const char* lines) {
  text_ += lines;
  return *this;
}

// The places: Vulkan-Loader, docs/LoaderDriverInterface.md and LoaderLayerInterface.md; a layer that is
// always on can hide devices. The variables: those of Mesa's and other drivers, by their prefixes, and of
// layers, which choose their own to be switched on and off.
Depends vulkan_depends() {
  Depends all(
      "VK_*\nMESA_*\nLIBGL_*\nGALLIUM_*\nLP_*\nLVP_*\nDRI_*\nRADV_*\nACO_*\nAMD_*\nANV_*\nINTEL_*\nNVK_*\n"
      "NOUVEAU_*\nNVIDIA_*\n__NV_*\n__GLX_*\nTU_*\nPVR_*\nPAN_*\nV3D*\nVN_*\nVIRGL_*\nDZN_*\nENABLE_*\n"
      "DISABLE_*\nNODEVICE_SELECT\nHOME\n");
  const char* home = std::getenv("HOME");
  const std::string at = home ? home : "";
  for (const char* below : {"/vulkan/icd.d/*", "/vulkan/implicit_layer.d/*", "/vulkan/loader_settings.d/*"}) {
    all.places("XDG_CONFIG_HOME", at.empty() ? "" : at + "/.config", below)
        .places("XDG_CONFIG_DIRS", "/etc/xdg", below)
        .places("XDG_DATA_HOME", at.empty() ? "" : at + "/.local/share", below)
        .places("XDG_DATA_DIRS", "/usr/local/share:/usr/share", below);
    for (const char* always : {"/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"})
      all.also(always).also(below).also("\n");
  }
  return all.files("VK_DRIVER_FILES")
      .files("VK_ICD_FILENAMES")
      .files("VK_ADD_DRIVER_FILES")
      .files("VK_IMPLICIT_LAYER_PATH")
      .files("VK_ADD_IMPLICIT_LAYER_PATH")
      .also(kGpuNodes);
}

}  // namespace gimbal::gpu
