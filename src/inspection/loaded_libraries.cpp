#include "inspection/loaded_libraries.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#else
#include <link.h>
#endif

#include "base/folders.h"

namespace gimbal {

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> all;
  if (std::string program = program_path(); !program.empty()) all.push_back(std::move(program));
#ifdef __APPLE__
  for (uint32_t i = 1; i < _dyld_image_count(); i++)
    if (const char* name = _dyld_get_image_name(i)) all.push_back(name);
#else
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (info->dlpi_name && info->dlpi_name[0] == '/')
          static_cast<std::vector<std::string>*>(to)->push_back(info->dlpi_name);
        return 0;
      },
      &all);
#endif
  return all;
}

}  // namespace gimbal
