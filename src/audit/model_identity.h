// What identifies a model: the digest of its files, and what decides the bits of its stored pages.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "engine/loader.h"
#include "runtime/prefix_store.h"

namespace gimbal {

// SHA-256 of a model's files. Reading a large file takes seconds, so digests can be remembered in the user's
// cache folder while the files are unchanged.
struct FileDigest {
  std::string sha256;
  uint64_t bytes = 0;
};

// Of the contents of these files, one behind the other. `remembered`: an earlier result is enough if no file
// has changed since, by its size, times and inode. Errors: those of InputFile.
Result<FileDigest> digest_of_files(std::span<const std::string> paths, bool remembered);

// What decides the bits of a model's stored pages outside its plan: the digests of its file and adapters, the
// version of the arithmetic, changed rope settings; and the user's salt.

// Bytes of a secret.
inline constexpr size_t kLeastSalt = 16, kMostSalt = 4096;
// The digest of a secret. Pages of another secret are never found.
std::string salt_digest(std::string_view secret);
// For PrefixStore::create(). `salt`: a salt_digest(), for no secret that of "". Errors: Unsupported if a
// setting that decides bits took the place of the file's value; those of reading the files.
Result<std::string> prefix_identity(const ModelFile&, const std::vector<Lora>& adapters, const ModelPlan&,
                                    std::string_view salt);
// The store of a loaded model. Errors: those of prefix_identity() and PrefixStore::create().
Result<std::unique_ptr<PrefixStore>> prefix_store_of(const ModelFile&, const std::vector<Lora>& adapters,
                                                     const Model&, std::shared_ptr<PageStore>,
                                                     std::string_view salt);

}  // namespace gimbal
