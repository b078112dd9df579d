// gimbal logits: the model's raw output for given tokens, for comparing engines with each other.
#include <algorithm>
#include <map>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/options/picture_options.h"
#include "apps/reports/stderr_sink.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "engine/engine.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

class Logits final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.text("--tokens", "IDS", "token ids, such as 1,403,407; none is added", tokens_);
    a.text("--prompt", "TEXT", "a text in place of the ids; with --image, pictures are part of it", prompt_);
    pictures_.declare(a);
    a.text("--positions", "all|last|LIST", "positions to write, in this order, such as 0,3 (default last)",
           positions_);
    a.text("-o,--output", "FILE",
           "output: little-endian float32, one row of vocabulary size per position; -: stdout", output_);
    gimbal::declare(a, engine_, Needs::Model);
    a.example("gimbal logits model.gguf --tokens 1,403,407 --positions all -o logits.f32");
  }

  Result<int> run() override {
    if (tokens_ && (prompt_ || pictures_.given()))
      return Error{Code::Usage, "--tokens excludes --prompt and --image", "give a text, or ids"};
    auto ids = parse_ids("--tokens", tokens_.value_or(""));
    if (!ids) return ids.error();
    if (ids->empty() && !prompt_)
      return Error{Code::Usage, "there are no tokens to compute",
                   "give --tokens IDS, such as --tokens 1,403,407, or --prompt TEXT"};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    auto source = open_model(model_, engine_, quiet);
    if (!source) return source.error();
    if (auto ok = check_generates(*source->file); !ok) return ok.error();
    auto inputs = prompt_ ? of_prompt(*source, *options) : Inputs(std::move(*ids));
    if (!inputs) return inputs.error();
    auto wanted = wanted_positions(int(inputs->size()));
    if (!wanted) return wanted.error();
    auto out = BinaryOutput::open(
        output_, [&](const std::string& p) { return source->file->is(p) || pictures_.is_input(p); });
    if (!out) return out.error();
    const bool all = positions_ && *positions_ == "all", pictures = pictures_.given();
    if (all) options->run.logit_rows = std::min<int>(options->run.batch, 32);
    // Rows of a picture may have to be in one step.
    if (pictures) options->run.logit_rows = options->run.batch;
    Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
    auto loading = engine.load(*source);
    if (!loading) return loading.error();
    const LoadedModelPtr loaded = *loading;
    auto session = Session::create(*loaded->model);
    if (!session) return session.error();
    if (int(inputs->size()) > (*session)->room())
      return Error{
          Code::Usage,
          format("there are {} tokens, but the context has {} positions", inputs->size(), (*session)->room()),
          format("give --ctx {} or more", inputs->size())};

    auto ok = all        ? write_all(**session, *inputs, *out)
              : pictures ? write_some_of_all(**session, *inputs, *wanted, *out)
                         : write_some(**session, *inputs, *wanted, *out);
    if (!ok) return ok.error();
    if (ok = out->close(); !ok) return ok.error();
    const bool to_file = output_ && *output_ != "-";
    if (json && to_file)
      print_json({{"positions", *wanted},
                  {"vocabulary", loaded->model->config().vocabulary},
                  {"output", *output_},
                  {"device", loaded->model->device().id()}},
                 true);
    return kDone;
  }

 private:
  // The inputs of --prompt; with pictures, also the model's requirements for them.
  Result<Inputs> of_prompt(const ModelFile& model, EngineOptions& options) const {
    auto tokenizer = Tokenizer::create(model.file->metadata());
    if (!tokenizer) return tokenizer.error();
    if (!pictures_.given()) return Inputs((*tokenizer)->encode(*prompt_));
    return pictures_.inputs(model, **tokenizer, *prompt_, options, quiet);
  }

  Result<std::vector<int32_t>> wanted_positions(int count) const {
    const std::string which = positions_.value_or("last");
    std::vector<int32_t> all;
    if (which == "last") return std::vector<int32_t>{count - 1};
    if (which == "all") {
      for (int i = 0; i < count; i++) all.push_back(i);
      return all;
    }
    auto list = parse_ids("--positions", which);
    if (!list)
      return Error{Code::Usage,
                   format("--positions must be all, last, or indices with commas between them, not '{}'",
                          printable(which)),
                   "for example: --positions 0,3"};
    if (list->empty()) return Error{Code::Usage, "--positions is empty", "for example: --positions 0,3"};
    for (int32_t p : *list)
      if (p >= count)
        return Error{Code::Usage,
                     format("--positions has {}, but there are {} tokens: the indices are 0 to {}", p, count,
                            count - 1),
                     ""};
    return list;
  }

  static Status write_all(Session& session, const InputView& ids, BinaryOutput& out) {
    Status written = Done{};
    auto ok = session.advance(ids, Session::Wanted::All, [&](size_t, std::span<const float> row) {
      if (written) written = check_logits(row);
      if (written) written = out.write(row.data(), row.size_bytes());
    });
    return ok ? written : ok;
  }

  // Only the requested rows are computed: the tokens are split after each of them.
  static Status write_some(Session& session, const InputView& ids, const std::vector<int32_t>& wanted,
                           BinaryOutput& out) {
    std::map<int32_t, std::vector<float>> rows;
    for (int32_t p : wanted) rows[p];
    size_t begin = 0;
    for (auto& [position, row] : rows) {
      const InputView part = ids.subview(begin, size_t(position) + 1 - begin);
      auto ok = session.advance(
          part, Session::Wanted::Last,
          [&row = row](size_t, std::span<const float> logits) { row.assign(logits.begin(), logits.end()); });
      if (!ok) return ok;
      begin = size_t(position) + 1;
    }
    return write_rows(rows, wanted, out);
  }

  // Of all rows, for texts that cannot be split everywhere.
  static Status write_some_of_all(Session& session, const InputView& inputs,
                                  const std::vector<int32_t>& wanted, BinaryOutput& out) {
    std::map<int32_t, std::vector<float>> rows;
    for (int32_t p : wanted) rows[p];
    auto ok = session.advance(inputs, Session::Wanted::All, [&](size_t i, std::span<const float> logits) {
      if (const auto row = rows.find(int32_t(i)); row != rows.end())
        row->second.assign(logits.begin(), logits.end());
    });
    return ok ? write_rows(rows, wanted, out) : ok;
  }

  static Status write_rows(std::map<int32_t, std::vector<float>>& rows, const std::vector<int32_t>& wanted,
                           BinaryOutput& out) {
    for (const auto& [position, row] : rows)
      if (auto ok = check_logits(row); !ok) return ok;
    for (int32_t p : wanted)
      if (auto ok = out.write(rows[p].data(), rows[p].size() * sizeof(float)); !ok) return ok;
    return Done{};
  }

  std::string model_;
  std::optional<std::string> tokens_, prompt_, positions_, output_;
  PictureOptions pictures_;
  CommonOptions engine_;
};

}  // namespace

std::unique_ptr<Command> make_logits() { return std::make_unique<Logits>(); }

}  // namespace gimbal
