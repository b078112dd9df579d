// gimbal audit: certificates that the command line and the server write, checked by the program.
#include "support/adapters.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string write(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(AuditCommand, AnAnswerOfTheCommandLine) {
  const std::string file = temporary_path("answer.json");
  const Ran ran = gimbal({"run", "-p", "Once upon a time", "-n", "60", "--seed", "7", "--raw",
                          "--print-tokens", "--certificate", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json c = Json::parse(contents_of(file));
  EXPECT_EQ(c["answer"]["tokens"].size(), 60u);
  std::string tokens;
  for (const Json& t : c["answer"]["tokens"])
    tokens += (tokens.empty() ? "" : ",") + std::to_string(t.get<int>());
  EXPECT_EQ(ran.out, tokens + "\n");
  for (const Args& how :
       {Args{}, Args{"-t", "2"}, Args{"--cpu-variant", "baseline"}, Args{"--sample", "7"}}) {
    Args all{"audit", file, "--json"};
    all.insert(all.end(), how.begin(), how.end());
    const Ran same = gimbal(all);
    EXPECT_EQ(same.code, 0) << same.out << same.err;
    EXPECT_EQ(json_of(same)["verdict"], "same");
    const bool sample = !how.empty() && how[0] == "--sample";
    EXPECT_EQ(json_of(same)["rows"], sample ? 7 : 60);
  }
  Json forged = c;
  forged["answer"]["tokens"][30] = c["answer"]["tokens"][30] == 300 ? 301 : 300;
  const std::string other = write("forged.json", forged.dump());
  const Ran different = gimbal({"audit", other});
  EXPECT_EQ(different.code, 1);
  EXPECT_SAYS(different.out, "differs at token 30 of the answer");
  // Several at once: each has a line, and the worst decides the exit code.
  const Ran both = gimbal({"audit", file, other, write("cut.json", c.dump().substr(0, 100))});
  EXPECT_EQ(both.code, 3);
  EXPECT_SAYS(both.out, file + ": same");
  EXPECT_SAYS(both.out, other + ": differs at token 30");
  EXPECT_SAYS(both.out, "cut.json: error: the certificate is no JSON object, or is cut off");
  EXPECT_EQ(gimbal({"audit", file, "--key", std::string(64, '0')}).code, 1) << "it is not signed";
  EXPECT_EQ(gimbal({"audit"}).code, 2);
  EXPECT_EQ(gimbal({"run", "-p", "x", "--certificate-private"}).code, 2) << "of which certificate?";
}

TEST(AuditCommand, APrivatePrompt) {
  const std::string file = temporary_path("private.json");
  ASSERT_EQ(gimbal({"run", "-p", "Once upon a time", "-n", "5", "--raw", "--certificate", file,
                    "--certificate-private"})
                .code,
            0);
  EXPECT_EQ(contents_of(file).find("\"tokens\":[1,"), std::string::npos);
  const Ran without = gimbal({"audit", file});
  EXPECT_EQ(without.code, 2);
  EXPECT_SAYS(without.err, "--tokens");
  std::string ids;
  const Json tokens = json_of(gimbal({"tokenize", "--text", "Once upon a time", "--json"}))["tokens"];
  for (const Json& t : tokens)
    ids += (ids.empty() ? "" : ",") + std::to_string(t.is_number() ? t.get<int>() : t["id"].get<int>());
  EXPECT_EQ(gimbal({"audit", file, "--tokens", ids}).code, 0);
}

TEST(AuditCommand, SettingsInPlaceOfTheFilesAndAdapters) {
  const std::string file = temporary_path("rope.json");
  ASSERT_EQ(gimbal({"run", "-p", "Once upon a time", "-n", "20", "--raw", "--certificate", file,
                    "--rope-scaling", "linear", "--rope-freq-scale", "0.5"})
                .code,
            0);
  Json c = Json::parse(contents_of(file));
  ASSERT_EQ(c["settings"]["rope"].size(), 2u);
  EXPECT_EQ(c["settings"]["rope"][0], (Json{{"key", "scaling.factor"}, {"text", ""}, {"number", 2.0}}));
  const Ran same = gimbal({"audit", file});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  c["settings"]["rope"][0]["number"] = 3.0;
  EXPECT_EQ(json_of(gimbal({"audit", write("rope3.json", c.dump()), "--json"}))["subject"], "logits");
  c["settings"]["rope"][0]["key"] = "../vocabulary";
  EXPECT_EQ(gimbal({"audit", write("rope4.json", c.dump())}).code, 3);
}

TEST(AuditCommand, AnAnswerWithAnAdapter) {
  const std::string model = story_file("f32"), file = temporary_path("adapted.json");
  const std::string adapter = make_adapter(model).adapter;
  ASSERT_EQ(gimbal({"run", model, "-p", "Once upon a time", "-n", "20", "--raw", "--certificate", file,
                    "--lora", adapter + ":0.5"})
                .code,
            0);
  EXPECT_EQ(Json::parse(contents_of(file))["model"]["adapters"][0]["scale"], 0.5);
  const Ran same = gimbal({"audit", file, "-m", model, "--lora", adapter + ":0.5"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  for (const Args& how : {Args{}, Args{"--lora", adapter}}) {
    Args all{"audit", file, "-m", model, "--json"};
    all.insert(all.end(), how.begin(), how.end());
    EXPECT_EQ(json_of(gimbal(all))["subject"], "adapters");
  }
}

// One loading for all certificates of a model: they are hashed and loaded once, whatever their number.
TEST(AuditCommand, ManyCertificates) {
  Args all{"audit", "--json"};
  for (int i = 0; i < 12; i++) {
    all.push_back(temporary_path("many" + std::to_string(i) + ".json"));
    ASSERT_EQ(gimbal({"run", "-p", "Once upon", "-n", std::to_string(5 * i + 1), "--raw", "--certificate",
                      all.back(), "--seed", std::to_string(i)})
                  .code,
              0);
  }
  const Ran ran = gimbal(all);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json results = json_of(ran);
  ASSERT_EQ(results.size(), 12u);
  for (size_t i = 0; i < 12; i++) {
    EXPECT_EQ(results[i]["certificate"], all[i + 2]) << "in the order of the files";
    EXPECT_EQ(results[i]["verdict"], "same");
    EXPECT_EQ(results[i]["seconds"], results[0]["seconds"]) << "checked together";
  }
}

TEST(AuditCommand, AHeaderOnEveryPathOfTheServer) {
  const Serving s;
  const auto with_header = [](const std::string& path, const Json& body, const std::string& wish) {
    std::string request = post(path, body.dump());
    return request.insert(request.find("\r\n") + 2, "X-Gimbal-Certificate: " + wish + "\r\n");
  };
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const Json chat = {{"model", s.model}, {"messages", messages}, {"max_tokens", 20}};
  Json streamed = chat,
       ollama = {{"model", s.model}, {"messages", messages}, {"options", {{"num_predict", 20}}}};
  streamed["stream"] = true;
  const struct {
    const char* path;
    Json body;
  } requests[] = {
      {"/v1/chat/completions", chat},
      {"/v1/chat/completions", streamed},
      {"/v1/completions", {{"model", s.model}, {"prompt", "The dog"}, {"stream", true}}},
      {"/v1/responses", {{"model", s.model}, {"input", "Hi"}, {"max_output_tokens", 20}}},
      {"/v1/messages", chat},
      {"/v1/messages", streamed},
      {"/api/chat", ollama},
      {"/api/generate", {{"model", s.model}, {"prompt", "Hi"}, {"options", {{"num_predict", 20}}}}},
      {"/completion", {{"prompt", "The dog"}, {"n_predict", 20}}},
  };
  Args all{"audit", "-m", "default", "--json"};
  std::string ids;
  for (const auto& r : requests) {
    const HttpAnswer a = s.ask(with_header(r.path, r.body, "true"));
    ASSERT_EQ(a.status, 200) << r.path << a.body;
    ASSERT_TRUE(a.headers.count("x-gimbal-receipt")) << r.path;
    const std::string receipt = s.ask(get("/v1/receipts/" + a.headers.at("x-gimbal-receipt"))).body;
    all.push_back(write(std::to_string(all.size()) + "-receipt.json", receipt));
    EXPECT_FALSE(s.ask(post(r.path, r.body.dump())).headers.count("x-gimbal-receipt")) << r.path;
    EXPECT_EQ(s.ask(with_header(r.path, r.body, "perhaps")).status, 400) << r.path;
  }
  const Ran same = gimbal(all);
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_EQ(json_of(same).size(), std::size(requests));
  // Without the prompt, as the header or the field wants it.
  for (const bool field : {true, false}) {
    Json body = {{"model", s.model}, {"prompt", "The dog"}};
    if (field) body["certificate"] = "private";
    const HttpAnswer a =
        s.ask(field ? post("/v1/completions", body.dump()) : with_header("/v1/completions", body, "private"));
    const std::string receipt = s.ask(get("/v1/receipts/" + a.headers.at("x-gimbal-receipt"))).body;
    const Json c = Json::parse(receipt)["certificates"][0];
    EXPECT_TRUE(c["prompt"]["tokens"].empty());
    EXPECT_EQ(gimbal({"audit", write("private.json", receipt), "-m", "default"}).code, 2);
    const std::string ids = joined(json_of(gimbal({"tokenize", "--text", "The dog", "--json"}))["tokens"]);
    EXPECT_EQ(gimbal({"audit", write("private.json", receipt), "-m", "default", "--tokens", ids}).code, 0);
  }
  EXPECT_EQ(s.ask(post("/v1/completions", Json{{"prompt", "x"}, {"certificate", "perhaps"}}.dump())).status,
            400);
  EXPECT_EQ(s.ask(post("/v1/jobs", Json{{"prompt", "x"}, {"certificate", true}}.dump())).status, 400);
}

TEST(AuditCommand, AServerThatCertifiesAllAnswers) {
  const std::string folder = temporary_path("certificates");
  const auto with_key = [](std::string request, const std::string& key) {
    return request.insert(request.find("\r\n") + 2, "Authorization: Bearer " + key + "\r\n");
  };
  const Args options{"--certificate-dir", folder, "--workers", "none",
                     "--api-key",         "one",  "--api-key", "two"};
  std::string id, receipt;
  {
    Serving s(options);
    const HttpAnswer a = s.ask(with_key(post("/v1/completions", Json{{"prompt", "The dog"}}.dump()), "one"));
    ASSERT_EQ(a.status, 200) << a.body;
    id = a.headers.at("x-gimbal-receipt");
    EXPECT_EQ(id, Json::parse(a.body)["id"].get<std::string>());
    receipt = s.ask(with_key(get("/v1/receipts/" + id), "one")).body;
    ASSERT_TRUE(Json::parse(receipt).contains("certificates")) << receipt;
    EXPECT_EQ(s.ask(with_key(get("/v1/receipts/" + id), "two")).status, 404) << "another key's";
    EXPECT_EQ(s.ask(get("/v1/receipts/" + id)).status, 401);
    std::string declined =
        post("/v1/completions", Json{{"prompt", "The dog"}, {"certificate", false}}.dump());
    EXPECT_FALSE(s.ask(with_key(declined, "one")).headers.count("x-gimbal-receipt"));
    EXPECT_EQ(s.end(SIGTERM), 0);
  }
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  {
    const Serving s(options);  // after a restart
    EXPECT_EQ(s.ask(with_key(get("/v1/receipts/" + id), "one")).body, receipt);
    EXPECT_EQ(s.ask(with_key(get("/v1/receipts/" + id), "two")).status, 404);
    EXPECT_EQ(s.ask(with_key(get("/v1/receipts/%2e%2e%2f" + id), "one")).status, 404);
  }
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) {
      files++;
      EXPECT_EQ(entry.path().filename(), id + ".json");
      EXPECT_EQ(gimbal({"audit", entry.path(), "-m", "default"}).code, 0);
    }
  EXPECT_EQ(files, 1u);
  EXPECT_EQ(gimbal({"serve", "--certificate-dir", "/proc/none", "--port", "0"}).code, 1);
  EXPECT_EQ(gimbal({"serve", "--certificate-key", "/there/is/none", "--port", "0"}).code, 1);
}

TEST(AuditCommand, AnswersOfTheServer) {
  for (const Args& how : {Args{}, Args{"--workers", "none"}}) {
    const Serving s(how);
    const Json answer =
        s.ask("/v1/completions",
              {{"prompt", "The dog"}, {"seed", 3}, {"max_tokens", 40}, {"n", 2}, {"certificate", true}});
    const Json plain =
        s.ask("/v1/completions", {{"prompt", "The dog"}, {"seed", 3}, {"max_tokens", 40}, {"n", 2}});
    EXPECT_EQ(answer["choices"], plain["choices"]);
    const std::string receipt = s.ask(get("/v1/receipts/" + answer["id"].get<std::string>())).body;
    const std::string file = write("receipt.json", receipt);
    const Ran same = gimbal({"audit", file, "-m", "default", "--json"});
    EXPECT_EQ(same.code, 0) << same.out << same.err;
    const Json all = json_of(same);
    ASSERT_EQ(all.size(), 2u);
    for (const Json& one : all) EXPECT_EQ(one["verdict"], "same") << one;
    // With a form, and as a chat.
    const Json form = s.ask("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                                     {"max_tokens", 30},
                                                     {"certificate", true},
                                                     {"response_format", {{"type", "json_object"}}}});
    const std::string formed = s.ask(get("/v1/receipts/" + form["id"].get<std::string>())).body;
    EXPECT_FALSE(Json::parse(formed)["certificates"][0]["grammar"].get<std::string>().empty());
    const Ran checked = gimbal({"audit", write("formed.json", formed), "-m", "default"});
    EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
    EXPECT_FALSE(Json::parse(s.ask(get("/v1/receipts/" + plain["id"].get<std::string>())).body)
                     .contains("certificates"));
  }
}

// In the server's process and in one of its own: the setting arrives, and the certificate names it.
TEST(AuditCommand, AnswersFromARotatedCache) {
  const std::string model = golden_dir() + "/quant/q-q8_0.gguf";
  for (const char* workers : {"none", "cpu"})
    for (const char* rotation : {"on", "off"}) {
      SCOPED_TRACE(std::string(workers) + " " + rotation);
      const Serving s({model, "--kv-type", "q4_0", "--kv-rotation", rotation, "--workers", workers});
      const Json answer =
          s.ask("/v1/completions", {{"prompt", "The dog"}, {"max_tokens", 8}, {"certificate", true}});
      const std::string receipt = s.ask(get("/v1/receipts/" + answer["id"].get<std::string>())).body;
      const Json certificate = Json::parse(receipt)["certificates"][0];
      const bool on = rotation == std::string("on");
      EXPECT_EQ(certificate["settings"]["cache_type"], on ? "q4_0, rotated" : "q4_0");
      EXPECT_EQ(json_of(gimbal({"audit", write("rotated.json", receipt), "-m", model, "--json"}))["verdict"],
                "same");
      Json other = certificate;
      other["settings"]["cache_type"] = on ? "q4_0" : "q4_0, rotated";
      const Ran differs = gimbal({"audit", write("other.json", other.dump()), "-m", model, "--json"});
      EXPECT_EQ(json_of(differs)["verdict"], "differs") << differs.err;
    }
  EXPECT_EQ(gimbal({"serve", model, "--kv-rotation", "on", "--port", "0"}).code, 2) << "a cache in f16";
}

}  // namespace
}  // namespace gimbal::test
