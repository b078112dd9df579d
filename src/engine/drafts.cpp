#include "engine/drafts.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "runtime/head_drafter.h"
#include "runtime/model_drafter.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

// The ids of both must mean the same tokens. One may have more of them: published sizes of a family differ
// by tokens that no text has.
Status same_vocabulary(const Tokenizer& a, const Tokenizer& b, const std::string& name) {
  for (Token t = 0; t < std::min(a.size(), b.size()); t++)
    if (a.piece(t, true) != b.piece(t, true))
      return Error{
          Code::Usage,
          format("{} cannot draft for this model: it has another vocabulary (token {} is {}, and {} "
                 "here)",
                 gimbal::quoted(name), t, gimbal::quoted(b.piece(t, true)), gimbal::quoted(a.piece(t, true))),
          "choose a smaller model of the same family, or 'draft' ngram",
          reason::kOutOfRange,
          "draft",
          name};
  return Done{};
}

// A draft model and its load options.
struct Wanted {
  ModelFile source;  // without a file: no draft model
  EngineOptions options;
  std::optional<DraftHead> head{};  // that it is
};

// The model gives the states that the head reads; the head takes from the model's file what its own one
// lacks.
Status choose_head(EngineOptions& options, const ModelFile& drafts_for, Wanted& w) {
  auto joined = std::make_shared<ModelSource>(*w.source.file);
  if (auto ok = fit_draft_head(*w.head, *joined, *drafts_for.file); !ok) return ok;
  w.source.file = std::move(joined);
  options.run.states = w.options.run.states = true;
  options.run.state_layers = w.head->layers;
  w.options.run.drafts = 0;
  set_head_options(*w.head, w.options.run);
  return Done{};
}

Status choose(EngineOptions& options, const ModelFile& drafts_for, const std::string& word, int texts,
              Wanted& w) {
  options.run.drafts = drafts_at_most(word);
  const ModelArch* nextn = word == "auto" || word == "mtp" ? nextn_of(*drafts_for.file) : nullptr;
  if (word == "mtp" && !nextn)
    return Error{Code::Usage,
                 format("{} has no layers for multi-token prediction, or this version does not compute those "
                        "of its architecture",
                        gimbal::quoted(drafts_for.name)),
                 "use 'draft' ngram, or a smaller model of the same family",
                 reason::kOutOfRange,
                 "draft",
                 word};
  if (options.run.drafts == 0 || word == "ngram" || (word == "auto" && !nextn)) return Done{};
  w.options = options;
  RunOptions& run = w.options.run;
  w.options.split.clear(), w.options.gpu_layers.reset();
  run.experts_from_disk = 0;  // the budget is the large model's
  run.logit_rows = 1, run.sequences = texts, run.cache_positions = 0;
  if (run.context == 0) {
    auto config = configure(*drafts_for.file);
    if (!config) return config.error();
    run.context = default_context(*config);
  }
  if (nextn) {
    options.run.states = run.states = true;
    run.drafts = 0, run.arch = nextn;
    w.source = drafts_for;
    return Done{};
  }
  w.options.overrides.clear();  // they name tensors of the other model
  run.drafts = 1;
  auto source = open_model_file(word);
  if (!source) {
    Error e = source.error();
    if (e.field == std::string_view("model")) e.field = "draft";
    return e;
  }
  auto tokenizer = Tokenizer::create(drafts_for.file->metadata()),
       own = Tokenizer::create(source->file->metadata());
  if (!tokenizer) return tokenizer.error();
  if (!own) return own.error();
  w.source = std::move(*source);
  if (auto ok = same_vocabulary(**tokenizer, **own, w.source.name); !ok) return ok;
  auto head = read_draft_head(*w.source.file);
  if (!head) return head.error();
  w.head = std::move(*head);
  return w.head ? choose_head(options, drafts_for, w) : Done{};
}

// nullptr: all texts of its model are in use. A single session moves when its device is lost.
std::unique_ptr<Drafter> drafter_of(Drafts& d, bool alone) {
  Model& model = *d.model->model;
  if (model.plan().takes_states) {
    auto made = make_head_drafter(model, d.head ? &*d.head : nullptr);
    return made ? std::move(*made) : nullptr;
  }
  auto session = Session::create(model);
  if (!session) return nullptr;
  if (alone) (*session)->on_device_lost(d.engine->on_device_lost(d.model));
  return std::make_unique<ModelDrafter>(std::move(*session), d.model->source.name);
}

}  // namespace

int drafts_at_most(const std::string& word) { return word.empty() || word == "off" ? 0 : kMaxDrafts; }

Result<std::unique_ptr<Drafts>> open_drafts(Registry& registry, EngineOptions& options,
                                            const ModelFile& drafts_for, const std::string& word,
                                            const EventSink& events, int texts) {
  auto d = std::make_unique<Drafts>();
  Wanted w;
  if (auto ok = choose(options, drafts_for, word, texts, w); !ok) return ok.error();
  if (options.run.drafts == 0) return d;
  if (!w.source.file) {
    d->drafter = [] { return std::make_unique<NgramDrafter>(); };
  } else {
    d->engine = std::make_unique<Engine>(registry, std::move(w.options), events);
    auto loaded = d->engine->load(w.source);
    if (!loaded) return loaded.error();
    d->model = std::move(*loaded), d->head = std::move(w.head);
    d->drafter = [all = d.get(), texts] { return all->lost ? nullptr : drafter_of(*all, texts == 1); };
  }
  d->failed = [all = d.get(), events, strict = options.strict](const Error& why) -> Status {
    const bool known = std::exchange(all->lost, true);
    if (!strict) {
      if (events && !known) events(event::DraftsEnded{why});
      return Done{};
    }
    Error refused = why;
    refused.code = Code::NoBackend;
    refused.message = "drafting stopped: " + why.message;
    if (refused.changes.empty()) refused.changes.push_back({"strict", "false", "continues without drafts"});
    return refused;
  };
  if (texts > 1) return d;
  auto drafter = d->drafter();
  if (!drafter) return Error{Code::OutOfMemory, "all sequences of the draft model are in use", ""};
  d->drafting = std::make_unique<Drafting>(std::move(drafter), Drafting::Length::Adapts, d->failed);
  return d;
}

Result<std::unique_ptr<PlannedModel>> plan_drafts(Registry& registry, EngineOptions& options,
                                                  const ModelFile& drafts_for, const std::string& word,
                                                  const EventSink& events) {
  Wanted w;
  if (auto ok = choose(options, drafts_for, word, 1, w); !ok) return ok.error();
  if (!w.source.file) return std::unique_ptr<PlannedModel>();
  auto plan = Engine(registry, std::move(w.options), events).plan(w.source);
  if (!plan) return plan.error();
  auto planned = std::make_unique<PlannedModel>(std::move(*plan));
  options.run.beside = &planned->plan;
  return planned;
}

}  // namespace gimbal
