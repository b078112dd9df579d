// gimbal embed: texts to numbers that lie near each other where the texts mean nearly the same.
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/engine.h"
#include "runtime/embedding.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

class Embed final : public Command {
 public:
  // An embedding is compared with others for years, so nothing is rounded on its way: keys and values take
  // little room, for they are those of one text.
  Embed() { engine_.cache_type = "f32"; }

  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.positional("TEXT", "the same as --text TEXT", behind_);
    a.section("Text");
    a.text("-p,--text", "TEXT", "the text; without it, --file and --tokens it is read from stdin", text_);
    a.text("-f,--file", "FILE",
           "read the text from a file or pipe; one newline at its end is dropped; -: stdin", file_);
    a.text("--tokens", "IDS", "the text as token ids; none is added", tokens_);
    a.flag("--lines", "each line of the input is a text; empty lines are left out", lines_);
    a.flag(
        "--jsonl",
        "each line of the input is JSON: a text, {\"text\": ...} or {\"tokens\": [...]}; so is each line of "
        "the output",
        json_lines_);
    a.flag("--parse-special", "treat control tokens written out in a text as such", parse_special_);
    a.section("Embedding");
    a.one_of("--pooling",
             "pooling of the token vectors: mean, cls (the first token's), last, or none: all of them "
             "(default: from the model file)",
             pooling_, {"mean", "cls", "last", "none"});
    a.flag("--no-normalize", "do not normalize embeddings to length 1", not_normalised_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal embed bge-small.gguf \"Once upon a time\"");
    a.example("gimbal embed bge-small.gguf -f sentences.txt --lines --json");
    a.example("gimbal embed bge-small.gguf -f texts.jsonl --jsonl > embeddings.jsonl");
  }

  Result<int> run() override {
    auto input = this->input();
    if (!input) return input.error();
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    auto config = configure(*source->file);
    if (!config) return config.error();
    if (auto ok = choose_pooling(*source->file); !ok) return ok.error();
    auto texts = tokenized(*source->file, *input);
    if (!texts) return texts.error();
    // The longest text at once, for some models need that, and all are faster so. The bits are the same.
    if (!engine_.batch)
      for (const auto& t : *texts)
        options->run.batch = std::max(options->run.batch, int(std::min<size_t>(t.size(), 65536)));
    options->run = embedding_options(options->run, *config, texts->size());
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    auto loaded = engine.load(*source);
    if (!loaded) return loaded.error();
    const auto width = size_t((*loaded)->model->plan().width(Output::Hidden));
    Progress bar("embedding", !quiet && texts->size() > 1, Progress::Unit::Tokens);
    size_t all = 0, done = 0;
    for (const auto& t : *texts) all += t.size();
    auto ok = engine.embed(*loaded, *texts, settings_, [&](size_t i, std::span<const float> e) -> Status {
      show(e, width, (*texts)[i].size());
      bar.update(done += (*texts)[i].size(), all);
      return Done{};
    });
    if (!ok) return ok.error();
    return kDone;
  }

 private:
  // A text, or its tokens.
  struct Input {
    std::string text;
    std::optional<std::vector<Token>> tokens = {};
  };

  Result<std::vector<Input>> input() {
    if (behind_) {
      if (text_)
        return Error{Code::Usage,
                     format("unexpected argument {}: there is a text already", gimbal::quoted(*behind_)),
                     "put a text with spaces into quotes"};
      text_ = behind_;
    }
    if (text_.has_value() + file_.has_value() + tokens_.has_value() > 1)
      return Error{Code::Usage, "--text, --file and --tokens each give a text", "give only one of them"};
    if (lines_ && json_lines_)
      return Error{Code::Usage, "--lines and --jsonl exclude each other", "give only one of them"};
    if (tokens_) {
      auto ids = parse_ids("--tokens", *tokens_);
      if (!ids) return ids.error();
      return std::vector<Input>{{"", std::move(*ids)}};
    }
    std::string text;
    if (text_) {
      text = *text_;
    } else {
      if (!file_ && stdin_is_terminal())
        return Error{Code::Usage, "there is no text to embed",
                     "give a text behind MODEL or --file FILE, or write the text to stdin"};
      auto read = read_text(file_.value_or("-"));
      if (!read) return read.error();
      text = without_last_newline(std::move(*read));
    }
    if (!lines_ && !json_lines_) return std::vector<Input>{{std::move(text)}};
    return by_line(text);
  }

  Result<std::vector<Input>> by_line(const std::string& text) const {
    std::vector<Input> all;
    size_t number = 1;
    for (size_t at = 0, end; at <= text.size(); at = end + 1, number++) {
      end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      if (line.ends_with('\r')) line.pop_back();
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      if (lines_) {
        all.push_back({std::move(line)});
        continue;
      }
      auto one = json_line(line, number);
      if (!one) return one.error();
      all.push_back(std::move(*one));
    }
    if (all.empty()) return Error{Code::Usage, "there is no text to embed: all lines are empty", ""};
    return all;
  }

  static Result<Input> json_line(const std::string& line, size_t number) {
    const Json j = parse_json(line);
    if (j.is_string()) return Input{j.get<std::string>()};
    if (j.is_object() && j.contains("text") && j["text"].is_string())
      return Input{j["text"].get<std::string>()};
    if (j.is_object() && j.contains("tokens") && j["tokens"].is_array()) {
      std::vector<Token> ids;
      for (const Json& id : j["tokens"]) {
        if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
          return Error{Code::Usage, format("line {}: \"tokens\" has a value that is not a token id", number),
                       ""};
        ids.push_back(id.get<Token>());
      }
      return Input{"", std::move(ids)};
    }
    return Error{Code::Usage,
                 format("line {}: {} where a text was expected", number,
                        j.is_discarded() ? "no JSON" : "JSON of another kind"),
                 "write each line as \"a text\", {\"text\": \"a text\"} or {\"tokens\": [1, 403]}"};
  }

  Status choose_pooling(const ModelSource& file) {
    settings_.normalised = !not_normalised_;
    if (!pooling_.empty()) {
      settings_.pooling = *pooling_named(pooling_);
      return Done{};
    }
    auto says = pooling_of(file.metadata());
    if (!says) return says.error();
    if (!*says)
      return Error{Code::Usage, format("{} does not define the pooling of its embeddings", file.path()),
                   "give --pooling mean, cls, last or none"};
    settings_.pooling = **says;
    return Done{};
  }

  Result<std::vector<std::vector<Token>>> tokenized(const ModelSource& file,
                                                    const std::vector<Input>& input) const {
    std::vector<std::vector<Token>> all;
    std::unique_ptr<Tokenizer> tokenizer;
    for (const Input& i : input) {
      if (i.tokens) {
        all.push_back(*i.tokens);
        continue;
      }
      if (!tokenizer) {
        auto made = Tokenizer::create(file.metadata());
        if (!made) return made.error();
        tokenizer = std::move(*made);
      }
      all.push_back(tokenizer->encode(i.text, {.parse_special = parse_special_}));
    }
    return all;
  }

  void show(std::span<const float> e, size_t width, size_t tokens) const {
    const bool by_token = settings_.pooling == Pooling::None;
    if (json || json_lines_) {
      Json numbers = Json::array();
      if (by_token)
        for (size_t at = 0; at < e.size(); at += width) numbers.push_back(e.subspan(at, width));
      else numbers = e;
      print_json(
          {{"embedding", std::move(numbers)}, {"pooling", name_of(settings_.pooling)}, {"tokens", tokens}},
          true);
      return;
    }
    for (size_t at = 0; at < e.size(); at += width)
      print(format("{}\n", fmt::join(e.subspan(at, width), " ")));
  }

  std::string model_, pooling_;
  std::optional<std::string> behind_, text_, file_, tokens_;
  bool lines_ = false, json_lines_ = false, parse_special_ = false, not_normalised_ = false;
  CommonOptions engine_;
  EmbedSettings settings_;
};

}  // namespace

std::unique_ptr<Command> make_embed() { return std::make_unique<Embed>(); }

}  // namespace gimbal
