// POST /v1/responses
#include "server/api/openai_responses.h"
#include "base/format.h"
#include "server/api/call.h"
#include "server/api/openai.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// Repeats a setting of the request in the answer; `nothing`: its value if the request lacks it.
void repeat(const Json& body, Json& to, const char* name, Json nothing) {
  to[name] = body.contains(name) && !body[name].is_null() ? body[name] : std::move(nothing);
}

}  // namespace

Refused responses(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;
  ChatInput input;
  read_response_input(f, input);
  Settings settings;
  read_settings(f, *model, settings);
  if (settings.n != 1) f.wrong("n", "'n' must be 1 here");
  read_max_tokens(f, "max_output_tokens", 1, settings);
  const bool stream = f.flag("stream").value_or(false);
  if (const Json* j = f.object("reasoning")) {
    Fields reasoning(*j, "reasoning");
    read_effort(reasoning, "effort", input);
    reasoning.refuse("summary", "reasoning is given whole", "auto");
    if (auto no = reasoning.finish()) f.wrong_as(*no);
  }
  if (const Json* j = f.object("text")) {
    Fields text(*j, "text");
    read_response_format(text, "format", false, settings);
    read_verbosity(text);
    if (auto no = text.finish()) f.wrong_as(*no);
  }
  ResponseTools tools = read_response_tools(call, f, input);
  f.word("truncation", {"disabled"});
  f.word("service_tier", {"auto", "default"});
  f.refuse("store", "answers are not kept", false);
  f.refuse("background", "answers are not kept", false);
  f.refuse("previous_response_id", "answers are not kept: send the input again");
  f.refuse("conversation", "answers are not kept: send the input again");
  for (const std::string& more : f.texts("include", 16))
    if (more != "reasoning.encrypted_content")  // reasoning is given whole, and never encrypted
      f.wrong("include", "'include': there is nothing more than the answer has");
  f.refuse("prompt", "there are no stored prompts");
  f.refuse("top_logprobs", "ask for them at /v1/chat/completions", 0);
  f.refuse("max_tool_calls", "gimbal runs no tools: the client does");
  f.refuse("stream_options", "events have nothing but what they say");
  f.harmless({"metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
              "client_metadata"});
  if (auto no = f.finish()) return no;

  Prompt prompt;
  Plan plan;
  Refused no = chat_prompt(call, *model, input, settings, prompt);
  if (!no) {
    std::vector<std::vector<Token>> prompts;
    prompts.push_back(std::move(prompt.tokens));
    no = requests_of(*model, settings, std::move(prompts), plan.choices);
  }
  if (no && no->param == "messages") no->param = "input";
  if (no) return no;
  ResponseFrame frame{new_id("resp_"),
                      new_id("msg_"),
                      new_id("rs_"),
                      {{"created_at", unix_time()}, {"model", model->id()}},
                      std::move(tools)};
  for (const char* plain : {"instructions", "max_output_tokens", "previous_response_id"})
    repeat(call.body, frame.fields, plain, nullptr);
  if (const Json user = call.body.value("user", Json()); !user.is_null()) frame.fields["user"] = user;
  repeat(call.body, frame.fields, "temperature", 1);
  repeat(call.body, frame.fields, "top_p", 1);
  repeat(call.body, frame.fields, "parallel_tool_calls", true);
  repeat(call.body, frame.fields, "reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  repeat(call.body, frame.fields, "text", {{"format", {{"type", "text"}}}});
  repeat(call.body, frame.fields, "tool_choice", "auto");
  frame.fields["tools"] = frame.tools.offered;
  repeat(call.body, frame.fields, "truncation", "disabled");
  repeat(call.body, frame.fields, "metadata", Json::object());
  frame.fields["store"] = false;
  plan.id = frame.id;
  plan.model = model;
  plan.stream = stream;
  prompt.fill(plan, input);
  plan.writer = response_writer(std::move(frame));
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
