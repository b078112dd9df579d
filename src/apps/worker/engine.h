// A model on the one backend that a worker is built with. One text for all of them: what differs is told by
// the type `Backend`, which names a table that is fixed when the program is linked. Nothing here chooses
// between backends.
#pragma once
#include <memory>
#include <string>

#include "engine/verification.h"
#include "files/gguf.h"
#include "runtime/cache_size.h"
#include "runtime/model.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::worker {

struct Settings {
  RunOptions run;
  CacheWish cache = {};        // in place of run.cache_positions, which are the least
  std::string device_options;  // for the backend's open(), see device/abi.h
  Model::Progress progress;
  // Verified before use, as by `gimbal`: a kernel with wrong numbers is told and left out; a device without
  // another one, or a model that does not agree with itself, is an error.
  Verify verify = Verify::Auto;
  FirstUse::Progress verifying = {};
  std::function<void(const Quarantined&)> wrong_kernel = {};
};

// A model's file, or where it lies.
struct Source {
  Source(const char* p) : path(p) {}
  Source(std::string p) : path(std::move(p)) {}
  Source(std::shared_ptr<const Gguf> f) : path(f->path()), file(std::move(f)) {}
  std::string path;
  std::shared_ptr<const Gguf> file = {};  // nullptr: it is opened
};

// Members are in the order in which they depend on each other; the last is destroyed first.
struct Loaded {
  std::shared_ptr<const Gguf> file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  double seconds = 0;  // that loading took
};

// Errors: those of the file and of loading; NoBackend when there is no device `index`, naming those that
// there are.
Result<Loaded> load_on(const gimbal_backend& table, const Source&, int index, const Settings& settings);

// Backend must offer
//   static constexpr const char* kName;      // "cuda"; for worker.h
//   static constexpr bool kHasGpus;          // false for the CPU, which is one device
//   static const gimbal_backend& table();
template <class Backend>
class Engine {
 public:
  // The CPU needs nothing said about it; a GPU must be named, from 0. Errors: see load_on().
  static Result<Engine> load(const Source& from, const Settings& settings = {}) requires(!Backend::kHasGpus) {
    return made(load_on(Backend::table(), from, 0, settings));
  }
  static Result<Engine> load(const Source& from, int gpu,
                             const Settings& settings = {}) requires(Backend::kHasGpus) {
    return made(load_on(Backend::table(), from, gpu, settings));
  }

  Model& model() const { return *loaded_.model; }
  const Tokenizer& tokenizer() const { return *loaded_.tokenizer; }
  const Device& device() const { return *loaded_.device; }
  Loaded take() && { return std::move(loaded_); }

 private:
  explicit Engine(Loaded loaded) : loaded_(std::move(loaded)) {}
  static Result<Engine> made(Result<Loaded> loaded) {
    if (!loaded) return loaded.error();
    return Engine(std::move(*loaded));
  }

  Loaded loaded_;
};

}  // namespace gimbal::worker
