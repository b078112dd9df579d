// The models of a server: loads them on demand and unloads idle ones.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/find_model.h"
#include "server/model.h"
#include "server/model_library.h"

namespace gimbal {

class LoadedModels final : public Models {
 public:
  // Loads one model. Called from several threads: local_model.h, remote_model.h. `context`: tokens; 0: as the
  // server's settings say.
  using Load = std::function<Result<ServedModelPtr>(const std::string& id, const ModelFile&, int context)>;
  struct Options {
    double keep_alive = 0;  // seconds until an idle model is unloaded; 0: never
    Load load;
    // Of the first file, in place of its own: requests may use each of them, and answers have the first.
    std::vector<std::string> names = {};
    Bytes inside = {};  // the file of a model without a path (the built-in model)
    // Whether requests for a larger context load this model again; none: they never do.
    std::function<bool(const std::string& id)> grows = {};
    // Defaults of requests for this model; may return nullptr.
    std::function<std::shared_ptr<const ModelPreset>(const std::string& id)> preset = {};
    // Models that are loaded when a request names them; nullptr: only those of create().
    std::unique_ptr<ModelLibrary> library = {};
    std::function<Result<ModelFile>(const std::string& path)> open = {};  // their files
  };
  // Loads nothing yet. Errors: Usage if two files would have the same name.
  static Result<std::unique_ptr<LoadedModels>> create(std::vector<ModelFile> files, Options);
  ~LoadedModels() override;

  std::vector<KnownModel> list() override;
  Result<ServedModelPtr> get(const std::string& id) override { return get_for(id, 0); }
  Result<ServedModelPtr> get_for(const std::string& id, int64_t context) override;
  Result<std::shared_ptr<const ModelSource>> file(const std::string& id) override;
  std::string digest(const std::string& id) override;
  std::vector<ServedModelPtr> loaded() override;
  SchedulerNumbers past() override;
  void stay(const std::string& id, std::optional<double> seconds) override;
  ModelLibrary* library() override { return options_.library.get(); }
  Result<LibraryModel> describe(const std::string& id) override;
  std::optional<std::string> name_of(const std::string& id) override;
  Status remove(const std::string& id) override;
  // ServedModel::renew() of those that are loaded, one after the other. The first error, if any, when all are
  // done.
  Status renew();
  // Unloads models that were idle longer than they stay.
  void tidy();

 private:
  struct Entry;
  struct Alive;
  using EntryPtr = std::shared_ptr<Entry>;
  // A name of an entry.
  struct Named {
    EntryPtr entry;
    std::string id;
    std::shared_ptr<const ModelPreset> preset;
  };
  explicit LoadedModels(Options);
  Result<Named> find(const std::string& id);
  EntryPtr entry_of(const LibraryModel&);
  EntryPtr named_at_start(const std::string& id) const;
  std::vector<EntryPtr> entries() const;
  Status open(Entry&);
  Result<ServedModelPtr> load(Entry&, int context);
  Result<ServedModelPtr> grow(Entry&, int context);
  bool give_back(Entry&);
  bool make_room();
  void wait_for_end(uint64_t before);

  const Options options_;
  std::mutex renewing_;
  const std::shared_ptr<Alive> alive_;
  mutable std::mutex entries_mutex_;
  std::vector<EntryPtr> entries_;  // first those of create(); then one for each file that was requested
  std::mutex past_mutex_;
  SchedulerNumbers past_;
};

}  // namespace gimbal
