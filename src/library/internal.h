// Combines the public classes and the library's own of the same names: Engine, Model, Tokenizer. The
// library's headers come first, so that they never see the public names; here they are own::Model. This
// folder includes all of them here, because a unity build reads its files one after the other.
#pragma once
#include <atomic>
#include <mutex>

#include "audit/audit_many.h"
#include "audit/certificate.h"
#include "audit/model_identity.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "chat/chat_template.h"
#include "chat/picture_marks.h"
#include "chat/reasoning.h"
#include "chat/reply_parser.h"
#include "chat/task_prompts.h"
#include "device/reason.h"
#include "discovery/summary.h"
#include "engine/backend_places.h"
#include "engine/drafts.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/kernel_list.h"
#include "engine/kernel_registry.h"
#include "engine/model_catalog.h"
#include "engine/options.h"
#include "engine/prompt_cache.h"
#include "engine/recent_pictures.h"
#include "engine/reports.h"
#include "fetch/pull.h"
#include "grammar/grammar.h"
#include "inspection/verdict.h"
#include "ops/op.h"
#include "ops/op_def.h"
#include "runtime/embedding.h"
#include "runtime/estimate.h"
#include "runtime/generate.h"
#include "runtime/memory_check.h"
#include "runtime/prefix_store.h"
#include "scheduler/scheduler_thread.h"
#include "store/page_folder.h"

namespace gimbal::own {
using Certificate = gimbal::Certificate;
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

#include "library/public_error.h"

#include <gimbal/engine.h>

namespace gimbal::v1 {

Fallback to_public(const own::Fallback&);
Event to_public(const own::Event&);
ModelPlan to_public(const PlannedModel&);
Explanation to_public(gimbal::Explanation&&);
// Errors: those of estimate_memory().
Result<ModelDimensions> dimensions_of(const ModelShape&);
std::vector<PlannedMemory> memory_of(const gimbal::ModelPlan&);
std::vector<Placement> placement_of(const gimbal::ModelPlan&, const OpenedDevice&);

Error usage(std::string message, std::string remedy, const char* field);
Error no_certificate_of_pictures();
Error images_of_tokens();  // TextOptions::images with a prompt that is no text
// The grammar that a text must match, as GBNF; empty: any text.
Result<std::string> grammar_of(const TextOptions&);
gimbal::TextSettings settings_of(const TextOptions&);
EventSink events_of(const Options&);

struct Tokenizer::Impl {
  std::unique_ptr<own::Tokenizer> own;
};

struct Engine::Impl {
  explicit Impl(Options);
  // Opens Options::prefix_store once; nullptr: there is none. Errors: Usage for its settings; the folder's.
  Result<std::shared_ptr<PageStore>> open_pages();

  Options options;
  Registry registry;
  struct PageErrors {
    std::mutex mutex;
    std::vector<std::string> sentences;  // PageStore gives a few at most
  };
  const std::shared_ptr<PageErrors> page_errors = std::make_shared<PageErrors>();  // pages may outlive this
  mutable std::mutex pages_mutex;
  std::shared_ptr<PageStore> pages = {};
};

// The encoder of a model that takes pictures, and the rows of recent ones.
struct Pictures {
  std::mutex mutex;  // guards the others
  std::unique_ptr<PictureInput> encoder;
  RecentPictures recent{uint64_t(64) << 20};
};

// One engine of the library for each model: a failure with one model does not affect another.
struct Model::Impl {
  std::shared_ptr<void> registry_owner;
  std::unique_ptr<own::Engine> engine;
  std::unique_ptr<Drafts> drafts = {};
  LoadedModelPtr loaded = {};
  std::unique_ptr<PrefixStore> prefixes = {};  // nullptr: none
  std::unique_ptr<Pictures> pictures = {};     // nullptr: it takes none
  std::shared_ptr<const Tokenizer::Impl> tokenizer = {};
  std::optional<gimbal::Result<gimbal::ChatTemplate>> chat = {};
  std::shared_ptr<const TokenTree> tree = {};            // built at the first use of a grammar
  std::vector<gimbal::Lora> adapters = {};               // that it was loaded with
  std::optional<own::Certificate::Model> identity = {};  // see identify()
  std::mutex identifying = {};
  std::atomic<int> sequences = 0;
  std::atomic<bool> batch = false;

  // After loading. Errors: those of open_pages(); Unsupported for a model whose pages cannot be stored.
  Status open_prefixes(Engine::Impl&);
  // Errors: Unsupported for a template that cannot be read; Usage for invalid messages or tools.
  Result<gimbal::ChatTask> chat_task(std::span<const Message>, const ChatOptions&) const;
  // The prompt with the rows of these files in place of each kNoToken. Thread-safe. Errors: Usage for a model
  // without an encoder, and for files that it cannot use; the encoder's.
  Result<Inputs> inputs(std::span<const Token> prompt,
                        std::span<const std::shared_ptr<const std::string>> files);
  // The same for a text with marks of pictures. `begins`: a text, with BOS. Errors: Usage for another number
  // of marks.
  Result<Inputs> inputs(std::string_view text, bool begins, const std::vector<std::string>& images);
  // Hashes the model's file, once, for certificates. Errors: those of certified_model().
  Status identify();
  // After identify(). Of an answer to `prompt` by the model `on`.
  Certificate certificate(const LoadedModel& on, std::span<const Token> prompt, const gimbal::TextSettings&,
                          std::string grammar, std::span<const Token> answer, gimbal::Finish,
                          std::span<const std::string> rows) const;
  // The limit of an answer's reasoning (ChatOptions::reasoning_budget).
  gimbal::ReasoningLimit reasoning_limit(const ChatOptions&, const gimbal::ChatTask&) const;
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
  // follows the sequence's tokens. `grammar`: GBNF. `reasoning`: of an answer to messages.
  enum class Prompt { Follows, Whole };
  Result<Generated> generate(const InputView& prompt, Prompt, const TextOptions&, const std::string& grammar,
                             const gimbal::TextSink&, const gimbal::ReasoningLimit& reasoning = {});
  Result<Generated> generate(const InputView& prompt, const TextOptions&, const TextSink&);
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
  static Certificate certificate(own::Certificate);
  static const own::Certificate& own(const Certificate&);
  static Batch batch(std::unique_ptr<Batch::Impl>);
  static Tokenizer tokenizer(std::shared_ptr<const Tokenizer::Impl> impl) {
    return Tokenizer(std::move(impl));
  }
};

}  // namespace gimbal::v1
