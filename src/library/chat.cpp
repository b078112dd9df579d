// Converts public messages and tools to those of chat/, and answers back.
#include "library/internal.h"

namespace gimbal::v1 {
namespace {

// A call as templates expect it: with the arguments as an object.
Json call_json(const ToolCall& call) {
  Json arguments = parse_json(call.arguments);
  if (arguments.is_discarded()) arguments = call.arguments;
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}};
}

// `r`: gets the message's pictures, whose marks precede its content.
Result<Json> message_json(const Message& m, ChatRequest& r) {
  constexpr const char* kRoles[] = {"system", "user", "assistant", "tool"};
  if (std::find(std::begin(kRoles), std::end(kRoles), m.role) == std::end(kRoles))
    return usage(format("'messages': there is no role {}", gimbal::quoted(m.role)),
                 format("use one of {}", fmt::join(kRoles, ", ")), "messages");
  std::string marks;
  for (const std::string& image : m.images) {
    if (m.role != "user" && m.role != "tool")
      return usage(format("'messages': a message of the {} has images", m.role),
                   "add them to a message of the user", "messages");
    if (r.picture_mark.empty()) r.picture_mark = gimbal::new_picture_marks();
    marks += gimbal::picture_mark(r.picture_mark, r.pictures.size());
    r.pictures.push_back(std::make_shared<const std::string>(image));
  }
  Json j = {{"role", m.role}, {"content", marks + m.content}};
  if (!m.reasoning.empty()) j["reasoning_content"] = m.reasoning;
  if (!m.tool_call_id.empty()) j["tool_call_id"] = m.tool_call_id;
  for (const ToolCall& call : m.tool_calls) j["tool_calls"].push_back(call_json(call));
  return j;
}

Result<Json> tool_json(const Tool& t) {
  Json parameters = parse_json(t.parameters);
  if (!parameters.is_object())
    return usage(format("'tools': the parameters of {} are no JSON object", gimbal::quoted(t.name)),
                 "give a JSON schema of an object", "tools");
  Json function = {{"name", t.name}};
  if (!t.description.empty()) function["description"] = t.description;
  function["parameters"] = std::move(parameters);
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

Result<ChatRequest> request_of(std::span<const Message> messages, const ChatOptions& o) {
  ChatRequest r;
  for (const Message& m : messages) {
    auto j = message_json(m, r);
    if (!j) return j.error();
    r.messages.push_back(std::move(*j));
  }
  if (messages.empty()) return usage("'messages' is empty", "give at least one message", "messages");
  bool found = o.tool.empty();
  for (const Tool& t : o.tools) {
    auto j = tool_json(t);
    if (!j) return j.error();
    r.tools.push_back(std::move(*j));
    found = found || t.name == o.tool;
  }
  r.calls = o.tool_choice != ToolChoice::None;
  r.must_call = o.tool_choice == ToolChoice::Required;
  if (r.must_call && o.tools.empty())
    return usage("'tool_choice' requires a call, and there are no 'tools'", "add the tools", "tool_choice");
  if (!found)
    return usage(format("'tool' names {}, which is none of the 'tools'", gimbal::quoted(o.tool)),
                 "name one of them, or none", "tool");
  r.only = o.tool, r.one_call = !o.parallel_calls;
  if (o.reasoning_budget < -1)
    return usage(format("'reasoning_budget' is {}, but must be -1 (no limit) or a number of tokens",
                        o.reasoning_budget),
                 "give -1, 0 or more", "reasoning_budget");
  if (!o.template_variables.empty()) {
    const Json variables = Json::parse(o.template_variables, nullptr, false);
    if (auto ok = gimbal::set_variables(variables, r); !ok)
      return usage(format("'template_variables': {}", ok.error().message), std::string(ok.error().remedy),
                   "template_variables");
  }
  if (!o.think) r.thinks = false;
  r.effort = o.effort;
  return r;
}

}  // namespace

Result<std::string> grammar_of(const TextOptions& o) {
  if (o.json_schema.empty()) return o.grammar;
  if (!o.grammar.empty())
    return usage("'grammar' and 'json_schema' each say what the text must be", "give one of them", "grammar");
  auto made = gimbal::json_schema_grammar(o.json_schema);
  if (made && !made->has_text())
    return usage("'json_schema': no value satisfies this schema", "allow some value", "json_schema");
  if (made) return made->to_gbnf();
  Error e = to_public(made.error());
  e.field = "json_schema";
  return e;
}

gimbal::TextSettings settings_of(const TextOptions& o) {
  gimbal::TextSettings s;
  s.sampler = o;
  s.stops = o.stops, s.max_tokens = o.max_tokens, s.ignore_stop_tokens = o.ignore_stop_tokens;
  s.logprobs = o.logprobs, s.completes = o.complete, s.certify = o.certificate;
  return s;
}

Result<gimbal::ChatTask> Model::Impl::chat_task(std::span<const Message> messages,
                                                const ChatOptions& o) const {
  if (!*chat) return to_public(chat->error());
  if (!o.images.empty()) return images_of_tokens();
  auto request = request_of(messages, o);
  if (!request) return request.error();
  auto grammar = grammar_of(o);
  if (!grammar) return grammar.error();
  auto form = gimbal::answer_form((*chat)->calls, *tokenizer->own, *request, std::move(*grammar));
  if (!form) return to_public(form.error());
  auto task = gimbal::chat_task(**chat, *tokenizer->own, std::move(*request), std::move(*form));
  if (!task) return to_public(task.error());
  return std::move(*task);
}

gimbal::ReasoningLimit Model::Impl::reasoning_limit(const ChatOptions& o,
                                                    const gimbal::ChatTask& task) const {
  gimbal::ReasoningLimit limit;
  limit.tokens = o.reasoning_budget;
  if (limit.tokens >= 0)
    gimbal::set_reasoning_marks(limit, (*chat)->calls.kind == ToolCallFormat::Kind::Harmony,
                                task.opens_reasoning);
  return limit;
}

ReplyPiece ReplyState::add(ReplyParser::Part part) {
  ReplyPiece piece{std::move(part.text), std::move(part.reasoning), {}};
  for (gimbal::ToolCall& c : part.calls)
    piece.tool_calls.push_back({std::move(c.name), std::move(c.arguments)});
  message.content += piece.text, message.reasoning += piece.reasoning;
  message.tool_calls.insert(message.tool_calls.end(), piece.tool_calls.begin(), piece.tool_calls.end());
  return piece;
}

Result<ChatPrompt> Model::chat_prompt(std::span<const Message> messages, const ChatOptions& options) const {
  auto task = impl_->chat_task(messages, options);
  if (!task) return task.error();
  return ChatPrompt{std::move(task->text), std::move(task->tokens)};
}

Result<Reply> Sequence::chat(std::span<const Message> messages, const ChatOptions& options,
                             const ChatSink& sink) {
  auto task = impl_->model->chat_task(messages, options);
  if (!task) return task.error();
  auto prompt = impl_->model->inputs(task->tokens, task->pictures);
  if (!prompt) return prompt.error();
  const own::Tokenizer& tokenizer = *impl_->model->tokenizer->own;
  ReplyState state(tokenizer, *task);
  const auto give = [&](const ReplyPiece& p) {
    const bool any = !p.text.empty() || !p.reasoning.empty() || !p.tool_calls.empty();
    return (!sink || !any || sink(p)) && !state.parser.enough();
  };
  TextOptions settings = options;
  settings.complete = settings.complete || task->form.completes;
  auto g = impl_->generate(
      *prompt, Impl::Prompt::Whole, settings, task->form.grammar,
      [&](std::string_view text, gimbal::Token token) {
        return give(state.add(state.parser.push(text, token)));
      },
      impl_->model->reasoning_limit(options, *task));
  if (!g) return g.error();
  if (state.parser.enough()) g->finish = Finish::StopToken;
  else give(state.add(state.parser.finish("")));
  g->prompt_tokens = int(prompt->size());
  return Reply{std::move(state.message), std::move(*g)};
}

}  // namespace gimbal::v1
