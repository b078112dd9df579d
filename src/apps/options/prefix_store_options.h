// --prefix-store DIR[:SIZE]: keeps the beginnings of texts on disk (docs/prefix-store.md).
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "apps/toolkit/arguments.h"
#include "engine/loader.h"
#include "runtime/prefix_store.h"

namespace gimbal {

struct StoreFolder {
  std::string path;
  uint64_t bytes = 0;
};
// "DIR" or "DIR:SIZE", a size such as 500M, 10G or 1.5T. Errors: Usage.
Result<StoreFolder> parse_store_folder(const std::string&);

class PrefixStoreOptions {
 public:
  void declare(Arguments&);
  bool given() const { return folder_.has_value(); }
  // Opens the folder, and notes what happens to its pages; nullptr: the option is absent. Errors: Usage;
  // those of PageFolder::open().
  Result<std::shared_ptr<PageStore>> open();
  std::string salt() const;  // its salt_digest(), after open()

 private:
  std::optional<std::string> folder_, salt_file_;
  std::string salt_;
};

}  // namespace gimbal
