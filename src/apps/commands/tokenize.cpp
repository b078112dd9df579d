// gimbal tokenize: text to token ids, with the tokenizer of a model file.
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/options/picture_options.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

class Tokenize final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--text", "TEXT", "the text to tokenize; without --text and --file it is read from stdin", text_);
    a.text("-f,--file", "FILE", "read the text from a file, byte for byte; -: stdin", file_);
    a.flag("--no-bos", "do not add the token that begins a text (BOS)", no_bos_);
    a.flag("--no-special", "treat special tokens in the text as plain text", no_special_);
    a.flag("--ids", "print only the ids, on one line; -1: a row of a picture", ids_);
    pictures_.declare(a);
    a.example("gimbal tokenize --text \"Once upon a time\"");
  }

  Result<int> run() override {
    auto text = input();
    if (!text) return text.error();
    auto source = open_header(model_, {}, quiet);
    if (!source) return source.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    if (pictures_.given()) return with_pictures(*source, **tokenizer, *text);
    const auto ids = (*tokenizer)->encode(*text, {.add_bos = !no_bos_, .parse_special = !no_special_});
    if (json) return print_json({{"tokens", ids}}, true), kDone;
    if (ids_) return print(format("{}\n", fmt::join(ids, ","))), kDone;
    for (Token id : ids) print(format("{}\t'{}'\n", id, printable((*tokenizer)->piece(id, true))));
    return kDone;
  }

 private:
  Result<int> with_pictures(const ModelFile& model, const Tokenizer& tokenizer, const std::string& text) {
    if (no_bos_ || no_special_)
      return Error{Code::Usage, "--no-bos and --no-special are not for a text with pictures", ""};
    auto given = pictures_.open(model, quiet);
    if (!given) return given.error();
    auto chunks = given->chunks(tokenizer, text);
    if (!chunks) return chunks.error();
    const Json all = chunks_json(*given, *chunks);
    if (json) return print_json(all, true), kDone;
    if (ids_) return print(format("{}\n", fmt::join(all["tokens"].get<std::vector<Token>>(), ","))), kDone;
    for (const PromptChunk& c : *chunks) {
      for (Token id : c.tokens) print(format("{}\t'{}'\n", id, printable(tokenizer.piece(id, true))));
      if (c.piece >= 0)
        print(format("-1\tpicture, {} rows\n",
                     rows_of(given->projector->vision.settings, given->pieces[size_t(c.piece)])));
    }
    return kDone;
  }

  Result<std::string> input() const {
    if (text_ && file_)
      return Error{Code::Usage, "--text and --file both give a text", "give only one of them"};
    if (text_) return *text_;
    if (file_) return read_text(*file_);
    if (stdin_is_terminal())
      return Error{Code::Usage, "there is no text to tokenize",
                   "give --text TEXT or --file FILE, or write the text to stdin"};
    return read_text("-");
  }

  std::string model_;
  std::optional<std::string> text_, file_;
  PictureOptions pictures_;
  bool no_bos_ = false, no_special_ = false, ids_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize() { return std::make_unique<Tokenize>(); }

}  // namespace gimbal
