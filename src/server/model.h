// The models that a server has, for those who answer requests: what is needed of one to make prompts and to
// read answers, and who computes.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "engine/explanation.h"
#include "files/model_source.h"
#include "scheduler/numbers.h"
#include "scheduler/request.h"

namespace gimbal {

// One that is loaded. Thread-safe.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual const std::string& id() const = 0;  // its name in all APIs
  virtual const ModelSource& file() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate& chat() const = 0;
  virtual int context() const = 0;                      // tokens
  virtual uint64_t device_bytes() const = 0;            // that it takes
  virtual std::vector<SchedulerNumbers> numbers() = 0;  // of each of its schedulers
  // Of its workers, as they are now: the kernels of its programs, how each worker computes it, and the
  // devices in use, those of a model that drafts included.
  virtual std::vector<ReceiptLine> kernels() const = 0;
  virtual std::vector<Explanation> explanations() const = 0;
  virtual std::vector<DeviceUse> devices() const = 0;
  // New processes compute it, which open the code of the backends that is there now; requests go on with
  // them. Errors: those of loading, and then requests fail with them until another time. Unsupported where
  // this process computes.
  virtual Status renew() = 0;
  // nullptr: it gives embeddings only.
  virtual GenerationService* generation() = 0;
  // For each text, in order, numbers of length 1; `sink` is called from this thread. Errors: Usage, naming
  // the text, for one that is too long or empty; those of gimbal::embed().
  using EmbeddingSink = std::function<Status(size_t text, std::span<const float>)>;
  virtual Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) = 0;
};
using ServedModelPtr = std::shared_ptr<ServedModel>;

struct KnownModel {
  std::string id, path;
  uint64_t bytes = 0;
  int64_t created = 0;  // seconds since 1970: when the file was written
  bool loaded = false;
  uint64_t device_bytes = 0;  // that it takes while it is loaded
};

// Thread-safe.
class Models {
 public:
  virtual ~Models() = default;
  virtual std::vector<KnownModel>
  list() = 0;  // in the order of the start; the first one is meant where none is named
  virtual std::vector<ServedModelPtr> loaded() = 0;
  // What was counted of models that are not loaded any more.
  virtual SchedulerNumbers past() { return {}; }
  // Loads it where it is not. It stays loaded while the result is held. Errors: NotFound (no-such-model);
  // those of loading.
  virtual Result<ServedModelPtr> get(const std::string& id) = 0;
  // Its file, loaded or not. Errors: as of get().
  virtual Result<std::shared_ptr<const ModelSource>> file(const std::string& id) = 0;
  // SHA-256 of its file, in hexadecimal; computed when it is first asked for. Empty: unknown, or not to be
  // read.
  virtual std::string digest(const std::string& id) = 0;
};

}  // namespace gimbal
