// The words that users of other programs type, and what is made of the tables of options: completion and the
// manual.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

const Args kCommands{"run",
                     "bench",
                     "plan",
                     "explain",
                     "backends",
                     "kernels",
                     "verify",
                     "models",
                     "info",
                     "tokenize",
                     "pull",
                     "rm",
                     "detokenize",
                     "logits",
                     "perplexity",
                     "embed",
                     "render-template",
                     "dequantize",
                     "embed-image",
                     "completion",
                     "manual"};

// The long options that a command's --help lists, but for --cuda-device, which stands for a family.
Args long_options(const std::string& command) {
  const std::string help = gimbal({command, "--help"}).out;
  Args all;
  for (size_t at = 0; (at = help.find("--", at)) != std::string::npos;) {
    const size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    const size_t line = help.rfind('\n', at) + 1;
    const bool listed = help.compare(line, 2, "  ") == 0 && at - line <= 16 && help[line + 2] != ' ';
    if ((listed || help.compare(line, 6, "      ") == 0) && at - line <= 16 &&
        help.compare(at, 13, "--cuda-device") != 0)
      all.push_back(help.substr(at, end - at));
    at = end;
  }
  return all;
}

TEST(Words, OfLlamaCppAreTranslated) {
  const std::string expected =
      gimbal({"run", "-p", "Once", "-n", "6", "--temp", "0.5", "--seed", "3", "--ctx", "64"}).out;
  EXPECT_EQ(gimbal({"run", "-m", "default", "-p", "Once", "--n-predict", "6", "--temperature", "0.5",
                    "--seed", "3", "-c", "64"})
                .out,
            expected);
  EXPECT_EQ(gimbal({"run", "--model", "default", "-p", "Once", "--n-predict=6", "--temperature=0.5", "--seed",
                    "3", "--ctx-size", "64"})
                .out,
            expected);
  EXPECT_SAYS(gimbal({"run", "-p", "x", "-n", "1", "-ngl", "5"}).err, "--gpu-layers 5");
  EXPECT_SAYS(gimbal({"run", "default", "-m", "default", "-p", "x"}).err, "two models");
}

// llama.cpp's and Ollama's options: done, dropped with a note, or refused with what to write. Never the help
// text of "-h" for "-hf", nor the file "a" for "-fa".
TEST(Words, OptionsOfOtherProgramsAreDoneOrNamed) {
  const Args run{"run", "default", "-p", "Once", "-n", "6", "--greedy"};
  const std::string expected = gimbal(run).out;
  const auto with = [&](const Args& more) {
    Args all = run;
    all.insert(all.end(), more.begin(), more.end());
    return gimbal(all);
  };
  const std::pair<Args, const char*> notes[] = {{{"-fa"}, "-fa changes nothing"},
                                                {{"-fa", "on"}, "-fa changes nothing"},
                                                {{"--flash-attn=auto"}, "--flash-attn changes nothing"},
                                                {{"--jinja", "--mlock"}, "--mlock changes nothing"},
                                                {{"--no-mmap"}, "gimbal decides how it reads a file"},
                                                {{"--color"}, "NO_COLOR"}};
  for (const auto& [more, words] : notes) {
    const Ran r = with(more);
    EXPECT_EQ(r.code, 0) << more[0] << r.err;
    EXPECT_EQ(r.out, expected) << more[0];
    EXPECT_SAYS(r.err, words);
    Args quiet = more;
    quiet.push_back("--quiet");
    EXPECT_FALSE(contains(with(quiet).err, words)) << more[0];
  }
  EXPECT_EQ(with({"-ctk", "q8_0", "-ctv", "q8_0"}).out, with({"--kv-type", "q8_0"}).out);
  EXPECT_EQ(with({"-sys", "Be kind.", "-cnv"}).out, with({"-s", "Be kind.", "--chat"}).out);
  EXPECT_EQ(json_of(with({"--format", "json", "--json"}))["text"].get<std::string>().substr(0, 1), "{");
  EXPECT_SAYS(with({"--verbose"}).err, "tokens/s");

  const std::pair<Args, const char*> refused[] = {
      {{"run", "-fa", "off", "-p", "x"}, "leave it out: attention"},
      {{"run", "-ctk", "q8_0", "-p", "x"}, "--kv-type q8_0"},
      {{"run", "-ctk", "q8_0", "-ctv", "f16", "-p", "x"}, "keys and values have one format here"},
      {{"run", "-e", "-p", "x"}, "$'one\\ntwo'"},
      {{"run", "-ts", "3,1", "-p", "x"}, "--split cuda:0=20,cuda:1=rest"},
      {{"run", "-ngl"}, "needs a value"},
      {{"run", "-hq", "-p", "x"}, "has no option '-hq'"},
      {{"list", "--short"}, "--json prints the list"},
      {{"tokenize", "--kv-quant", "int4"}, "gimbal tokenize has no option '--kv-quant'"},
      {{"tokenize", "-ngl", "5"}, "gimbal tokenize has no option '-ngl'"},
      {{"serve", "--bind", "auto"}, "--host ADDRESS --port N"}};
  for (const auto& [args, words] : refused) {
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << args[1] << r.out;
    EXPECT_EQ(r.out, "") << args[1];
    EXPECT_SAYS(r.err, words);
  }
  const Ran hub =
      gimbal({"run", "-hf", "ggml-org/x", "-p", "hi"}, {.environment = {{"HF_HUB_OFFLINE", "1"}}});
  EXPECT_NE(hub.code, 0) << "a script must not believe that it ran";
  EXPECT_EQ(hub.out, "");
  EXPECT_SAYS(hub.err, "HF_HUB_OFFLINE");
  EXPECT_EQ(gimbal({"-m", "default", "-p", "Once", "-n", "6", "--greedy"}).out, expected)
      << "without a command, as llama-cli";
}

TEST(Words, IgnoreEosGoesOnBehindTheEnd) {
  const Args args{"run", "-p", "Once upon a time", "--greedy", "--ctx", "512", "--json"};
  Args on = args;
  on.push_back("--ignore-eos");
  EXPECT_EQ(json_of(gimbal(args))["finish"], "stop-token");
  EXPECT_EQ(json_of(gimbal(on))["finish"], "context-full");
}

TEST(Words, OfOtherProgramsGetAHint) {
  const std::pair<const char*, const char*> hints[] = {{"ps", "/api/ps"},
                                                       {"stop", "Ctrl-C"},
                                                       {"push", "publishes"},
                                                       {"launch", "gimbal serve MODEL"},
                                                       {"probe", "gimbal plan"},
                                                       {"-x", "gimbal run -x"},
                                                       {"ls", "gimbal list"},
                                                       {"download", "gimbal pull"},
                                                       {"show", "gimbal info"},
                                                       {"chat", "gimbal run"},
                                                       {"create", "gimbal quantize"},
                                                       {"x/y.gguf", "gimbal run x/y.gguf"}};
  for (const auto& [word, words] : hints) {
    Ran r = gimbal({word});
    EXPECT_EQ(r.code, 2) << word;
    EXPECT_SAYS(r.err, words);
  }
}

// Its commands, options and variables, as src/cli.rs, src/main.rs and src/port_manager.rs of shimmy c33db97
// declare them.
TEST(Words, OfShimmyDoTheSame) {
  const std::string expected =
      gimbal({"run", "default", "-p", "Once", "-n", "6", "--greedy", "--kv-type", "q4_0", "--batch", "8"})
          .out;
  EXPECT_EQ(gimbal({"generate", "default", "--prompt", "Once", "--max-tokens", "6", "--greedy", "--kv-quant",
                    "int4", "--prefill-chunk", "8", "--gpu-backend", "auto"})
                .out,
            expected);
  EXPECT_EQ(json_of(gimbal({"gpu-info", "--json"})).size(), json_of(gimbal({"backends", "--json"})).size());
  EXPECT_SAYS(gimbal({"bench", "default", "--max-tokens", "x"}).err,
              "--generate-tokens must be a whole number");

  const std::string folder = temporary_path("shimmy-models"), more = temporary_path("shimmy-more");
  for (const std::string& f : {folder, more}) fs::create_directories(f);
  fs::copy_file(story_file("f32"), folder + "/one.gguf", fs::copy_options::overwrite_existing);
  fs::copy_file(story_file("q8_0"), more + "/two.gguf", fs::copy_options::overwrite_existing);
  const auto models = [](const Args& more_words, std::map<std::string, std::string> environment) {
    std::string names;
    const Json list =
        json_of(gimbal(with({"discover", "--json"}, more_words), {.environment = std::move(environment)}));
    for (const Json& m : list["models"]) names += m["name"].get<std::string>() + " ";
    return names;
  };
  EXPECT_EQ(models({"--model-dirs", folder + ";" + more}, {}), "stories260K one two ");
  EXPECT_EQ(models({"--model-dirs=" + folder}, {{"GIMBAL_MODELS", more}}), "stories260K one two ");
  EXPECT_EQ(models({}, {{"SHIMMY_MODEL_PATHS", folder + ";" + more}}), "stories260K one two ");
  EXPECT_EQ(gimbal({"info", "one", "--model-dirs", folder}).code, 0);
}

TEST(Words, VariablesOfShimmyAreBehindOwnOnes) {
  const std::string model = story_file("q8_0");
  const auto plan = [](const Args& words, std::map<std::string, std::string> environment) {
    return gimbal(with({"plan", "--json"}, words), {.environment = std::move(environment)});
  };
  const Ran theirs =
      plan({}, {{"SHIMMY_BASE_GGUF", model}, {"SHIMMY_MAX_CTX", "96"}, {"SHIMMY_KV_QUANT", "int4"}});
  EXPECT_EQ(theirs.out, plan({model, "--ctx", "96", "--kv-type", "q4_0"}, {}).out);
  EXPECT_SAYS(theirs.err, "note: SHIMMY_MAX_CTX sets --ctx 96; gimbal's own variable is GIMBAL_CTX");
  EXPECT_SAYS(theirs.err, "note: SHIMMY_BASE_GGUF sets --model " + model);
  EXPECT_EQ(json_of(plan({}, {{"SHIMMY_MAX_CTX", "96"}, {"GIMBAL_CTX", "64"}}))["context"], 64);
  EXPECT_EQ(json_of(plan({"--ctx", "32"}, {{"SHIMMY_MAX_CTX", "96"}}))["context"], 32);
  EXPECT_EQ(plan({"--quiet"}, {{"SHIMMY_MAX_CTX", "96"}}).err, "");
  const Ran wrong = plan({}, {{"SHIMMY_MAX_CTX", "many"}});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_SAYS(wrong.err, "the environment: SHIMMY_MAX_CTX must be a whole number");

  // The adapter belongs to shimmy's model: one that is typed does without.
  const std::map<std::string, std::string> adapter{{"SHIMMY_BASE_GGUF", model},
                                                   {"SHIMMY_LORA_GGUF", "/no/such"}};
  EXPECT_SAYS(gimbal({"run", "-p", "x", "-n", "1"}, {.environment = adapter}).err, "/no/such");
  EXPECT_EQ(gimbal({"run", model, "-p", "x", "-n", "1"}, {.environment = adapter}).code, 0);

  // An address that cannot be bound shows that both parts arrive.
  const Ran bound =
      gimbal({"serve", "default"}, {.environment = {{"SHIMMY_BIND_ADDRESS", "203.0.113.1:8123"}}});
  EXPECT_NE(bound.code, 0);
  EXPECT_SAYS(bound.err, "203.0.113.1");
  EXPECT_SAYS(bound.err, "8123");
}

TEST(Words, NamesOfModelsWithoutTagAndInAnyCase) {
  const std::string home = temporary_path("models-home");
  const fs::path hub = fs::path(home) / ".cache/huggingface/hub/models--Org--Tiny-GGUF/snapshots/abc",
                 ollama = fs::path(home) / ".ollama/models";
  fs::create_directories(hub);
  fs::create_directories(ollama / "manifests/registry.ollama.ai/library/evil");
  fs::create_directories(ollama / "blobs");
  fs::copy_file(story_file("f32"), hub / "tiny-f32.GGUF");
  fs::copy_file(story_file("q8_0"), ollama / "blobs/sha256-0");
  ASSERT_TRUE(write_file(
      (ollama / "manifests/registry.ollama.ai/library/evil/latest").string(),
      R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:0"}]})"));
  for (const char* name : {"evil", "EVIL:latest", "org/tiny-gguf", "Org/Tiny-GGUF/tiny-f32", "TINY-F32"}) {
    Ran r = gimbal({"info", name, "--json"}, {.environment = {{"HOME", home}}});
    EXPECT_EQ(r.code, 0) << name << ": " << r.err;
  }
}

TEST(Words, WhatIsThereIsNotSaidToBeMissing) {
  const std::string link = temporary_path("dangling.gguf"), loop = temporary_path("loop.gguf");
  ASSERT_EQ(symlink("/no/such/file", link.c_str()), 0);
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  EXPECT_SAYS(gimbal({"info", link}).err, "it is a broken link");
  EXPECT_SAYS(gimbal({"info", loop}).err, "symbolic links");
  const std::string folder = temporary_path("links");
  fs::create_directories(folder);
  fs::remove(folder + "/loop");
  ASSERT_EQ(symlink("loop", (folder + "/loop").c_str()), 0);
  EXPECT_SAYS(gimbal({"info", "loop"}, {.folder = folder}).err, "symbolic links");
}

// Root may read everything, so the user nobody runs the program where the tests run as root.
Ran without_rights(Args args, std::map<std::string, std::string> environment) {
  if (getuid() != 0) return gimbal(std::move(args), {.environment = std::move(environment)});
  RunSetup setup{.environment = std::move(environment)};
  for (const auto& [name, value] : quiet_home()) setup.environment.emplace(name, value);
  const Args as_nobody{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                       std::getenv("GIMBAL")};
  args.insert(args.begin(), as_nobody.begin(), as_nobody.end());
  return run_program(args, setup);
}

TEST(Words, WhatMayNotBeReadIsNotSaidToBeMissing) {
  const std::string folder = temporary_path("closed"), file = folder + "/model.gguf";
  fs::create_directories(folder);
  fs::copy_file(story_file("q8_0"), file, fs::copy_options::overwrite_existing);
  fs::permissions(folder, fs::perms::none);
  EXPECT_SAYS(without_rights({"info", file}, {}).err, "Permission denied");
  const Ran models = without_rights({"models"}, {{"GIMBAL_MODELS", folder + ":" + story_file("q8_0")}});
  EXPECT_EQ(models.code, 0) << models.err;
  EXPECT_SAYS(models.err, format("note: not looked into: '{}': Permission denied", folder));
  EXPECT_SAYS(models.err, format("note: not looked into: '{}': it is not a folder", story_file("q8_0")));
  // A cache that cannot be kept: the cause is the folder that could not be made.
  const Ran kept = without_rights({"run", "-p", "Once", "-n", "1"}, {{"HOME", folder}});
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_SAYS(kept.err,
              format("could not be saved: cannot create '{}/.cache/gimbal': Permission denied", folder));
  fs::permissions(folder, fs::perms::owner_all);
}

TEST(Words, WhatIsTooMuchIsSaid) {
  for (const auto& [args, says] : {std::pair(Args{"help", "run", "extra"}, "unexpected argument 'extra'"),
                                   {Args{"kernels", "--markdown", "--json"}, "give only one of them"},
                                   {Args{"models", "extra"}, "unexpected argument 'extra'"}}) {
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << args[0];
    EXPECT_SAYS(r.err, says);
  }
}

// A reason names those that this build lacks, and does not tell of each how it could be had.
TEST(Words, WhatIsNotInThisBuildTakesFewOfThem) {
  const Json j = json_of(gimbal({"run", "-p", "Once", "-n", "1", "--json"}));
  const std::string reason = j["placement"][0]["reason"];
  EXPECT_SAYS(reason, "first available in the automatic order (");
  EXPECT_SAYS(reason, " not in this build)");
  EXPECT_LT(reason.size(), 200u) << reason;
  const Ran r = gimbal({"run", "-p", "Once", "-n", "1", "--cpu-variant", "neon"});
  EXPECT_LT(r.err.size(), 600u) << r.err;
}

// docs/cli.md has every option: in the section of its command, or in one that is about all of them.
TEST(Manual, OfTheRepositoryHasEveryOption) {
  const auto text = read_file(std::string(GIMBAL_SOURCE_DIR) + "/docs/cli.md");
  ASSERT_TRUE(text) << text.error().message;
  std::map<std::string, std::string> sections;
  std::string title;
  for (size_t at = 0, end; at < text->size(); at = end + 1) {
    end = std::min(text->find('\n', at), text->size());
    const std::string line = text->substr(at, end - at);
    if (line.starts_with("## ")) title = line.substr(3);
    sections[title] += line + "\n";
  }
  const std::string common = sections[""] + sections["Options of every command that computes"];
  for (const std::string& command : kCommands) {
    std::string own;
    for (const auto& [name, words] : sections)
      if (name.find(command) != std::string::npos && !name.starts_with("Options")) own += words;
    EXPECT_FALSE(own.empty()) << "docs/cli.md has no section about " << command;
    for (const std::string& option : long_options(command)) {
      bool there = false;
      for (const std::string& where : {common, own})
        for (const char* behind : {" ", "`", ",", "|", "]"})
          there = there || contains(where, option + behind);
      EXPECT_TRUE(there) << "docs/cli.md does not have " << option << " of gimbal " << command;
    }
  }
}

TEST(Completion, HasEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = gimbal({"completion", shell}).out;
    for (const std::string& command : kCommands) {
      EXPECT_SAYS(text, command);
      const Args options = long_options(command);
      EXPECT_GE(options.size(), 2u) << command;
      for (const std::string& option : options)
        EXPECT_SAYS(text, std::string(shell) == "fish" ? "-l " + option.substr(2) : option);
    }
  }
  EXPECT_EQ(gimbal({"completion"}).code, 2);
  EXPECT_EQ(gimbal({"completion", "tcsh"}).code, 2);
}

// --help has one line for all of them.
TEST(Completion, AndTheManualHaveTheOptionOfEveryBackend) {
  const Json backends = json_of(gimbal({"backends", "--json"}))["backends"];
  ASSERT_GT(backends.size(), 1u);
  const std::string page = gimbal({"manual"}).out;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = gimbal({"completion", shell}).out;
    for (const Json& b : backends) {
      const std::string name = b["backend"].get<std::string>() + "-device";
      EXPECT_SAYS(text, (std::string(shell) == "fish" ? "-l " : "--") + name);
      EXPECT_SAYS(page, "\\-\\-" + b["backend"].get<std::string>() + "\\-device");
    }
  }
}

TEST(Completion, OfBashOffersWordsThatFit) {
  const std::string script = temporary_path("completion.bash");
  ASSERT_TRUE(write_file(script, gimbal({"completion", "bash"}).out));
  auto offered = [&](const Args& words) {
    std::string line = "source " + script + "; COMP_WORDS=(";
    for (const std::string& w : words) line += "'" + w + "' ";
    line += format("); COMP_CWORD={}; _gimbal; echo \"${{COMPREPLY[@]}}\"", words.size() - 1);
    return run_program({"/bin/bash", "-c", line}).out;
  };
  EXPECT_EQ(offered({"gimbal", "toke"}), "tokenize\n");
  EXPECT_EQ(offered({"gimbal", "run", "--kv-t"}), "--kv-type\n");
  EXPECT_EQ(offered({"gimbal", "run", "--verify", "al"}), "always\n");
  EXPECT_EQ(offered({"gimbal", "info", "--kv-t"}), "\n");
}

TEST(Manual, HasEveryCommandAndOption) {
  const std::string page = gimbal({"manual"}).out;
  EXPECT_EQ(page.rfind(".TH GIMBAL 1", 0), 0u);
  for (const std::string& command : kCommands) {
    EXPECT_SAYS(page, ".SS gimbal " + command);
    for (const std::string& option : long_options(command)) {
      std::string roff;
      for (char c : option) roff += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_SAYS(page, roff);
    }
  }
}

TEST(Manual, IsGoodRoff) {
  const std::string path = temporary_path("gimbal.1");
  ASSERT_TRUE(write_file(path, gimbal({"manual"}).out));
  int checked = 0;
  for (const Args& check : {Args{"/usr/bin/mandoc", "-T", "lint", "-W", "error", path},
                            Args{"/usr/bin/man", "--warnings", "-l", path}})
    if (access(check[0].c_str(), X_OK) == 0) {
      const Ran r = run_program(check);
      EXPECT_EQ(r.code, 0) << r.out << r.err;
      EXPECT_EQ(r.err, "") << check[0];
      checked++;
    }
  if (!checked) GTEST_SKIP() << "mandoc is not installed: scripts/setup.sh checks";
}

}  // namespace
}  // namespace gimbal::test
