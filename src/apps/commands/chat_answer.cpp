#include "apps/commands/chat_answer.h"

#include <algorithm>

#include "apps/commands/repetition_guard.h"
#include "base/format.h"
#include "base/json.h"
#include "chat/reasoning.h"

namespace gimbal {
namespace {

// Positions that an answer should find free.
int reserve(const Session& session, int max_tokens) {
  const int quarter = std::max(1, session.model().context() / 4);
  return max_tokens >= 0 ? std::min(max_tokens, quarter) : quarter;
}

template <class T>
void extend(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Adds the part behind a dropped question to the parts before it. The time of the first token stays.
void extend(Generated& all, Generated part) {
  if (all.tokens.empty()) {
    part.prompt_tokens += all.prompt_tokens, part.prompt_seconds += all.prompt_seconds;
    part.first_token_seconds += all.prompt_seconds;
    all = std::move(part);
    return;
  }
  extend(all.tokens, std::move(part.tokens));
  extend(all.logprobs, std::move(part.logprobs));
  extend(all.top, std::move(part.top));
  extend(all.rows, std::move(part.rows));
  all.finish = part.finish;
  all.prompt_tokens += part.prompt_tokens;
  all.prompt_seconds += part.prompt_seconds, all.generate_seconds += part.generate_seconds;
  all.drafts.steps += part.drafts.steps, all.drafts.tokens += part.drafts.tokens;
  all.drafts.drafted += part.drafts.drafted, all.drafts.accepted += part.drafts.accepted;
  all.drafts.seconds += part.drafts.seconds;
}

}  // namespace

Result<ChatAnswer> answer_chat(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat,
                               Conversation& conversation, const ChatSettings& settings,
                               const ChatSink& sink) {
  ChatAnswer out;
  const RenderOptions options = local_time();
  GenerateSettings generating = settings.generate;
  std::vector<Token> answered;  // of this answer, before the context was full
  std::optional<ReasoningSplitter> splitter;
  RepetitionGuard guard;
  if (generating.constraint) generating.constraint->rewind(0);

  for (;;) {
    std::vector<ChatMessage> messages = conversation.messages();
    const auto numbers = settings.pictures ? settings.pictures->number(messages) : std::vector<size_t>();
    const PictureMarks marks =
        numbers.empty() ? PictureMarks{} : PictureMarks{settings.pictures->prompt_marks(), numbers.size()};
    auto prompt = chat_prompt(chat, tokenizer, chat_variables(messages, settings.of_template), options,
                              settings.parse_special, marks);
    if (!prompt) return prompt.error();
    Inputs tokens =
        numbers.empty() ? Inputs(std::move(prompt->tokens)) : settings.pictures->inputs(*prompt, numbers);
    tokens.append(InputView(answered));
    const int context = session.model().context();
    if (int(tokens.size()) + reserve(session, generating.max_tokens) > context) {
      if (settings.drops_oldest && conversation.drop_oldest()) {
        out.dropped++;
        continue;
      }
      if (int(tokens.size()) >= context)
        return Error{
            Code::Failed,
            format("the context is full: the conversation takes {} tokens, but the context has room for {}",
                   tokens.size(), context),
            "use a larger 'context', or start a new conversation", reason::kContextFull, "context"};
    }
    if (generating.constraint && prompt->opens_reasoning)
      return Error{Code::Usage,
                   "the chat template begins every answer with thinking, to which a grammar does not apply",
                   "give the prompt without a chat", "", "grammar"};
    if (!splitter) splitter.emplace(prompt->opens_reasoning);
    ReasoningLimit& limit = generating.reasoning;
    set_reasoning_marks(limit, chat.calls.kind == ToolCallFormat::Kind::Harmony, splitter->inside());
    if (limit.tokens >= 0 && !answered.empty())  // behind the beginning of the answer
      limit.tokens =
          splitter->inside() ? std::max(0, settings.generate.reasoning.tokens - int(answered.size())) : -1;
    auto g =
        generate_from_text(session, tokenizer, tokens, generating, [&](std::string_view text, Token token) {
          const auto part = splitter->push(text);
          if (!sink(part.reasoning, part.answer)) return false;
          if (settings.guard && guard.push(token)) return out.repeats = true, false;
          if (!tokenizer.is_control(token)) return true;
          const auto rest = splitter->control(tokenizer.piece(token, true));
          return sink(rest.reasoning, rest.answer);
        });
    if (!g) return g.error();
    answered.insert(answered.end(), g->tokens.begin(), g->tokens.end());
    const size_t written = g->tokens.size();
    extend(out.generated, std::move(*g));
    if (out.generated.finish != Finish::ContextFull || !settings.drops_oldest || !conversation.drop_oldest())
      break;
    out.dropped++;  // and the answer continues
    if (generating.max_tokens >= 0) generating.max_tokens = std::max(0, generating.max_tokens - int(written));
  }
  const auto rest = splitter->finish();
  if (!rest.reasoning.empty() || !rest.answer.empty()) sink(rest.reasoning, rest.answer);
  out.text = splitter->answer();
  out.reasoning = splitter->reasoning();
  return out;
}

}  // namespace gimbal
