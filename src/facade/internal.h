// The public classes and the library's own beside each other: both are called Engine, Model, Tokenizer. The
// library's come first, so that its headers never see the public names; here they are own::Model. So all that
// this folder needs of them is included here: a unity build reads its files one after the other.
#pragma once
#include "base/format.h"
#include "device/reason.h"
#include "discovery/summary.h"
#include "engine/backend_places.h"
#include "engine/drafts.h"
#include "engine/engine.h"
#include "engine/settings.h"
#include "fetch/pull.h"
#include "ops/shapes.h"
#include "runtime/embedding.h"
#include "runtime/estimate.h"
#include "runtime/generate.h"

namespace gimbal::own {
using Engine = gimbal::Engine;
using EmbedSettings = gimbal::EmbedSettings;
using EngineOptions = gimbal::EngineOptions;
using Error = gimbal::Error;
using Event = gimbal::Event;
using Fallback = gimbal::Fallback;
using Model = gimbal::Model;
using Pooling = gimbal::Pooling;
using Pull = gimbal::Pull;
using PullEvent = gimbal::PullEvent;
using PullWatch = gimbal::PullWatch;
using Reloaded = gimbal::Reloaded;
using Tokenizer = gimbal::Tokenizer;
}  // namespace gimbal::own

#include <gimbal/engine.h>

namespace gimbal::v1 {

Error to_public(const own::Error&);
Fallback to_public(const own::Fallback&);
Event to_public(const own::Event&);

struct Tokenizer::Impl {
  std::unique_ptr<own::Tokenizer> own;
};

struct Engine::Impl {
  explicit Impl(Options);
  Options options;
  Registry registry;
};

// One engine of the library for each model: what failed for one is not held against it in another.
struct Model::Impl {
  std::shared_ptr<void> registry_owner;
  std::unique_ptr<own::Engine> engine;
  std::unique_ptr<Drafts> drafts = {};
  LoadedModelPtr loaded = {};
  std::shared_ptr<const Tokenizer::Impl> tokenizer = {};

  // Where sequences run now: behind the devices that were lost.
  const LoadedModelPtr& current() {
    while (loaded->successor) loaded = loaded->successor;
    return loaded;
  }
};

// Members are in the order in which they depend on each other.
struct Sequence::Impl {
  std::shared_ptr<Model::Impl> model;
  LoadedModelPtr on;
  std::unique_ptr<Session> session;  // moves when a device of `on` is lost
};

// Makes handles; nobody else can.
struct Access {
  static Model model(std::shared_ptr<Model::Impl> impl) { return Model(std::move(impl)); }
  static Sequence sequence(std::unique_ptr<Sequence::Impl> impl) { return Sequence(std::move(impl)); }
  static Tokenizer tokenizer(std::shared_ptr<const Tokenizer::Impl> impl) {
    return Tokenizer(std::move(impl));
  }
};

}  // namespace gimbal::v1
