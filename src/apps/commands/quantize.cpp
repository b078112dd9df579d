// gimbal quantize: writes a model with its matrices in smaller formats, and checks such files against their
// source.
#include <algorithm>
#include <filesystem>
#include <thread>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "audit/model_identity.h"
#include "base/json.h"
#include "base/text.h"
#include "fetch/pull_event.h"
#include "huggingface/folder.h"
#include "quantize/quantize.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

Result<DType> encoded_type(const char* option, const std::string& text) {
  const auto type = dtype_named(text);
  if (type && can_encode(*type)) return *type;
  std::string known;
  for (DType t : kAllDTypes)
    if (can_encode(t)) known += (known.empty() ? "" : ", ") + std::string(info(t).name);
  return Error{Code::Usage,
               format("{}: {} is no format that tensors can be written in", option, printable(text)),
               "these are: " + known};
}

class Quantize final : public Command {
 public:
  void declare(Arguments& a) override {
    a.positional("MODEL", "GGUF file or folder with config.json; with --check the quantized file", model_);
    a.positional("OUT.gguf", "the file to write; with --check the source", out_);
    a.positional("TYPE", "mixture: Q4_K_M, Q5_K_S, Q8_0, IQ4_XS, ...", type_);
    a.text("--imatrix", "FILE", "importance of the inputs (GGUF or the older binary form)", importance_);
    a.texts("--tensor-type", "PATTERN=TYPE", "format of tensors whose name contains this regular expression",
            names_);
    a.text("--output-tensor-type", "TYPE", "format of output.weight", output_);
    a.text("--token-embedding-type", "TYPE", "format of the token embedding", embedding_);
    a.flag("--pure", "one format for all matrices", pure_);
    a.flag("--keep-split", "write as many files as the model has", keep_split_);
    a.flag("--dry-run", "only print the size", dry_run_);
    a.flag("--check", "compare a quantized file with its source, byte by byte", check_);
    a.flag("--force", "replace files that exist", force_);
    a.whole("--threads", "N", "threads (default: all processors)", threads_, 1, 1024);
    a.example("gimbal quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M");
    a.example("gimbal quantize --check model-q4_k_m.gguf model-f16.gguf");
  }

  Result<int> run() override {
    if (check_) return compare();
    if (!model_ || !out_ || !type_)
      return Error{Code::Usage, "a model, the file to write and a mixture are all needed",
                   "for example: gimbal quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M"};
    auto rules = wanted_rules();
    if (!rules) return rules.error();
    derivation_.rules = *rules;
    if (auto ok = open(*model_); !ok) return ok.error();
    QuantizeWork work = this->work();
    auto totals = plan_quantization(work);
    if (!totals) return totals.error();
    const std::vector<std::string> paths = paths_of(work, *out_);
    if (!dry_run_) {
      for (const std::string& path : paths)
        if (auto ok = may_write(*source_->file, path, force_); !ok) return ok.error();
      if (auto ok = digests(); !ok) return ok.error();
      InterruptGuard guard;
      Progress bar("quantizing", !quiet);
      work.progress = [&](uint64_t done, uint64_t total) {
        bar.update(source_bytes(done, total), source_->file->file_bytes());
        return !InterruptGuard::interrupted();
      };
      work.found = [&](const GrowingFile& part, GrowingFile::Found found) { note_part(part, found); };
      if (auto ok = quantize(work, *out_); !ok)
        return InterruptGuard::interrupted() ? interrupted() : ok.error();
    }
    report(*totals, paths);
    return kDone;
  }

 private:
  static Error interrupted() {
    return {Code::Failed, "interrupted", "the same command continues the file", reason::kCancelled};
  }

  void note_part(const GrowingFile& part, GrowingFile::Found found) {
    continued_ += part.kept();
    if (quiet || found == GrowingFile::Found::Nothing) return;
    const std::string name = gimbal::quoted(part.path());
    note(found == GrowingFile::Found::Same
             ? format("continuing {}, which has {}", name, human_bytes(part.kept()))
         : found == GrowingFile::Found::Other
             ? format("{} is of another source or mixture: begun anew", name)
             : format("{} is damaged: its bytes are not those that were written; begun anew", name));
  }

  Result<QuantizeRules> wanted_rules() const {
    QuantizeRules rules{};
    auto mixture = mixture_named(*type_);
    if (!mixture) return mixture.error();
    rules.mixture = *mixture, rules.pure = pure_;
    const auto set = [](const char* option, const std::optional<std::string>& text,
                        std::optional<DType>& to) -> Status {
      if (!text) return Done{};
      auto type = encoded_type(option, *text);
      if (!type) return type.error();
      to = *type;
      return Done{};
    };
    if (auto ok = set("--output-tensor-type", output_, rules.output); !ok) return ok.error();
    if (auto ok = set("--token-embedding-type", embedding_, rules.embedding); !ok) return ok.error();
    for (const std::string& name : names_) {
      const size_t equals = name.rfind('=');
      if (equals == std::string::npos || equals == 0 || name.find('\n') != std::string::npos)
        return Error{Code::Usage,
                     format("--tensor-type: expected PATTERN=TYPE, got {}", gimbal::quoted(name)), ""};
      auto type = encoded_type("--tensor-type", name.substr(equals + 1));
      if (!type) return type.error();
      rules.names.push_back({name.substr(0, equals), *type});
    }
    return rules;
  }

  Status open(const std::string& model) {
    auto source = open_header(model, {}, quiet);
    if (!source) return source.error();
    source_ = std::move(*source);
    if (!importance_) return Done{};
    auto importance = Importance::open(*importance_);
    if (!importance) return importance.error();
    weights_ = std::move(*importance);
    return Done{};
  }

  QuantizeWork work() const {
    const int all = std::max(1, int(std::thread::hardware_concurrency()));
    return {*source_->file,         derivation_, weights_ ? &*weights_ : nullptr,
            threads_.value_or(all), keep_split_, {}};
  }

  // SHA-256 of the source and of the importance matrix.
  Status digests() {
    if (source_->path.empty())
      return Error{Code::Usage, "the built-in model has no file to quantize", "name a file or a folder"};
    auto files = files_of_model(source_->path);
    if (!files) return files.error();
    auto digest = digest_of_files(*files, true);
    if (!digest) return digest.error();
    derivation_.source_sha256 = digest->sha256;
    if (!importance_) return Done{};
    const std::string path[] = {*importance_};
    auto of_importance = digest_of_files(path, false);
    if (!of_importance) return of_importance.error();
    derivation_.importance_sha256 = of_importance->sha256;
    return Done{};
  }

  uint64_t source_bytes(uint64_t done, uint64_t total) const {
    return total ? uint64_t(double(source_->file->file_bytes()) * (double(done) / double(total))) : 0;
  }

  void report(const QuantizedTotals& t, const std::vector<std::string>& paths) const {
    const double bits = t.values ? 8 * double(t.bytes) / double(t.values) : 0;
    if (json) {
      print_json({{"model", source_->name},
                  {"paths", paths},
                  {"written", !dry_run_},
                  {"mixture", derivation_.rules.mixture.name},
                  {"bytes", t.bytes},
                  {"source_bytes", t.from_bytes},
                  {"continued_bytes", continued_},
                  {"bits_per_weight", bits},
                  {"quantized", t.quantized},
                  {"other_block", t.substituted},
                  {"requantized", t.requantized},
                  {"without_importance", t.without_importance}});
      return;
    }
    print(format("{}: {}, {} of weights (from {}), {:.2f} bits per weight{}\n", printable(paths[0]),
                 derivation_.rules.mixture.name, human_bytes(t.bytes), human_bytes(t.from_bytes), bits,
                 dry_run_ ? "; nothing was written" : ""));
    if (quiet) return;
    if (t.substituted)
      note(format("{} tensors got another format: their rows are no multiple of its block", t.substituted));
    if (t.requantized)
      note(format("{} tensors were quantized before: quantize the original for less error", t.requantized));
    if (!t.without_importance.empty())
      note(format("the importance matrix has nothing for {} tensors, {} is the first",
                  t.without_importance.size(), gimbal::quoted(t.without_importance[0])));
  }

  // --check: the first argument is the quantized file, the second one its source.
  Result<int> compare() {
    if (!model_ || !out_ || type_)
      return Error{Code::Usage, "--check needs the quantized file and its source",
                   "for example: gimbal quantize --check model-q4_k_m.gguf model-f16.gguf"};
    auto made = open_header(*model_, {}, quiet);
    if (!made) return made.error();
    auto said = derivation_of(*made->file);
    if (!said) return said.error();
    if (!said->importance_sha256.empty() && !importance_)
      return Error{Code::Usage, format("{} was made with an importance matrix", made->file->path()),
                   "give it with --imatrix"};
    if (said->importance_sha256.empty() && importance_)
      return Error{Code::Usage, format("{} was made without an importance matrix", made->file->path()),
                   "leave out --imatrix"};
    if (auto ok = open(*out_); !ok) return ok.error();
    if (auto ok = digests(); !ok) return ok.error();
    const auto differ = [](const char* what, const std::string& found, const std::string& expected) {
      return Error{Code::Failed,
                   format("the {} is another one: SHA-256 {}, expected {}", what, found, expected), ""};
    };
    if (derivation_.source_sha256 != said->source_sha256)
      return differ("source", derivation_.source_sha256, said->source_sha256);
    if (derivation_.importance_sha256 != said->importance_sha256)
      return differ("importance matrix", derivation_.importance_sha256, said->importance_sha256);
    derivation_.rules = said->rules;
    QuantizeWork work = this->work();
    work.keep_split = made->file->metadata().unsigned_integer("split.count").value_or(1) > 1;
    InterruptGuard guard;
    Progress bar("checking", !quiet);
    work.progress = [&](uint64_t done, uint64_t total) {
      bar.update(source_bytes(done, total), source_->file->file_bytes());
      return !InterruptGuard::interrupted();
    };
    if (auto ok = check_quantized(work, made->path); !ok) return ok.error();
    if (json)
      print_json({{"path", made->path},
                  {"source", source_->path},
                  {"same", true},
                  {"mixture", said->rules.mixture.name}});
    else
      print(format("{}: the same bytes, made again from {}\n", printable(made->path),
                   printable(source_->path)));
    return kDone;
  }

  std::optional<std::string> model_, out_, type_, importance_, output_, embedding_;
  std::vector<std::string> names_;
  bool pure_ = false, keep_split_ = false, dry_run_ = false, check_ = false, force_ = false;
  std::optional<int> threads_;
  std::optional<ModelFile> source_;
  std::optional<Importance> weights_;
  Derivation derivation_{};
  uint64_t continued_ = 0;  // bytes of an interrupted run
};

}  // namespace

std::unique_ptr<Command> make_quantize() { return std::make_unique<Quantize>(); }

}  // namespace gimbal
