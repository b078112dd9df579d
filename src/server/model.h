// The models of a server, as request handlers see them: tokenizer, template and file for prompts and
// answers, and the service that computes.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "engine/explanation.h"
#include "files/model_source.h"
#include "scheduler/numbers.h"
#include "scheduler/request.h"

namespace gimbal {

struct ModelPreset;
struct LibraryModel;
class SavedPrompts;
class ModelLibrary;

// A loaded model. Thread-safe.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual const std::string& id() const = 0;                     // its name in all APIs
  virtual const ModelPreset* preset() const { return nullptr; }  // of this name
  virtual const ModelSource& file() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate& chat() const = 0;
  virtual int context() const = 0;  // tokens
  // Whether it takes pictures, or sounds, as GenerationRequest::pictures.
  virtual bool sees() const { return false; }
  virtual bool hears() const { return false; }
  virtual int texts_at_once() const { return 1; }       // that its devices have places for
  virtual uint64_t device_bytes() const = 0;            // in use
  virtual std::vector<SchedulerNumbers> numbers() = 0;  // of each of its schedulers
  // The current state of its workers: the kernels of its programs, how each worker computes it, and the
  // devices in use, including those of a drafting model.
  virtual std::vector<ReceiptLine> kernels() const = 0;
  virtual std::vector<Explanation> explanations() const = 0;
  virtual std::vector<DeviceUse> devices() const = 0;
  // Restarts the worker processes with the backends' current code; requests move to them. Errors: those of
  // loading, and then requests fail with them until a later attempt succeeds. Unsupported if this process
  // computes the model.
  virtual Status renew() = 0;
  // nullptr: the model only computes embeddings.
  virtual GenerationService* generation() = 0;
  // nullptr: the model only computes embeddings.
  virtual SavedPrompts* saved_prompts() { return nullptr; }
  // Returns one unit vector per text, in order; calls `sink` on this thread. Errors: Usage, naming the
  // text, if it is empty or too long; those of gimbal::embed().
  using EmbeddingSink = std::function<Status(size_t text, std::span<const float>)>;
  virtual Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) = 0;
};
using ServedModelPtr = std::shared_ptr<ServedModel>;

struct KnownModel {
  std::string id, path;
  uint64_t bytes = 0;
  int64_t created = 0;  // the file's modification time, in seconds since 1970
  bool loaded = false;
  uint64_t device_bytes = 0;              // that it takes while it is loaded
  uint64_t gpu_bytes = 0;                 // of these, not in the host's memory
  int context = 0;                        // tokens, while it is loaded
  std::optional<double> stays = {};       // loaded, in seconds from now without a request; nothing: for ever
  std::vector<std::string> aliases = {};  // all names that it was given, `id` among them; or none
};

// Thread-safe.
class Models {
 public:
  virtual ~Models() = default;
  // In the order given at startup, then the library's; the first is the default if a request names no model.
  virtual std::vector<KnownModel> list() = 0;
  virtual std::vector<ServedModelPtr> loaded() = 0;
  // The counters of unloaded models.
  virtual SchedulerNumbers past() { return {}; }
  // Loads it if necessary. It stays loaded while the result is held. Errors: NotFound (no-such-model);
  // those of loading.
  virtual Result<ServedModelPtr> get(const std::string& id) = 0;
  // The same with a context of at least `tokens`, or with the largest below that the model and its devices
  // allow. It may be loaded again for that.
  virtual Result<ServedModelPtr> get_for(const std::string& id, int64_t tokens) {
    static_cast<void>(tokens);
    return get(id);
  }
  // The models that are loaded when a request names them, and that requests may add. nullptr: this server has
  // only the models that it was started with.
  virtual ModelLibrary* library() { return nullptr; }
  // Where a name leads, for a description of another one. Errors: as of get(), without those of loading.
  virtual Result<LibraryModel> describe(const std::string& id);
  // The full name of a model; nothing: there is no such model.
  virtual std::optional<std::string> name_of(const std::string& id) {
    return file(id) ? std::optional(id) : std::nullopt;
  }
  // Takes a model off this machine, where ModelLibrary::remove() may. Errors: those of that function; Usage
  // (not-ours) for a model that the server was started with.
  virtual Status remove(const std::string& id);
  // For how many seconds without a request it stays loaded from now on, until it is unloaded: 0: it is
  // unloaded when it is not used any more; below 0: for ever; nothing: as the server was started. No model of
  // this name: nothing happens.
  virtual void stay(const std::string& id, std::optional<double> seconds) {
    static_cast<void>(id), static_cast<void>(seconds);
  }
  // Its file, loaded or not. Errors: as of get().
  virtual Result<std::shared_ptr<const ModelSource>> file(const std::string& id) = 0;
  // SHA-256 of its file, in hexadecimal; computed at the first request. Empty: unknown, or not readable.
  virtual std::string digest(const std::string& id) = 0;
};

}  // namespace gimbal
