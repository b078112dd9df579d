#include "chat/chat_request.h"

#include "chat/forced_call.h"
#include "chat/picture_marks.h"

namespace gimbal {

Result<AnswerForm> answer_form(const ToolCallFormat& format, const Tokenizer& tokenizer, ChatRequest& request,
                               std::string grammar) {
  AnswerForm to;
  const auto wrong = [](const char* field, const char* message) {
    return Error{Code::Usage, message, "", "", field};
  };
  const bool calls = !request.tools.empty() && request.calls, form = !grammar.empty();
  if (calls) to.calls = format;
  if (!form && !request.must_call) return to;
  if (form && request.must_call)
    return wrong("tool_choice", "an answer that must be a call cannot match a form of its own, too");
  if (request.thinks == true)
    return wrong("tool_choice", "an answer of a given form is written without thinking: do not ask for it");
  if (!request.begun.empty())
    return wrong("messages", "an answer of a given form cannot continue one that was begun");
  request.thinks = false;
  to.begin = begin_of_answer(format);
  to.grammar = std::move(grammar);
  if (!calls) return to;
  std::vector<CallableTool> tools;
  for (const Json& t : request.tools) {
    const Json& function = t["function"];
    const auto& name = function["name"].get_ref<const std::string&>();
    if (request.only.empty() || request.only == name) tools.push_back({name, &function["parameters"]});
  }
  auto answer = form ? call_or_form(format, tools, to.grammar, tokenizer, request.one_call)
                     : forced_call(format, tools);
  if (!answer) return answer.error();
  to.grammar = std::move(answer->grammar);
  to.completes = !form;
  to.begin = std::move(answer->begin);
  to.calls = answer->format;
  for (const CallableTool& tool : tools)
    if (form) to.instead.emplace_back(tool.name);
  return to;
}

Result<ChatTask> chat_task(const ChatTemplate& chat, const Tokenizer& tokenizer, ChatRequest request,
                           AnswerForm form, const RenderLimits& limits) {
  Json v = chat_variables({}, request);
  v["messages"] = std::move(request.messages);
  v["add_generation_prompt"] = request.opens_answer;
  if (form.calls) v["tools"] = std::move(request.tools);
  if (!request.effort.empty()) v["reasoning_effort"] = request.effort;
  RenderOptions options = local_time();
  options.limits = limits;
  auto made =
      chat_prompt(chat, tokenizer, v, options, false, {request.picture_mark, request.pictures.size()});
  if (!made) return made.error();
  ChatTask to{std::move(form), std::move(made->tokens)};
  for (const int i : made->pictures) {
    to.pictures.push_back(request.pictures[size_t(i)]);
    const std::string mark = picture_mark(request.picture_mark, size_t(i));
    made->rendered.text.replace(made->rendered.text.find(mark), mark.size(), kPictureWord);
  }
  to.opens_reasoning = made->opens_reasoning;
  to.one_call = request.one_call, to.continues = !request.begun.empty();
  std::string begin = to.form.begin;
  if (!to.form.grammar.empty() && to.opens_reasoning) begin = "</think>\n\n" + begin;
  to.text = std::move(made->rendered.text) + (request.begun.empty() ? begin : request.begun);
  if (!begin.empty()) to.begun = tokenizer.encode(begin, {.add_bos = false, .parse_special = true});
  if (!request.begun.empty())
    to.begun = tokenizer.encode(request.begun, {.add_bos = false, .parse_special = false});
  to.tokens.insert(to.tokens.end(), to.begun.begin(), to.begun.end());
  if (!to.begun.empty()) to.opens_reasoning = false;
  if (!request.begun.empty()) to.begun.clear();  // the caller knows it
  return to;
}

}  // namespace gimbal
