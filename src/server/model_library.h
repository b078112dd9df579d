// The models on this machine that a server loads when a request names them: the files that `gimbal list`
// shows, and the models that clients described (POST /api/create, /api/copy and /api/pull).
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model_catalog.h"
#include "server/named_model.h"

namespace gimbal {

namespace reason {
// Of an error: the model is not one that clients may change.
inline constexpr const char* kNotOurs = "not-ours";
}  // namespace reason

struct LibraryModel {
  std::string id;                  // its name in all APIs
  std::string path;                // empty: the model inside the program
  std::string source;              // as CatalogEntry::source; "described": by a client
  uint64_t bytes = 0;              // of the file
  uint64_t device = 0, inode = 0;  // of the file; 0: unknown
  int64_t modified = 0;            // of the file, in seconds since 1970
  bool pulled = false;             // a client had it fetched
  std::shared_ptr<const ModelPreset> preset = {};
};

// Thread-safe.
class ModelLibrary {
 public:
  // `folder`: of the descriptions; created when the first one is written. `find`: the files.
  explicit ModelLibrary(std::string folder, std::function<Catalog()> find = find_models);

  // Sorted by name. A description of a file's own name comes in place of the file. At most `kFresh` seconds
  // old.
  std::vector<LibraryModel> list();
  // By its name, a part of it as on the command line, or the address of a fetched model. Contacts no server.
  // Errors: NotFound (no-such-model); Usage (ambiguous-model) with the names.
  Result<LibraryModel> find(const std::string& name);

  // Describes a model, in place of an older description of this name. Errors: Usage for a name that models
  // cannot have, or too many models; Failed with the system's reason.
  Status describe(const LibraryModel&);
  // Removes a description; and the file, if a client had it fetched or it lies in gimbal's own folder, and no
  // other description needs it. Errors: those of find(); Usage (not-ours) for other files; those of remove().
  Status remove(const std::string& name);
  // Files may have come or gone.
  void refresh();

  // Why models cannot have this name; nullopt: they can.
  static std::optional<std::string> wrong_name(const std::string& name);

 private:
  static constexpr double kFresh = 10, kAnyAge = 1e8;  // seconds
  void read(double fresh);                             // the caller holds the mutex
  std::string file_of(const std::string& name) const;
  const LibraryModel* described(const std::string& name) const;
  Result<std::optional<LibraryModel>> known(const std::string& name) const;

  const std::string folder_;
  const std::function<Catalog()> find_;
  std::mutex mutex_;
  double read_at_ = -1e9;
  Catalog catalog_;
  std::vector<LibraryModel> described_;
};

}  // namespace gimbal
