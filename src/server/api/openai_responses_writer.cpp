// The answer of POST /v1/responses, whole and as events.
#include "base/format.h"
#include "server/api/call.h"
#include "server/api/openai_responses.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

class ResponseWriter final : public Writer {
 public:
  explicit ResponseWriter(ResponseFrame frame) : frame_(std::move(frame)) {}

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
  using Kind = ResponseTool::Kind;

  Json response(const char* status, Json output, Json usage) const {
    Json j = {{"id", frame_.id},
              {"object", "response"},
              {"status", status},
              {"error", nullptr},
              {"incomplete_details", nullptr}};
    j.update(frame_.fields);
    j["completed_at"] = status == std::string_view("completed") ? Json(unix_time()) : Json();
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
  // A call of the shell whose arguments are none of a command is one of a function.
  Json call_item(const ToolUse& t, bool done) const {
    const auto found = frame_.tools.by_function.find(t.name);
    const ResponseTool tool =
        found == frame_.tools.by_function.end() ? ResponseTool{Kind::Function, "", t.name} : found->second;
    const char* status = done ? "completed" : "in_progress";
    if (tool.kind == Kind::Shell)
      if (Json action = action_of(t.arguments); !action.is_null())
        return {{"id", "lsh_" + t.id},
                {"type", "local_shell_call"},
                {"call_id", t.id},
                {"action", std::move(action)},
                {"status", status}};
    const bool custom = tool.kind == Kind::Custom;
    Json item = {{"id", (custom ? "ctc_" : "fc_") + t.id},
                 {"type", custom ? "custom_tool_call" : "function_call"},
                 {"call_id", t.id},
                 {"name", tool.name}};
    if (!tool.space.empty()) item["namespace"] = tool.space;
    if (custom) item["input"] = done ? input_of(t.arguments) : "";
    else item["arguments"] = done ? t.arguments : "", item["status"] = status;
    return item;
  }
  // The text for a custom tool. A model that wrote no JSON wrote the text.
  static std::string input_of(const std::string& arguments) {
    const Json j = parse_json(arguments);
    const auto input = j.is_object() ? j.find(kCustomInput) : j.end();
    return input != j.end() && input->is_string() ? input->get<std::string>() : arguments;
  }
  // null: no list of words.
  static Json action_of(const std::string& arguments) {
    const Json j = parse_json(arguments);
    const auto command = j.is_object() ? j.find("command") : j.end();
    if (command == j.end() || !command->is_array()) return nullptr;
    for (const Json& word : *command)
      if (!word.is_string()) return nullptr;
    Json action = {{"type", "exec"}, {"command", *command}, {"env", Json::object()}};
    if (const Json ms = j.value("timeout_ms", Json()); ms.is_number_integer()) action["timeout_ms"] = ms;
    if (const Json folder = j.value("working_directory", Json()); folder.is_string())
      action["working_directory"] = folder;
    return action;
  }
  void call(std::string& out, const ToolUse& t) {
    if (item_ != Item::None) close(out, {});
    calls_ = true;
    const Json done = call_item(t, true);
    add(out, "response.output_item.added", {{"output_index", index_}, {"item", call_item(t, false)}});
    const Json at = {{"item_id", done["id"]}, {"output_index", index_}};
    const auto event = [&](const char* type, Json fields) {
      fields.update(at);
      add(out, type, fields);
    };
    if (done["type"] == "function_call") {
      event("response.function_call_arguments.delta", {{"delta", t.arguments}});
      event("response.function_call_arguments.done", {{"name", done["name"]}, {"arguments", t.arguments}});
    } else if (done["type"] == "custom_tool_call") {
      event("response.custom_tool_call_input.delta", {{"delta", done["input"]}});
      event("response.custom_tool_call_input.done", {{"input", done["input"]}});
    }
    add(out, "response.output_item.done", {{"output_index", index_++}, {"item", done}});
  }
  Json completed(const Choice& c, const Usage& u) const {
    const bool cut = finish_word(c) == std::string_view("length");
    const char* status = cut ? "incomplete" : "completed";
    Json output = Json::array();
    if (!c.reasoning.empty()) output.push_back(item(true, status, &c.reasoning));
    if (!c.text.empty() || (c.reasoning.empty() && c.calls.empty()))
      output.push_back(item(false, status, &c.text));
    for (const ToolUse& t : c.calls) output.push_back(call_item(t, true));
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

  ResponseFrame frame_;
  std::string text_;  // of the item that is open
  int sequence_ = 0, index_ = 0;
  Item item_ = Item::None;
  bool calls_ = false;
};

}  // namespace

std::unique_ptr<Writer> response_writer(ResponseFrame frame) {
  return std::make_unique<ResponseWriter>(std::move(frame));
}

}  // namespace gimbal::api
