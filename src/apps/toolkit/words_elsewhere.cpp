#include "apps/toolkit/words_elsewhere.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

struct Pair {
  const char *theirs, *say;
};

// The same under another name.
constexpr Pair kRenamed[] = {
    {"-c", "--ctx"},
    {"--ctx-size", "--ctx"},
    {"--num-ctx", "--ctx"},
    {"--context-length", "--ctx"},
    {"-ngl", "--gpu-layers"},
    {"--n-gpu-layers", "--gpu-layers"},
    {"-cmoe", "--cpu-moe"},
    {"-ncmoe", "--n-cpu-moe"},
    {"-ot", "--override-tensor"},
    {"--temperature", "--temp"},
    {"--n-predict", "--max-tokens"},
    {"--predict", "--max-tokens"},
    {"-b", "--batch"},
    {"--batch-size", "--batch"},
    {"-np", "--parallel"},
    {"-s", "--seed"},
    {"--repeat-last-n", "--penalty-window"},
    {"--typical", "--typical-p"},
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
    {"-cnv", "--chat"},
    {"--conversation", "--chat"},
    {"-st", "--chat"},
    {"--single-turn", "--chat"},
    {"-i", "--chat"},
    {"--interactive", "--chat"},
    {"-no-cnv", "--raw"},
    {"--no-conversation", "--raw"},
    {"--no-cnv", "--raw"},
    {"--hidethinking", "--think=hide"},
    {"-rea", "--think"},
    {"--reasoning", "--think"},
    {"--nowordwrap", "--no-wrap"},
    {"--verbose", "--stats"},
    {"-v", "--stats"},
    {"-j", "--json-schema"},
    {"-jf", "--json-schema"},
    {"--json-schema-file", "--json-schema"},
    {"--grammar-file", "--grammar"},
    {"-r", "--stop"},
    {"--reverse-prompt", "--stop"},
    {"-md", "--draft"},
    {"--model-draft", "--draft"},
    {"-sp", "--parse-special"},
    {"-mg", "--device"},
    {"--main-gpu", "--device"},
    {"-mu", "--model"},
    {"--model-url", "--model"},
    {"--model-path", "--model"},
    {"-a", "--alias"},
    {"--ssl-cert-file", "--tls-cert"},
    {"--ssl-key-file", "--tls-key"},
    {"--cors", "--cors-origin=*"},
    {"--chat-template-file", "--chat-template"},
    {"--yarn-orig-context", "--yarn-orig-ctx"},
    {"--prefill-chunk", "--batch"},
    {"--max-tokens", "--generate-tokens"},  // of `shimmy bench`
};

// What always happens, or what changes no text: left out, and told.
constexpr Pair kAlways[] = {
    {"--jinja", "chat templates are always read as Jinja"},
    {"-fa", "attention is always computed without storing its scores"},
    {"--flash-attn", "attention is always computed without storing its scores"},
    {"--color", "text is coloured on a terminal unless $NO_COLOR is set"},
    {"-co", "text is coloured on a terminal unless $NO_COLOR is set"},
    {"-cb", "requests are always answered together"},
    {"--cont-batching", "requests are always answered together"},
    {"-kvu", "all requests share one KV cache"},
    {"--kv-unified", "all requests share one KV cache"},
    {"--mmap", "gimbal decides how it reads a file"},
    {"--no-mmap", "gimbal decides how it reads a file"},
    {"--use-mmap", "gimbal decides how it reads a file"},
    {"--mlock", "gimbal locks no memory; `ulimit -l` and swap are the system's"},
    {"--warmup", "there is no run for warming up, but for `gimbal bench`"},
    {"--no-warmup", "there is no run for warming up"},
    {"--metrics", "/metrics is always there"},
    {"--slots", "the state of requests is always there"},
    {"--no-perf", "--stats shows the speed"},
    {"--simple-io", "output that is no terminal is plain text"},
    {"--prio", "`nice` sets the priority"},
};

// What gimbal does otherwise, or not.
constexpr Pair kInstead[] = {
    {"-e", "escapes in a prompt are not replaced; in bash write -p $'one\\ntwo'"},
    {"--escape", "escapes in a prompt are not replaced; in bash write -p $'one\\ntwo'"},
    {"-hff", "name the file in the address: -hf OWNER/REPO/FILE.gguf"},
    {"--hf-file", "name the file in the address: -hf OWNER/REPO/FILE.gguf"},
    {"-hft", "the token is read from $HF_TOKEN, so that it stands in no list of processes"},
    {"--hf-token", "the token is read from $HF_TOKEN, so that it stands in no list of processes"},
    {"-sysf", "write -s \"$(cat FILE)\""},
    {"--system-prompt-file", "write -s \"$(cat FILE)\""},
    {"-ub", "a step computes --batch tokens of a prompt; there is no second size"},
    {"--ubatch-size", "a step computes --batch tokens of a prompt; there is no second size"},
    {"-tb", "--threads is for prompts and generation"},
    {"--threads-batch", "--threads is for prompts and generation"},
    {"-ts", "say the layers of each device: --split cuda:0=20,cuda:1=rest"},
    {"--tensor-split", "say the layers of each device: --split cuda:0=20,cuda:1=rest"},
    {"-sm", "whole layers are split: --split cuda:0=20,cuda:1=rest"},
    {"--split-mode", "whole layers are split: --split cuda:0=20,cuda:1=rest"},
    {"-dev", "write --backend NAME --device N, or --split for several devices"},
    {"-nkvo", "the KV cache lies with the layers; --gpu-layers N moves both"},
    {"--no-kv-offload", "the KV cache lies with the layers; --gpu-layers N moves both"},
    {"-fit", "gimbal always plans what fits; `gimbal plan MODEL` shows it"},
    {"--fit", "gimbal always plans what fits; `gimbal plan MODEL` shows it"},
    {"-l", "--logit-bias is not on the command line; the server's requests have it"},
    {"--logit-bias", "it is not on the command line; the server's requests have it"},
    {"-if", "--chat reads questions from stdin"},
    {"-mli", "end a line with \\, or write the lines between lines of \"\"\""},
    {"--multiline-input", "end a line with \\, or write the lines between lines of \"\"\""},
    {"-lv", "--stats shows what was computed; `gimbal explain` why"},
    {"-to", "`gimbal serve` has --header-timeout, --body-timeout and --drain-timeout"},
    {"--timeout", "`gimbal serve` has --header-timeout, --body-timeout and --drain-timeout"},
    {"--keepalive", "`gimbal serve --keep-alive SECONDS` keeps a model; `gimbal run` ends with its process"},
    {"--rope-scale", "write --rope-freq-scale 1/N, such as 0.25 for 4"},
    {"--yarn-ext-factor", "it is not computed; --yarn-beta-fast and --yarn-beta-slow set the mix"},
    {"--override-kv",
     "the settings of chat templates and rotary positions have options: `gimbal run --help`"},
    {"--lora-scaled", "write --lora FILE:SCALE"},
    {"--lora-init-without-apply", "write --lora FILE:0"},
    {"--mmproj", "`gimbal run`, `plan`, `explain` and `serve` have it"},
    {"-mm", "write --mmproj FILE"},
    {"--image", "`gimbal run` takes pictures; a server's requests have them"},
    {"--reasoning-budget", "`gimbal run` and `serve` have it; --think off asks for no reasoning"},
    {"--reasoning-format", "`gimbal serve` has it; `run --think hide` prints no reasoning"},
    {"--reasoning-effort", "write --chat-template-kwargs '{\"reasoning_effort\": \"low\"}'"},
    {"--reasoning-budget-message", "the model's own mark ends its reasoning"},
    {"--reasoning-preserve", "chat templates receive the reasoning of all earlier answers"},
    {"--no-reasoning-preserve", "chat templates receive the reasoning of all earlier answers"},
    {"--insecure", "models are fetched by https; http:// in the address asks for another way"},
    {"--short", "--json prints the list for programs"},
    {"--llm-only", "the list says of each model whether it runs here; --json has the same for programs"},
    {"--legacy", "--backend cpu computes on the CPU"},
    {"-o", "--json prints the result as JSON"},
    {"-ctkd", "drafts keep the format of --kv-type"},
    {"-ctvd", "drafts keep the format of --kv-type"},
    {"-ngld", "a draft model is placed like the model"},
    {"--no-webui", "the page is part of the server; with --api-key it needs the key"},
    {"--gpu", "--gpu-layers N sets the layers, --backend NAME the kind of device"},
};

constexpr Pair kKvTypes[] = {{"-ctk", "-ctv"}, {"--cache-type-k", "--cache-type-v"}};

template <size_t n>
const Pair* find(const Pair (&all)[n], std::string_view name) {
  const auto at = std::find_if(all, all + n, [&](const Pair& p) { return name == p.theirs; });
  return at == all + n ? nullptr : at;
}

class Translation {
 public:
  Translation(std::vector<std::string>& args, const std::string& command,
              const std::function<OptionKind(std::string_view)>& has, std::vector<std::string>& notes)
      : args_(args), command_(command), kind_(has), notes_(notes) {}

  Status run() {
    for (; at_ < args_.size() && args_[at_] != "--"; at_++) {
      if (args_[at_].size() < 2 || args_[at_][0] != '-') continue;
      if (auto ok = one(); !ok) return ok;
    }
    if (keys_.empty() && values_.empty()) return Done{};
    if (keys_ != values_)
      return refuse("-ctk and -ctv", format("keys and values have one format here: --kv-type {}",
                                            keys_.empty() ? values_ : keys_));
    args_.insert(args_.begin(), "--kv-type=" + keys_);
    return Done{};
  }

 private:
  bool has(std::string_view name) const { return kind_(name) != OptionKind::None; }

  Status one() {
    const std::string word = args_[at_], name = word.substr(0, word.find('='));
    if (const OptionKind kind = kind_(name); kind != OptionKind::None) {
      at_ += kind == OptionKind::Value && name.size() == word.size();  // the value may look like an option
      return Done{};
    }
    for (const Pair& p : kKvTypes)
      if (has("--kv-type") && (name == p.theirs || name == p.say)) {
        auto value = take_value();
        if (!value) return value.error();
        (name == p.theirs ? keys_ : values_) = std::move(*value);
        return Done{};
      }
    if (name == "-hf" || name == "-hfr" || name == "--hf-repo") return hugging_face();
    if (name == "--format" && has("--json-schema")) return format_of_ollama();
    if (name == "--bind" && has("--host")) return bind();
    if (name == "--kv-quant" && has("--kv-type")) return kv_type();
    if ((name == "--model-dirs" || name == "--models-dir") && (has("--model") || command_ == "gimbal models"))
      return model_folders();
    if (const Pair* p = find(kRenamed, name)) {
      const std::string ours = p->say, option = ours.substr(0, ours.find('='));
      if (!has(option)) return refuse(name, format("`{} --help` lists what it takes", command_));
      args_[at_] = ours + word.substr(name.size());
      if (option == "--gpu-layers") any_number_of_layers();
      at_ += kind_(option) == OptionKind::Value && args_[at_].find('=') == word.npos;
      return Done{};
    }
    if (const Pair* p = find(kAlways, name)) return always(*p);
    if (const Pair* p = find(kInstead, name)) return refuse(name, p->say);
    return Done{};
  }

  Error refuse(const std::string& name, std::string instead) const {
    return {Code::Usage, format("{} has no option {}", command_, gimbal::quoted(name)), std::move(instead)};
  }

  // The value of the option at at_; both are taken out.
  Result<std::string> take_value() {
    const std::string word = args_[at_];
    const size_t equals = word.find('=');
    if (equals == word.npos && at_ + 1 == args_.size())
      return Error{Code::Usage, format("{} needs a value", word), ""};
    std::string value = equals == word.npos ? args_[at_ + 1] : word.substr(equals + 1);
    const auto begin = args_.begin() + std::ptrdiff_t(at_);
    args_.erase(begin, begin + (equals == word.npos ? 2 : 1));
    at_--;  // the loop goes to what now stands there
    return value;
  }
  void put(std::vector<std::string> words) {
    args_.insert(args_.begin() + std::ptrdiff_t(at_ + 1), words.begin(), words.end());
    at_ += words.size();
  }

  Status hugging_face() {
    if (!has("--model")) return refuse("-hf", format("`{} --help` lists what it takes", command_));
    auto value = take_value();
    if (!value) return value.error();
    put({"--model", value->starts_with("hf.co/") ? *value : "hf.co/" + *value});
    return Done{};
  }

  // "json": any object; or a schema.
  Status format_of_ollama() {
    auto value = take_value();
    if (!value) return value.error();
    put({"--json-schema", *value == "json" ? R"({"type": "object"})" : *value});
    return Done{};
  }

  // ADDRESS:PORT of shimmy.
  Status bind() {
    auto value = take_value();
    if (!value) return value.error();
    const auto bind = split_bind(*value);
    if (!bind) return refuse("--bind", "write --host ADDRESS --port N; --port 0 takes any that is free");
    put({"--host", bind->host, "--port", bind->port});
    return Done{};
  }

  Status kv_type() {
    auto value = take_value();
    if (!value) return value.error();
    put({"--kv-type", kv_type_of_shimmy(*value)});
    return Done{};
  }

  Status model_folders() {
    auto value = take_value();
    if (!value) return value.error();
    add_model_folders(std::move(*value));
    return Done{};
  }

  // "auto" of llama.cpp is -1 here.
  void any_number_of_layers() {
    if (at_ + 1 < args_.size() && args_[at_ + 1] == "auto") args_[at_ + 1] = "-1";
  }

  Status always(const Pair& p) {
    const std::string word = args_[at_];
    std::optional<std::string> value;
    if (const size_t equals = word.find('='); equals != word.npos) value = word.substr(equals + 1);
    else if (at_ + 1 < args_.size())
      for (const char* known : {"on", "off", "auto", "0", "1", "true", "false", "disabled", "enabled"})
        if (args_[at_ + 1] == known) value = known;
    const size_t words = word.find('=') == word.npos && value ? 2 : 1;
    if (value && (*value == "off" || *value == "0" || *value == "false" || *value == "disabled"))
      return refuse(word.substr(0, word.find('=')) + " " + *value, format("leave it out: {}", p.say));
    const auto begin = args_.begin() + std::ptrdiff_t(at_);
    args_.erase(begin, begin + std::ptrdiff_t(words));
    at_--;
    notes_.push_back(format("note: {} changes nothing: {}", p.theirs, p.say));
    return Done{};
  }

  std::vector<std::string>& args_;
  const std::string& command_;
  const std::function<OptionKind(std::string_view)>& kind_;
  std::vector<std::string>& notes_;
  size_t at_ = 0;
  std::string keys_, values_;  // formats of the KV cache
};

}  // namespace

Status translate_options(std::vector<std::string>& args, const std::string& command,
                         const std::function<OptionKind(std::string_view)>& has,
                         std::vector<std::string>& notes) {
  return Translation(args, command, has, notes).run();
}

}  // namespace gimbal
