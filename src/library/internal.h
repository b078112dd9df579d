// Combines the public classes and the library's own of the same names: Engine, Model, Tokenizer. The
// library's headers come first, so that they never see the public names; here they are own::Model. This
// folder includes all of them here, because a unity build reads its files one after the other.
#pragma once
#include <atomic>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "chat/chat_template.h"
#include "chat/reply_parser.h"
#include "device/reason.h"
#include "discovery/summary.h"
#include "engine/backend_places.h"
#include "engine/drafts.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/kernel_list.h"
#include "engine/model_catalog.h"
#include "engine/prompt_cache.h"
#include "engine/settings.h"
#include "fetch/pull.h"
#include "grammar/json_schema.h"
#include "ops/op.h"
#include "ops/shapes.h"
#include "runtime/embedding.h"
#include "runtime/estimate.h"
#include "runtime/generate.h"
#include "runtime/memory_check.h"
#include "scheduler/scheduler.h"

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
ModelPlan to_public(const PlannedModel&);
Explanation to_public(gimbal::Explanation&&);
std::vector<PlannedMemory> memory_of(const gimbal::ModelPlan&);
std::vector<Placement> placement_of(const gimbal::ModelPlan&, const OpenedDevice&);

Error usage(std::string message, std::string remedy, const char* field);
// The grammar that a text must match, as GBNF; empty: any text.
Result<std::string> grammar_of(const TextOptions&);
gimbal::TextSettings settings_of(const TextOptions&);

struct Tokenizer::Impl {
  std::unique_ptr<own::Tokenizer> own;
};

struct Engine::Impl {
  explicit Impl(Options);
  Options options;
  Registry registry;
};

// One engine of the library for each model: a failure with one model does not affect another.
struct Model::Impl {
  std::shared_ptr<void> registry_owner;
  std::unique_ptr<own::Engine> engine;
  std::unique_ptr<Drafts> drafts = {};
  LoadedModelPtr loaded = {};
  std::shared_ptr<const Tokenizer::Impl> tokenizer = {};
  std::optional<gimbal::Result<gimbal::ChatTemplate>> chat = {};
  std::shared_ptr<const TokenTree> tree = {};  // built at the first use of a grammar
  std::atomic<int> sequences = 0;
  std::atomic<bool> batch = false;

  // Errors: Unsupported for a template that cannot be read; Usage for invalid messages or tools.
  Result<gimbal::ChatTask> chat_task(std::span<const Message>, const ChatOptions&) const;
  // A constraint at the beginning of a text; nullopt for an empty grammar.
  Result<std::optional<Constraint>> constraint(const std::string& gbnf);

  // The model that sequences run on now, after any loss of devices.
  const LoadedModelPtr& current() {
    while (loaded->successor) loaded = loaded->successor;
    return loaded;
  }
};

// Each member may depend on those before it.
struct Sequence::Impl {
  explicit Impl(std::shared_ptr<Model::Impl> m) : model(std::move(m)), on(model->current()) {
    model->sequences++;
  }
  ~Impl() { model->sequences--; }

  const std::shared_ptr<Model::Impl> model;
  LoadedModelPtr on;
  std::unique_ptr<Drafting> own_drafting;  // of a model with several sequences
  std::unique_ptr<Session> session;        // moves when a device of `on` is lost

  // Continues this session, on `on`.
  void take(std::unique_ptr<Session>);
  Drafting* drafting() { return own_drafting ? own_drafting.get() : model->drafts->drafting.get(); }
  // `Whole`: `prompt` is the whole text, and the prefix that it shares with the sequence is kept; else it
  // follows the sequence's tokens. `grammar`: GBNF.
  enum class Prompt { Follows, Whole };
  Result<Generated> generate(std::span<const Token> prompt, Prompt, const TextOptions&,
                             const std::string& grammar, const gimbal::TextSink&);
};

// A conversation's answer while it is written.
struct ReplyState {
  explicit ReplyState(const own::Tokenizer& tokenizer, const gimbal::ChatTask& task)
      : parser(tokenizer, task) {
    message.role = "assistant";
  }
  // Adds a part to the message, and returns the addition.
  ReplyPiece add(ReplyParser::Part);

  ReplyParser parser;
  Message message;
};

// Makes handles; the only friend of their constructors.
struct Access {
  static Model model(std::shared_ptr<Model::Impl> impl) { return Model(std::move(impl)); }
  static Sequence sequence(std::unique_ptr<Sequence::Impl> impl) { return Sequence(std::move(impl)); }
  static Batch batch(std::unique_ptr<Batch::Impl>);
  static Tokenizer tokenizer(std::shared_ptr<const Tokenizer::Impl> impl) {
    return Tokenizer(std::move(impl));
  }
};

}  // namespace gimbal::v1
