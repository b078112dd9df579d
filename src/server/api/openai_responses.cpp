// POST /v1/responses
#include "base/format.h"
#include "server/api/call.h"
#include "server/api/openai.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// The response object, which the answer and most stream events contain.
struct Frame {
  std::string id, item_id, reasoning_id;
  Json fields;  // settings repeated from the request
};

class ResponseWriter final : public Writer {
 public:
  explicit ResponseWriter(Frame frame) : frame_(std::move(frame)) {}

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    return dump(completed(all[0], u));
  }

  void begin(std::string& out) override {
    const Json object = response("in_progress", Json::array(), nullptr);
    add(out, "response.created", {{"response", object}});
    add(out, "response.in_progress", {{"response", object}});
  }
  void piece(std::string& out, const Piece& p) override {
    if (!p.reasoning.empty()) {
      open(out, true);
      delta(out, "response.reasoning_text.delta", frame_.reasoning_id, p.reasoning);
    }
    if (!p.text.empty()) {
      open(out, false);
      delta(out, "response.output_text.delta", frame_.item_id, p.text);
    }
    for (const ToolUse& t : p.calls) call(out, t);
  }
  void end(std::string& out, const Choice& c, int) override {
    if (item_ == Item::None && c.reasoning.empty() && !calls_) open(out, false);
    close(out, c);
  }
  void finish(std::string& out, const std::vector<Choice>& all, const Usage& u) override {
    const Json object = completed(all[0], u);
    add(out, object["status"] == "completed" ? "response.completed" : "response.incomplete",
        {{"response", object}});
  }
  void error(std::string& out, const ApiError& e) override {
    const Json problem = {{"code", e.code.empty() ? "server_error" : e.code}, {"message", e.message}};
    Json object = response("failed", Json::array(), nullptr);
    object["error"] = problem;
    add(out, "response.failed", {{"response", std::move(object)}});
  }

 private:
  enum class Item : uint8_t { None, Reasoning, Message };

  Json response(const char* status, Json output, Json usage) const {
    Json j = {{"id", frame_.id},
              {"object", "response"},
              {"status", status},
              {"error", nullptr},
              {"incomplete_details", nullptr}};
    j.update(frame_.fields);
    j["output"] = std::move(output);
    j["usage"] = std::move(usage);
    return j;
  }
  Json part(bool reasoning, const std::string& text) const {
    if (reasoning) return {{"type", "reasoning_text"}, {"text", text}};
    return {
        {"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
  }
  Json item(bool reasoning, const char* status, const std::string* text) const {
    Json content = Json::array();
    if (text) content.push_back(part(reasoning, *text));
    if (reasoning)
      return {{"id", frame_.reasoning_id},
              {"type", "reasoning"},
              {"status", status},
              {"summary", Json::array()},
              {"content", content}};
    return {{"id", frame_.item_id},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", content}};
  }
  static Json call_item(const ToolUse& t, const char* status, const std::string& arguments) {
    return {{"id", "fc_" + t.id}, {"type", "function_call"}, {"status", status},
            {"call_id", t.id},    {"name", t.name},          {"arguments", arguments}};
  }
  void call(std::string& out, const ToolUse& t) {
    if (item_ != Item::None) close(out, {});
    calls_ = true;
    add(out, "response.output_item.added",
        {{"output_index", index_}, {"item", call_item(t, "in_progress", "")}});
    const std::string id = "fc_" + t.id;
    add(out, "response.function_call_arguments.delta",
        {{"item_id", id}, {"output_index", index_}, {"delta", t.arguments}});
    add(out, "response.function_call_arguments.done",
        {{"item_id", id}, {"output_index", index_}, {"name", t.name}, {"arguments", t.arguments}});
    add(out, "response.output_item.done",
        {{"output_index", index_++}, {"item", call_item(t, "completed", t.arguments)}});
  }
  Json completed(const Choice& c, const Usage& u) const {
    const bool cut = finish_word(c) == std::string_view("length");
    const char* status = cut ? "incomplete" : "completed";
    Json output = Json::array();
    if (!c.reasoning.empty()) output.push_back(item(true, status, &c.reasoning));
    if (!c.text.empty() || (c.reasoning.empty() && c.calls.empty()))
      output.push_back(item(false, status, &c.text));
    for (const ToolUse& t : c.calls) output.push_back(call_item(t, "completed", t.arguments));
    Json j =
        response(status, std::move(output),
                 {{"input_tokens", u.prompt_tokens},
                  {"input_tokens_details", {{"cached_tokens", u.shared_tokens}, {"cache_write_tokens", 0}}},
                  {"output_tokens", u.completion_tokens},
                  {"output_tokens_details", {{"reasoning_tokens", 0}}},
                  {"total_tokens", u.prompt_tokens + u.completion_tokens}});
    if (cut) j["incomplete_details"] = {{"reason", "max_output_tokens"}};
    return j;
  }

  void add(std::string& out, const char* type, const Json& fields) {
    Json event = {{"type", type}, {"sequence_number", sequence_++}};
    event.update(fields);
    add_event(out, type, dump(event));
  }
  Json place(const std::string& id) const {
    return {{"item_id", id}, {"output_index", index_}, {"content_index", 0}};
  }
  void open(std::string& out, bool reasoning) {
    const Item wanted = reasoning ? Item::Reasoning : Item::Message;
    if (item_ == wanted) return;
    if (item_ != Item::None) close(out, {});
    item_ = wanted;
    text_.clear();
    add(out, "response.output_item.added",
        {{"output_index", index_}, {"item", item(reasoning, "in_progress", nullptr)}});
    Json event = place(reasoning ? frame_.reasoning_id : frame_.item_id);
    event["part"] = part(reasoning, "");
    add(out, "response.content_part.added", event);
  }
  void delta(std::string& out, const char* type, const std::string& id, const std::string& text) {
    text_ += text;
    Json event = place(id);
    event["delta"] = text;
    if (item_ == Item::Message) event["logprobs"] = Json::array();
    add(out, type, event);
  }
  void close(std::string& out, const Choice& c) {
    if (item_ == Item::None) return;
    const bool reasoning = item_ == Item::Reasoning;
    const char* status = finish_word(c) == std::string_view("length") && c.ended ? "incomplete" : "completed";
    Json done = place(reasoning ? frame_.reasoning_id : frame_.item_id), of_part = done;
    done["text"] = text_;
    if (!reasoning) done["logprobs"] = Json::array();
    add(out, reasoning ? "response.reasoning_text.done" : "response.output_text.done", done);
    of_part["part"] = part(reasoning, text_);
    add(out, "response.content_part.done", of_part);
    add(out, "response.output_item.done",
        {{"output_index", index_++}, {"item", item(reasoning, status, &text_)}});
    item_ = Item::None;
  }

  Frame frame_;
  std::string text_;  // of the item that is open
  int sequence_ = 0, index_ = 0;
  Item item_ = Item::None;
  bool calls_ = false;
};

// Items of the input as messages of OpenAI's older form.
Refused read_item(const Json& j, const std::string& where, Json& to) {
  Fields f(j, where);
  const std::string type =
      f.word("type", {"message", "function_call", "function_call_output", "reasoning"}).value_or("message");
  f.harmless({"id", "status"});
  if (!f.ok()) return f.error();
  if (type == "message") {
    f.need("role");
    f.need("content");
    auto role = f.word("role", {"user", "assistant", "system", "developer"});
    f.harmless({"phase"});
    if (!f.ok()) return f.error();
    std::string text;
    if (auto no = content_text(*f.any("content"), f.path("content"), text)) return no;
    to.push_back({{"role", role == "developer" ? "system" : *role}, {"content", std::move(text)}});
  } else if (type == "function_call") {
    const std::string arguments = f.text("arguments").value_or("{}");
    Json object = parse_json(arguments);
    if (object.is_discarded()) object = arguments;
    to.push_back(
        {{"role", "assistant"},
         {"content", ""},
         {"tool_calls",
          {{{"id", f.text("call_id").value_or("")},
            {"type", "function"},
            {"function", {{"name", f.text("name").value_or("")}, {"arguments", std::move(object)}}}}}}});
  } else if (type == "function_call_output") {
    std::string text;
    f.need("output");
    if (const Json* output = f.any("output"))
      if (auto no = content_text(*output, f.path("output"), text)) return no;
    to.push_back(
        {{"role", "tool"}, {"tool_call_id", f.text("call_id").value_or("")}, {"content", std::move(text)}});
  } else {
    f.harmless({"summary", "content", "encrypted_content"});  // the reasoning of an earlier answer
  }
  return f.finish();
}

void read_input(Fields& f, ChatInput& to) {
  if (auto instructions = f.text("instructions"))
    to.messages.push_back({{"role", "system"}, {"content", *instructions}});
  if (!f.need("input")) return;
  const Json* input = f.any("input");
  if (input->is_string()) to.messages.push_back({{"role", "user"}, {"content", *input}});
  else if (!input->is_array() || input->empty())
    return f.wrong("input", "'input' must be a text or a list of items");
  else
    for (size_t i = 0; i < input->size() && f.ok(); i++)
      if (auto no = read_item((*input)[i], format("input[{}]", i), to.messages)) f.wrong_as(*no);
}

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
  read_input(f, input);
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
  const Json* tools = f.array("tools");
  for (size_t i = 0; tools && i < tools->size() && f.ok(); i++) {
    Fields tool((*tools)[i], format("tools[{}]", i));
    tool.need("type");
    tool.word("type", {"function"});
    input.tools.push_back(function_tool(tool, "parameters"));
    if (auto no = tool.finish()) f.wrong_as(*no);
  }
  read_tool_choice(f, input);
  f.word("truncation", {"disabled"});
  f.word("service_tier", {"auto", "default"});
  f.refuse("store", "answers are not kept", false);
  f.refuse("background", "answers are not kept", false);
  f.refuse("previous_response_id", "answers are not kept: send the input again");
  f.refuse("conversation", "answers are not kept: send the input again");
  f.refuse("include", "there is nothing more than the answer has", Json::array());
  f.refuse("prompt", "there are no stored prompts");
  f.refuse("top_logprobs", "ask for them at /v1/chat/completions", 0);
  f.refuse("max_tool_calls", "gimbal calls nobody");
  f.refuse("stream_options", "events have nothing but what they say");
  f.harmless({"metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  if (auto no = f.finish()) return no;

  Prompt prompt;
  if (auto no = chat_prompt(call, *model, input, settings, prompt)) {
    if (no->param == "messages") no->param = "input";
    return no;
  }
  Plan plan;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(prompt.tokens));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  Frame frame{
      new_id("resp_"), new_id("msg_"), new_id("rs_"), {{"created_at", unix_time()}, {"model", model->id()}}};
  for (const char* plain : {"instructions", "max_output_tokens", "previous_response_id", "user"})
    repeat(call.body, frame.fields, plain, nullptr);
  repeat(call.body, frame.fields, "temperature", 1);
  repeat(call.body, frame.fields, "top_p", 1);
  repeat(call.body, frame.fields, "parallel_tool_calls", true);
  repeat(call.body, frame.fields, "reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  repeat(call.body, frame.fields, "text", {{"format", {{"type", "text"}}}});
  repeat(call.body, frame.fields, "tool_choice", "auto");
  repeat(call.body, frame.fields, "tools", Json::array());
  repeat(call.body, frame.fields, "truncation", "disabled");
  repeat(call.body, frame.fields, "metadata", Json::object());
  frame.fields["store"] = false;
  plan.id = frame.id;
  plan.model = model;
  plan.stream = stream;
  prompt.fill(plan, input);
  plan.writer = std::make_unique<ResponseWriter>(std::move(frame));
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
