// gimbal detokenize: token ids to text.
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

class Detokenize final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--tokens", "IDS", "token ids, such as 1,403,407", tokens_);
    a.flag("--special", "print control tokens as text, too", special_);
    a.example("gimbal detokenize --tokens 1,403,407,261,378");
  }

  Result<int> run() override {
    if (!tokens_)
      return Error{Code::Usage, "there are no token ids to convert",
                   "give --tokens IDS, such as --tokens 1,403,407"};
    auto ids = parse_ids("--tokens", *tokens_);
    if (!ids) return ids.error();
    auto source = open_header(model_, {}, quiet);
    if (!source) return source.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    for (Token id : *ids)
      if (id >= (*tokenizer)->size())
        return Error{Code::Usage,
                     format("token {} is not in the vocabulary of {}: its ids are 0 to {}", id, source->name,
                            (*tokenizer)->size() - 1),
                     ""};
    const std::string text = (*tokenizer)->decode(*ids, special_);
    if (json) return print_json({{"text", text}}, true), kDone;
    // Exact bytes for scripts; on a terminal, a newline before the shell's prompt.
    print(stdout_is_terminal() ? printable(text, true) + "\n" : text);
    return kDone;
  }

 private:
  std::string model_;
  std::optional<std::string> tokens_;
  bool special_ = false;
};

}  // namespace

std::unique_ptr<Command> make_detokenize() { return std::make_unique<Detokenize>(); }

}  // namespace gimbal
