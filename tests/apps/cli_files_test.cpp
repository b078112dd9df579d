// The program from outside: the commands that look into files, devices and plans, against the reference data.
#include <gtest/gtest.h>

#include <set>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "support/cli.h"
#include "support/gguf_writer.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

std::vector<float> floats_in(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  if (!text) return {};
  std::vector<float> v(text->size() / sizeof(float));
  std::memcpy(v.data(), text->data(), v.size() * sizeof(float));
  return v;
}

// ---- looking at models

TEST(Tokenize, MatchesTheReference) {
  const Json answers = read_json(golden_dir() + "/tokenizer/tok512.json");
  int seen = 0;
  for (const Json& c : answers["cases"]) {
    if (!c.contains("text")) continue;
    const std::string path = temporary_path("text");
    ASSERT_TRUE(write_file(path, c["text"].get<std::string>()));
    const Json parsed = c.value("ids_parse", c["ids"]);
    EXPECT_EQ(json_of(gimbal({"tokenize", "--file", path, "--json"})), Json({{"tokens", c["ids_full"]}}));
    EXPECT_EQ(json_of(gimbal({"tokenize", "default", "--file", path, "--no-bos", "--json"}))["tokens"],
              parsed);
    EXPECT_EQ(gimbal({"tokenize", "--no-bos", "--no-special", "--ids"}, {.input = c["text"]}).out,
              joined(c["ids"]) + "\n");
    if (++seen == 12) break;
  }
  EXPECT_EQ(seen, 12);
  EXPECT_EQ(gimbal({"tokenize", "--text", "Once upon a time"}).out,
            "1\t'<s>'\n403\t' Once'\n407\t' upon'\n261\t' a'\n378\t' time'\n");
  EXPECT_EQ(gimbal({"tokenize", "--text", "-- -x"}).code, 0) << "a text that looks like an option";
}

TEST(Detokenize, GivesTheTextBack) {
  const Json answers = read_json(golden_dir() + "/tokenizer/tok512.json");
  int seen = 0;
  for (const Json& c : answers["cases"]) {
    if (!c.contains("detok_ids") || c["ids"].empty()) continue;
    EXPECT_EQ(json_of(gimbal({"detokenize", "--tokens", joined(c["ids"]), "--json"})),
              Json({{"text", c["detok_ids"]}}));
    EXPECT_EQ(gimbal({"detokenize", "--tokens", joined(c["ids_full"]), "--special"}).out,
              c["detok"].get<std::string>());
    if (++seen == 12) break;
  }
  EXPECT_EQ(seen, 12);
}

TEST(Detokenize, BlanksMayStandBesideAComma) {
  const std::string text = gimbal({"detokenize", "--tokens", "403,407,261"}).out;
  EXPECT_FALSE(text.empty());
  const Ran blanks = gimbal({"detokenize", "--tokens", " 403, 407\t,\n261 "});
  EXPECT_EQ(blanks.code, 0) << blanks.err;
  EXPECT_EQ(blanks.out, text);
  EXPECT_EQ(gimbal({"detokenize", "--tokens", "0", "--special"}).out, "<unk>") << "the first token";
}

TEST(Logits, AreTheReferences) {
  const std::string path = temporary_path("logits.f32"), tokens = joined(story()["all_tokens"]),
                    positions = joined(story()["positions"]);
  const auto expected = base64_floats(story()["logits_ref64"]);
  Ran r = gimbal({"logits", story_file("f32"), "--tokens", tokens, "--positions", positions, "-o", path,
                  "--kv-type", "f32", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  expect_keys(json_of(r), {"positions", "vocabulary", "output", "device"});
  const auto found = floats_in(path);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); i++) ASSERT_NEAR(found[i], expected[i], 1e-3) << i;

  // All of them, in the order of the positions, the same bits.
  ASSERT_EQ(gimbal({"logits", story_file("f32"), "--tokens", tokens, "--positions", "all", "-o", path,
                    "--kv-type", "f32"})
                .code,
            0);
  const auto all = floats_in(path);
  ASSERT_EQ(all.size(), 512 * story()["all_tokens"].size());
  for (size_t row = 0; row < story()["positions"].size(); row++)
    EXPECT_EQ(0, std::memcmp(&all[512 * story()["positions"][row].get<size_t>()], &found[512 * row],
                             512 * sizeof(float)));
  Ran piped = gimbal({"logits", "--tokens", "1,403", "--positions", "1,0,1", "-o", "-"});
  EXPECT_EQ(piped.out.size(), 3 * 512 * sizeof(float));
  EXPECT_EQ(piped.out.substr(0, 2048), piped.out.substr(4096));
  EXPECT_NE(piped.out.substr(0, 2048), piped.out.substr(2048, 2048));
}

TEST(Logits, OfATextAreThoseOfItsTokens) {
  const Json ids = json_of(gimbal({"tokenize", "--text", "Once upon a time", "--json"}))["tokens"];
  const std::string one = temporary_path("of-tokens"), two = temporary_path("of-text");
  EXPECT_EQ(gimbal({"logits", "--tokens", joined(ids), "-o", one}).code, 0);
  const Ran text = gimbal({"logits", "--prompt", "Once upon a time", "-o", two});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(*read_file(one) == *read_file(two));
}

TEST(Dequantize, MatchesTheReferenceBitForBit) {
  for (const char* type : {"Q4_0", "Q8_0", "F16", "BF16", "Q6_K"}) {
    const Json golden = read_json(golden_dir() + "/dequant/" + type + ".json");
    std::string raw;
    std::vector<float> expected;
    for (const Json& b : golden["blocks"]) {
      raw += base64_decode(b["raw_b64"]);
      for (float v : base64_floats(b["values_b64"])) expected.push_back(v);
    }
    const std::string in = temporary_path("blocks"), out = temporary_path("values");
    ASSERT_TRUE(write_file(in, raw));
    Ran r = gimbal({"dequantize", "--type", type, "--input", in, "--output", out});
    ASSERT_EQ(r.code, 0) << r.err;
    const auto found = floats_in(out);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(0, std::memcmp(found.data(), expected.data(), found.size() * sizeof(float))) << type;
    ASSERT_TRUE(write_file(in, raw + "x"));
    EXPECT_EQ(gimbal({"dequantize", "--type", type, "--input", in, "--output", out}).code, 3)
        << "a byte too many";
  }
}

TEST(Info, TellsWhatAFileContains) {
  Json j = json_of(gimbal({"info", story_file("q8_0"), "--tensors", "--json"}));
  expect_keys(j, {"name", "path", "format", "gguf_version", "bytes", "architecture", "supported",
                  "parameters", "shape", "tokenizer", "quantization", "metadata", "tensors"});
  EXPECT_EQ(j["architecture"], "llama");
  EXPECT_EQ(j["supported"], true);
  EXPECT_EQ(j["shape"]["layers"], 5);
  EXPECT_EQ(j["bytes"], fs::file_size(story_file("q8_0")));
  double share = 0;
  std::map<std::string, int> types;
  for (const Json& q : j["quantization"]) share += q["share"].get<double>(), types[q["type"]] = q["tensors"];
  EXPECT_NEAR(share, 1, 1e-9);
  const Json golden = read_json(golden_dir() + "/stories/stories260K-q8_0.json");
  if (golden.contains("tensor_types")) {
    for (const auto& [type, count] : golden["tensor_types"].items()) {
      std::string lower = type;
      for (char& c : lower) c = char(std::tolower(c));
      EXPECT_EQ(types[lower], count) << type;
    }
  }
  EXPECT_EQ(j["tensors"].size(), size_t(std::accumulate(types.begin(), types.end(), 0,
                                                        [](int n, auto& t) { return n + t.second; })));
  for (const char* word : {"llama", "q8_0", "512 positions", "SentencePiece"})
    EXPECT_SAYS(gimbal({"info", story_file("q8_0")}).out, word);
}

TEST(Info, ListsNoTensorsUnasked) {
  EXPECT_FALSE(json_of(gimbal({"info", story_file("q8_0"), "--json"})).contains("tensors"));
}

TEST(Info, HostileTextIsShownHarmless) {
  const std::string path = temporary_path("hostile.gguf");
  GgufWriter w;
  w.string("general.architecture", "nobody-knows")
      .string("general.name",
              "\033]0;owned\007\x9b"
              "31m")
      .string("evil\033key", std::string(100000, 'x'))
      .string("long", "a" + std::string(300, 'b'))
      .floats("t\033[2J", {4}, {1, 2, 3, 4});
  ASSERT_TRUE(write_file(path, w.build()));
  Ran r = gimbal({"info", path, "--tensors"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_SAYS(r.out, "this version cannot run it");
  for (char c : r.out + r.err)
    ASSERT_TRUE(c == '\n' || (uint8_t(c) >= 0x20 && uint8_t(c) != 0x7f && uint8_t(c) != 0x9b));
  EXPECT_LT(r.out.size(), 10000u);
  const Json j = json_of(gimbal({"info", path, "--json"}));
  EXPECT_EQ(j["metadata"]["long"], (Json{{"bytes", 301}, {"first", "a" + std::string(199, 'b')}}));
}

TEST(Models, AreFoundWherePeopleKeepThem) {
  const fs::path home = temporary_path("models-home"), here = temporary_path("models-here");
  auto put = [&](const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(write_file(path.string(), bytes));
  };
  auto whole = read_file(story_file("q4_0"));
  ASSERT_TRUE(whole);
  put(here / "local.gguf", *whole);
  put(here / "broken.gguf", "GGUF");
  put(home / "extra/deep/er/named.gguf", *whole);
  fs::create_directory_symlink(home / "extra", home / "extra/deep/loop");
  put(home / ".cache/huggingface/hub/models--some--one/blobs/abc", *whole);
  fs::create_directories(home / ".cache/huggingface/hub/models--some--one/snapshots/1");
  fs::create_symlink("../../blobs/abc",
                     home / ".cache/huggingface/hub/models--some--one/snapshots/1/hub.gguf");
  put(home / ".ollama/models/blobs/sha256-12ab", *whole);
  put(home / ".ollama/models/manifests/registry.ollama.ai/library/tiny/1b",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00"},{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:12ab"}]})");
  put(home / ".ollama/models/manifests/registry.ollama.ai/library/bad/1b",
      R"({"layers":[{"mediaType":7},{"mediaType":"application/vnd.ollama.image.model","digest":"../../etc"},3]})");
  put(home / ".lmstudio/models/pub/repo/studio.gguf", *whole);
  const RunSetup setup{.environment = {{"HOME", home.string()},
                                       {"GIMBAL_MODELS", (home / "extra").string() + ":/does/not/exist"}},
                       .folder = here.string()};
  Ran r = gimbal({"models", "--json"}, setup);
  ASSERT_EQ(r.code, 0) << r.err;
  Json j = json_of(r);
  expect_keys(j, {"models", "places", "skipped", "complete"});
  std::map<std::string, Json> found;
  for (const Json& m : j["models"]) found[m["name"]] = m;
  EXPECT_EQ(found.size(), 7u) << j.dump(2);
  for (const char* name : {"stories260K", "local", "broken", "named", "some/one/hub", "tiny:1b", "studio"})
    ASSERT_TRUE(found.count(name)) << name;
  EXPECT_EQ(found["tiny:1b"]["architecture"], "llama");
  EXPECT_EQ(found["tiny:1b"]["source"], "Ollama");
  EXPECT_TRUE(found["broken"].contains("error"));
  r = gimbal({"models"}, setup);
  EXPECT_SAYS(r.out, "unreadable");
  EXPECT_SAYS(r.out, "\nUnreadable:\n  '");
  // The error has a line of its own behind the table, and makes no column wide.
  EXPECT_GT(r.out.find(found["broken"]["error"]["message"].get<std::string>()), r.out.find("\nUnreadable:\n"))
      << r.out;
  EXPECT_SAYS(r.err, "note: not looked into: '/does/not/exist': No such file or directory");
  EXPECT_EQ(j["skipped"].size(), 1u);
  std::vector<std::string> names;
  for (const Json& m : j["models"]) names.push_back(m["name"]);
  EXPECT_TRUE(std::is_sorted(names.begin() + 1, names.end())) << j.dump(2);
  // And by these names they run.
  for (const char* name : {"tiny:1b", "some/one/hub", "hub", "Studio", "named", "local"})
    EXPECT_EQ(gimbal({"run", name, "-p", "x", "-n", "1"}, setup).code, 0) << name;
  EXPECT_EQ(gimbal({"run", "broken", "-p", "x"}, setup).code, 3);
}

// ---- looking ahead

TEST(Plan, AddsUp) {
  Json j = json_of(gimbal({"plan", "--json", "--ctx", "256", "--kv-type", "f32"}));
  expect_keys(j, {"model", "architecture", "file_bytes", "context", "trained_context", "batch", "kv_type",
                  "kv_rotation", "devices", "host", "host_per_session", "draft", "placement", "fallbacks",
                  "fits", "remedy"});
  const Json& m = j["devices"][0];
  expect_keys(m, {"weights", "kv_cache", "activations", "step", "output", "scratch", "hand_over", "total",
                  "free", "device", "memory_total"});
  expect_keys(j["placement"][0], {"device", "layers", "embedding", "head", "reason"});
  EXPECT_EQ(m["total"].get<uint64_t>(), m["weights"].get<uint64_t>() + m["kv_cache"].get<uint64_t>() +
                                            m["activations"].get<uint64_t>() + m["step"].get<uint64_t>() +
                                            m["output"].get<uint64_t>() + m["scratch"].get<uint64_t>());
  // The CPU's memory is the host's, and the conversation's is, too.
  EXPECT_GT(j["host"]["sessions"], j["host_per_session"]) << "what steps hold is there once";
  EXPECT_EQ(j["host"]["total"].get<uint64_t>(),
            m["total"].get<uint64_t>() + j["host"]["sessions"].get<uint64_t>());
  // Keys and values of 5 layers x 4 heads of 8 numbers, 4 bytes each, for 256 positions; a device may pad
  // them.
  EXPECT_GE(m["kv_cache"].get<int64_t>(), 2 * 5 * 4 * 8 * 4 * 256);
  Json twice = json_of(gimbal({"plan", "--json", "--ctx", "512", "--kv-type", "f32"}));
  EXPECT_EQ(twice["devices"][0]["kv_cache"].get<int64_t>(), 2 * m["kv_cache"].get<int64_t>());
  EXPECT_EQ(j["fits"], true);
  EXPECT_SAYS(gimbal({"plan"}).out, "It fits");
}

// Of the memory that is free now. The context takes a good part of it, so that no rounding hides the rest.
TEST(Plan, SaysHowMuchStaysFree) {
  const double free = json_of(gimbal({"plan", "--backend", "cpu", "--json"}))["host"]["free"].get<double>();
  const Args large = {"plan", "--backend", "cpu", "--ctx",
                      format("{}", std::min<int64_t>(16777216, int64_t(free / 4000)))};
  const Json j = json_of(gimbal(with(large, {"--json"})));
  ASSERT_EQ(j["fits"], true) << j;
  const double total = j["host"]["total"].get<double>();
  ASSERT_GT(total, free / 100);
  const std::string out = gimbal(large).out;
  const size_t at = out.find("It fits: ");
  ASSERT_NE(at, std::string::npos) << out;
  char* unit = nullptr;
  double said = std::strtod(out.c_str() + at + 9, &unit);
  said *= unit[1] == 'T' ? 1e12 : unit[1] == 'G' ? 1e9 : 1e6;
  EXPECT_NEAR(said, free - total, total) << "with what other programs take meanwhile: " << out;
}

TEST(Plan, TensorsAddUpToIt) {
  for (const char* split : {"cpu=rest", "cpu=2,cpu=rest"}) {
    const Json j = json_of(gimbal({"plan", story_file("q8_0"), "--tensors", "--json", "--split", split}));
    uint64_t sum = 0;
    bool packed = false;
    std::set<std::string> names;
    for (const Json& t : j["tensors"]) {
      expect_keys(t, {"name", "format", "shape", "layout", "buffer", "device", "offset", "bytes", "gap", "op",
                      "kernel", "reason"});
      EXPECT_LT(t["gap"], 64) << t["name"];
      EXPECT_NE(t["kernel"], "") << t["name"] << ": nothing in a plan is read by no op";
      EXPECT_SAYS(t["reason"].get<std::string>(), "requested by --split");
      names.insert(t["name"].get<std::string>());
      sum += t["bytes"].get<uint64_t>() + t["gap"].get<uint64_t>();
      packed |= t["layout"] == "packed";
    }
    EXPECT_EQ(sum, j["devices"][0]["weights"].get<uint64_t>()) << split;
    EXPECT_TRUE(packed);
    EXPECT_GE(names.size(), 5 * 9 + 2u) << "7 matrices and 2 norms for each layer, table and norm";
  }
  EXPECT_FALSE(json_of(gimbal({"plan", "--json"})).contains("tensors"));
  EXPECT_SAYS(gimbal({"plan", "--tensors"}).out, "blk.4.ffn_norm.weight");
}

TEST(Plan, ShowsWhatAQuantizedCacheTakes) {
  const std::string model = golden_dir() + "/quant/q-q8_0.gguf";  // one layer, one KV head of 64 values
  for (auto [type, block] : {std::pair{"q8_0", 34}, {"q4_0", 18}}) {
    Json j = json_of(gimbal({"plan", model, "--json", "--ctx", "256", "--kv-type", type}));
    EXPECT_EQ(j["kv_type"], type);
    EXPECT_EQ(j["devices"][0]["kv_cache"].get<int64_t>(), 2 * 256 * (64 / 32) * block);
    EXPECT_SAYS(gimbal({"explain", model, "--kv-type", type}).out, std::string(".attention.") + type);
    EXPECT_EQ(gimbal({"bench", model, "-p", "70", "-n", "3", "-r", "1", "--kv-type", type}).code, 0);
  }
}

TEST(Plan, SaysWhetherTheCacheIsRotatedAndWhy) {
  const std::string model = golden_dir() + "/quant/q-q8_0.gguf";
  for (const auto& [options, rotated, line] :
       {std::tuple(Args{"--kv-type", "q5_0"}, true,
                   "q5_0, rotated: 4 and 5 bits lose less of rotated values"),
        {Args{"--kv-type", "q5_0", "--kv-rotation", "off"}, false, "q5_0, not rotated: --kv-rotation is off"},
        {Args{"--kv-type", "q4_0"}, false, "q4_0, not rotated: q4_0 keeps the bits"},
        {Args{"--kv-type", "q4_0", "--kv-rotation", "on"}, true, "q4_0, rotated: --kv-rotation is on"},
        {Args{"--kv-type", "q8_0"}, false, "q8_0, not rotated: 8 bits lose little"}}) {
    const auto with = [&](Args args) {
      args.insert(args.end(), options.begin(), options.end());
      return args;
    };
    SCOPED_TRACE(line);
    EXPECT_SAYS(gimbal(with({"plan", model})).out, std::string("KV cache in ") + line);
    EXPECT_SAYS(gimbal(with({"explain", model})).out, std::string("KV cache in ") + line);
    const Json plan = json_of(gimbal(with({"plan", model, "--json"})));
    EXPECT_EQ(plan["kv_type"], options[1]);
    EXPECT_EQ(plan["kv_rotation"]["rotated"], rotated);
    EXPECT_EQ(json_of(gimbal(with({"explain", model, "--json"})))["kv_rotation"], plan["kv_rotation"]);
    const Ran run = gimbal(with({"run", model, "-p", "Once", "-n", "2", "--stats"}));
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_SAYS(run.err, std::string(options[1]) + (rotated ? ", rotated)" : ")"));
    EXPECT_EQ(contains(run.err, "hadamard"), rotated) << "the receipt of what ran\n" << run.err;
  }
  const Ran no = gimbal({"plan", model, "--kv-rotation", "on"});
  EXPECT_EQ(no.code, 2);
  EXPECT_SAYS(no.err, "--kv-rotation is on, and a KV cache in f16 is not quantized");
  EXPECT_SAYS(no.err, "choose a quantized --kv-type");
  EXPECT_EQ(gimbal({"plan", model, "--kv-rotation", "maybe"}).code, 2);
  EXPECT_EQ(gimbal({"plan", model}).out.find("rotat"), std::string::npos) << "an f16 cache needs no word";
}

TEST(Plan, AContextBeyondTheTrainedOneIsSaid) {
  const Json j = json_of(gimbal({"plan", "--json"}));
  const int trained = j["trained_context"].get<int>();
  const Args at = {"run", "-p", "Once", "-n", "1", "--ctx", format("{}", trained)};
  EXPECT_FALSE(contains(gimbal(at).err, "trained on"));
  Args beyond = at;
  beyond.back() = format("{}", trained + 1);
  const Ran r = gimbal(beyond);
  EXPECT_EQ(r.code, 0);
  EXPECT_SAYS(r.err, format("--ctx {} is more than the {} positions that the model was trained on",
                            trained + 1, trained));
  beyond.push_back("--quiet");
  EXPECT_EQ(gimbal(beyond).err, "");
}

TEST(Explain, NamesTheKernelOfEveryOp) {
  Json j = json_of(gimbal({"explain", story_file("q8_0"), "--json"}));
  expect_keys(j, {"model", "device", "device_reason", "placement", "kv_type", "kv_rotation", "fallbacks",
                  "buckets", "leading"});
  ASSERT_GE(j["buckets"].size(), 2u);
  EXPECT_EQ(j["buckets"][0]["purpose"], "generation");
  for (size_t b = 1; b < j["buckets"].size(); b++) {  // few rows have kernels of their own on most devices
    EXPECT_EQ(j["buckets"][b]["purpose"], "prompt");
    EXPECT_GT(j["buckets"][b]["rows"], j["buckets"][b - 1]["rows"]);
  }
  int rejected = 0;
  for (const Json& b : j["buckets"])
    for (const Json& op : b["ops"]) {
      expect_keys(op, {"op", "name", "inputs", "output", "device", "kernel", "why", "rejected"});
      EXPECT_NE(op["why"], "");
      for (const Json& r : op["rejected"]) {
        expect_keys(r, {"kernel", "why"});
        EXPECT_NE(r["kernel"], op["kernel"]);
        EXPECT_NE(r["why"], "");
        rejected++;
      }
    }
  EXPECT_GT(rejected, 0) << "every instruction set has products of its own, and one is taken";
  // What follows a step: the search for the largest logits.
  ASSERT_EQ(j["leading"].size(), 2u);
  for (const Json& l : j["leading"]) {
    ASSERT_EQ(l["ops"].size(), 1u);
    EXPECT_EQ(l["ops"][0]["op"], "top_k");
    EXPECT_NE(l["ops"][0]["why"], "");
  }
  EXPECT_EQ(j["leading"][0]["k"], 1);
  EXPECT_SAYS(gimbal({"explain"}).out, "the largest logit\n  top_k f32, 1 op: cpu.");
  // Forcing the simplest instruction set shows, and gives the same text.
  Ran forced = gimbal({"explain", "--prefer-kernel", "cpu.baseline.*"});
  EXPECT_SAYS(forced.out, "cpu.baseline.mat_mul.f32, matches the preference");
  EXPECT_SAYS(gimbal({"explain", "--all"}).out, "attention");
  const Args story_args{"run", "-p", "Once upon a time", "-n", "30", "--seed", "7"};
  Args baseline = story_args;
  baseline.push_back("--cpu-variant"), baseline.push_back("baseline");
  EXPECT_EQ(gimbal(baseline).out, gimbal(story_args).out);
}

TEST(Backends, SayWhyNot) {
  for (const char* name : {"backends", "doctor"}) {
    Json j = json_of(gimbal({name, "--json"}));
    ASSERT_GE(j["backends"].size(), 7u);
    for (const Json& b : j["backends"]) {
      expect_keys(b, {"backend", "available", "code", "reason", "remedy", "devices"});
      EXPECT_EQ(b["available"].get<bool>(), !b["devices"].empty());
      EXPECT_EQ(b["available"].get<bool>(), b["code"] == "" && b["reason"] == "");
    }
    EXPECT_EQ(j["backends"][6]["backend"], "cpu");
    EXPECT_EQ(j["backends"][6]["available"], true);
    expect_keys(j["backends"][6]["devices"][0], {"id", "name", "memory_total", "memory_free", "features",
                                                 "threads", "software", "unified_memory", "kernels"});
    EXPECT_EQ(j["automatic"]["device"], "cpu:0");
  }
  Ran r = gimbal({"doctor"});
  EXPECT_SAYS(r.out, "\u2713 CPU (cpu)");
  EXPECT_SAYS(r.out, "Recommended backend: CPU (cpu:0)");
}

TEST(Kernels, AreListedWithWhatTheyNeed) {
  Json j = json_of(gimbal({"kernels", "--json"}));
  ASSERT_FALSE(j["kernels"].empty());
  for (const Json& k : j["kernels"]) {
    expect_keys(k, {"kernel", "device", "variant", "op", "rank", "numerics", "in0", "in1", "out",
                    "k_multiple", "min_rows", "max_rows", "needs", "available", "missing"});
    EXPECT_EQ(k["available"].get<bool>(), k["missing"] == "");
  }
  const std::string markdown = gimbal({"kernels", "--markdown"}).out;
  for (const Json& k : j["kernels"]) EXPECT_SAYS(markdown, format("`{}`", k["kernel"].get<std::string>()));
}

TEST(Verify, ChecksTheKernelsOfThisMachine) {
  Ran r = gimbal({"verify", "--kernel", "cpu.baseline.mat_mul.*", "--json"});
  EXPECT_EQ(r.code, 0) << r.out;
  Json j = json_of(r);
  expect_keys(j, {"device", "fallbacks", "passed", "failed", "not_run", "kernels"});
  EXPECT_GT(j["passed"], 0);
  EXPECT_EQ(j["failed"], 0);
  EXPECT_EQ(gimbal({"verify", "--kernel", "nothing"}).code, 2);
}

TEST(Bench, MeasuresWhatItIsAskedTo) {
  Json j = json_of(gimbal({"bench", "-p", "16", "-n", "8", "-r", "2", "-t", "1", "--json"}));
  expect_keys(j,
              {"model", "device", "fallbacks", "threads", "prompt_tokens", "generated_tokens", "repetitions",
               "prompt_tokens_per_second", "generation_tokens_per_second", "first_token_seconds",
               "weight_bytes_per_token", "weight_bytes_per_second", "memory_bytes_per_second", "memory_share",
               "load_seconds", "peak_memory_bytes", "memory", "kernels"});
  for (const char* what : {"prompt_tokens_per_second", "generation_tokens_per_second"}) {
    EXPECT_GT(j[what]["min"], 0);
    EXPECT_LE(j[what]["min"], j[what]["median"]);
    EXPECT_LE(j[what]["median"], j[what]["max"]);
  }
  EXPECT_EQ(j["threads"], 1);
  // All tensors of the story model but the embedding's other rows: it is tied to the output, so a row is read
  // twice.
  const double tensors = 260032.0 * 4 + 64 * 4;
  EXPECT_NEAR(j["weight_bytes_per_token"].get<double>(), tensors, 64 * 4 + 4)
      << "every matrix once, and a row of the table";
  Json skipped = json_of(gimbal({"bench", "-p", "0", "-n", "4", "-r", "1", "--json"}));
  EXPECT_TRUE(skipped["prompt_tokens_per_second"].is_null());
  // The context has room for the longer of both, so each begins anew.
  const Ran people = gimbal({"bench", "-p", "40", "-n", "40", "-r", "1"});
  EXPECT_EQ(people.code, 0) << people.err;
  for (const char* line : {"\nprompt of 40 ", "\ngeneration of 40 ", "\nfirst token ", "\nlimits: memory"})
    EXPECT_SAYS(people.out, line);
}

}  // namespace
}  // namespace gimbal::test
