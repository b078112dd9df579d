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
  scheduling.drafts.failed = impl_->drafts->failed;
  if (impl_->drafts->drafter)
    scheduling.drafts.drafter = [model = impl_.get()](const Generation&) { return model->drafts->drafter(); };
  auto scheduler = Scheduler::create(model_of(made->on), std::move(*tokenizer),
                                     impl_->engine->on_device_lost(made->on), scheduling);
  if (!scheduler) return to_public(scheduler.error());
  made->scheduler = std::move(*scheduler);
  return Access::batch(std::move(made));
}

Result<std::vector<std::vector<float>>> Model::embed(std::span<const std::string> texts, Pooling pooling,
                                                     bool normalised) {
  LoadedModelPtr on = impl_->current();
  if (!on->model->plan().options.hidden)
    return usage("the model was loaded to generate text, not for embeddings", "set 'embed' when loading it",
                 "embed");
  own::EmbedSettings settings{own::Pooling(int(pooling)), normalised};
  if (pooling == Pooling::OfFile) {
    auto says = pooling_of(on->source.file->metadata());
    if (!says) return to_public(says.error());
    if (!*says)
      return usage("the model file does not say how an embedding is made of its tokens' numbers",
                   "name a 'pooling'", "pooling");
    settings.pooling = **says;
  }
  std::vector<std::vector<Token>> tokens;
  for (const std::string& text : texts)
    tokens.push_back(impl_->tokenizer->own->encode(text, {.parse_special = false}));
  std::vector<std::vector<float>> all(texts.size());
  auto ok =
      impl_->engine->embed(on, tokens, settings, [&](size_t i, std::span<const float> e) -> gimbal::Status {
        all[i].assign(e.begin(), e.end());
        return gimbal::Done{};
      });
  if (!ok) return to_public(ok.error());
  return all;
}

Tokenizer Model::tokenizer() const { return Access::tokenizer(impl_->tokenizer); }
std::string Model::name() const { return impl_->loaded->source.name; }
int Model::context() const { return impl_->current()->model->context(); }
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
int Tokenizer::size() const { return impl_->own->size(); }
Token Tokenizer::bos() const { return impl_->own->bos(); }
Token Tokenizer::eos() const { return impl_->own->eos(); }
bool Tokenizer::is_stop(Token t) const { return impl_->own->is_stop(t); }

}  // namespace gimbal::v1
