#include "library/batch.h"

namespace gimbal::v1 {

Error usage(std::string message, std::string remedy, const char* field) {
  Error e;
  e.code = Code::Usage, e.message = std::move(message), e.remedy = std::move(remedy), e.field = field;
  return e;
}

static gimbal::Status check_generates(const LoadedModel& on) {
  if (on.model->plan().width(Output::Logits) > 0) return gimbal::Done{};
  return own::Error{gimbal::Code::Usage,
                    "the model is an encoder or was loaded with 'embed': it generates no text",
                    "use Model::embed()", "", "embed"};
}

Result<Sequence> Model::new_sequence() {
  if (auto ok = check_generates(*impl_->current()); !ok) return to_public(ok.error());
  if (impl_->batch) return usage("a Batch uses the model", "end it before, or load the model again", "");
  auto made = std::make_unique<Sequence::Impl>(impl_);
  auto session = Session::create(*made->on->model);
  if (!session) return to_public(session.error());
  made->take(std::move(*session));
  return Access::sequence(std::move(made));
}

Result<Batch> Model::new_batch(const BatchOptions& options) {
  if (auto ok = check_generates(*impl_->current()); !ok) return to_public(ok.error());
  if (impl_->sequences > 0 || impl_->batch.exchange(true))
    return usage("a Sequence or another Batch uses the model", "end it before, or load the model again", "");
  auto made = std::make_unique<Batch::Impl>(impl_);
  auto tokenizer = own::Tokenizer::create(made->on->source.file->metadata());
  if (!tokenizer) return to_public(tokenizer.error());
  SchedulerOptions scheduling;
  scheduling.queue = options.queue, scheduling.prompt_rows = options.prompt_rows;
  scheduling.prefixes = impl_->prefixes.get();
  scheduling.drafts.failed = impl_->drafts->failed;
  if (impl_->drafts->drafter)
    scheduling.drafts.drafter = [model = impl_.get()](const ScheduledRequest&) {
      return model->drafts->drafter();
    };
  auto scheduler = SchedulerThread::create(model_of(made->on), std::move(*tokenizer),
                                           impl_->engine->on_device_lost(made->on), scheduling);
  if (!scheduler) return to_public(scheduler.error());
  made->scheduler = std::move(*scheduler);
  return Access::batch(std::move(made));
}

// The pooling of the file, unless another is named.
static Result<own::EmbedSettings> embedding_settings(const LoadedModel& on, Pooling pooling,
                                                     bool normalised) {
  if (!on.model->plan().options.hidden)
    return usage("the model was loaded to generate text, not for embeddings", "set 'embed' when loading it",
                 "embed");
  own::EmbedSettings settings{own::Pooling(int(pooling)), normalised};
  if (pooling != Pooling::OfFile) return settings;
  auto says = pooling_of(on.source.file->metadata());
  if (!says) return to_public(says.error());
  if (!*says)
    return usage("the model file does not say how an embedding is made of its tokens' numbers",
                 "name a 'pooling'", "pooling");
  settings.pooling = **says;
  return settings;
}

static Result<std::vector<std::vector<float>>> embedded(Model::Impl& model,
                                                        std::span<const std::vector<Token>> texts,
                                                        const own::EmbedSettings& settings) {
  std::vector<std::vector<float>> all(texts.size());
  LoadedModelPtr on = model.current();
  auto ok =
      model.engine->embed(on, texts, settings, [&](size_t i, std::span<const float> e) -> gimbal::Status {
        all[i].assign(e.begin(), e.end());
        return gimbal::Done{};
      });
  if (!ok) return to_public(ok.error());
  return all;
}

Result<std::vector<std::vector<float>>> Model::embed(std::span<const std::string> texts, Pooling pooling,
                                                     bool normalised) {
  auto settings = embedding_settings(*impl_->current(), pooling, normalised);
  if (!settings) return settings.error();
  std::vector<std::vector<Token>> tokens;
  for (const std::string& text : texts)
    tokens.push_back(impl_->tokenizer->own->encode(text, {.parse_special = false}));
  return embedded(*impl_, tokens, *settings);
}

Result<std::vector<double>> Model::rerank(const std::string& query, std::span<const std::string> documents) {
  const LoadedModelPtr on = impl_->current();
  auto settings = embedding_settings(*on, Pooling::OfFile, true);
  if (!settings) return settings.error();
  const own::Tokenizer& tokenizer = *impl_->tokenizer->own;
  const bool ranks = settings->pooling == own::Pooling::Rank;
  std::vector<std::vector<Token>> texts;
  if (!ranks) texts.push_back(tokenizer.encode(query, {.parse_special = false}));
  for (const std::string& d : documents)
    texts.push_back(ranks ? ranked_pair(on->source.file->metadata(), tokenizer, query, d)
                          : tokenizer.encode(d, {.parse_special = false}));
  auto all = embedded(*impl_, texts, *settings);
  if (!all) return all.error();
  std::vector<double> scores;
  for (size_t i = ranks ? 0 : 1; i < all->size(); i++) {
    double cosine = 0;
    for (size_t k = 0; !ranks && k < (*all)[i].size(); k++)
      cosine += double((*all)[0][k]) * double((*all)[i][k]);
    scores.push_back(ranks ? ranked_score((*all)[i]) : cosine);
  }
  return scores;
}

Tokenizer Model::tokenizer() const { return Access::tokenizer(impl_->tokenizer); }
std::string Model::name() const { return impl_->loaded->source.name; }
int Model::context() const { return impl_->current()->model->context(); }
std::vector<LoraAdapter> Model::adapters() const {
  std::vector<LoraAdapter> all;
  for (const Adapter& a : impl_->current()->source.file->tensors().adapters())
    all.push_back({a.path, a.scale});
  return all;
}
int Model::vocabulary() const { return impl_->current()->model->config().vocabulary; }

std::vector<Placement> Model::placement() const {
  const LoadedModel& on = *impl_->current();
  return placement_of(on.model->plan(), on.opened);
}

std::vector<Fallback> Model::fallbacks() const {
  std::vector<Fallback> all;
  for (const own::Fallback& f : impl_->current()->fallbacks) all.push_back(to_public(f));
  return all;
}

std::vector<ReceiptLine> Model::receipt() const {
  std::vector<ReceiptLine> all;
  for (const gimbal::ReceiptLine& l : impl_->current()->receipt())
    all.push_back({l.op, l.format, l.device, l.kernel, l.why, l.ops, l.runs, l.not_counted});
  return all;
}

std::vector<Token> Tokenizer::encode(std::string_view text, bool add_bos, bool parse_special) const {
  return impl_->own->encode(text, {add_bos, parse_special});
}
std::string Tokenizer::decode(std::span<const Token> tokens, bool special) const {
  return impl_->own->decode(tokens, special);
}
Result<std::vector<TextPart>> Tokenizer::parts(std::string_view text, std::span<const Token> tokens) const {
  const own::Tokenizer& own = *impl_->own;
  std::string spelt;
  for (Token t : tokens)
    if (!own.is_control(t)) spelt += own.piece(t);
  // SentencePiece puts a space before the text.
  bool added =
      spelt.size() == text.size() + 1 && spelt[0] == ' ' && std::string_view(spelt).substr(1) == text;
  std::vector<TextPart> all;
  size_t at = 0;
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::string whole = own.piece(tokens[i], true);
    std::string_view piece = whole;
    if (added && !own.is_control(tokens[i])) piece.remove_prefix(1), added = false;
    const bool spells = text.substr(at).starts_with(piece);
    if (!spells && !own.is_control(tokens[i]))
      return Error{Code::Unsupported,
                   gimbal::format("token {} is {}, and the text continues with {}", i, gimbal::quoted(whole),
                                  gimbal::quoted(text.substr(at, 2 * whole.size()))),
                   "this tokenizer changes the text before it cuts it",
                   "",
                   "",
                   "",
                   "",
                   {}};
    all.push_back({at, spells ? at + piece.size() : at});
    at = all.back().end;
  }
  return all;
}

int Tokenizer::size() const { return impl_->own->size(); }
Token Tokenizer::bos() const { return impl_->own->bos(); }
Token Tokenizer::eos() const { return impl_->own->eos(); }
bool Tokenizer::is_stop(Token t) const { return impl_->own->is_stop(t); }

}  // namespace gimbal::v1
