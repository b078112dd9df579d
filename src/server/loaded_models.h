// The models of a server: loads them on demand and unloads idle ones.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/find_model.h"
#include "server/model.h"

namespace gimbal {

class LoadedModels final : public Models {
 public:
  // Loads one model. Called from several threads: local_model.h, remote_model.h.
  using Load = std::function<Result<ServedModelPtr>(const std::string& id, const ModelFile&)>;
  // Loads nothing yet. `keep_alive`: seconds until an idle model is unloaded; 0: never. `inside`: the
  // file of a model without a path (the built-in model). Errors: Usage if two files would have the same
  // name.
  static Result<std::unique_ptr<LoadedModels>> create(std::vector<ModelFile> files, double keep_alive,
                                                      Load load, Bytes inside = {});
  ~LoadedModels() override;

  std::vector<KnownModel> list() override;
  Result<ServedModelPtr> get(const std::string& id) override;
  Result<std::shared_ptr<const ModelSource>> file(const std::string& id) override;
  std::string digest(const std::string& id) override;
  std::vector<ServedModelPtr> loaded() override;
  SchedulerNumbers past() override;
  void stay(const std::string& id, std::optional<double> seconds) override;
  // ServedModel::renew() of those that are loaded, one after the other. The first error, if any, when all are
  // done.
  Status renew();
  // Unloads models that were idle longer than they stay.
  void tidy();

 private:
  struct Entry;
  struct Alive;
  LoadedModels(double keep_alive, Load load, Bytes inside);
  Entry* find(const std::string& id);
  bool give_back(Entry&);
  bool make_room();

  const double keep_alive_;
  std::mutex renewing_;
  const Load load_;
  const Bytes inside_;
  const std::shared_ptr<Alive> alive_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::mutex past_mutex_;
  SchedulerNumbers past_;
};

}  // namespace gimbal
