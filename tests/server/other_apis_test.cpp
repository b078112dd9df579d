// The APIs of Anthropic and Ollama, OpenAI's responses, and jobs, over a scripted service.
#include "server/api/error.h"
#include "server/api_server.h"

namespace gimbal::test {
namespace {

const Json kHi = Json::array({{{"role", "user"}, {"content", "Hi"}}});
Json with(Json j, const Json& more) {
  j.update(more);
  return j;
}

// ---- Anthropic

class Anthropic : public ApiTest {
 protected:
  static Json request(const Json& more) {
    return with({{"model", "stories"}, {"max_tokens", 100}, {"messages", kHi}}, more);
  }
};

TEST_F(Anthropic, AMessage) {
  const HttpAnswer a = ask("/v1/messages", request({{"system", "Be brief."}}));
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_FALSE(a.headers.at("request-id").empty());
  Json j = json(a);
  EXPECT_EQ(j["type"], "message");
  EXPECT_EQ(j["content"],
            (Json::array({{{"type", "text"}, {"text", "once upon a time"}, {"citations", nullptr}}})));
  EXPECT_EQ(j["stop_reason"], "end_turn");
  EXPECT_EQ(j["usage"]["input_tokens"], service().asked()[0].prompt.size());
  const std::string prompt = models.model->tokenizer().decode(service().asked()[0].prompt);
  EXPECT_NE(prompt.find("Be brief."), std::string::npos);
  j = json(ask("/v1/messages", request({{"stop_sequences", {" a "}}})));
  EXPECT_EQ(j["stop_reason"], "stop_sequence");
  EXPECT_EQ(j["stop_sequence"], " a ");
  j = json(ask("/v1/messages", request({{"max_tokens", 1}})));
  EXPECT_EQ(j["stop_reason"], "max_tokens");
  const Json count = json(ask("/v1/messages/count_tokens", {{"model", "stories"}, {"messages", kHi}}));
  EXPECT_EQ(count["input_tokens"], service().asked().back().prompt.size());
}

TEST_F(Anthropic, HowATokenIsChosen) {
  ask("/v1/messages", request({{"temperature", 0.5}, {"top_p", 0.75}, {"top_k", 7}}));
  const SamplerSettings s = service().asked().back().sampler;
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_p, 0.75f);
  EXPECT_EQ(s.top_k, 7);
}

TEST_F(Anthropic, ABudgetOfReasoning) {
  ask("/v1/messages", request({{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}}}));
  EXPECT_EQ(service().asked().back().reasoning.tokens, 1024);
  ask("/v1/messages", request(Json::object()));
  EXPECT_EQ(service().asked().back().reasoning.tokens, -1);
}

// The template gets the thinking of earlier answers, as it gets an answer's reasoning in the other APIs.
TEST_F(Anthropic, ThinkingOfEarlierAnswers) {
  models.model->template_is(
      "{% for m in messages %}{{ m.role }}: {{ m.reasoning_content }} | {{ m.content }}. {% endfor %}");
  const Json conversation = {{{"role", "user"}, {"content", "Hi"}},
                             {{"role", "assistant"},
                              {"content",
                               {{{"type", "thinking"}, {"thinking", "hm hm"}, {"signature", ""}},
                                {{"type", "text"}, {"text", "Yes"}}}}},
                             {{"role", "user"}, {"content", "And?"}}};
  const HttpAnswer a = ask("/v1/messages", request({{"messages", conversation}}));
  ASSERT_EQ(a.status, 200) << a.body;
  const std::string prompt = models.model->tokenizer().decode(service().asked().back().prompt);
  EXPECT_NE(prompt.find("assistant: hm hm | Yes."), std::string::npos) << prompt;
}

TEST_F(Anthropic, DocumentsOfPlainText) {
  const auto with_source = [&](const Json& source, const Json& more = Json::object()) {
    Json block = {{"type", "document"}, {"title", "Rules"}, {"context", "Of the house."}, {"source", source}};
    block.update(more);
    return ask(
        "/v1/messages",
        request({{"messages",
                  {{{"role", "user"}, {"content", {block, {{"type", "text"}, {"text", "And then?"}}}}}}}}));
  };
  for (const Json& source :
       {Json{{"type", "text"}, {"media_type", "text/plain"}, {"data", "No dogs."}},
        Json{{"type", "content"}, {"content", {{{"type", "text"}, {"text", "No dogs."}}}}}}) {
    EXPECT_EQ(with_source(source, {{"citations", {{"enabled", false}}}}).status, 200);
    const std::string prompt = models.model->tokenizer().decode(service().asked().back().prompt);
    EXPECT_NE(prompt.find("Rules\nOf the house.\nNo dogs.\nAnd then?"), std::string::npos) << prompt;
  }
  const Json text = {{"type", "text"}, {"media_type", "text/plain"}, {"data", "x"}};
  for (const auto& [a, field] :
       {std::pair{with_source({{"type", "base64"}, {"media_type", "application/pdf"}, {"data", "eA=="}}),
                  "messages[0].content[0].source.type"},
        {with_source({{"type", "url"}, {"url", "http://x/"}}), "messages[0].content[0].source.type"},
        {with_source(text, {{"citations", {{"enabled", true}}}}),
         "messages[0].content[0].citations.enabled"}}) {
    EXPECT_EQ(a.status, 400);
    EXPECT_NE(a.body.find(field), std::string::npos) << a.body;
  }
}

TEST_F(Anthropic, AStream) {
  service().says("<think>hm</think>yes");
  std::vector<std::string> names;
  const auto all =
      events(ask("/v1/messages", request({{"stream", true}, {"thinking", {{"type", "adaptive"}}}})), &names);
  std::string text, thinking;
  std::vector<std::string> kinds;
  for (size_t i = 0; i < all.size(); i++) {
    const Json j = Json::parse(all[i]);
    EXPECT_EQ(j["type"], names[i]);
    if (j.contains("delta") && j["delta"].contains("text")) text += j["delta"]["text"].get<std::string>();
    if (j.contains("delta") && j["delta"].contains("thinking"))
      thinking += j["delta"]["thinking"].get<std::string>();
    if (kinds.empty() || kinds.back() != names[i]) kinds.push_back(names[i]);
  }
  EXPECT_EQ(text, "yes");
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta",
                                      "content_block_stop", "content_block_start", "content_block_delta",
                                      "content_block_stop", "message_delta", "message_stop"}));
}

TEST_F(Anthropic, AnAnswerThatWasBegunGoesOn) {
  Json messages = kHi;
  messages.push_back({{"role", "assistant"}, {"content", "Once upon"}});
  ask("/v1/messages", request({{"messages", messages}}));
  const std::string prompt = models.model->tokenizer().decode(service().asked()[0].prompt);
  EXPECT_TRUE(prompt.ends_with("Once upon")) << prompt;
}

TEST_F(Anthropic, Errors) {
  for (const auto& [body, status, type] : std::vector<std::tuple<Json, int, std::string>>{
           {{{"model", "stories"}, {"messages", kHi}}, 400, "invalid_request_error"},
           {request({{"temperature", 1.5}}), 400, "invalid_request_error"},
           {request({{"unheard_of", 1}}), 400, "invalid_request_error"},
           {request({{"messages", {{{"role", "user"}, {"content", {{{"type", "image"}}}}}}}}), 400,
            "invalid_request_error"}}) {
    const HttpAnswer a = ask("/v1/messages", body);
    EXPECT_EQ(a.status, status) << a.body;
    EXPECT_EQ(json(a)["type"], "error");
    EXPECT_EQ(json(a)["error"]["type"], type);
  }
  // The only model answers to any name; of several, none does.
  EXPECT_EQ(json(ask("/v1/messages", request({{"model", "claude"}})))["model"], "stories");
  models.second = "another";
  const HttpAnswer unknown = ask("/v1/messages", request({{"model", "claude"}}));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json(unknown)["error"]["type"], "not_found_error");
  service().fails({Code::Failed, "broke", ""}, 2);
  std::vector<std::string> names;
  events(ask("/v1/messages", request({{"stream", true}})), &names);
  EXPECT_EQ(names.back(), "error");
}

// ---- Ollama

using Ollama = ApiTest;

std::vector<Json> lines(const HttpAnswer& a) {
  EXPECT_EQ(a.headers.at("content-type"), "application/x-ndjson");
  std::vector<Json> all;
  for (size_t at = 0, end; at < a.body.size(); at = end + 1) {
    end = a.body.find('\n', at);
    all.push_back(Json::parse(a.body.substr(at, end - at)));
  }
  return all;
}

TEST_F(Ollama, Texts) {
  const auto chat = lines(ask("/api/chat", {{"model", "stories"}, {"messages", kHi}}));
  std::string text;
  for (const Json& l : chat) text += l["message"]["content"].get<std::string>();
  EXPECT_EQ(text, "once upon a time");
  EXPECT_EQ(chat.back()["done"], true);
  EXPECT_EQ(chat.back()["done_reason"], "stop");
  EXPECT_EQ(chat.back()["prompt_eval_count"], service().asked()[0].prompt.size());
  EXPECT_EQ(chat.front()["done"], false);
  const Json g =
      json(ask("/api/generate", {{"model", "stories"},
                                 {"prompt", "Once"},
                                 {"raw", true},
                                 {"stream", false},
                                 {"options", {{"num_predict", 2}, {"seed", 5}, {"temperature", 0}}}}));
  EXPECT_EQ(g["done_reason"], "length");
  EXPECT_EQ(g["eval_count"], 2);
  EXPECT_EQ(service().asked()[1].prompt, models.model->tokenizer().encode("Once"));
  EXPECT_EQ(service().asked()[1].sampler.seed, 5u);
  EXPECT_EQ(service().asked()[1].sampler.repeat_penalty, 1.1f);
  EXPECT_EQ(json(ask("/api/generate", {{"model", "stories"}}))["done_reason"], "load");
}

TEST_F(Ollama, Models) {
  const Json tag = json(ask(get("/api/tags")))["models"][0];
  EXPECT_EQ(tag["model"], "stories");
  EXPECT_EQ(tag["digest"], "d1");
  EXPECT_EQ(tag["details"]["family"], "llama");
  EXPECT_EQ(tag["details"]["parameter_size"], "260K");
  const Json show = json(ask("/api/show", {{"model", "stories"}}));
  EXPECT_EQ(show["capabilities"][0], "completion");
  EXPECT_EQ(show["model_info"]["general.architecture"], "llama");
  EXPECT_TRUE(show["model_info"]["tokenizer.ggml.tokens"].is_null());
  EXPECT_EQ(json(ask(get("/api/ps")))["models"].size(), 1u);
  EXPECT_EQ(json(ask(get("/api/version")))["version"], "1.2.3");
  // Any type of content, as its clients send it.
  const std::string body = R"({"model":"stories","input":["a","b"]})";
  const HttpAnswer e =
      ask("POST /api/embed HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n\r\n" + body);
  EXPECT_EQ(json(e)["embeddings"].size(), 2u) << e.body;
}

TEST_F(Ollama, Errors) {
  const HttpAnswer unknown = ask("/api/chat", {{"model", "x"}, {"messages", kHi}});
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(json(unknown)["error"].is_string());
  for (const Json& more : {Json{{"options", {{"mirostat", 3}}}}, Json{{"options", {{"temperature", "x"}}}},
                           Json{{"options", {{"num_ctx", "x"}}}}, Json{{"suffix", "x"}}})
    EXPECT_EQ(ask("/api/generate", with({{"model", "stories"}, {"prompt", "x"}}, more)).status, 400) << more;
  EXPECT_EQ(ask("/api/chat",
                {{"model", "stories"}, {"messages", kHi}, {"options", {{"num_ctx", 200}, {"mirostat", 0}}}})
                .status,
            200);
}

// ---- OpenAI's responses

using Responses = ApiTest;

TEST_F(Responses, Whole) {
  const Json j =
      json(ask("/v1/responses", {{"model", "stories"}, {"input", "Hi"}, {"instructions", "Be brief."}}));
  EXPECT_EQ(j["object"], "response");
  EXPECT_EQ(j["status"], "completed");
  EXPECT_EQ(j["output"][0]["content"][0]["text"], "once upon a time");
  EXPECT_EQ(j["usage"]["input_tokens"], service().asked()[0].prompt.size());
  EXPECT_EQ(j["usage"]["input_tokens_details"], (Json{{"cached_tokens", 0}, {"cache_write_tokens", 0}}));
  EXPECT_EQ(j["instructions"], "Be brief.");
  const Json cut =
      json(ask("/v1/responses", {{"model", "stories"}, {"input", kHi}, {"max_output_tokens", 1}}));
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

TEST_F(Responses, AStream) {
  service().says("<think>hm</think>yes");
  std::vector<std::string> names;
  const auto all =
      events(ask("/v1/responses", {{"model", "stories"}, {"input", "Hi"}, {"stream", true}}), &names);
  std::string text;
  for (size_t i = 0; i < all.size(); i++) {
    const Json j = Json::parse(all[i]);
    EXPECT_EQ(j["type"], names[i]);
    EXPECT_EQ(j["sequence_number"], i);
    if (names[i] == "response.output_text.delta") text += j["delta"].get<std::string>();
  }
  EXPECT_EQ(text, "yes");
  EXPECT_EQ(names.front(), "response.created");
  EXPECT_EQ(names.back(), "response.completed");
  const Json last = Json::parse(all.back())["response"];
  EXPECT_EQ(last["output"][0]["type"], "reasoning");
  EXPECT_EQ(last["output"][1]["content"][0]["text"], "yes");
}

TEST_F(Responses, WhatIsWrongIsNamed) {
  const Json good = {{"model", "stories"}, {"input", "Hi"}};
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{{"store", true},
                                                                              {"previous_response_id", "x"},
                                                                              {"input", 5},
                                                                              {"max_output_tokens", 0},
                                                                              {"top_logprobs", 2},
                                                                              {"background", true}})
    expect_wrong("/v1/responses", with(good, {{field, value}}), field);
  EXPECT_EQ(ask("/v1/responses", with(good, {{"top_logprobs", 0}})).status, 200) << "the default";
  const Json format = {{"type", "json_schema"}, {"name", "x"}};
  expect_wrong("/v1/responses", with(good, {{"text", {{"format", format}}}}), "text.format.schema");
}

// ---- tools in all of these

constexpr const char* kCall = R"({"name": "weather", "parameters": {"city": "Paris"}})";
const Json kSchema = {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}};
const Json kArguments = {{"city", "Paris"}};

TEST_F(Anthropic, Tools) {
  service().says(kCall);
  const Json tools = Json::array({{{"name", "weather"}, {"input_schema", kSchema}}});
  const Json j = json(ask("/v1/messages", request({{"tools", tools}})));
  EXPECT_EQ(j["stop_reason"], "tool_use");
  ASSERT_EQ(j["content"].size(), 1u) << j;
  EXPECT_EQ(j["content"][0]["type"], "tool_use");
  EXPECT_EQ(j["content"][0]["input"], kArguments);
  std::vector<std::string> names;
  std::string arguments;
  for (const std::string& e :
       events(ask("/v1/messages", request({{"tools", tools}, {"stream", true}})), &names)) {
    const Json d = Json::parse(e);
    if (d.contains("delta") && d["delta"].contains("partial_json"))
      arguments += d["delta"]["partial_json"].get<std::string>();
  }
  EXPECT_EQ(Json::parse(arguments), kArguments);
  EXPECT_EQ(names,
            (std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta",
                                      "content_block_stop", "message_delta", "message_stop"}));
  const Json conversation = {
      {{"role", "user"}, {"content", "Hi"}},
      {{"role", "assistant"}, {"content", j["content"]}},
      {{"role", "user"},
       {"content",
        {{{"type", "tool_result"}, {"tool_use_id", j["content"][0]["id"]}, {"content", "sunny"}}}}}};
  EXPECT_EQ(ask("/v1/messages", request({{"tools", tools}, {"messages", conversation}})).status, 200);
  const std::string told = models.model->tokenizer().decode(service().asked().back().prompt);
  EXPECT_NE(told.find("Paris"), std::string::npos);
  EXPECT_NE(told.find("sunny"), std::string::npos);
}

// A text at the end is the beginning of the answer; a call is a turn of its own.
TEST_F(Anthropic, ACallAtTheEndStaysInTheConversation) {
  const Json tools = Json::array({{{"name", "weather"}, {"input_schema", kSchema}}});
  const Json call = {{"type", "tool_use"}, {"id", "c"}, {"name", "weather"}, {"input", kArguments}};
  const Json conversation = {{{"role", "user"}, {"content", "Hi"}},
                             {{"role", "assistant"}, {"content", Json::array({call})}}};
  ASSERT_EQ(ask("/v1/messages", request({{"tools", tools}, {"messages", conversation}})).status, 200);
  EXPECT_NE(models.model->tokenizer().decode(service().asked().back().prompt).find("Paris"),
            std::string::npos);
}

TEST_F(Ollama, Tools) {
  service().says(kCall);
  const Json tools =
      Json::array({{{"type", "function"}, {"function", {{"name", "weather"}, {"parameters", kSchema}}}}});
  const auto all = lines(ask("/api/chat", {{"model", "stories"}, {"messages", kHi}, {"tools", tools}}));
  Json calls = Json::array();
  for (const Json& l : all)
    if (l["message"].contains("tool_calls"))
      for (const Json& c : l["message"]["tool_calls"]) calls.push_back(c["function"]);
  EXPECT_EQ(calls, (Json::array({{{"index", 0}, {"name", "weather"}, {"arguments", kArguments}}})));
}

TEST_F(Responses, Tools) {
  service().says(kCall);
  const Json body = {
      {"model", "stories"},
      {"input", "Hi"},
      {"tools", Json::array({{{"type", "function"}, {"name", "weather"}, {"parameters", kSchema}}})}};
  const Json j = json(ask("/v1/responses", body));
  ASSERT_EQ(j["output"].size(), 1u) << j;
  EXPECT_EQ(j["output"][0]["type"], "function_call");
  EXPECT_TRUE(j["tools"][0].contains("strict")) << "as OpenAI's answers repeat a function";
  EXPECT_EQ(Json::parse(j["output"][0]["arguments"].get<std::string>()), kArguments);
  std::vector<std::string> names;
  const auto all = events(ask("/v1/responses", with(body, {{"stream", true}})), &names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.function_call_arguments.delta", "response.function_call_arguments.done",
                       "response.output_item.done", "response.completed"}));
}

// The model gets every tool as a function; the answer calls it as it was declared.
TEST_F(Responses, ToolsOfOtherTypes) {
  const Json custom = {{"type", "custom"},
                       {"name", "apply_patch"},
                       {"format", {{"type", "grammar"}, {"syntax", "lark"}, {"definition", "start: /.+/"}}}};
  const Json space = {
      {"type", "namespace"},
      {"name", "mail"},
      {"description", "Letters"},
      {"tools", Json::array({{{"type", "function"}, {"name", "send"}, {"parameters", kSchema}}})}};
  const Json body = {
      {"model", "stories"},
      {"input", "Hi"},
      {"tools", Json::array({custom, space, {{"type", "local_shell"}}, {{"type", "tool_search"}}})}};
  const auto item = [&](const char* said) {
    service().says(said);
    const Json j = json(ask("/v1/responses", body));
    EXPECT_EQ(j["tools"].size(), 3u) << "tool_search is not offered";
    return j["output"].at(0);
  };
  Json j = item(R"({"name": "apply_patch", "parameters": {"input": "*** Begin"}})");
  EXPECT_EQ(j["type"], "custom_tool_call");
  EXPECT_EQ(j["name"], "apply_patch");
  EXPECT_EQ(j["input"], "*** Begin");
  Json history =
      Json::array({j, {{"type", "custom_tool_call_output"}, {"call_id", j["call_id"]}, {"output", "Done"}}});
  j = item(R"({"name": "mail__send", "parameters": {"city": "Paris"}})");
  EXPECT_EQ(j["type"], "function_call");
  EXPECT_EQ(j["name"], "send");
  EXPECT_EQ(j["namespace"], "mail");
  history.push_back(j);
  history.push_back({{"type", "function_call_output"}, {"call_id", j["call_id"]}, {"output", "Sent"}});
  j = item(R"({"name": "local_shell", "parameters": {"command": ["ls", "-l"], "timeout_ms": 5}})");
  EXPECT_EQ(j["type"], "local_shell_call");
  EXPECT_EQ(j["action"],
            (Json{{"type", "exec"}, {"command", {"ls", "-l"}}, {"env", Json::object()}, {"timeout_ms", 5}}));
  history.push_back(j);
  history.push_back({{"type", "local_shell_call_output"}, {"id", j["call_id"]}, {"output", "a.txt"}});
  EXPECT_EQ(item(R"({"name": "local_shell", "parameters": {"command": "ls"}})")["type"], "function_call");
  EXPECT_EQ(ask("/v1/responses", with(body, {{"input", history}})).status, 200);
  const std::string prompt = models.model->tokenizer().decode(service().asked().back().prompt);
  for (const char* part : {"*** Begin", "Done", "mail__send", "Sent", "ls", "a.txt"})
    EXPECT_NE(prompt.find(part), prompt.npos) << part;
  std::vector<std::string> names;
  service().says(R"({"name": "apply_patch", "parameters": {"input": "x"}})");
  events(ask("/v1/responses", with(body, {{"stream", true}})), &names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
                       "response.output_item.done", "response.completed"}));
  expect_wrong("/v1/responses", with(body, {{"tools", {custom, custom}}}), "tools[1].name");
  expect_wrong("/v1/responses", with(body, {{"tools", {{{"type", "computer_use_preview"}}}}}),
               "tools[0].type");
}

// ---- jobs

using JobsApi = ApiTest;

TEST_F(JobsApi, ATextByItsTokens) {
  const Json job =
      json(ask("/v1/jobs", {{"model", "stories"}, {"prompt", "Once"}, {"max_tokens", 50}, {"stream", true}}));
  const std::string id = job["job_id"];
  EXPECT_EQ(job["sse_url"], "/v1/jobs/" + id + "/stream");
  for (int time = 0; time < 2; time++) {  // it can be read again
    const auto all = events(ask(get(job["sse_url"])));
    ASSERT_GT(all.size(), 4u);
    EXPECT_EQ(Json::parse(all[0]), (Json{{"type", "started"}, {"job_id", id}}));
    std::string text;
    for (size_t i = 1; i + 2 < all.size(); i++) {
      const Json j = Json::parse(all[i]);
      EXPECT_EQ(j["type"], "token");
      EXPECT_EQ(j["i"], i - 1);
      text += j["t"].get<std::string>();
    }
    EXPECT_EQ(text, " once upon a time");
    const Json end = Json::parse(all[all.size() - 2]);
    EXPECT_EQ(end["type"], "end");
    EXPECT_EQ(end["tokens_out"], all.size() - 3);
    EXPECT_EQ(end["stop_reason"], "EOS");
    EXPECT_EQ(all.back(), "[DONE]");
  }
  EXPECT_EQ(ask(get("/v1/jobs/none/stream")).status, 404);
}

TEST_F(JobsApi, EachEndHasItsReason) {
  service().says(" once upon a time");
  const auto reason = [&](const Json& more) {
    Json body = {{"model", "stories"}, {"prompt", "Once"}};
    body.update(more);
    const auto all = events(ask(get(json(ask("/v1/jobs", body))["sse_url"])));
    return Json::parse(all[all.size() - 2])["stop_reason"];
  };
  EXPECT_EQ(reason(Json::object()), "EOS");
  EXPECT_EQ(reason({{"max_tokens", 2}}), "MAX_TOKENS");
  EXPECT_EQ(reason({{"stop", {"upon"}}}), "STOP_SEQUENCE");
  service().fails({Code::Failed, "a loose cable", ""}, 1);
  EXPECT_EQ(reason(Json::object()), "ERROR");
}

TEST_F(JobsApi, Cancelled) {
  service().says("once upon", true);
  const Json job = json(ask("/v1/jobs", {{"model", "stories"}, {"prompt", "Once"}}));
  HttpClient reader(server->port());
  reader.send(get(job["sse_url"]));
  EXPECT_TRUE(reader.reads("upon"));
  EXPECT_EQ(
      ask("DELETE /v1/jobs/" + job["job_id"].get<std::string>() + " HTTP/1.1\r\nHost: x\r\n\r\n").status,
      200);
  EXPECT_TRUE(service().was_cancelled());
  EXPECT_NE(reader.answer().body.find("\"stop_reason\":\"CANCELLED\""), std::string::npos);
}

TEST_F(JobsApi, LoadingProgress) {
  const auto ready = events(ask(get("/v1/loading/progress")));
  EXPECT_EQ(ready, (std::vector<std::string>{R"({"stage":"ready"})", "[DONE]"}));
  services.ready = false;
  HttpClient waits(server->port());
  waits.send(get("/v1/loading/progress"));
  EXPECT_TRUE(waits.reads("loading"));
  services.set_ready();
  EXPECT_EQ(events(waits.answer()).size(), 3u);
}

TEST_F(JobsApi, OnAServerWithoutModels) {
  models.none = true;
  const HttpAnswer a = ask("/v1/jobs", {{"prompt", "Once"}});
  EXPECT_EQ(a.status, 400);
  EXPECT_NE(a.body.find("'model'"), std::string::npos) << a.body;
  EXPECT_EQ(ask("/v1/jobs", {{"model", "stories"}, {"prompt", "Once"}}).status, 404);
}

}  // namespace
}  // namespace gimbal::test
