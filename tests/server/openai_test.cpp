// OpenAI's API over a scripted service: forms, counts, validation, errors.
#include <semaphore>

#include "server/api_server.h"

namespace gimbal::test {
namespace {

const Json kChat = {{"model", "stories"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
Json chat(const Json& more) {
  Json j = kChat;
  j.update(more);
  return j;
}
Json completion(const Json& more) {
  Json j = {{"model", "stories"}, {"prompt", "Once"}};
  j.update(more);
  return j;
}
constexpr const char* kChatPath = "/v1/chat/completions";

using OpenAi = ApiTest;

TEST_F(OpenAi, AChat) {
  const HttpAnswer a = ask(kChatPath, chat({{"max_tokens", 500}}));
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_FALSE(a.headers.at("x-request-id").empty());
  EXPECT_EQ(a.headers.at("content-type"), "application/json");
  const Json j = json(a);
  EXPECT_EQ(j["object"], "chat.completion");
  EXPECT_EQ(j["model"], "stories");
  EXPECT_EQ(j["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(j["choices"][0]["message"]["content"], "once upon a time");
  EXPECT_EQ(j["choices"][0]["finish_reason"], "stop");
  const auto asked = service().asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].prompt[0], models.model->tokenizer().bos());
  EXPECT_EQ(j["usage"]["prompt_tokens"], asked[0].prompt.size());
  EXPECT_EQ(j["usage"]["total_tokens"],
            j["usage"]["prompt_tokens"].get<int>() + j["usage"]["completion_tokens"].get<int>());
  EXPECT_EQ(asked[0].max_tokens, 256 - int(asked[0].prompt.size()) + 1);  // clamped
  EXPECT_EQ(asked[0].sampler.temperature, 1);
  EXPECT_EQ(asked[0].sampler.top_k, 0);
  const Json receipt = json(ask(get("/v1/receipts/" + j["id"].get<std::string>())));
  EXPECT_EQ(receipt["ops"][0]["op"], "mat_mul");
  EXPECT_EQ(ask(get("/v1/receipts/none")).status, 404);
}

TEST_F(OpenAi, AStreamSaysTheSame) {
  const HttpAnswer a =
      ask(kChatPath, chat({{"stream", true}, {"n", 2}, {"stream_options", {{"include_usage", true}}}}));
  const auto all = events(a);
  ASSERT_GT(all.size(), 6u);
  EXPECT_EQ(all.back(), "[DONE]");
  std::string text[2];
  std::string reason[2];
  for (size_t i = 0; i + 2 < all.size(); i++) {
    const Json j = Json::parse(all[i]);
    EXPECT_EQ(j["object"], "chat.completion.chunk");
    EXPECT_TRUE(j["usage"].is_null());
    ASSERT_EQ(j["choices"].size(), 1u);
    const Json& c = j["choices"][0];
    const int index = c["index"];
    if (c["delta"].contains("content")) text[index] += c["delta"]["content"].get<std::string>();
    if (c["finish_reason"].is_string()) reason[index] = c["finish_reason"];
  }
  for (int i : {0, 1}) {
    EXPECT_EQ(text[i], "once upon a time");
    EXPECT_EQ(reason[i], "stop");
  }
  const Json last = Json::parse(all[all.size() - 2]);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["prompt_tokens"], service().asked()[0].prompt.size());  // once for both
  EXPECT_NE(service().asked()[0].sampler.seed, service().asked()[1].sampler.seed);
}

TEST_F(OpenAi, LimitsStopsAndSettings) {
  Json j = json(ask(kChatPath, chat({{"max_completion_tokens", 2}})));
  EXPECT_EQ(j["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(j["usage"]["completion_tokens"], 2);
  j = json(ask(kChatPath, chat({{"stop", {" a ", "x"}}})));
  EXPECT_EQ(j["choices"][0]["message"]["content"], "once upon");
  EXPECT_EQ(j["choices"][0]["finish_reason"], "stop");
  ask(kChatPath, chat({{"temperature", 0},
                       {"top_p", 0.5},
                       {"seed", 7},
                       {"frequency_penalty", 1.5},
                       {"presence_penalty", -1},
                       {"logit_bias", {{"5", -100}, {"6", 100}, {"7", 2}}},
                       {"min_p", 0.1},
                       {"top_k", 3},
                       {"grammar", "root ::= \"a\""},
                       {"user", "me"},
                       {"stream", nullptr},
                       {"n", 2}}));
  const GenerationRequest r = service().asked().back();
  EXPECT_EQ(r.sampler.temperature, 0);
  EXPECT_EQ(r.sampler.top_p, 0.5f);
  EXPECT_EQ(r.sampler.seed, 8u);
  EXPECT_EQ(r.sampler.frequency_penalty, 1.5f);
  EXPECT_EQ(r.sampler.presence_penalty, -1);
  EXPECT_EQ(r.sampler.top_k, 3);
  EXPECT_EQ(r.grammar, "root ::= \"a\"");
  ASSERT_EQ(r.sampler.logit_bias.size(), 3u);
  EXPECT_LT(r.sampler.logit_bias[0].second, -1e30f);
  EXPECT_GT(r.sampler.logit_bias[1].second, 500);
  EXPECT_EQ(r.sampler.logit_bias[2].second, 2);
}

TEST_F(OpenAi, SamplersBiasByTextAndReasoningBudget) {
  ask(kChatPath, chat({{"mirostat", 2},
                       {"mirostat_tau", 4.5},
                       {"dry_multiplier", 0.8},
                       {"dry_sequence_breakers", {"x", "yz"}},
                       {"xtc_probability", 0.5},
                       {"adaptive_target", 0.25},
                       {"top_n_sigma", 1.5},
                       {"logit_bias", {{" the", 2}}},
                       {"thinking_budget_tokens", 9}}));
  const GenerationRequest r = service().asked().back();
  EXPECT_EQ(r.sampler.mirostat, 2);
  EXPECT_EQ(r.sampler.mirostat_tau, 4.5f);
  EXPECT_EQ(r.sampler.dry_multiplier, 0.8f);
  EXPECT_EQ(r.sampler.dry_sequence_breakers, (std::vector<std::string>{"x", "yz"}));
  EXPECT_EQ(r.sampler.xtc_probability, 0.5f);
  EXPECT_EQ(r.sampler.adaptive_target, 0.25f);
  EXPECT_EQ(r.sampler.top_n_sigma, 1.5f);
  ASSERT_FALSE(r.sampler.logit_bias.empty());
  EXPECT_EQ(r.sampler.logit_bias[0].second, 2);
  EXPECT_EQ(r.reasoning.tokens, 9);
  EXPECT_EQ(r.reasoning.end, "</think>");
  ask(kChatPath, chat(Json::object()));
  EXPECT_EQ(service().asked().back().reasoning.tokens, -1);
  services.reasoning_budget = 30;  // the server's, where the request does not say
  ask(kChatPath, chat(Json::object()));
  EXPECT_EQ(service().asked().back().reasoning.tokens, 30);
  ask(kChatPath, chat({{"reasoning_budget", 0}}));
  EXPECT_EQ(service().asked().back().reasoning.tokens, 0);
  // No value satisfies it: said of the field that has it.
  const Json none = {{"name", "x"}, {"schema", {{"type", "string"}, {"const", 1}}}};
  expect_wrong(kChatPath, chat({{"response_format", {{"type", "json_schema"}, {"json_schema", none}}}}),
               "response_format.json_schema.schema");
}

TEST_F(OpenAi, Logprobs) {
  const Json j = json(ask(kChatPath, chat({{"logprobs", true}, {"top_logprobs", 2}, {"max_tokens", 3}})));
  const Json& content = j["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0]["logprob"], -0.5);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["bytes"].size(), content[0]["token"].get<std::string>().size());
  size_t streamed = 0;
  for (const std::string& e :
       events(ask(kChatPath, chat({{"logprobs", true}, {"stream", true}, {"max_tokens", 3}}))))
    if (e != "[DONE]" && Json::parse(e)["choices"][0]["logprobs"].is_object()) streamed++;
  EXPECT_EQ(streamed, 3u);
  const Json c = json(ask("/v1/completions", completion({{"logprobs", 1}, {"max_tokens", 2}})));
  EXPECT_EQ(c["choices"][0]["logprobs"]["tokens"].size(), 2u);
  EXPECT_EQ(c["choices"][0]["logprobs"]["text_offset"][0], 0);
}

TEST_F(OpenAi, HintsAreTakenAndChangeNothing) {
  for (const Json& hint :
       {Json{{"verbosity", "low"}}, Json{{"prediction", {{"type", "content"}, {"content", "x"}}}}}) {
    Json seeded = chat({{"seed", 1}});
    seeded.update(hint);
    EXPECT_EQ(ask(kChatPath, seeded).status, 200) << hint;
  }
  const auto asked = service().asked();
  EXPECT_EQ(asked[0].prompt, asked[1].prompt);
  expect_wrong(kChatPath, chat({{"verbosity", "much"}}), "verbosity");
  expect_wrong(kChatPath, chat({{"prediction", {{"type", "zzz"}, {"content", "x"}}}}), "prediction.type");
}

TEST_F(OpenAi, AModelTellsItsContext) {
  for (const Json& m : {json(ask(get("/v1/models")))["data"][0], json(ask(get("/v1/models/stories")))}) {
    EXPECT_EQ(m["max_model_len"], 256);
    EXPECT_EQ(m["context_length"], 256);
    EXPECT_EQ(m["meta"]["n_ctx"], 256);
    EXPECT_EQ(m["meta"]["n_ctx_train"],
              *models.model->file().metadata().unsigned_integer("llama.context_length"));
    EXPECT_EQ(m["meta"]["n_vocab"], models.model->tokenizer().size());
  }
}

// A model that is known for it, by the name in its file or by its own.
TEST_F(OpenAi, EmbeddingsOfFewerDimensions) {
  models.model->is_named("Qwen3-Embedding-0.6B-Q8_0");
  models.model->embedding.clear();
  for (int i = 0; i < 64; i++) models.model->embedding.push_back(i < 32 ? 0.1f : 0.15f);
  const auto asked = [&](int dimensions) {
    return ask("/v1/embeddings", {{"model", models.model->id()}, {"input", "a"}, {"dimensions", dimensions}});
  };
  const Json short_one = json(asked(32))["data"][0]["embedding"];
  ASSERT_EQ(short_one.size(), 32u);
  for (const Json& x : short_one) EXPECT_NEAR(x.get<double>(), 1 / std::sqrt(32.0), 1e-6) << "length 1 again";
  const Json whole = json(asked(64))["data"][0]["embedding"];
  ASSERT_EQ(whole.size(), 64u);
  EXPECT_NEAR(whole[0].get<double>(), 0.1, 1e-7) << "as it is";
  for (int wrong : {31, 65}) EXPECT_EQ(json(asked(wrong))["error"]["param"], "dimensions");
  models.model->embedding.assign(1024, 0.03125f);
  // As few as the publishers' own pages name, and no fewer.
  for (const auto& [name, n] :
       {std::pair("snowflake-arctic-embed-m-v1.5", 256), std::pair("mxbai-embed-large-v1", 512)}) {
    models.model->is_named(name);
    EXPECT_EQ(asked(n).status, 200) << name;
    EXPECT_EQ(asked(n - 1).status, 400) << name;
  }
}

TEST_F(OpenAi, ReasoningIsApart) {
  service().says("<think>hm</think>yes");
  const Json j = json(ask(kChatPath, kChat));
  EXPECT_EQ(j["choices"][0]["message"]["content"], "yes");
  EXPECT_EQ(j["choices"][0]["message"]["reasoning_content"], "hm");
}

TEST_F(OpenAi, Tools) {
  const Json tools =
      Json::array({{{"type", "function"},
                    {"function",
                     {{"name", "weather"},
                      {"parameters", {{"type", "object"}, {"properties", {{"city", Json::object()}}}}}}}}});
  service().says(R"({"name": "weather", "parameters": {"city": "Paris"}})");
  const Json j = json(ask(kChatPath, chat({{"tools", tools}})))["choices"][0];
  EXPECT_EQ(j["finish_reason"], "tool_calls");
  EXPECT_TRUE(j["message"]["content"].is_null());
  const Json& call = j["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "weather");
  EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>()), (Json{{"city", "Paris"}}));
  std::string name, arguments, reason;
  for (const std::string& e : events(ask(kChatPath, chat({{"tools", tools}, {"stream", true}})))) {
    if (e == "[DONE]") continue;
    const Json c = Json::parse(e)["choices"][0];
    if (c["finish_reason"].is_string()) reason = c["finish_reason"];
    if (!c["delta"].contains("tool_calls")) continue;
    EXPECT_EQ(c["delta"]["tool_calls"][0]["index"], 0);
    name += c["delta"]["tool_calls"][0]["function"]["name"].get<std::string>();
    arguments += c["delta"]["tool_calls"][0]["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(name, "weather");
  EXPECT_EQ(Json::parse(arguments), (Json{{"city", "Paris"}}));
  EXPECT_EQ(reason, "tool_calls");
  // The prompt has the tools and the results of calls.
  const auto told = [&] { return models.model->tokenizer().decode(service().asked().back().prompt); };
  EXPECT_NE(told().find("weather(city)"), std::string::npos) << told();
  const Json conversation = {{{"role", "user"}, {"content", "Hi"}},
                             {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                             {{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "sunny"}}};
  ask(kChatPath, chat({{"messages", conversation}, {"tools", tools}, {"tool_choice", "none"}}));
  EXPECT_EQ(told().find("weather(city)"), std::string::npos) << told();
  EXPECT_NE(told().find("\"Paris\""), std::string::npos) << told();
  EXPECT_NE(told().find("sunny"), std::string::npos);
  // A call that must be is a grammar; one at most is the first.
  ask(kChatPath, chat({{"tools", tools}, {"tool_choice", "required"}}));
  EXPECT_NE(service().asked().back().grammar.find("weather"), std::string::npos);
  EXPECT_TRUE(service().asked().back().completes);
  expect_wrong(kChatPath, chat({{"tools", tools}, {"tool_choice", "must"}}), "tool_choice");
  expect_wrong(kChatPath, chat({{"tools", {{{"type", "function"}}}}}), "tools[0].function");
}

TEST_F(OpenAi, OneReloadAtATime) {
  std::counting_semaphore<2> begun(0), may_end(0);
  services.reload_backends = [&]() -> Result<std::string> {
    begun.release();
    may_end.acquire();
    return std::string("{\"backends\":[]}");
  };
  const std::string reload = post("/v1/backends/reload", "");
  std::thread first([&] { EXPECT_EQ(ask(reload).status, 200); });
  begun.acquire();
  for (int i = 0; i < 3; i++) {
    HttpAnswer a = ask(reload);
    EXPECT_EQ(a.status, 409) << a.body;
    EXPECT_EQ(a.headers["retry-after"], "1");
    EXPECT_NE(a.body.find("reload_in_progress"), std::string::npos) << a.body;
  }
  EXPECT_EQ(ask(kChatPath, chat(Json::object())).status, 200) << "others are answered meanwhile";
  may_end.release(2);
  first.join();
  EXPECT_EQ(ask(reload).status, 200);
}

// With tools that may be called the answer has its form, or is a call of one of them.
TEST_F(OpenAi, AFormAndTools) {
  const Json tools = Json::parse(
      R"([{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{}}}}}])");
  const Json schema = Json::parse(R"({"type":"object","properties":{"name":{"type":"string"}}})");
  const Json form = {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  const auto asked = [&](bool stream) {
    return ask(kChatPath, chat({{"tools", tools}, {"response_format", form}, {"stream", stream}}));
  };
  service().says(R"({"name": "Bob"})");
  Json j = json(asked(false))["choices"][0];
  EXPECT_EQ(j["message"]["content"], R"({"name": "Bob"})") << "there is no such tool";
  EXPECT_EQ(j["finish_reason"], "stop");
  const GenerationRequest r = service().asked().back();
  EXPECT_NE(r.grammar.find("weather"), std::string::npos);
  EXPECT_FALSE(r.completes) << "a form that is cut says so";
  std::string text;
  for (const std::string& e : events(asked(true)))
    if (e != "[DONE]" && Json::parse(e)["choices"][0]["delta"].contains("content"))
      text += Json::parse(e)["choices"][0]["delta"]["content"].get<std::string>();
  EXPECT_EQ(text, R"({"name": "Bob"})");
  service().says(R"({"name": "weather", "parameters": {"city": "Oslo"}})");
  j = json(asked(false))["choices"][0];
  EXPECT_EQ(j["finish_reason"], "tool_calls");
  EXPECT_EQ(j["message"]["tool_calls"][0]["function"]["name"], "weather");
  expect_wrong(kChatPath, chat({{"tools", tools}, {"response_format", form}, {"tool_choice", "required"}}),
               "tool_choice");
  expect_wrong(kChatPath, chat({{"tools", tools}, {"grammar", "root ::= ("}}), "grammar");
  expect_wrong(kChatPath,
               chat({{"tools",
                      {{{"type", "function"},
                        {"function", {{"name", "w"}, {"parameters", {{"type", "object"}, {"not", 1}}}}}}}},
                     {"response_format", form}}),
               "tools");
  ask(kChatPath, chat({{"tools", tools}, {"response_format", form}, {"tool_choice", "none"}}));
  EXPECT_EQ(service().asked().back().grammar.find("weather"), std::string::npos);
}

TEST_F(OpenAi, Completions) {
  const Json j = json(ask("/v1/completions", completion({{"echo", true}, {"max_tokens", 100}})));
  EXPECT_EQ(j["object"], "text_completion");
  EXPECT_EQ(j["choices"][0]["text"], "Once once upon a time");
  const std::vector<Token> once = models.model->tokenizer().encode("Once");
  EXPECT_EQ(service().asked()[0].prompt, once);
  // Several prompts, of texts and of ids; two choices of each.
  const Json k = json(ask("/v1/completions", completion({{"prompt", {"Once", once}}, {"n", 2}})));
  ASSERT_EQ(k["choices"].size(), 4u);
  EXPECT_EQ(k["choices"][3]["index"], 3);
  EXPECT_EQ(k["usage"]["prompt_tokens"], 2 * once.size());
  EXPECT_EQ(service().asked().back().prompt, once);
  EXPECT_EQ(service().asked().back().max_tokens, 16);
}

TEST_F(OpenAi, Embeddings) {
  const Json j = json(ask("/v1/embeddings", {{"model", "stories"}, {"input", {"Once", "upon"}}}));
  ASSERT_EQ(j["data"].size(), 2u);
  EXPECT_EQ(j["data"][1]["index"], 1);
  EXPECT_FLOAT_EQ(j["data"][0]["embedding"][1], -0.8f);
  EXPECT_GT(j["usage"]["prompt_tokens"], 2);
  const Json k =
      json(ask("/v1/embeddings", {{"model", "stories"}, {"input", {1, 5}}, {"encoding_format", "base64"}}));
  EXPECT_EQ(k["data"][0]["embedding"], "mpkZP83MTL8=");
  expect_wrong("/v1/embeddings", {{"model", "stories"}, {"input", "a"}, {"dimensions", 7}}, "dimensions");
  expect_wrong("/v1/embeddings", {{"model", "stories"}, {"input", Json::array()}}, "input");
}

TEST_F(OpenAi, WhatIsWrongIsNamed) {
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{
           {"temperature", 3},
           {"temperature", "1"},
           {"top_p", -0.1},
           {"n", 0},
           {"n", 9},
           {"max_tokens", 0},
           {"max_tokens", 1.5},
           {"seed", "x"},
           {"stop", 5},
           {"stop", {1}},
           {"stream", "yes"},
           {"presence_penalty", 2.1},
           {"top_logprobs", 3},
           {"logit_bias", {{"", 1}}},
           {"logit_bias", {{"1", 101}}},
           {"logit_bias", {{"999999", 1}}},
           {"messages", Json::array()},
           {"messages", "x"},
           {"audio", {{"voice", "x"}}},
           {"store", true},
           {"functions", Json::array()},
           {"unheard_of", 1},
           {"service_tier", "flex"},
           {"stop", {""}},
       })
    expect_wrong(kChatPath, chat({{field, value}}), field);
  expect_wrong(kChatPath, chat({{"messages", {{{"role", "king"}, {"content", "x"}}}}}), "messages[0].role");
  expect_wrong(kChatPath, chat({{"messages", {{{"role", "user"}}}}}), "messages[0].content");
  const Json picture = {{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}};
  expect_wrong(kChatPath, chat({{"messages", {{{"role", "user"}, {"content", picture}}}}}),
               "messages[0].content[0].image_url.url");
  expect_wrong(kChatPath, chat({{"stream_options", {{"include_usage", true}}}}), "stream_options");
  expect_wrong("/v1/completions", completion({{"suffix", "x"}}), "suffix");
  expect_wrong("/v1/completions", completion({{"prompt", {1, 100000}}}), "prompt");
  expect_wrong("/v1/completions", {{"model", "stories"}}, "prompt");
  expect_wrong(kChatPath, {{"model", 5}, {"messages", Json::array()}}, "model");
  for (const char* body : {"", "{", "[]", "{\"a\":\"\xff\"}"}) {
    const HttpAnswer a = ask(post(kChatPath, body));
    EXPECT_EQ(a.status, 400) << body;
    EXPECT_EQ(json(a)["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(ask(post(kChatPath, std::string(100000, '['))).status, 400);
}

TEST_F(OpenAi, PromptsBeyondTheContext) {
  std::string many;
  for (int i = 0; i < 300; i++) many += "word ";
  const HttpAnswer a = ask("/v1/completions", completion({{"prompt", many}}));
  EXPECT_EQ(a.status, 400);
  EXPECT_EQ(json(a)["error"]["code"], "context_length_exceeded");
  EXPECT_NE(json(a)["error"]["message"].get<std::string>().find("256"), std::string::npos);
  EXPECT_TRUE(service().asked().empty());
}

TEST_F(OpenAi, FailuresOfTheEngine) {
  service().refuses({Code::OutOfMemory, "full", "", reason::kQueueFull});
  HttpAnswer a = ask(kChatPath, kChat);
  EXPECT_EQ(a.status, 429);
  EXPECT_TRUE(a.headers.contains("retry-after"));
}

TEST_F(OpenAi, AFailureBeforeTheFirstTokenIsAStatus) {
  service().fails({Code::Failed, "/secret/path broke", ""}, 0);
  const HttpAnswer a = ask(kChatPath, chat({{"stream", true}}));
  EXPECT_EQ(a.status, 500);
  EXPECT_EQ(a.body.find("secret"), std::string::npos);
  service().fails({Code::Failed, "/secret/path broke", ""}, 2);
  const auto all = events(ask(kChatPath, chat({{"stream", true}})));
  EXPECT_EQ(all.back(), "[DONE]");
  EXPECT_EQ(Json::parse(all[all.size() - 2])["error"]["type"], "server_error");
}

TEST_F(OpenAi, AClientThatLeavesCancels) {
  service().says("once upon", true);
  {
    HttpClient c(server->port());
    c.send(post(kChatPath, chat({{"stream", true}}).dump()));
    EXPECT_TRUE(c.reads("upon"));
  }
  EXPECT_TRUE(service().was_cancelled());
  HttpClient metrics(server->port());
  while (metrics.ask(get("/metrics")).body.find("gimbal_requests_running 0\n") == std::string::npos) {}
}

TEST_F(OpenAi, ModelsAndPaths) {
  EXPECT_EQ(json(ask(get("/v1/models")))["data"][0]["id"], "stories");
  EXPECT_EQ(json(ask(get("/v1/models/stories")))["id"], "stories");
  EXPECT_EQ(ask(get("/v1/models/other")).status, 404);
  // The only model answers to any name, and to none, and says which it is.
  const HttpAnswer other = ask(kChatPath, chat({{"model", "gpt"}}));
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(json(other)["model"], "stories");
  EXPECT_TRUE(other.headers.contains("x-gimbal-note"));
  const HttpAnswer none = ask(kChatPath, chat({{"model", nullptr}}));
  EXPECT_EQ(json(none)["model"], "stories");
  EXPECT_FALSE(none.headers.contains("x-gimbal-note"));
  models.second = "another";
  for (const char* path : {kChatPath, "/v1/completions", "/completion", "/tokenize"}) {
    const HttpAnswer unknown = ask(path, chat({{"model", "gpt"}}));
    EXPECT_EQ(unknown.status, 404) << path;
    EXPECT_EQ(json(unknown)["error"]["code"], "model_not_found");
    EXPECT_EQ(unknown.body.find("/a/path"), std::string::npos);
    expect_wrong(path, chat({{"model", nullptr}}), "model");
  }
  models.second.clear();
  EXPECT_EQ(ask(get("/nowhere")).status, 404);
  const HttpAnswer wrong = ask(get(kChatPath));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST");
  EXPECT_EQ(ask(post("/v1/models", "{}")).headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(HttpClient(server->port()).ask("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", true).status, 200);
  EXPECT_EQ(ask("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: "
                "text/plain\r\nContent-Length: 2\r\n\r\n{}")
                .status,
            415);
  EXPECT_EQ(ask(get("/health/live")).status, 200);
  EXPECT_EQ(ask(get("/health/ready")).status, 200);
  services.draining = true;
  EXPECT_EQ(ask(get("/health/ready")).status, 503);
  EXPECT_EQ(ask(kChatPath, kChat).status, 503);
  EXPECT_EQ(json(ask(get("/v1/backends"))), (Json{{"backends", Json::array()}}));
  EXPECT_FALSE(
      ask(get("/v1/models", "Origin: http://evil\r\n")).headers.contains("access-control-allow-origin"));
}

TEST_F(OpenAi, Keys) {
  stop();
  start({{"right", "other"}, {"http://page"}});
  for (const char* header :
       {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer right1\r\n",
        "Authorization: Bearer righ\r\n", "x-api-key: \r\n", "Authorization: Basic right\r\n"}) {
    const HttpAnswer a = ask(get("/v1/models", header));
    EXPECT_EQ(a.status, 401) << header;
    EXPECT_EQ(json(a)["error"]["code"], "invalid_api_key");
  }
  for (const char* header :
       {"Authorization: Bearer right\r\n", "x-api-key: other\r\n", "authorization: bearer right\r\n"}) {
    const HttpAnswer a = ask(get("/v1/models", std::string(header) + "Origin: http://page\r\n"));
    EXPECT_EQ(a.status, 200) << header;
    EXPECT_EQ(a.headers.at("access-control-allow-origin"), "http://page");
  }
  EXPECT_EQ(json(ask(get("/v1/messages")))["error"]["type"], "authentication_error");
  EXPECT_EQ(ask(get("/api/tags")).status, 401);
  EXPECT_EQ(ask(get("/health/live")).status, 200);
  EXPECT_EQ(ask("OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").status, 204);
}

}  // namespace
}  // namespace gimbal::test
