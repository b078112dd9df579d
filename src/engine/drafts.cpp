#include "engine/drafts.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "runtime/model_drafter.h"
#include "runtime/ngram_drafter.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

// The ids of one must mean the same to the other. One may have more of them: published sizes of a family
// differ by tokens that no text has.
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

}  // namespace

int drafts_at_most(const std::string& word) { return word.empty() || word == "off" ? 0 : kMaxDrafts; }

Result<std::unique_ptr<Drafts>> open_drafts(Registry& registry, const EngineOptions& options,
                                            const ModelFile& drafts_for, const std::string& word,
                                            const EventSink& events) {
  auto d = std::make_unique<Drafts>();
  if (drafts_at_most(word) == 0) return d;
  if (word == "auto" || word == "ngram") {
    d->drafting = std::make_unique<Drafting>(std::make_unique<NgramDrafter>());
    return d;
  }
  auto source = open_model_file(word);
  if (!source) {
    Error e = source.error();
    if (e.field == std::string_view("model")) e.field = "draft";
    return e;
  }
  auto tokenizer = Tokenizer::create(*drafts_for.file), own = Tokenizer::create(*source->file);
  if (!tokenizer) return tokenizer.error();
  if (!own) return own.error();
  if (auto ok = same_vocabulary(**tokenizer, **own, source->name); !ok) return ok.error();
  EngineOptions o = options;
  o.split.clear(), o.gpu_layers.reset();
  o.run.drafts = 1, o.run.logit_rows = o.run.sequences = 1;
  if (o.run.context == 0) {
    auto config = configure(*drafts_for.file);
    if (!config) return config.error();
    o.run.context = default_context(*config);
  }
  d->engine = std::make_unique<Engine>(registry, std::move(o), events);
  auto loaded = d->engine->load(*source);
  if (!loaded) return loaded.error();
  d->model = std::move(*loaded);
  auto session = Session::create(*d->model->model);
  if (!session) return session.error();
  auto recover = [all = d.get()](Session& s, const Error& lost) {
    return all->engine->recover(s, all->model, lost);
  };
  d->drafting = std::make_unique<Drafting>(
      std::make_unique<ModelDrafter>(std::move(*session), source->name, std::move(recover)),
      Drafting::Length::Adapts, [events](const Error& why) {
        if (events) events(event::DraftsEnded{why});
      });
  return d;
}

}  // namespace gimbal
