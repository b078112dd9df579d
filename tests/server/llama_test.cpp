// llama.cpp's server endpoints over a scripted service: forms and fields as its tools/server/README.md has
// them.
#include "server/api/llama.h"
#include "server/api/answer.h"
#include "server/api_server.h"
#include "support/remade.h"

namespace gimbal::test {
namespace {

class Llama : public ApiTest {
 protected:
  const Tokenizer& tokenizer() { return models.model->tokenizer(); }
  std::vector<Token> ids(const char* text, bool bos = true) {
    return tokenizer().encode(text, {.add_bos = bos});
  }
};

TEST_F(Llama, ACompletion) {
  service().says("once upon a time");
  const Json j = complete({{"n_predict", 3}, {"return_tokens", true}, {"seed", 7}});
  const auto tokens = ids("once upon a time", false);
  EXPECT_EQ(j["tokens"], (std::vector<Token>(tokens.begin(), tokens.begin() + 3)));
  EXPECT_EQ(j["content"], " " + tokenizer().decode({tokens.data(), 3}));
  EXPECT_EQ(j["stop"], true);
  EXPECT_EQ(j["stop_type"], "limit");
  EXPECT_EQ(j["stopping_word"], "");
  EXPECT_EQ(j["truncated"], false);
  EXPECT_EQ(j["has_new_line"], false);
  EXPECT_EQ(j["model"], "stories");
  EXPECT_EQ(j["index"], 0);
  EXPECT_EQ(j["id_slot"], 0);
  EXPECT_EQ(j["prompt"], "<s> Once");
  EXPECT_EQ(j["tokens_evaluated"], ids("Once").size());
  EXPECT_EQ(j["tokens_predicted"], 3);
  EXPECT_EQ(j["timings"]["prompt_n"], ids("Once").size());
  EXPECT_EQ(j["timings"]["cache_n"], 0);
  EXPECT_EQ(j["timings"]["predicted_n"], 3);
  EXPECT_GE(j["timings"]["predicted_ms"], 0);
  const Json& settings = j["generation_settings"];
  EXPECT_EQ(settings["n_predict"], 3);
  EXPECT_EQ(settings["seed"], 7);
  EXPECT_EQ(settings["n_ctx"], 256);
  EXPECT_EQ(settings["repeat_last_n"], 64);
  // llama.cpp's defaults reach the sampler.
  const GenerationRequest asked = service().asked()[0];
  EXPECT_EQ(asked.prompt, ids("Once"));
  EXPECT_EQ(asked.sampler.temperature, 0.8f);
  EXPECT_EQ(asked.sampler.top_k, 40);
  EXPECT_EQ(asked.sampler.top_p, 0.95f);
  EXPECT_EQ(asked.sampler.min_p, 0.05f);
  EXPECT_EQ(asked.sampler.seed, 7u);
  // Without n_predict the context is the limit; tokens come only where they were asked for.
  const Json whole = complete(Json::object());
  EXPECT_EQ(whole["stop_type"], "eos");
  EXPECT_EQ(whole["content"], " once upon a time");
  EXPECT_EQ(whole["tokens"], Json::array());
  EXPECT_EQ(whole["generation_settings"]["n_predict"], -1);
  EXPECT_EQ(service().asked()[1].max_tokens, -1);
  // The reply names the seed that the server chose, and a request can set it.
  EXPECT_EQ(whole["generation_settings"]["seed"], service().asked()[1].sampler.seed);
  complete({{"seed", -1}});
  EXPECT_NE(service().asked()[2].sampler.seed, service().asked()[1].sampler.seed);
}

TEST_F(Llama, AStream) {
  service().says("once upon\na time");
  const auto tokens = ids("once upon\na time", false);
  const auto all =
      events(ask("/completion", {{"prompt", "Once"}, {"stream", true}, {"timings_per_token", true}}));
  ASSERT_EQ(all.size(), tokens.size() + 1) << "an event for each token, and the last";
  std::string text;
  for (size_t i = 0; i < tokens.size(); i++) {
    const Json j = Json::parse(all[i]);
    EXPECT_EQ(j["stop"], false);
    EXPECT_EQ(j["tokens"], Json::array({tokens[i]}));
    EXPECT_EQ(j["timings"]["predicted_n"], i + 1);
    text += j["content"];
  }
  EXPECT_EQ(text, " once upon\na time");
  const Json last = Json::parse(all.back());
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["content"], "");
  EXPECT_EQ(last["tokens"], Json::array());
  EXPECT_EQ(last["stop_type"], "eos");
  EXPECT_EQ(last["has_new_line"], true);
  EXPECT_EQ(last["generation_settings"]["stream"], true);
  EXPECT_EQ(last["timings"]["predicted_n"], tokens.size());
}

// The event of OpenAI's usage has them, too, as llama.cpp's.
TEST_F(Llama, TheUsageOfAStreamHasTimings) {
  service().says("once upon a time");
  const auto all = events(ask("/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                                    {"stream", true},
                                                    {"stream_options", {{"include_usage", true}}}}));
  const Json last = Json::parse(all[all.size() - 2]);
  EXPECT_EQ(last["choices"], Json::array());
  EXPECT_EQ(last["timings"]["predicted_n"], last["usage"]["completion_tokens"]);
  EXPECT_EQ(last["timings"]["prompt_n"], service().asked()[0].prompt.size());
}

TEST_F(Llama, StopWords) {
  const Json j = complete({{"stop", {"zzz", " a ", ""}}});
  EXPECT_EQ(j["content"], " once upon");
  EXPECT_EQ(j["stop_type"], "word");
  EXPECT_EQ(j["stopping_word"], " a ");
}

TEST_F(Llama, PromptsInAllForms) {
  const auto asked = [&](const Json& prompt) {
    const size_t before = service().asked().size();
    const HttpAnswer a = ask("/completions", {{"prompt", prompt}, {"n_predict", 1}});
    EXPECT_EQ(a.status, 200) << prompt << a.body;
    const auto all = service().asked();
    std::vector<std::vector<Token>> prompts;
    for (size_t i = before; i < all.size(); i++) prompts.push_back(all[i].prompt);
    EXPECT_EQ(json(a).is_array(), prompt.is_array() && !prompt[0].is_number()) << prompt;
    return prompts;
  };
  using Prompts = std::vector<std::vector<Token>>;
  const auto one = ids("a"), two = ids("b"), bare = ids("b", false);
  EXPECT_EQ(asked("a"), Prompts{one});
  EXPECT_EQ(asked({5, 6}), (Prompts{{5, 6}}));
  EXPECT_EQ(asked({"a", "b"}), (Prompts{one, two}));
  EXPECT_EQ(asked({"a", {5, 6}, {{"prompt_string", "b"}}}), (Prompts{one, {5, 6}, two}));
  const Json part = {{"type", "text"}, {"text", "b"}};
  EXPECT_EQ(asked({"a", {{"content", Json::array({part})}}}), (Prompts{one, two}));
  std::vector<Token> mixed = {5, 6};
  mixed.insert(mixed.end(), bare.begin(), bare.end());
  mixed.push_back(7);
  EXPECT_EQ(asked({5, 6, "b", 7}), Prompts{mixed});
  EXPECT_EQ(asked(Json::array({{5, 6, "b", 7}})), Prompts{mixed});
  for (const Json& wrong :
       {Json(5), Json::array(), Json{"a", {1, -1}}, Json{1, 512}, Json{1, true}, Json{1.5},
        Json::array({{{"prompt_string", "a"}, {"multimodal_data", {"x"}}}}), Json{{"content", "a"}},
        Json{{"content", {part}}, {"prompt_string", "a"}}, Json{{"content", {{{"type", "image_url"}}}}}})
    EXPECT_EQ(ask("/completion", {{"prompt", wrong}}).status, 400) << wrong;
  EXPECT_EQ(ask("/completion", Json::object()).status, 400);
  EXPECT_EQ(ask("/completion", {{"prompt", std::vector<Token>(300, 5)}}).status, 400) << "beyond the context";
}

TEST_F(Llama, SettingsReachTheSamplerOrAreRefused) {
  complete({{"temperature", 0.5},
            {"top_k", 0},
            {"repeat_last_n", -1},
            {"logit_bias", {{17, 1.5}, {18, false}, {"b", -2}}},
            {"ignore_eos", true},
            {"mirostat", 0},
            {"mirostat_tau", 5},
            {"dry_multiplier", 0},
            {"dry_base", 1.75},
            {"xtc_probability", 0},
            {"dynatemp_range", 0},
            {"cache_prompt", false},
            {"id_slot", 3},
            {"n_keep", 4},
            {"lora", Json::array()},
            {"samplers", {"top_k", "min_p", "temperature"}}});
  const GenerationRequest r = service().asked().back();
  EXPECT_EQ(r.sampler.temperature, 0.5f);
  EXPECT_EQ(r.sampler.top_k, 0);
  EXPECT_EQ(r.sampler.top_p, 1) << "it is not among the samplers";
  EXPECT_EQ(r.sampler.min_p, 0.05f);
  EXPECT_EQ(r.sampler.penalty_window, -1);
  EXPECT_TRUE(r.ignore_stop_tokens);
  std::vector<std::pair<int32_t, float>> bias = {{17, 1.5f}, {18, -std::numeric_limits<float>::infinity()}};
  for (Token t : ids("b", false)) bias.emplace_back(t, -2.0f);
  EXPECT_EQ(r.sampler.logit_bias, bias);
  complete({{"json_schema", {{"const", 5}}}});
  EXPECT_FALSE(service().asked().back().grammar.empty());
  complete({{"grammar", "root ::= \"a\""}});
  EXPECT_EQ(service().asked().back().grammar, "root ::= \"a\"");
  for (const auto& [field, value] : {std::pair<const char*, Json>{"mirostat", 3},
                                     {"min_keep", 3},
                                     {"samplers", {"min_p", "top_k"}},
                                     {"samplers", {"nothing"}},
                                     {"n_probs", 1000},
                                     {"post_sampling_probs", true},
                                     {"return_progress", true},
                                     {"logit_bias", {{512, 1}}},
                                     {"logit_bias", {{5, "x"}}},
                                     {"n_predict", "x"},
                                     {"no_such_field", 1}})
    expect_wrong("/completion", {{"prompt", "a"}, {field, value}}, field);
  expect_wrong("/completion", {{"prompt", "a"}, {"aa", 1}, {"bb", 1}, {"cc", 1}}, "aa");
}

TEST_F(Llama, ProbabilitiesAndChosenFields) {
  const Json j = complete({{"n_probs", 2}, {"n_predict", 2}});
  ASSERT_EQ(j["completion_probabilities"].size(), 2u);
  const Json& first = j["completion_probabilities"][0];
  const auto tokens = ids("once upon a time", false);
  EXPECT_EQ(first["id"], tokens[0]);
  EXPECT_EQ(first["logprob"], -0.5);
  EXPECT_TRUE(first["bytes"].is_array());
  ASSERT_EQ(first["top_logprobs"].size(), 2u);
  EXPECT_EQ(first["top_logprobs"][1]["id"], tokens[0] + 1);
  const Json one = complete({{"n_probs", 1}, {"n_predict", 2}});
  ASSERT_EQ(one["completion_probabilities"].size(), 2u) << one;
  EXPECT_EQ(one["completion_probabilities"][0]["top_logprobs"].size(), 1u);
  EXPECT_FALSE(complete({{"n_predict", 2}}).contains("completion_probabilities"));
  EXPECT_FALSE(complete({{"n_probs", 0}, {"n_predict", 2}}).contains("completion_probabilities"));
  const Json few = complete(
      {{"response_fields", {"content", "generation_settings/n_predict", "timings/prompt_n", "none/such", ""}},
       {"n_predict", 4}});
  EXPECT_EQ(few.size(), 3u) << few;
  EXPECT_EQ(few["generation_settings/n_predict"], 4);
  EXPECT_EQ(few["timings/prompt_n"], ids("Once").size());
}

TEST_F(Llama, AnswersThatLinesEnd) {
  service().says("a(\n    b\n  c\nd");
  const Json cut = complete({{"n_indent", 3}});
  EXPECT_EQ(cut["content"], " a(\n    b\n  ");
  EXPECT_EQ(cut["stop_type"], "limit");
  const HttpAnswer without =
      ask("/completion", {{"prompt", "Once"}, {"n_indent", 3}, {"seed", 1}, {"certificate", true}});
  EXPECT_EQ(without.status, 200) << without.body;
  const Json receipt = json(ask(get("/v1/receipts/" + without.headers.at("x-gimbal-receipt"))));
  EXPECT_FALSE(receipt.contains("certificates")) << receipt;
  EXPECT_EQ(receipt.value("no_certificate", ""),
            "a limit of time or layout ended the answer, and no audit can repeat that");
  const Json nothing = complete({{"n_predict", 0}});
  EXPECT_EQ(nothing["content"], "");
  EXPECT_EQ(nothing["tokens_predicted"], 0);
  EXPECT_EQ(nothing["stop_type"], "limit");
  EXPECT_EQ(service().asked().back().max_tokens, 1) << "the prompt is computed";

  const auto kept = [](const char* text, api::LineLimits limits, double seconds = 0) {
    std::string s = text;
    const bool ends = limits.ends(s, seconds);
    return s + (ends ? "|" : "");
  };
  api::LineLimits indent, time;
  indent.indent = 2;
  time.seconds = 1;
  EXPECT_EQ(kept("x\n  y\n\tz", indent), "x\n  y\n\t|");
  EXPECT_EQ(kept("x\n\n", indent), "x\n|") << "an empty line has no indentation, as in llama.cpp";
  EXPECT_EQ(kept("x\n  y", indent), "x\n  y");
  EXPECT_EQ(kept("x\ny\n", time, 0.5), "x\ny\n");
  EXPECT_EQ(kept("x\ny\n", time, 1.5), "x\n|");
  EXPECT_EQ(kept("xy", time, 1.5), "xy") << "a line is ended first";
  std::string later = " y";
  EXPECT_FALSE(indent.ends(later, 0));
  later = "\n ";
  EXPECT_FALSE(indent.ends(later, 0));
  later = "z";
  EXPECT_TRUE(indent.ends(later, 0));
  EXPECT_EQ(later, "");
}

TEST_F(Llama, Tokens) {
  const char* text = "Once <s> á";
  EXPECT_EQ(json(ask("/tokenize", {{"content", text}}))["tokens"], ids(text, false));
  EXPECT_EQ(json(ask("/tokenize", {{"content", text}, {"add_special", true}}))["tokens"], ids(text));
  EXPECT_EQ(json(ask("/tokenize", {{"content", text}, {"parse_special", false}}))["tokens"],
            tokenizer().encode(text, {.add_bos = false, .parse_special = false}));
  // llama.cpp's README: with this vocabulary á is two tokens of a byte each.
  const Json pieces = json(ask("/tokenize", {{"content", "á"}, {"with_pieces", true}}))["tokens"];
  std::vector<Json> bytes;
  for (const Json& p : pieces)
    if (p["piece"].is_array()) bytes.push_back(p["piece"]);
  EXPECT_EQ(bytes, (std::vector<Json>{{195}, {161}}));
  EXPECT_EQ(json(ask("/detokenize", {{"tokens", ids("Once upon", false)}}))["content"], "Once upon");
  EXPECT_EQ(json(ask("/detokenize", {{"tokens", Json::array()}}))["content"], "");
  expect_wrong("/detokenize", {{"tokens", {1, 512}}}, "tokens");
  expect_wrong("/detokenize", {{"tokens", "x"}}, "tokens");
  expect_wrong("/tokenize", Json::object(), "content");
  expect_wrong("/tokenize", {{"content", std::string((1 << 20) + 1, 'a')}}, "content");
}

TEST_F(Llama, TemplatesAndCounts) {
  models.model->template_is(
      "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt "
      "%}[assistant] "
      "{% endif %}");
  const Json hi = {{{"role", "user"}, {"content", "Hi"}}};
  const auto prompt = [&](const Json& more) {
    Json body = {{"messages", hi}};
    body.update(more);
    return json(ask("/apply-template", body))["prompt"];
  };
  EXPECT_EQ(prompt(Json::object()), "[user] Hi\n[assistant] ");
  EXPECT_EQ(prompt({{"add_generation_prompt", false}}), "[user] Hi\n");
  Json begun = hi;
  begun.push_back({{"role", "assistant"}, {"content", "Well,"}});
  EXPECT_EQ(prompt({{"messages", begun}, {"continue_final_message", true}}), "[user] Hi\n[assistant] Well,");
  EXPECT_EQ(prompt({{"messages", begun}, {"continue_final_message", true}, {"add_generation_prompt", false}}),
            "[user] Hi\n[assistant] Well,");
  EXPECT_EQ(prompt({{"messages", begun}}), "[user] Hi\n[assistant] Well,\n[assistant] ");
  expect_wrong("/apply-template", {{"messages", hi}, {"continue_final_message", true}},
               "continue_final_message");
  expect_wrong("/apply-template",
               {{"messages", begun}, {"continue_final_message", true}, {"add_generation_prompt", true}},
               "add_generation_prompt");
  const Json count = json(ask("/v1/chat/completions/input_tokens", {{"messages", hi}}));
  EXPECT_EQ(count["object"], "response.input_tokens");
  EXPECT_EQ(ask("/chat/completions", {{"messages", hi}}).status, 200);
  EXPECT_EQ(count["input_tokens"], service().asked().back().prompt.size());
}

// The defaults of a model's section, and of /api/create, count here as in the other APIs.
TEST_F(Llama, AModelsDefaultsAreThoseOfItsCompletions) {
  models.model->has_preset({"", {}, {{"temperature", 0.25}, {"seed", 42}, {"stop", {"upon"}}}});
  service().says("once upon a time");
  EXPECT_EQ(complete(Json::object())["stopping_word"], "upon");
  const Json j = complete({{"temperature", 0.5}, {"seed", 7}, {"stop", Json::array()}});
  EXPECT_EQ(j["stop_type"], "eos");
  const auto asked = service().asked();
  EXPECT_EQ(asked[0].sampler.temperature, 0.25f);
  EXPECT_EQ(asked[0].sampler.seed, 42u);
  EXPECT_EQ(asked[1].sampler.temperature, 0.5f);
  EXPECT_EQ(asked[1].sampler.seed, 7u);
}

TEST_F(Llama, PropsSayWhatAModelReads) {
  EXPECT_EQ(json(ask(get("/props")))["modalities"], Json({{"vision", false}, {"audio", false}}));
  models.model->can_see();
  EXPECT_EQ(json(ask(get("/props")))["modalities"], Json({{"vision", true}, {"audio", false}}));
}

TEST_F(Llama, FormsOfAnAnswerToAChat) {
  const auto grammar = [&](const Json& more) {
    Json body = {
        {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"cache_prompt", true}, {"id_slot", -1}};
    body.update(more);
    const HttpAnswer a = ask("/v1/chat/completions", body);
    EXPECT_EQ(a.status, 200) << a.body;
    EXPECT_EQ(json(a)["system_fingerprint"], "gimbal-1.2.3");
    EXPECT_GT(json(a)["timings"]["predicted_n"], 0);
    return service().asked().back().grammar;
  };
  const Json schema = {{"const", 5}};
  const std::string right = grammar(
      {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
  EXPECT_FALSE(right.empty());
  EXPECT_EQ(grammar({{"response_format", {{"type", "json_object"}, {"schema", schema}}}}), right);
  EXPECT_EQ(grammar({{"response_format", {{"type", "json_schema"}, {"schema", schema}}}}), right);
  EXPECT_EQ(grammar({{"json_schema", schema}}), right);
  EXPECT_EQ(grammar(Json::object()), "");
}

TEST_F(Llama, PathsWithoutAVersion) {
  EXPECT_EQ(ask(get("/models")).body, ask(get("/v1/models")).body);
  EXPECT_EQ(ask(get("/v1/health")).status, 200);
  const Json documents = {{"query", "a"}, {"documents", {"x", "y"}}};
  for (const char* path : {"/rerank", "/reranking", "/v1/reranking"})
    EXPECT_EQ(json(ask(path, documents))["results"], json(ask("/v1/rerank", documents))["results"]) << path;
  EXPECT_EQ(json(ask("/responses", {{"input", "Hi"}}))["object"], "response");
  // Vectors in llama.cpp's own form; the scripted one is (0.6, -0.8).
  const auto near = [](const Json& v, double a, double b) {
    return std::abs(v[0].get<double>() / a - 1) < 1e-6 && std::abs(v[1].get<double>() / b - 1) < 1e-6;
  };
  for (const char* path : {"/embedding", "/embeddings"}) {
    const Json all = json(ask(path, {{"content", {"a", "b"}}}));
    ASSERT_EQ(all.size(), 2u) << path;
    EXPECT_EQ(all[1]["index"], 1);
    EXPECT_TRUE(near(all[1]["embedding"][0], 0.6, -0.8));
  }
  const auto scaled = [&](int p) {
    return json(ask("/embedding", {{"input", "a"}, {"embd_normalize", p}}))[0]["embedding"][0];
  };
  EXPECT_TRUE(near(scaled(1), 0.6 / 1.4, -0.8 / 1.4));
  EXPECT_TRUE(near(scaled(0), 0.75 * 32760, -32760));
  EXPECT_TRUE(near(scaled(3), 0.6 / std::cbrt(0.728), -0.8 / std::cbrt(0.728)));
  expect_wrong("/embedding", {{"content", "a"}, {"embd_normalize", -1}}, "embd_normalize");
}

TEST_F(Llama, PropertiesAndSlots) {
  const Json props = json(ask(get("/props?model=stories")));
  EXPECT_EQ(api::query_field("model=s%74or%69es", "model"), "stories");
  EXPECT_EQ(api::query_field("a=1&model=x+y%2&b", "model"), "x y%2");
  EXPECT_EQ(json(ask(get("/props?model=s%74or%69es")))["model_alias"], "stories");
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["model_alias"], "stories");
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(props["default_generation_settings"]["params"]["top_k"], 40);
  Json slots = json(ask(get("/slots")));
  ASSERT_EQ(slots.size(), 3u);
  for (const Json& s : slots) EXPECT_EQ(s["is_processing"], false);
  EXPECT_EQ(ask(get("/slots?fail_on_no_slot=1")).status, 200);
  service().says("once upon", true);
  HttpClient running(server->port());
  running.send(post("/completion", R"({"prompt":"Once","stream":true,"n_predict":50})"));
  ASSERT_TRUE(running.reads("upon"));
  slots = json(ask(get("/slots")));
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0]["is_processing"], true);
  EXPECT_EQ(slots[0]["n_prompt_tokens"], ids("Once").size());
  const int told = slots[0]["next_token"]["n_decoded"];
  EXPECT_GT(told, 0);
  EXPECT_EQ(slots[0]["next_token"]["n_remain"], 50 - told);
  EXPECT_EQ(slots[1]["is_processing"], false);
  models.second = "another";
  EXPECT_EQ(ask(get("/props")).status, 400);
  EXPECT_EQ(ask(get("/slots?model=none")).status, 404);
}

// ---- the middle of a text

class Infill : public Llama {
 protected:
  void SetUp() override {
    const auto file = parse_gguf(embedded_model(), "the built-in model");
    bytes_ =
        remade(*file, "{{ messages[0].content }}", {{"<fim_prefix>"}, {"<fim_suffix>"}, {"<fim_middle>"}});
    models.model = OneModel::shared(
        new ScriptedModel({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}));
    Llama::SetUp();
  }
  // The tokens with these texts between them: <prefix> a <suffix> b <middle>.
  std::vector<Token> gap(const char* before, const char* typed, const char* behind) {
    std::vector<Token> all = {tokenizer().bos(), 509};
    const auto add = [&](const char* text) {
      const auto more = tokenizer().encode(text, {.add_bos = false, .parse_special = false});
      all.insert(all.end(), more.begin(), more.end());
    };
    add(before), add(typed), all.push_back(510), add(behind), all.push_back(511);
    return all;
  }

  std::string bytes_;
};

TEST_F(Infill, PromptsHaveTheirGap) {
  const Json body = {{"input_prefix", "int a"}, {"input_suffix", "return a"}, {"prompt", " ="}};
  const HttpAnswer a = ask("/infill", body);
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_EQ(json(a)["content"], " once upon a time");
  EXPECT_EQ(service().asked().back().prompt, gap("int a", " =", "return a"));
  ask("/v1/completions", {{"prompt", "x <fim_suffix>"}, {"suffix", "y"}});
  EXPECT_EQ(service().asked().back().prompt, gap("x <fim_suffix>", "", "y")) << "texts stay texts";
  ask("/api/generate", {{"model", "stories"}, {"prompt", "x"}, {"suffix", "y"}, {"stream", false}});
  EXPECT_EQ(service().asked().back().prompt, gap("x", "", "y"));
  for (const auto& [field, value] : {std::pair<const char*, Json>{"raw", true}, {"system", "Be brief."}}) {
    const HttpAnswer both =
        ask("/api/generate",
            {{"model", "stories"}, {"prompt", "x"}, {"suffix", "y"}, {"stream", false}, {field, value}});
    EXPECT_EQ(both.status, 400) << field << both.body;
    EXPECT_NE(both.body.find("'suffix' makes a prompt of its own"), std::string::npos) << both.body;
  }
  Json more = body;
  more["input_extra"] = {{{"filename", "f"}, {"text", "t"}}};
  ask("/infill", more);
  const auto with_extra = service().asked().back().prompt, plain = gap("int a", " =", "return a");
  ASSERT_GT(with_extra.size(), plain.size());
  EXPECT_TRUE(std::equal(plain.rbegin(), plain.rend(), with_extra.rbegin()));
  for (const Json& wrong : {Json::object(), Json{{"filename", "f"}}, Json{{"filename", 1}, {"text", "t"}}}) {
    more["input_extra"] = Json::array({wrong});
    EXPECT_EQ(ask("/infill", more).status, 400) << wrong;
  }
  EXPECT_EQ(ask("/infill", {{"input_prefix", "a"}}).status, 400);
}

// The requests of llama.vim (autoload/llama.vim): one for a text, and one that only has the context computed.
TEST_F(Infill, AnEditorsRequests) {
  service().says("1;\n    b = 2;\n}");
  Json body = {{"id_slot", 0},
               {"input_prefix", "int main() {\n"},
               {"input_suffix", "}\n"},
               {"input_extra", Json::array()},
               {"prompt", "    a = "},
               {"n_predict", 128},
               {"stop", Json::array()},
               {"n_indent", 4},
               {"top_k", 40},
               {"top_p", 0.9},
               {"stream", false},
               {"samplers", {"top_k", "top_p", "infill"}},
               {"cache_prompt", true},
               {"t_max_prompt_ms", 500},
               {"t_max_predict_ms", 100000},
               {"response_fields", {"content", "timings/prompt_n", "timings/predicted_ms", "truncated"}}};
  const HttpAnswer a = ask("/infill", body);
  EXPECT_EQ(json(a)["content"], " 1;\n    b = 2;\n") << "the last line is less indented";
  EXPECT_EQ(json(a).size(), 4u) << a.body;
  EXPECT_TRUE(a.headers.contains("x-gimbal-note"));
  EXPECT_EQ(service().asked().back().sampler.temperature, 1);
  EXPECT_EQ(service().asked().back().sampler.min_p, 0);
  body["n_predict"] = 0, body["samplers"] = Json::array(), body["response_fields"] = {""};
  EXPECT_EQ(json(ask("/infill", body)), Json::object());
}

TEST_F(Llama, AModelWithoutTheTokensForAGap) {
  expect_wrong("/infill", {{"input_prefix", "a"}, {"input_suffix", "b"}}, "model");
  expect_wrong("/v1/completions", {{"prompt", "a"}, {"suffix", "b"}}, "suffix");
}

}  // namespace
}  // namespace gimbal::test
