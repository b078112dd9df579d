#include "apps/options/prefix_store_options.h"

#include <gimbal/prefix_store.h>

#include "apps/toolkit/terminal.h"
#include "audit/model_identity.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "store/page_folder.h"

namespace gimbal {
Result<StoreFolder> parse_store_folder(const std::string& text) {
  const size_t colon = text.rfind(':');
  StoreFolder out{text.substr(0, colon), PrefixStoreSettings().bytes};
  if (colon != text.npos) {
    const auto bytes = bytes_named(std::string_view(text).substr(colon + 1));
    if (!bytes || *bytes < kLeastFolderBytes)
      return Error{
          Code::Usage,
          format("--prefix-store: {} is no size of 100K or more", gimbal::quoted(text.substr(colon + 1))),
          "write DIR:SIZE, such as /var/cache/prefixes:20G"};
    out.bytes = *bytes;
  }
  if (out.path.empty()) return Error{Code::Usage, "--prefix-store names no folder", "write DIR or DIR:SIZE"};
  return out;
}

void PrefixStoreOptions::declare(Arguments& a) {
  a.text("--prefix-store", "DIR[:SIZE]",
         "keep the computed beginnings of texts in this folder, and compute none of them twice, also after a "
         "restart; the least recently used go when it has SIZE bytes (default 10G)",
         folder_);
  a.text("--prefix-store-salt", "FILE",
         "a secret of 16 bytes or more: only who has it finds the pages, so that users may share the folder",
         salt_file_);
}

std::string PrefixStoreOptions::salt() const { return salt_digest(salt_); }

Result<std::shared_ptr<PageStore>> PrefixStoreOptions::open() {
  if (!folder_) {
    if (salt_file_)
      return Error{Code::Usage, "--prefix-store-salt belongs to a prefix store, and there is none",
                   "add --prefix-store DIR"};
    return std::shared_ptr<PageStore>();
  }
  const auto where = parse_store_folder(*folder_);
  if (!where) return where.error();
  if (salt_file_) {
    auto salt = read_file(*salt_file_, kMostSalt);
    if (!salt) return salt.error();
    if (salt->size() < kLeastSalt)
      return Error{Code::Usage,
                   format("--prefix-store-salt: {} has {} bytes, expected {} or more",
                          gimbal::quoted(*salt_file_), salt->size(), kLeastSalt),
                   "write a secret, for example by: head -c 32 /dev/urandom > salt"};
    salt_ = std::move(*salt);
  }
  auto folder = PageFolder::open({where->path, where->bytes, salt_file_.has_value(), {}});
  if (!folder) return folder.error();
  auto store = PageStore::create(std::move(*folder), [](const std::string& s) { note(printable(s)); });
  if (!store) return store.error();
  return std::shared_ptr<PageStore>(std::move(*store));
}

}  // namespace gimbal
