// Anthropic's API: POST /v1/messages and /v1/messages/count_tokens.
#include "base/format.h"
#include "server/api/adapters.h"
#include "server/api/call.h"
#include "server/api/pictures.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// A message of blocks as messages of OpenAI's form, which templates know: each result of a tool is one of its
// own.
class Blocks {
 public:
  Blocks(std::string role, ChatInput& input) : role_(std::move(role)), input_(input), to_(input.messages) {}

  Refused add(const Json& block, const std::string& where) {
    if (role_ == "user" && block.is_object() && block.value("type", Json()) == "image")
      return read_picture_part(block, where, input_, text_);
    Fields f(block, where);
    f.need("type");
    const std::string type = f.text("type").value_or("");
    f.harmless({"cache_control"});
    if (type == "document" && role_ == "user") return add_document(f);
    f.harmless({"citations"});
    if (type == "text") {
      f.need("text");
      text_ += f.text("text").value_or("");
    } else if (type == "thinking" && role_ == "assistant") {
      reasoning_ += f.text("thinking").value_or("");
      f.text("signature");
    } else if (type == "redacted_thinking" && role_ == "assistant") {
      f.text("data");
    } else if (type == "tool_use" && role_ == "assistant") {
      f.need("name");
      f.harmless({"caller"});
      const Json* input = f.object("input");
      calls_.push_back(
          {{"id", f.text("id").value_or("")},
           {"type", "function"},
           {"function",
            {{"name", f.text("name").value_or("")}, {"arguments", input ? *input : Json::object()}}}});
    } else if (type == "tool_result" && role_ == "user") {
      std::string text;
      if (const Json* content = f.any("content"))
        if (auto no = content_text(*content, f.path("content"), text, &input_)) return no;
      f.need("tool_use_id");
      to_.push_back({{"role", "tool"},
                     {"tool_call_id", f.text("tool_use_id").value_or("")},
                     {"content", std::move(text)}});
      f.flag("is_error");
    } else if (f.ok()) {
      f.wrong("type", format("'{}': blocks of type {} are not supported in a message of the {}",
                             f.path("type"), quoted_briefly(type), role_));
    }
    return f.finish();
  }

  void finish() {
    if (text_.empty() && reasoning_.empty() && calls_.empty() && role_ == "user") return;
    Json m = {{"role", role_}, {"content", text_}};
    if (!reasoning_.empty()) m["reasoning_content"] = reasoning_;
    if (!calls_.empty()) m["tool_calls"] = calls_;
    to_.push_back(std::move(m));
  }

 private:
  // A plain text with its title and context above it.
  Refused add_document(Fields& f) {
    for (const char* above : {"title", "context"})
      if (auto line = f.text(above); line && !line->empty()) text_ += *line + "\n";
    if (const Json* j = f.object("citations")) {
      Fields citations(*j, f.path("citations"));
      citations.refuse("enabled", "an answer is text without citations", false);
      if (auto no = citations.finish()) f.wrong_as(*no);
    }
    f.need("source");
    if (const Json* j = f.object("source")) {
      Fields source(*j, f.path("source"));
      source.need("type");
      const std::string type = source.text("type").value_or("");
      if (type == "text") {
        source.word("media_type", {"text/plain"});
        source.need("data");
        text_ += source.text("data").value_or("") + "\n";
      } else if (type == "content") {
        source.need("content");
        std::string text;
        if (const Json* content = source.any("content"))
          if (auto no = content_text(*content, source.path("content"), text)) return no;
        text_ += text + "\n";
      } else if (source.ok()) {
        source.wrong("type",
                     format("'{}': documents of type {} are not supported; send plain text: type 'text' "
                            "with 'data', or 'content'",
                            source.path("type"), quoted_briefly(type)));
      }
      if (auto no = source.finish()) f.wrong_as(*no);
    }
    return f.finish();
  }

  const std::string role_;
  ChatInput& input_;
  Json& to_;  // its messages
  std::string text_, reasoning_;
  Json calls_ = Json::array();
};

// Claude Code's first block is a header for Anthropic's accounting. It differs in each request, so with it no
// prompt would begin as an earlier one.
Json without_billing(Json system) {
  if (system.is_array())
    std::erase_if(system.get_ref<Json::array_t&>(), [](const Json& block) {
      const auto text = block.is_object() ? block.find("text") : block.end();
      return text != block.end() && text->is_string() &&
             text->get_ref<const std::string&>().starts_with("x-anthropic-billing-header:");
    });
  return system;
}

void read_conversation(Fields& f, ChatInput& to) {
  if (const Json* system = f.any("system")) {
    std::string text;
    if (auto no = content_text(without_billing(*system), "system", text)) f.wrong_as(*no);
    if (!text.empty()) to.messages.push_back({{"role", "system"}, {"content", std::move(text)}});
  }
  if (!f.need("messages")) return;
  const Json* list = f.array("messages");
  if (!list) return;
  if (list->empty()) f.wrong("messages", "'messages' must have at least one message");
  for (size_t i = 0; i < list->size() && f.ok(); i++) {
    Fields m((*list)[i], format("messages[{}]", i));
    m.need("role");
    m.need("content");
    const auto role = m.word("role", {"user", "assistant", "system"});
    const Json* content = m.any("content");
    if (auto no = m.finish()) return f.wrong_as(*no);
    if (content->is_string()) {
      to.messages.push_back({{"role", *role}, {"content", *content}});
      continue;
    }
    if (!content->is_array())
      return f.wrong(m.path("content"), "a message's content is a text or a list of blocks");
    Blocks blocks(*role, to);
    for (size_t k = 0; k < content->size(); k++)
      if (auto no = blocks.add((*content)[k], format("messages[{}].content[{}]", i, k)))
        return f.wrong_as(*no);
    blocks.finish();
  }
  // An answer begun by the client: the model continues it.
  if (!to.messages.empty() && to.messages.back()["role"] == "assistant" &&
      !to.messages.back().contains("tool_calls")) {
    to.begun = to.messages.back()["content"];
    to.messages.erase(to.messages.size() - 1);
    if (to.messages.empty()) f.wrong("messages", "'messages' must begin with one of the user");
  }
}

const char* stop_reason(const Choice& c) {
  if (c.end.finish == Finish::StopString) return "stop_sequence";
  if (finish_word(c) == std::string_view("length")) return "max_tokens";
  return c.calls.empty() ? "end_turn" : "tool_use";
}
Json stop_sequence(const GenerationEnd& e) { return e.finish == Finish::StopString ? Json(e.stop) : Json(); }

// Anthropic's answers have all fields of their description: null where there is nothing to tell. `whole`: of
// a message, not of the end of a stream.
Json usage_json(int input, int output, bool whole) {
  Json j = {{"input_tokens", input},   {"cache_creation_input_tokens", 0}, {"cache_read_input_tokens", 0},
            {"output_tokens", output}, {"output_tokens_details", nullptr}, {"server_tool_use", nullptr}};
  if (whole)
    for (const char* none : {"cache_creation", "inference_geo", "service_tier", "speed"}) j[none] = nullptr;
  return j;
}

class MessageWriter final : public Writer {
 public:
  MessageWriter(std::string id, std::string model, int prompt_tokens, bool thinks)
      : id_(std::move(id)), model_(std::move(model)), prompt_tokens_(prompt_tokens), thinks_(thinks) {}

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    const Choice& c = all[0];
    Json content = Json::array();
    if (thinks_ && !c.reasoning.empty())
      content.push_back({{"type", "thinking"}, {"thinking", c.reasoning}, {"signature", ""}});
    if (!c.text.empty() || (content.empty() && c.calls.empty()))
      content.push_back({{"type", "text"}, {"text", c.text}, {"citations", nullptr}});
    for (const ToolUse& t : c.calls) {
      Json block = tool_block(t);
      if (Json input = parse_json(t.arguments); input.is_object()) block["input"] = std::move(input);
      content.push_back(std::move(block));
    }
    Json m = message(std::move(content), stop_reason(c), stop_sequence(c.end));
    m["usage"] = usage_json(u.prompt_tokens, u.completion_tokens, true);
    return dump(m);
  }

  void begin(std::string& out) override {
    Json m = message(Json::array(), nullptr, nullptr);
    m["usage"] = usage_json(prompt_tokens_, 0, true);
    add(out, "message_start", {{"message", std::move(m)}});
    add(out, "ping", Json::object());
  }
  void piece(std::string& out, const Piece& p) override {
    if (thinks_ && !p.reasoning.empty()) {
      open(out, "thinking");
      delta(out, "thinking_delta", "thinking", p.reasoning);
    }
    if (!p.text.empty()) {
      open(out, "text");
      delta(out, "text_delta", "text", p.text);
    }
    for (const ToolUse& t : p.calls) {
      close(out);
      open_ = "tool_use";
      add(out, "content_block_start", {{"index", index_}, {"content_block", tool_block(t)}});
      delta(out, "input_json_delta", "partial_json", t.arguments);
      close(out);
    }
  }
  void end(std::string& out, const Choice& c, int) override {
    if (open_.empty() && index_ == 0) open(out, "text");
    close(out);
    add(out, "message_delta",
        {{"delta",
          {{"container", nullptr},
           {"stop_details", nullptr},
           {"stop_reason", stop_reason(c)},
           {"stop_sequence", stop_sequence(c.end)}}},
         {"usage", usage_json(c.end.prompt_tokens, c.end.tokens, false)}});
  }
  void finish(std::string& out, const std::vector<Choice>&, const Usage&) override {
    add(out, "message_stop", Json::object());
  }
  void error(std::string& out, const ApiError& e) override {
    add_event(out, "error", error_text(Dialect::Anthropic, e, ""));
  }

 private:
  Json message(Json content, Json reason, Json sequence) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"container", nullptr},
            {"content", std::move(content)},
            {"diagnostics", nullptr},
            {"stop_details", nullptr},
            {"stop_reason", std::move(reason)},
            {"stop_sequence", std::move(sequence)}};
  }
  static Json tool_block(const ToolUse& t) {
    return {{"type", "tool_use"},
            {"id", t.id},
            {"caller", {{"type", "direct"}}},
            {"name", t.name},
            {"input", Json::object()}};
  }
  static void add(std::string& out, const char* type, Json fields) {
    Json event = {{"type", type}};
    event.update(fields);
    add_event(out, type, dump(event));
  }
  // Blocks follow each other: one ends where another kind begins.
  void open(std::string& out, const std::string& kind) {
    if (open_ == kind) return;
    close(out);
    open_ = kind;
    Json block = {{"type", kind}, {kind, ""}};
    if (kind == "thinking") block["signature"] = "";
    else block["citations"] = nullptr;
    add(out, "content_block_start", {{"index", index_}, {"content_block", std::move(block)}});
  }
  void close(std::string& out) {
    if (open_.empty()) return;
    add(out, "content_block_stop", {{"index", index_++}});
    open_.clear();
  }
  void delta(std::string& out, const char* type, const char* field, const std::string& text) {
    add_event(
        out, "content_block_delta",
        format("{{\"type\":\"content_block_delta\",\"index\":{},\"delta\":{{\"type\":\"{}\",\"{}\":{}}}}}",
               index_, type, field, json_text(text)));
  }

  std::string id_, model_, open_;
  int prompt_tokens_, index_ = 0;
  bool thinks_;
};

// Agents ask to keep all reasoning of earlier turns. That is so here; nothing else of the messages is edited.
void read_context_management(Fields& f) {
  const Json* j = f.object("context_management");
  if (!j) return;
  Fields management(*j, "context_management");
  const Json* edits = management.array("edits");
  for (size_t i = 0; edits && i < edits->size() && management.ok(); i++) {
    Fields edit((*edits)[i], format("context_management.edits[{}]", i));
    edit.need("type");
    edit.word("type", {"clear_thinking_20251015"});
    edit.refuse("keep", "the messages are taken as they are", "all");
    if (!edit.any("keep"))
      edit.wrong("keep",
                 format("'{}' must be \"all\": the messages are taken as they are", edit.path("keep")));
    if (auto no = edit.finish()) management.wrong_as(*no);
  }
  if (auto no = management.finish()) f.wrong_as(*no);
}

// What both paths read: the model, and everything that the prompt depends on.
Refused read_prompt(Call& call, Fields& f, ServedModelPtr& model, ChatInput& input, Settings& settings) {
  if (auto no = find_model(call, f, true, model)) return no;
  read_conversation(f, input);
  input.thinks = false;  // unless requested
  if (const Json* j = f.object("thinking")) {
    Fields thinking(*j, "thinking");
    const auto type = thinking.word("type", {"enabled", "disabled", "adaptive"});
    thinking.need("type");
    read_reasoning_budget(thinking, "budget_tokens", 1, settings);
    thinking.text("display");
    input.thinks = type && *type != "disabled";
    if (auto no = thinking.finish()) f.wrong_as(*no);
  }
  if (const Json* j = f.object("output_config")) {
    Fields config(*j, "output_config");
    if (auto effort = config.word("effort", {"low", "medium", "high", "xhigh", "max"}))
      input.effort = *effort == "max" || *effort == "xhigh" ? "high" : *effort;
    if (const Json* form = config.object("format")) {
      Fields of(*form, config.path("format"));
      of.need("type");
      of.word("type", {"json_schema"});
      of.need("schema");
      const Json* schema = of.any("schema");
      if (schema && of.ok()) set_schema(of, "schema", *schema, settings);
      if (auto no = of.finish()) config.wrong_as(*no);
    }
    if (auto no = config.finish()) f.wrong_as(*no);
  }
  const Json* tools = f.array("tools");
  for (size_t i = 0; tools && i < tools->size() && f.ok(); i++) {
    Fields tool((*tools)[i], format("tools[{}]", i));
    tool.word("type", {"custom"});
    tool.harmless({"cache_control", "eager_input_streaming"});
    input.tools.push_back(function_tool(tool, "input_schema"));
    if (auto no = tool.finish()) f.wrong_as(*no);
  }
  if (const Json* j = f.object("tool_choice")) {
    Fields choice(*j, "tool_choice");
    choice.need("type");
    const std::string type = choice.word("type", {"auto", "none", "any", "tool"}).value_or("");
    if (type == "none") input.calls = false;
    if (type == "any") force_call(choice, "type", "", input);
    if (type == "tool") {
      choice.need("name");
      if (auto name = choice.text("name")) force_call(choice, "name", *name, input);
    }
    input.one_call = choice.flag("disable_parallel_tool_use").value_or(false);
    if (auto no = choice.finish()) f.wrong_as(*no);
  }
  return f.error();
}

}  // namespace

Refused messages(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  ChatInput input;
  Prompt prompt;
  Settings settings;
  if (auto no = read_prompt(call, f, model, input, settings)) return no;
  SamplerSettings& s = settings.request.sampler = plain_sampler();
  apply_preset(*model, settings);
  if (auto v = f.number("temperature", 0, 1)) s.temperature = float(*v);
  if (auto v = f.number("top_p", 0, 1)) s.top_p = float(*v);
  if (auto v = f.whole("top_k", 0, INT32_MAX)) s.top_k = int(*v);
  if (f.any("stop_sequences")) settings.request.stops = f.texts("stop_sequences", 16);
  for (const std::string& stop : settings.request.stops)
    if (stop.empty()) f.wrong("stop_sequences", "'stop_sequences' has an empty text");
  f.need("max_tokens");
  read_max_tokens(f, "max_tokens", 1, settings);
  read_certificate(f);
  read_adapters(f, *model, settings.request.adapters);
  read_context_management(f);
  const bool stream = f.flag("stream").value_or(false);
  f.harmless({"metadata", "service_tier"});
  f.refuse("container", "there is none");
  f.refuse("mcp_servers", "gimbal calls no MCP servers");
  if (auto no = f.finish()) return no;
  if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;

  Plan plan;
  const int prompt_tokens = int(prompt.tokens.size());
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(prompt.tokens));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("msg_");
  plan.model = model;
  plan.stream = stream;
  prompt.fill(plan, input);
  plan.writer = std::make_unique<MessageWriter>(plan.id, model->id(), prompt_tokens, input.thinks == true);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

Refused count_tokens(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  ChatInput input;
  Prompt prompt;
  Settings settings;
  if (auto no = read_prompt(call, f, model, input, settings)) return no;
  if (auto no = f.finish()) return no;
  if (auto no = countable(input, *model, "messages")) return no;
  if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;
  call.answer_json({{"input_tokens", prompt.tokens.size()}});
  return {};
}

}  // namespace gimbal::api
