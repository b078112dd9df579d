// A model that writes answers with certificates and checks them, and settings of many kinds of answers.
#pragma once
#include <gtest/gtest.h>

#include "audit/audit.h"
#include "runtime/generate.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {

inline constexpr const char* kPrompt = "Once upon a time there was a little girl named Lily. She";

// A model that writes or checks answers.
struct Machine {
  Engine engine;
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const TokenTree> tree;

  explicit Machine(const std::string& file = "stories260K-q8_0.gguf", const std::string& device = "threads=1",
                   int batch = 128, DType cache = DType::F16) {
    EngineOptions o;
    o.device = device, o.run.context = 512, o.run.batch = batch, o.run.logit_rows = batch, o.run.drafts = 8;
    o.run.sequences = 3;
    o.run.cache_type = cache;
    auto e = open_engine(golden_dir() + "/stories/" + file, o);
    EXPECT_TRUE(e) << e.error().message;
    engine = std::move(*e);
    tokenizer = *Tokenizer::create(engine.file->metadata());
    tree = TokenTree::create(*tokenizer, engine.model->config().vocabulary);
  }

  Certificate write(GenerateSettings s, const std::string& grammar = "", Drafting* drafting = nullptr) {
    s.certify = true, s.drafting = drafting;
    std::optional<Constraint> constraint;
    if (!grammar.empty()) constraint = *Constraint::create(*Grammar::gbnf(grammar), tree);
    s.constraint = constraint ? &*constraint : nullptr;
    auto session = *Session::create(*engine.model);
    const auto prompt = tokenizer->encode(kPrompt);
    auto g = generate(*session, *tokenizer, prompt, s, [](std::string_view, Token) { return true; });
    EXPECT_TRUE(g) << g.error().message;
    return certificate_of({"model", std::string(64, 'a'), 1, {}},
                          certified_settings(engine.model->plan(), *engine.file), prompt, s, grammar,
                          g->tokens, g->finish, g->rows);
  }

  AuditResult check(const Certificate& c, const AuditOptions& options = {}, std::vector<Token> prompt = {}) {
    const AuditJob job{&c, std::move(prompt)};
    auto r = audit({&job, 1}, *engine.model, *tokenizer, options);
    EXPECT_TRUE(r[0]) << r[0].error().message;
    return r[0] ? *r[0] : AuditResult();
  }
};

inline GenerateSettings sampled(uint64_t seed, int n = 80) {
  GenerateSettings s;
  s.sampler.seed = seed, s.max_tokens = n;
  return s;
}

struct Answer {
  const char* what;
  GenerateSettings settings;
  std::string grammar = "";
};

inline std::vector<Answer> answers() {
  std::vector<Answer> all{{"greedy", sampled(1)},
                          {"seed 2", sampled(2)},
                          {"seed 3", sampled(3)},
                          {"all logits", sampled(4)},
                          {"penalties", sampled(5)},
                          {"a stop string", sampled(6, 400)},
                          {"a stop token", sampled(7, 400)},
                          {"a grammar", sampled(8), "root ::= \" \" [a-z]+ (\" \" [a-z]+)* \".\""}};
  all[0].settings.sampler.greedy = true;
  all[3].settings.sampler.top_k = 0;
  all[4].settings.sampler.repeat_penalty = 1.3f, all[4].settings.sampler.presence_penalty = 0.5f;
  all[5].settings.stops = {"."};
  return all;
}

}  // namespace gimbal::test
