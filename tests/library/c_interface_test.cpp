// The C interface beside the C++ library that it stands on: the same texts, tokens and plans, errors as
// values, and nothing that crosses the border.
#include <gimbal/engine.h>
#include <gimbal/gimbal.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

namespace {

using Json = nlohmann::json;
Json parse(const char* text) { return Json::parse(text, nullptr, false); }

class CInterface : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    gimbal_engine* engine = nullptr;
    ASSERT_EQ(gimbal_engine_new(R"({"threads": 1, "verify": "never"})", &engine, nullptr), GIMBAL_DONE);
    ASSERT_EQ(gimbal_load(engine, "default", R"({"context": 128, "sequences": 2})", nullptr, nullptr, nullptr,
                          &model_, nullptr),
              GIMBAL_DONE);
    engine_ = engine;
  }
  static void TearDownTestSuite() {
    gimbal_engine_free(engine_);  // in this order: a model outlives its engine
    gimbal_model_free(model_);
  }
  void SetUp() override { ASSERT_EQ(gimbal_sequence_new(model_, &sequence_, nullptr), GIMBAL_DONE); }
  void TearDown() override { gimbal_sequence_free(sequence_); }

  // The error of a call that fails: "CODE FIELD MESSAGE | REMEDY".
  template <class Call>
  static std::string error_of(const Call& call) {
    gimbal_error* error = nullptr;
    const gimbal_result code = call(&error);
    if (!error) return code == GIMBAL_DONE ? "done" : "no error object";
    EXPECT_EQ(code, gimbal_error_code(error));
    const std::string text = std::to_string(code) + " " + gimbal_error_field(error) + " " +
                             gimbal_error_message(error) + " | " + gimbal_error_remedy(error);
    gimbal_error_free(error);
    return text;
  }
  std::string generate_error(const char* options) {
    return error_of(
        [&](gimbal_error** e) { return gimbal_generate(sequence_, "a", 1, options, 0, 0, 0, 0, e); });
  }

  static Json taken(char* json) {
    Json value = parse(json ? json : "");
    gimbal_free(json);
    return value;
  }

  static inline gimbal_engine* engine_ = nullptr;
  static inline gimbal_model* model_ = nullptr;
  gimbal_sequence* sequence_ = nullptr;
};

constexpr const char kPrompt[] = "Once upon a time";

TEST_F(CInterface, ListsOfObjectsAreOptions) {
  const auto load = [](const char* options) {
    return error_of([&](gimbal_error** e) {
      gimbal_model* model = nullptr;
      return gimbal_load(engine_, "default", options, nullptr, nullptr, nullptr, &model, e);
    });
  };
  EXPECT_NE(load(R"({"lora": [{"path": "/no/such.gguf", "scale": 0.5}]})").find("/no/such.gguf"),
            std::string::npos);
  EXPECT_NE(load(R"({"lora": [{"scale": 0.5}]})").find("'lora' must be an array"), std::string::npos);
}

TEST_F(CInterface, ABiasOfNullForbidsAToken) {
  const auto first = [&](const std::string& more) {
    gimbal_sequence_rewind(sequence_, 0);
    gimbal_text* text = nullptr;
    EXPECT_EQ(gimbal_generate(sequence_, kPrompt, strlen(kPrompt),
                              (R"({"max_tokens": 1, "greedy": true)" + more + "}").c_str(), nullptr, nullptr,
                              nullptr, &text, nullptr),
              GIMBAL_DONE)
        << more;
    size_t count = 0;
    const int32_t* tokens = gimbal_text_tokens(text, &count);
    EXPECT_EQ(count, 1u);
    const int32_t token = count ? tokens[0] : -1;
    gimbal_text_free(text);
    return token;
  };
  const int32_t likely = first("");
  const int32_t other = first(R"(, "logit_bias": [[)" + std::to_string(likely) + ", null]]");
  EXPECT_NE(other, likely);
  EXPECT_EQ(first(R"(, "logit_bias": [[)" + std::to_string(other) + ", 1000]]"), other);
}

TEST_F(CInterface, WritesTheTextOfTheCppLibrary) {
  gimbal::Options o;
  o.threads = 1, o.verify = gimbal::Verify::Never;
  gimbal::ModelOptions m;
  m.context = 128;
  auto model = gimbal::Engine(o).load("default", m);
  ASSERT_TRUE(model) << model.error().message;
  auto sequence = model->new_sequence();
  gimbal::TextOptions t;
  t.max_tokens = 20, t.seed = 7, t.temperature = 0.9f, t.top_k = 20, t.logprobs = 1, t.stops = {"zebra"};
  t.logit_bias = {{410, -2.f}};
  auto expected = sequence->generate(kPrompt, t);
  ASSERT_TRUE(expected) << expected.error().message;

  std::string streamed;
  gimbal_text* text = nullptr;
  const auto sink = [](int32_t part, const char* piece, size_t bytes, void* user) {
    EXPECT_EQ(part, GIMBAL_PART_TEXT);
    EXPECT_EQ(piece[bytes], 0);
    static_cast<std::string*>(user)->append(piece, bytes);
    return 1;
  };
  ASSERT_EQ(gimbal_generate(sequence_, kPrompt, strlen(kPrompt),
                            R"({"max_tokens": 20, "seed": 7, "temperature": 0.9, "top_k": 20, "logprobs": 1,
                                "stops": ["zebra"], "logit_bias": [[410, -2]]})",
                            sink, &streamed, nullptr, &text, nullptr),
            GIMBAL_DONE);
  EXPECT_EQ(gimbal_text_string(text, nullptr), expected->text);
  EXPECT_EQ(streamed, expected->text);
  size_t count = 0;
  const int32_t* tokens = gimbal_text_tokens(text, &count);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + count), expected->tokens);
  EXPECT_EQ(gimbal_text_finish(text), GIMBAL_FINISH_LENGTH);
  const Json json = parse(gimbal_text_json(text));
  EXPECT_EQ(json["finish"], "length");
  EXPECT_EQ(json["logprobs"].size(), 20u);
  EXPECT_EQ(json["logprobs"][3].get<float>(), expected->logprobs[3]);
  EXPECT_EQ(json["top"][3][0]["token"], expected->top[3][0].token);
  gimbal_text_free(text);

  EXPECT_EQ(gimbal_sequence_position(sequence_) + gimbal_sequence_room(sequence_), 128);
  gimbal_sequence_rewind(sequence_, 0);
  EXPECT_EQ(gimbal_sequence_position(sequence_), 0);
}

TEST_F(CInterface, TokensGoThereAndBack) {
  const std::string text = std::string("zero\0byte and \xc3\xa4", 16);
  int32_t* tokens = nullptr;
  size_t count = 0, bytes = 0;
  char* back = nullptr;
  ASSERT_EQ(
      gimbal_tokenize(model_, text.data(), text.size(), R"({"add_bos": false})", &tokens, &count, nullptr),
      GIMBAL_DONE);
  ASSERT_GT(count, 4u);
  ASSERT_EQ(gimbal_detokenize(model_, tokens, count, 0, &back, &bytes, nullptr), GIMBAL_DONE);
  EXPECT_EQ(std::string(back, bytes).substr(back[0] == ' '), text)
      << "the vocabulary adds a space before a text";
  gimbal_free(tokens), gimbal_free(back);
  ASSERT_EQ(gimbal_tokenize(model_, "", 0, R"({"add_bos": false})", &tokens, &count, nullptr), GIMBAL_DONE);
  EXPECT_EQ(count, 0u);
  gimbal_free(tokens);
}

TEST_F(CInterface, AnAnswerJoinsTheConversation) {
  gimbal_messages* messages = gimbal_messages_new();
  ASSERT_EQ(gimbal_messages_add(messages, "user", "hello", nullptr), GIMBAL_DONE);
  char* prompt = nullptr;
  ASSERT_EQ(gimbal_chat_prompt(model_, messages, nullptr, &prompt, nullptr), GIMBAL_DONE);
  EXPECT_NE(std::string(prompt).find("hello"), std::string::npos);
  gimbal_free(prompt);
  gimbal_text* text = nullptr;
  for (const char* wrong : {R"({"reasoning_budget": -2})", R"({"reasoning_budget": "few"})"})
    EXPECT_EQ(error_of([&](gimbal_error** e) {
                return gimbal_chat(sequence_, messages, wrong, nullptr, nullptr, nullptr, &text, e);
              }).substr(0, 18),
              "2 reasoning_budget");
  ASSERT_EQ(gimbal_chat(sequence_, messages, R"({"max_tokens": 8, "greedy": true, "reasoning_budget": 3})",
                        nullptr, nullptr, nullptr, &text, nullptr),
            GIMBAL_DONE);
  EXPECT_EQ(gimbal_messages_count(messages), 2u);
  const Json message = parse(gimbal_text_json(text))["message"];
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["content"], gimbal_text_string(text, nullptr));
  EXPECT_EQ(gimbal_messages_add_json(messages, message.dump().c_str(), nullptr), GIMBAL_DONE);
  EXPECT_EQ(
      gimbal_messages_add_json(messages, R"({"role": "tool", "tool_call_id": "1", "content": "2"})", nullptr),
      GIMBAL_DONE);
  EXPECT_EQ(
      gimbal_messages_add_json(messages, R"({"role": "assistant", "content": null, "tool_calls": [{"id": "1",
            "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]})",
                               nullptr),
      GIMBAL_DONE);
  gimbal_messages_drop(messages, 4);
  EXPECT_EQ(gimbal_messages_count(messages), 1u);
  for (const char* wrong :
       {"[]", "{", R"({"content": "a"})", R"({"role": 1})", R"({"role": "user", "name": "x"})"})
    EXPECT_EQ(gimbal_messages_add_json(messages, wrong, nullptr), GIMBAL_ERROR_USAGE) << wrong;
  EXPECT_EQ(gimbal_messages_add(messages, "tool", "a", nullptr), GIMBAL_ERROR_USAGE);
  gimbal_text_free(text), gimbal_messages_free(messages);
}

TEST_F(CInterface, PlansExplainsAndLists) {
  char* json = nullptr;
  ASSERT_EQ(gimbal_plan(engine_, "default", R"({"context": 64})", &json, nullptr), GIMBAL_DONE);
  Json plan = taken(json);
  EXPECT_EQ(plan["context"], 64);
  EXPECT_EQ(plan["layers"], 5);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_EQ(plan["placement"][0]["layers"], 5);
  EXPECT_GT(plan["memory"][0]["weights"], 0);
  ASSERT_EQ(gimbal_explain(engine_, "default", nullptr, &json, nullptr), GIMBAL_DONE);
  const Json explained = taken(json);
  EXPECT_EQ(explained["plan"]["name"], plan["name"]);
  EXPECT_EQ(explained["programs"][0]["purpose"], "generation");
  const size_t choice = explained["programs"][0]["ops"][0]["choice"];
  EXPECT_NE(explained["choices"][choice]["kernel"], "");
  ASSERT_EQ(gimbal_backends(engine_, &json, nullptr), GIMBAL_DONE);
  bool cpu = false;
  for (const Json& b : taken(json)) cpu |= b["name"] == "cpu" && b["available"] == true;
  EXPECT_TRUE(cpu);
  ASSERT_EQ(gimbal_models(engine_, &json, nullptr), GIMBAL_DONE);
  EXPECT_TRUE(taken(json).is_array());
  ASSERT_EQ(gimbal_model_info(model_, &json, nullptr), GIMBAL_DONE);
  EXPECT_EQ(taken(json)["context"], 128);
}

TEST_F(CInterface, AnotherThreadCancelsAText) {
  gimbal_cancel* cancel = gimbal_cancel_new();
  gimbal_text* text = nullptr;
  const auto sink = [](int32_t, const char*, size_t, void* user) {
    std::thread([user] { gimbal_cancel_now(static_cast<gimbal_cancel*>(user)); }).join();
    return 1;
  };
  ASSERT_EQ(gimbal_generate(sequence_, kPrompt, strlen(kPrompt), R"({"greedy": true})", sink, cancel, cancel,
                            &text, nullptr),
            GIMBAL_DONE);
  EXPECT_EQ(gimbal_text_finish(text), GIMBAL_FINISH_CANCELLED);
  size_t tokens = 0;
  gimbal_text_tokens(text, &tokens);
  EXPECT_LE(tokens, 3u);
  gimbal_text_free(text);

  // Set before: a prompt ends after its first step, and no model is loaded.
  ASSERT_EQ(
      gimbal_generate(sequence_, kPrompt, strlen(kPrompt), nullptr, nullptr, nullptr, cancel, &text, nullptr),
      GIMBAL_DONE);
  EXPECT_EQ(gimbal_text_finish(text), GIMBAL_FINISH_CANCELLED);
  gimbal_text_free(text);
  gimbal_model* model = nullptr;
  EXPECT_EQ(error_of([&](gimbal_error** e) {
              return gimbal_load(engine_, "default", nullptr, nullptr, nullptr, cancel, &model, e);
            }),
            "1  cancelled | ");
  EXPECT_EQ(model, nullptr);
  gimbal_cancel_free(cancel);
}

TEST_F(CInterface, ProgressCancelsALoad) {
  struct Seen {
    int loading = 0;
    bool whole = false;
  } seen;
  const auto watch = [](int32_t kind, const char*, const char*, uint64_t done, uint64_t total, void* user) {
    auto& s = *static_cast<Seen*>(user);
    if (kind == GIMBAL_EVENT_LOADING) s.loading++, s.whole |= done == total;
    return 1;
  };
  gimbal_model* model = nullptr;
  ASSERT_EQ(gimbal_load(engine_, "default", nullptr, watch, &seen, nullptr, &model, nullptr), GIMBAL_DONE);
  gimbal_model_free(model);
  EXPECT_GT(seen.loading, 0);
  EXPECT_TRUE(seen.whole);
  const auto refuse = [](int32_t kind, const char*, const char*, uint64_t, uint64_t, void*) -> int32_t {
    return kind != GIMBAL_EVENT_LOADING;
  };
  EXPECT_EQ(error_of([&](gimbal_error** e) {
              return gimbal_load(engine_, "default", nullptr, refuse, nullptr, nullptr, &model, e);
            }),
            "1  cancelled | ");
}

TEST_F(CInterface, OptionsAreRefusedByName) {
  EXPECT_EQ(generate_error("{"),
            "2 options the options are no JSON object: '{' | write them as {\"name\": value}; "
            "NULL: the defaults");
  EXPECT_EQ(generate_error(R"({"temprature": 1})"),
            "2 temprature there is no option 'temprature' here | did you mean 'temperature'?");
  EXPECT_EQ(generate_error(R"({"top_k": 1.5})"), "2 top_k 'top_k' must be a whole number, not '1.5' | ");
  EXPECT_EQ(generate_error(R"({"top_k": 4294967297})"),
            "2 top_k 'top_k' must be a whole number, not '4294967297' | ");
  EXPECT_EQ(generate_error(R"({"seed": -1})"), "2 seed 'seed' must be a whole number from 0, not '-1' | ");
  EXPECT_EQ(generate_error(R"({"top_p": 2})").rfind("2 top_p 'top_p' is 2", 0), 0u)
      << "the library's own range";
  EXPECT_EQ(generate_error(R"({"stops": [1]})"), "2 stops 'stops' must be an array of texts, not '[1]' | ");
  EXPECT_EQ(generate_error(R"({"context": 1})").rfind("2 context there is no option", 0), 0u);
  gimbal_engine* engine = nullptr;
  EXPECT_EQ(
      error_of([&](gimbal_error** e) { return gimbal_engine_new(R"({"numerics": "quick"})", &engine, e); }),
      "2 numerics 'numerics' must be one of exact|fast, not '\"quick\"' | ");
  for (const char* split : {R"([{"device":5,"layers":2}])", R"([5])", "5"})
    EXPECT_EQ(
        error_of([&](gimbal_error** e) {
          return gimbal_engine_new((std::string(R"({"split": )") + split + "}").c_str(), &engine, e);
        }),
        std::string(R"(2 split 'split' must be an array of {"device": "cuda:0", "layers": 20}, not ')") +
            split + "' | ");
  gimbal_model* model = nullptr;
  EXPECT_EQ(error_of([&](gimbal_error** e) {
              return gimbal_load(engine_, "no-such-model", nullptr, nullptr, nullptr, nullptr, &model, e);
            }).substr(0, 1),
            "3");
  EXPECT_EQ(error_of([&](gimbal_error** e) {
              return gimbal_load(engine_, "default", R"({"cache_type": "q9"})", 0, 0, 0, &model, e);
            }).substr(0, 12),
            "2 cache_type");
}

TEST_F(CInterface, NullIsAnErrorAndNoCrash) {
  char* json = nullptr;
  EXPECT_EQ(error_of([&](gimbal_error** e) { return gimbal_plan(nullptr, "default", nullptr, &json, e); }),
            "2 engine 'engine' is NULL | ");
  EXPECT_EQ(error_of([&](gimbal_error** e) { return gimbal_plan(engine_, nullptr, nullptr, &json, e); }),
            "2 model 'model' is NULL | ");
  EXPECT_EQ(gimbal_plan(engine_, "default", nullptr, nullptr, nullptr), GIMBAL_ERROR_USAGE);
  gimbal_model* model = nullptr;
  const auto load_error = [&](gimbal_engine* engine, const char* name, gimbal_model** to) {
    return error_of([&](gimbal_error** e) {
      return gimbal_load(engine, name, nullptr, nullptr, nullptr, nullptr, to, e);
    });
  };
  EXPECT_EQ(load_error(nullptr, "default", &model), "2 engine 'engine' is NULL | ");
  EXPECT_EQ(load_error(engine_, nullptr, &model), "2 model 'model' is NULL | ");
  EXPECT_EQ(load_error(engine_, "default", nullptr), "2 loaded 'loaded' is NULL | ");
  EXPECT_EQ(gimbal_generate(nullptr, "a", 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            GIMBAL_ERROR_USAGE);
  EXPECT_EQ(gimbal_chat(sequence_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            GIMBAL_ERROR_USAGE);
  EXPECT_EQ(gimbal_messages_add(nullptr, "user", "a", nullptr), GIMBAL_ERROR_USAGE);
  EXPECT_EQ(generate_error(nullptr).substr(0, 1), "d");
  EXPECT_EQ(gimbal_text_finish(nullptr), -1);
  EXPECT_EQ(gimbal_error_code(nullptr), GIMBAL_DONE);
  EXPECT_STREQ(gimbal_error_message(nullptr), "");
  gimbal_engine_free(nullptr), gimbal_model_free(nullptr), gimbal_sequence_free(nullptr);
  gimbal_text_free(nullptr), gimbal_messages_free(nullptr), gimbal_error_free(nullptr);
  gimbal_cancel_free(nullptr), gimbal_cancel_now(nullptr), gimbal_free(nullptr);
}

TEST_F(CInterface, AnExceptionOfACallbackStaysInside) {
  const auto throws = [](int32_t, const char*, size_t, void*) -> int32_t {
    throw std::runtime_error("mine");
  };
  EXPECT_EQ(error_of([&](gimbal_error** e) {
              return gimbal_generate(sequence_, kPrompt, strlen(kPrompt), nullptr, throws, nullptr, nullptr,
                                     nullptr, e);
            }),
            "1  mine | ");
}

TEST(CInterfaceVersion, IsTheHeaders) {
  EXPECT_EQ(gimbal_c_abi(), uint32_t(GIMBAL_C_ABI));
  EXPECT_STRNE(gimbal_version(), "");
}

}  // namespace
