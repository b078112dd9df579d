// The program from outside: running a model, and every exit code with the words that users and scripts rely
// on.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "support/cli.h"
#include "support/gguf_writer.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// ---- help

TEST(Help, AloneSaysWhatToTypeAndEveryCommandHasItsOwn) {
  Ran r = gimbal({});
  EXPECT_EQ(r.code, 0);
  for (const char* c : {"run", "bench", "plan", "explain", "backends", "doctor", "kernels", "verify", "pull",
                        "models", "list", "rm", "info", "tokenize", "detokenize", "logits", "dequantize"}) {
    EXPECT_SAYS(r.out, c);
    Ran help = gimbal({"help", c});
    EXPECT_EQ(help.code, 0);
    EXPECT_SAYS(help.out, "--json");
    EXPECT_EQ(help.out, gimbal({c, "--help"}).out);
  }
  EXPECT_SAYS(r.out, "gimbal run -p \"Once upon a time\"");
  EXPECT_EQ(gimbal({"--version"}).out.rfind("gimbal ", 0), 0u);
  const Ran about = gimbal({"--build-info"});
  EXPECT_EQ(about.code, 0) << about.err;
  EXPECT_EQ(about.out.rfind(gimbal({"--version"}).out, 0), 0u);
  for (const char* line :
       {"\ncompiler ", "\noptions ", "\nbackend       cpu, ", "\narchitectures ", "\nformats "})
    EXPECT_SAYS(about.out, line);
}

// ---- run

TEST(Run, GreedyStoryHasTheReferencesTokens) {
  for (const Args& model : {Args{}, Args{"default"}, Args{story_file("f32")}}) {
    Args args{"run"};
    args.insert(args.end(), model.begin(), model.end());
    for (const char* a : {"--greedy", "-n", "64", "--print-tokens", "--kv-type", "f32"}) args.push_back(a);
    args.push_back("--tokens"), args.push_back(joined(story()["tokens"]));
    Ran r = gimbal(args);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, joined(story()["greedy"]) + "\n");
  }
}

TEST(Run, StreamsTheTextAfterThePrompt) {
  const std::string prompt = story()["prompt"], whole = story()["greedy_text"];
  const std::string expected = whole.substr(whole.find(prompt) + prompt.size()) + "\n";
  const Args options{"--greedy", "-n", "64", "--kv-type", "f32"};
  auto with = [&](Args args) { return args.insert(args.end(), options.begin(), options.end()), args; };
  EXPECT_EQ(gimbal(with({"run", "-p", prompt})).out, expected);
  EXPECT_EQ(gimbal(with({"run"}), {.input = prompt + "\n"}).out, expected)
      << "stdin, with the newline of echo";
  const std::string file = temporary_path("prompt.txt");
  ASSERT_TRUE(write_file(file, prompt));
  EXPECT_EQ(gimbal(with({"run", "-f", file})).out, expected);
}

TEST(Run, JsonHasItsKeysAndTheSeedRepeatsTheText) {
  Ran first = gimbal({"run", "-p", "Once", "-n", "12", "--json"});
  Json j = json_of(first);
  expect_keys(j, {"model", "text", "tokens", "finish", "prompt_tokens", "seed", "context", "device",
                  "placement", "fallbacks", "timing", "memory", "kernels"});
  expect_keys(j["timing"], {"load_seconds", "prompt_seconds", "first_token_seconds", "generate_seconds",
                            "prompt_tokens_per_second", "tokens_per_second"});
  EXPECT_EQ(j["finish"], "length");
  EXPECT_EQ(j["tokens"].size(), 12u);
  Json again = json_of(gimbal({"run", "-p", "Once", "-n", "12", "--json", "--seed", j["seed"].dump()}));
  EXPECT_EQ(again["tokens"], j["tokens"]);
  Json other = json_of(gimbal({"run", "-p", "Once", "-n", "40", "--json"}));
  Json third = json_of(gimbal({"run", "-p", "Once", "-n", "40", "--json"}));
  EXPECT_NE(other["tokens"], third["tokens"]) << "two runs without --seed";
}

// The prompt's step gives the first token, so one token has no speed, and two have that of one step.
TEST(Run, TheSpeedIsThatOfTheStepsBehindThePrompt) {
  const auto speed = [](const char* tokens) {
    return json_of(gimbal(
        {"run", "-p", "Once", "-n", tokens, "--greedy", "--json"}))["timing"]["tokens_per_second"]
        .get<double>();
  };
  EXPECT_EQ(speed("1"), 0);
  EXPECT_GT(speed("2"), 0);
}

TEST(Run, LogProbabilitiesAreInTheDocument) {
  const Args args{"run", "-p", "Once", "-n", "4", "--greedy", "--json"};
  EXPECT_TRUE(json_of(gimbal(args))["logprobs"].is_null()) << "not asked for";
  Args with = args;
  with.insert(with.end(), {"--logprobs", "2"});
  const Json j = json_of(gimbal(with));
  ASSERT_EQ(j["logprobs"].size(), 4u);
  for (size_t i = 0; i < 4; i++) {
    const Json& one = j["logprobs"][i];
    EXPECT_EQ(one["token"], j["tokens"][i]);
    ASSERT_EQ(one["top"].size(), 2u);
    EXPECT_EQ(one["top"][0]["token"], one["token"]) << "greedy: the most likely one";
    EXPECT_EQ(one["top"][0]["logprob"], one["logprob"]);
    EXPECT_LT(one["top"][1]["logprob"].get<double>(), one["logprob"].get<double>());
  }
  const Ran no = gimbal({"run", "-p", "Once", "--logprobs", "2"});
  EXPECT_EQ(no.code, 2);
  EXPECT_SAYS(no.err, "--json");
}

// The grammar would go on for hundreds of words; -n brings it to its end, and does not cut it.
TEST(Run, AGrammarEndsWithinTheTokens) {
  const Json j = json_of(gimbal(
      {"run", "-p", "Once", "--greedy", "--json", "-n", "9", "--grammar", "root ::= \"(\" [a-z]* \")\""}));
  EXPECT_EQ(j["finish"], "stop-token");
  EXPECT_LE(j["tokens"].size(), 9u);
  const std::string text = j["text"];
  EXPECT_TRUE(text.starts_with('(') && text.ends_with(')')) << text;
}

TEST(Run, StopStringsAndStats) {
  Ran r = gimbal(
      {"run", "-p", "Once upon a time", "--greedy", "--stop", " girl", "--stop", "nowhere", "--stats"});
  EXPECT_EQ(r.out, ", there was a little\n");
  for (const char* word : {"cpu:0", "mat_mul", "tokens/s", "stop-string", "memory", "seed"})
    EXPECT_SAYS(r.err, word);
}

TEST(Run, AFullContextIsSaidAndNoFailure) {
  Ran r = gimbal({"run", "-p", "Once upon a time", "--ctx", "32", "--greedy"});
  EXPECT_EQ(r.code, 0);
  EXPECT_SAYS(
      r.err,
      "context full: 32 of 32 positions used; start with a larger --ctx (the model was trained on 512)");
  Json j = json_of(gimbal({"run", "-p", "Once upon a time", "--ctx", "32", "--greedy", "--json"}));
  EXPECT_EQ(j["finish"], "context-full");
}

TEST(Run, AContextOfWholePagesAndATopKOfManyAreComputed) {
  for (const char* context : {"64", "128"}) {
    Ran r = gimbal({"run", "-p", "Once upon a time", "--greedy", "--ctx", context, "-n", "200", "--json"});
    EXPECT_EQ(r.code, 0) << context << r.err;
    const Json j = json_of(r);
    EXPECT_EQ(j["finish"], "context-full") << context;
    EXPECT_EQ(j["tokens"].size(), std::stoul(context) - 5 + 1) << context;
  }
  Ran many = gimbal({"run", "-p", "Once upon a time", "--top-k", "100", "--seed", "1", "-n", "10"});
  EXPECT_EQ(many.code, 0) << many.err;
  EXPECT_NE(many.out, "");
}

TEST(Run, CtrlCKeepsTheTextSoFar) {
  // Without a stop the story of 100,000 positions takes seconds.
  Ran r = gimbal({"run", "-p", "Once upon a time", "--ctx", "100000", "--greedy", "--quiet"},
                 {.interrupt_after_bytes = 20});
  EXPECT_EQ(r.code, 130) << r.err;
  ASSERT_GE(r.out.size(), 20u);
  EXPECT_EQ(r.out.rfind(", there was a little", 0), 0u) << r.out;
  EXPECT_EQ(r.out.back(), '\n');
}

// Ctrl-C comes while a write waits for its reader: what was written and what follows arrive.
TEST(Run, CtrlCWhileNobodyReadsLosesNothing) {
  Ran r = gimbal({"run", "-p", "Once upon a time", "--ctx", "100000", "--greedy", "--ignore-eos", "--quiet"},
                 {.interrupt_when_full = true});
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_GT(r.out.size(), 4000u);
  EXPECT_EQ(r.out.back(), '\n');
}

TEST(Run, AReaderThatGoesAwayAndAFullDiskAreNoCrash) {
  Ran gone = gimbal({"run", "-p", "Once upon a time", "--ctx", "100000", "--greedy", "--quiet"},
                    {.close_after_bytes = 20});
  EXPECT_EQ(gone.code, 1);
  EXPECT_EQ(gone.err, "") << "its reader is gone";
  Ran full = gimbal({"run", "-p", "Once upon a time", "-n", "5"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_SAYS(full.err, "No space left");
}

// ---- failures

TEST(ExitCode, UsageIsTwoAndSaysWhatWouldBeRight) {
  const std::pair<Args, const char*> cases[] = {
      {{"rnu"}, "gimbal run"},
      {{""}, "there is no command ''"},
      {{"run", "--tmp", "1"}, "--temp"},
      {{"run", "-n", "abc", "-p", "x"}, "a whole number from -1"},
      {{"run", "-n", "-5", "-p", "x"}, "a whole number from -1"},
      {{"run", "-t", "0", "-p", "x"}, "a whole number from 1 to 1024"},
      {{"run", "-t", "99999999999999999999", "-p", "x"}, "a whole number from 1 to 1024"},
      {{"run", "--ctx", "-1", "-p", "x"}, "a whole number from 1"},
      {{"run", "--temp", "-1", "-p", "x"}, "0 (greedy) or a positive number"},
      {{"run", "--temp", "hot", "-p", "x"}, "a number"},
      {{"run", "--temp", "nan", "-p", "x"}, "a number"},
      {{"run", "--top-p", "2", "-p", "x"}, "from 0 to 1"},
      {{"run", "--stop", "", "-p", "x"}, "--stop is empty"},
      {{"run", "-p", "Once", "upon", "a", "time"}, "quotes"},
      {{"run", "-p", "x", "--tokens", "1"}, "only one of them"},
      {{"run", "--tokens", "1,x"}, "'x'"},
      {{"run", "--tokens", "1,-2"}, "'-2'"},
      {{"run", "--tokens", "1,512"}, "0 to 511"},
      {{"run", "-p", "x", "--backend", "gpu"}, "one of auto, cuda"},
      {{"run", "-p", "x", "--kv-type", "q8_0"}, "blocks of 32 values"},
      {{"run", "-p", "x", "--kv-type", "q8_0"}, "choose one of: f32, f16, bf16"},
      {{"run", "-p", "x", "--kv-type", "q5_1"}, "one of f32, f16, bf16, q8_0, q5_0, q4_1, q4_0, iq4_nl"},
      {{"run", "-p", "x", "--cpu-variant", "mmx"}, "baseline"},
      {{"run", "-p", "x", "--cuda-device", "0", "--backend", "cpu"}, "contradicts"},
      {{"run", "-p", "x", "--prompt"}, "prompt"},
      {{"logits", "--tokens", "1,2", "--positions", "2", "-o", "/dev/null"}, "0 to 1"},
      {{"logits", "-o", "/dev/null"}, "--tokens"},
      {{"detokenize", "--tokens", "99999"}, "0 to 511"},
      {{"dequantize", "--type", "q9", "--input", "x", "--output", "y"}, "q4_0"},
      {{"dequantize"}, "--input"},
      {{"bench", "-p", "0", "-n", "0"}, "nothing to measure"},
      {{"help", "nothing"}, "no command"},
      {{"run", "-p"}, "--prompt needs a value"},
      {{"run", "-n"}, "--max-tokens needs a value"},
      {{"info", "--json=false"}, "--json takes no value"},
      {{"info", "--", "default", "twice"}, "unexpected argument 'twice'"},
  };
  for (const auto& [args, words] : cases) {
    Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << Json(args).dump() << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << r.err;
    EXPECT_SAYS(r.err, words);
    EXPECT_EQ(r.out, "");
  }
}

TEST(CommandLine, TakesValuesInAllForms) {
  const std::string expected = gimbal({"run", "--prompt", "Once", "--max-tokens", "5", "--temp", "0"}).out;
  EXPECT_NE(expected, "");
  for (const Args& args : {Args{"run", "-pOnce", "-n5", "--temp=0"},
                           Args{"run", "-p", "x", "-p", "Once", "-n", "5", "--temp", "0"},
                           Args{"run", "--max-tokens=5", "--prompt=Once", "--temp=0", "--", "default"}})
    EXPECT_EQ(gimbal(args).out, expected) << Json(args).dump();
  EXPECT_EQ(gimbal({"run", "-p", "--", "-n", "1", "--temp", "0"}).code, 0)
      << "a value may look like anything";
  EXPECT_EQ(gimbal({"info", "--json=true"}).out, gimbal({"info", "--json"}).out);
  EXPECT_EQ(gimbal({"info", "-h", "--no-such"}).out, gimbal({"info", "--help"}).out);
}

TEST(ExitCode, MissingModelsSayWhereTheyWereLookedFor) {
  Ran file = gimbal({"info", "missing.gguf"});
  EXPECT_EQ(file.code, 1);
  EXPECT_SAYS(file.err, (fs::current_path() / "missing.gguf").string());
  Ran name = gimbal({"info", "storys260K"});
  EXPECT_EQ(name.code, 1);
  EXPECT_SAYS(name.err, "did you mean 'stories260K'?");
  Json j = json_of(gimbal({"info", "missing.gguf", "--json"}));
  expect_keys(j["error"], {"code", "message", "remedy"});
  EXPECT_EQ(j["error"]["code"], "not-found");
}

TEST(ExitCode, BadModelFilesAreThreeAndNamed) {
  auto whole = read_file(story_file("f32"));
  ASSERT_TRUE(whole);
  const std::map<std::string, std::string> files = {
      {"empty.gguf", ""},
      {"text.gguf", "this is no model at all, whatever its name says"},
      {"cut-in-the-header.gguf", whole->substr(0, 1000)},
      {"cut-in-the-weights.gguf", whole->substr(0, whole->size() / 2)},
      {"other-architecture.gguf", GgufWriter().string("general.architecture", "\033[31mred").build()},
  };
  for (const auto& [name, bytes] : files) {
    const std::string path = temporary_path(name);
    ASSERT_TRUE(write_file(path, bytes));
    for (const Args& command :
         {Args{"run", path, "-p", "x"}, Args{"plan", path}, Args{"explain", path},
          Args{"logits", path, "--tokens", "1", "-o", "/dev/null"}, Args{"bench", path}}) {
      Ran r = gimbal(command);
      EXPECT_EQ(r.code, 3) << command[0] << " " << name << ": " << r.err;
      EXPECT_SAYS(r.err, name);
      EXPECT_FALSE(contains(r.out + r.err, "\033")) << "a raw escape sequence out of a file";
    }
  }
}

TEST(ExitCode, BackendsThatAreNotThere) {
  Ran fallback =
      gimbal({"run", "-p", "Once upon a time", "-n", "3", "--greedy", "--backend", "metal", "--quiet"});
  EXPECT_EQ(fallback.code, 0);
  EXPECT_EQ(fallback.out, ", there was\n");
  EXPECT_SAYS(fallback.err, "built without the metal backend");
  EXPECT_SAYS(fallback.err, "using cpu:0 instead");
  for (const Args& wish : {Args{"--backend", "metal"}, Args{"--metal-device", "0"}, Args{"--gpu-layers", "3"},
                           Args{"--prefer-kernel", "nobody.*"}, Args{"--prefer-kernel", "*.add.*"}}) {
    Args args{"run", "-p", "x", "-n", "1", "--strict"};
    args.insert(args.end(), wish.begin(), wish.end());
    Ran r = gimbal(args);
    EXPECT_EQ(r.code, 4) << wish[0] << r.err;
    EXPECT_SAYS(r.err, "--strict");
  }
  EXPECT_EQ(gimbal({"run", "-p", "x", "--backend", "cpu", "--device", "7"}).code, 4);
}

TEST(Options, WithoutEffectAreNotIgnoredInSilence) {
  EXPECT_SAYS(gimbal({"run", "-p", "x", "-n", "1", "--gpu-layers", "5"}).err, "all layers run on the CPU");
  EXPECT_SAYS(gimbal({"run", "-p", "x", "-n", "1", "--prefer-kernel", "no.such.*"}).err, "matches no kernel");
  EXPECT_EQ(gimbal({"run", "-p", "x", "-n", "1", "--backend", "cpu"}).err, "");
}

// --quiet hides the note about a permission without effect.
TEST(Options, APermissionWithoutEffectIsSaidUnlessQuiet) {
  // Newer instruction sets have fast kernels.
  const Args fast = {"run",      "-p",        "x",   "-n",         "1",   "--cpu-variant",
                     "baseline", "--backend", "cpu", "--numerics", "fast"};
  EXPECT_SAYS(gimbal(fast).err, "--numerics fast has no effect: every kernel of cpu:0 is exact");
  EXPECT_EQ(gimbal(with(fast, {"--quiet"})).err, "");
}

// A small file whose KV cache is large: 4 layers of 8 heads with 512 numbers each, 128 kB a position.
std::string model_with_a_large_cache() {
  GgufWriter w;
  w.string("general.architecture", "llama").u32("llama.block_count", 4).u32("llama.embedding_length", 8);
  w.u32("llama.feed_forward_length", 8)
      .u32("llama.attention.head_count", 8)
      .u32("llama.attention.key_length", 512);
  w.u32("llama.attention.value_length", 512)
      .u32("llama.context_length", 512)
      .u32("llama.rope.dimension_count", 512);
  w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  auto zeros = [&](const std::string& name, std::vector<uint64_t> dims) {
    w.floats(name, dims, std::vector<float>(dims.size() == 1 ? dims[0] : dims[0] * dims[1]));
  };
  zeros("token_embd.weight", {8, 16}), zeros("output_norm.weight", {8});
  for (int i = 0; i < 4; i++) {
    const std::string layer = format("blk.{}.", i);
    for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) zeros(layer + norm, {8});
    for (const char* m : {"attn_q.weight", "attn_k.weight", "attn_v.weight"}) zeros(layer + m, {8, 4096});
    zeros(layer + "attn_output.weight", {4096, 8});
    for (const char* m : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) zeros(layer + m, {8, 8});
  }
  const std::string path = temporary_path("large-cache.gguf");
  EXPECT_TRUE(write_file(path, w.build()));
  return path;
}

TEST(ExitCode, TooLittleMemoryIsFive) {
  const std::string model = model_with_a_large_cache();
  const Args much{"--ctx", "16777216", "--kv-type", "f32"};  // 2.2 TB
  auto with = [&](Args args) { return args.insert(args.end(), much.begin(), much.end()), args; };
  Ran fits = gimbal({"logits", model, "--tokens", "1", "-o", "/dev/null"});
  EXPECT_EQ(fits.code, 0) << fits.err;
  Ran r = gimbal(with({"logits", model, "--tokens", "1", "-o", "/dev/null"}));
  EXPECT_EQ(r.code, 5) << r.err;
  EXPECT_SAYS(r.err, "not enough memory");
  EXPECT_SAYS(r.err, "--ctx ");
  Ran plan = gimbal(with({"plan", model}));
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_SAYS(plan.out, "does not fit");
  EXPECT_EQ(json_of(gimbal(with({"plan", model, "--json"})))["fits"], false);
  EXPECT_EQ(gimbal(with({"plan", model, "--strict"})).code, 5);
}

}  // namespace
}  // namespace gimbal::test
