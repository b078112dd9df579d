// GET /openapi.json beside the server: what it describes is taken, and what it does not is refused.
#include "server/api/openapi.h"

#include "server/api_server.h"

namespace gimbal::test {
namespace {

class OpenApi : public ApiTest {
 protected:
  void SetUp() override {
    services.reload_backends = [] { return Result<std::string>(std::string("{}")); };
    ApiTest::SetUp();
    document_ = json(ask(get("/openapi.json")));
  }
  // {path, schema of its body, an object} of each POST of JSON.
  std::vector<std::pair<std::string, Json>> posts() const {
    std::vector<std::pair<std::string, Json>> all;
    for (const auto& [path, methods] : document_["paths"].items()) {
      if (!methods.contains("post")) continue;
      const Json& content = methods["post"]["requestBody"]["content"];
      if (!content.contains("application/json")) continue;
      const Json& schema = content["application/json"]["schema"];
      all.emplace_back(path, schema.contains("anyOf") ? schema["anyOf"][1] : schema);
    }
    return all;
  }
  static Json sample(const std::string& name, const Json& schema) {
    static const Json kKnown = {{"model", "stories"},
                                {"name", "stories"},
                                {"messages", {{{"role", "user"}, {"content", "x"}}}},
                                {"documents", {"x"}}};
    if (kKnown.contains(name)) return kKnown[name];
    if (schema.contains("const")) return schema["const"];
    if (schema.contains("enum")) return schema["enum"][0];
    const Json type = schema.value("type", Json("string"));
    if (type == "boolean") return false;
    if (type == "object") return Json::object();
    if (type == "array") return Json::array();
    if (type == "integer" || type == "number") return schema.value("minimum", Json(1));
    return "x";
  }
  static Json least(const Json& schema) {
    Json body = Json::object();
    for (const Json& name : schema.value("required", Json::array()))
      body[name.get<std::string>()] = sample(name, schema["properties"][name.get<std::string>()]);
    if (schema["properties"].contains("model")) body["model"] = "stories";
    return body;
  }
  // A 400 that names the field, in any API's form.
  void expect_named(const std::string& path, const Json& body, const std::string& field) {
    const HttpAnswer a = ask(path, body);
    EXPECT_EQ(a.status, 400) << path << body << a.body;
    EXPECT_NE(a.body.find("'" + field + "'"), std::string::npos) << path << body << a.body;
  }

  Json document_;
};

TEST_F(OpenApi, HasEveryRoute) {
  EXPECT_EQ(document_["openapi"], "3.1.0");
  EXPECT_EQ(document_["info"]["version"], "1.2.3");
  std::set<std::string> ids;
  for (const api::Endpoint& e : api::endpoints()) {
    EXPECT_TRUE(e.whole) << e.path << ": its handler ended before Fields::finish(), so fields may be missing";
    std::string path = e.path, method = e.method;
    if (path.find('*') != path.npos) path.replace(path.find('*'), 1, "{name}");
    for (char& c : method) c = char(std::tolower(c));
    ASSERT_TRUE(document_["paths"].contains(path)) << path;
    const Json& operation = document_["paths"][path][method];
    ASSERT_TRUE(operation.is_object()) << method << path;
    EXPECT_TRUE(ids.insert(operation["operationId"]).second) << operation["operationId"];
    // A path that is described is there.
    if (method == "get" && e.path.find('*') == e.path.npos) {
      EXPECT_EQ(ask(get(path)).status, e.socket ? 426 : 200) << path;
    }
  }
  EXPECT_GE(ids.size(), 29u);
}

TEST_F(OpenApi, SaysWhatAnswersAre) {
  const auto types = [&](const char* path, const char* method) {
    std::set<std::string> all;
    const Json& answer = document_["paths"][path][method]["responses"]["200"];
    if (answer.contains("content"))
      for (const auto& [type, schema] : answer["content"].items()) all.insert(type);
    return all;
  };
  const std::set<std::string> json{"application/json"}, either{"application/json", "text/event-stream"};
  EXPECT_EQ(types("/v1/models", "get"), json);
  EXPECT_EQ(types("/api/tags", "get"), json);
  EXPECT_EQ(types("/v1/embeddings", "post"), json);
  EXPECT_EQ(types("/v1/completions", "post"), either);
}

TEST_F(OpenApi, DescribesTheMessagesOfTheSocket) {
  const Json& socket = document_["paths"]["/ws/generate"]["get"];
  EXPECT_TRUE(socket["responses"].contains("101"));
  const Json& message = socket["x-message"];
  EXPECT_EQ(message["additionalProperties"], false);
  for (const char* field : {"prompt", "messages", "system", "events", "temperature", "max_tokens"})
    EXPECT_TRUE(message["properties"].contains(field)) << field;
}

TEST_F(OpenApi, TakesEachFieldThatItDescribes) {
  size_t fields = 0;
  for (const auto& [path, schema] : posts()) {
    EXPECT_EQ(schema["additionalProperties"], false) << path;
    for (const auto& [name, of] : schema["properties"].items()) {
      Json body = least(schema);
      body[name] = sample(name, of);
      const HttpAnswer a = ask(path, body);
      EXPECT_EQ(a.body.find("there is no field"), std::string::npos) << path << body << a.body;
      fields++;
    }
    Json body = least(schema);
    body["zzz"] = 1;
    expect_named(path, body, "zzz");
  }
  EXPECT_GT(fields, 150u);
}

TEST_F(OpenApi, ItsLimitsAreThoseOfTheServer) {
  size_t limits = 0;
  for (const auto& [path, schema] : posts())
    for (const auto& [name, of] : schema["properties"].items()) {
      std::vector<Json> wrong;
      if (of.contains("minimum")) wrong.push_back(of["minimum"].get<double>() - 1);
      if (of.contains("maximum")) wrong.push_back(of["maximum"].get<double>() + 1);
      if (of.contains("enum")) wrong.push_back("zzz");
      if (of.value("type", Json()) == "boolean") wrong.push_back("true");
      for (const Json& value : wrong) {
        Json body = least(schema);
        body[name] = value;
        expect_named(path, body, name);
        limits++;
      }
      // What it needs is missing.
      if (name == "model" || !schema.contains("required")) continue;
      const Json& needed = schema["required"];
      if (std::find(needed.begin(), needed.end(), Json(name)) == needed.end()) continue;
      Json body = least(schema);
      body.erase(name);
      expect_named(path, body, name);
    }
  EXPECT_GT(limits, 60u);
}

TEST_F(OpenApi, DescribesWhatIsInsideObjects) {
  const Json& chat = document_["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                              ["application/json"]["schema"];
  const Json& of = chat["properties"];
  EXPECT_EQ(of["top_logprobs"], (Json{{"type", "integer"}, {"minimum", 0}, {"maximum", 20}}));
  EXPECT_EQ(of["response_format"]["properties"]["type"]["enum"],
            Json({"text", "json_object", "json_schema"}));
  EXPECT_TRUE(of["response_format"]["properties"]["json_schema"]["properties"].contains("schema"));
  EXPECT_TRUE(of["tools"]["items"]["properties"]["function"]["properties"].contains("parameters"));
  EXPECT_EQ(of["store"]["const"], false);
  EXPECT_FALSE(of.contains("audio")) << "it is refused";
  const Json& needed = chat["required"];
  EXPECT_EQ(std::set<Json>(needed.begin(), needed.end()), (std::set<Json>{"messages"}))
      << "a server of one model needs no name";
}

TEST_F(OpenApi, ABodyMayBeAForm) {
  const Json& content = document_["paths"]["/v1/audio/transcriptions"]["post"]["requestBody"]["content"];
  EXPECT_EQ(content.size(), 1u);
  const Json& schema = content["multipart/form-data"]["schema"];
  EXPECT_EQ(schema["properties"]["file"], (Json{{"type", "string"}, {"format", "binary"}}));
  EXPECT_EQ(schema["properties"]["response_format"]["enum"], Json({"json", "text"}));
  EXPECT_EQ(schema["required"], Json({"file"}));
  EXPECT_EQ(schema["additionalProperties"], false);
}

TEST_F(OpenApi, ABodyMayBeAList) {
  const Json& body = document_["paths"]["/lora-adapters"]["post"]["requestBody"]["content"]
                              ["application/json"]["schema"]["anyOf"];
  EXPECT_EQ(body[0]["type"], "array");
  EXPECT_TRUE(body[0]["items"]["properties"].contains("scale"));
  EXPECT_EQ(body[1]["required"], Json({"lora"}));
}

TEST_F(OpenApi, AFieldOfAnotherPathIsNamedWithIt) {
  const HttpAnswer a =
      ask("/v1/completions", {{"model", "stories"}, {"prompt", "x"}, {"reasoning_effort", "low"}});
  EXPECT_EQ(json(a)["error"]["message"],
            "there is no field 'reasoning_effort' here; POST /v1/chat/completions, POST /apply-template, "
            "POST /v1/chat/completions/input_tokens have it");
  const HttpAnswer refused =
      ask("/v1/completions", {{"model", "stories"}, {"prompt", "x"}, {"return_progress", true}});
  EXPECT_EQ(json(refused)["error"]["message"], "there is no field 'return_progress' here")
      << "/completion refuses it, too";
}

}  // namespace
}  // namespace gimbal::test
