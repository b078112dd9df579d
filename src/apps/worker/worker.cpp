#include "apps/worker/worker.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include "apps/options/generation_options.h"
#include "apps/reports/receipt_rows.h"
#include "apps/toolkit/build_info.h"
#include "apps/toolkit/exit_code.h"
#include "apps/toolkit/keyboard.h"
#include "apps/toolkit/terminal.h"
#include "apps/worker/service.h"
#include "base/file.h"
#include "ops/op_def.h"
#include "runtime/generate.h"

namespace gimbal::worker {
namespace {

class Worker {
 public:
  explicit Worker(const About& about) : about_(about), name_(program_name(about.backend)) {}

  Result<int> run(std::vector<std::string> words) {
    Arguments a(
        name_,
        format("Generates text from a model file, or serves it with --port. Holds the {} backend alone.",
               about_.backend));
    declare(a);
    a.section("Common");
    a.help_flag();
    if (auto ok = a.parse(std::move(words)); !ok) return ok.error();
    if (a.help_wanted()) return print(a.help()), kDone;
    if (version_) return print(format("{} {}\n", name_, GIMBAL_VERSION)), kDone;
    if (list_) return print(format("{}\n", about_.backend)), kDone;
    if (build_info_)
      return print(build_info(format("{} {}", name_, GIMBAL_VERSION), {about_.backend})), kDone;
    if (auto ok = check(a); !ok) return ok.error();
    auto done = service_.http.port
                    ? serve(about_, service_, *model_, gpu_.value_or(0), options(), events(), quiet_)
                    : generate_text();
    progress_.reset();  // before any other output
    return done;
  }

 private:
  void declare(Arguments& a) {
    a.section("Model");
    a.text("-m,--model", "FILE", "a GGUF file", model_);
    text_.declare(a);
    a.section("Device");
    if (about_.has_gpus) {
      const std::string names = format("--device,--{}-device", about_.backend);
      a.whole(names, "N", "number of the GPU, from 0 (default 0)", gpu_, 0, 1023);
    } else {
      a.whole("-t,--threads", "N", "threads (default: one per physical core)", threads_, 1, 1024);
      a.text("--cpu-variant", "NAME", "force an instruction set", variant_);
    }
    a.whole("--ctx", "N", "context length in tokens (default: the model's own, at most 4096)", context_, 1,
            1 << 24);
    a.whole("--batch", "N", "tokens of a prompt computed at once (default 256)", batch_, 1, 65536);
    std::vector<std::string> cache_types;
    for (DType t : kAllDTypes)
      if (has(kCacheTypes, t)) cache_types.push_back(info(t).name);
    a.one_of("--kv-type", "format of the KV cache (default f16)", cache_type_, cache_types);
    a.one_of("--verify",
             "check kernels and model: auto (default): at the first use on a device; always; never", verify_,
             {"auto", "always", "never"});
    gimbal::worker::declare(a, service_);
    a.section("Common");
    a.flag("--quiet", "no progress and no notes on stderr", quiet_);
    for (const auto& [name, help, to] :
         {std::tuple("--list-backends", "print the backend of this program", &list_),
          {"--build-info", "version, compiler, options, backend, architectures, formats, libraries",
           &build_info_},
          {"--version", "name and version", &version_}}) {
      a.flag(name, help, *to);
      a.typed_only();
    }
    a.example(format("{} --model model.gguf -p \"Once upon a time\"", name_));
    a.example(format("{} --model model.gguf --port 8080", name_));
    a.example(format("{} --model model.gguf --port 8080 --worker-id w1 --hive-url http://hive:9200", name_));
    a.explain_unknown([this](const std::string& option) {
      return option_of_another_build(option, about_.backend, about_.has_gpus);
    });
  }

  Status check(const Arguments& a) {
    if (!model_)
      return Error{Code::Usage, "there is no model",
                   format("give a GGUF file: {} --model model.gguf", name_)};
    if (auto ok = gimbal::worker::check(a, service_); !ok) return ok;
    if (!service_.http.port && !text_.prompt && !text_.file && stdin_is_terminal())
      return Error{Code::Usage, "there is no prompt",
                   "give -p TEXT or --file FILE, or write the prompt to stdin"};
    return text_.finish();
  }

  EngineOptions options() const {
    EngineOptions o;
    o.run.context = context_.value_or(o.run.context);
    o.run.batch = batch_.value_or(o.run.batch);
    o.run.cache_type = *dtype_named(cache_type_);
    o.threads = threads_, o.cpu_variant = variant_;
    o.verify = verify_ == "never" ? Verify::Never : verify_ == "always" ? Verify::Always : Verify::Auto;
    return o;
  }

  // Only used while this object exists.
  EventSink events() {
    return [this](const Event& e) {
      if (const auto* p = std::get_if<event::Progress>(&e)) show(*p);
      const auto* f = std::get_if<Fallback>(&e);
      if (f && (f->kind == Fallback::Kernel || f->kind == Fallback::Weights))
        note(format("note: {} is not used: {}", f->what, printable(f->why.message)));
      return true;
    };
  }

  void show(const event::Progress& p) {
    if (!progress_ || shown_ != p.stage) {
      progress_.reset();
      progress_.emplace(
          p.stage == event::Progress::Verifying   ? format("verifying {} (first use)", p.device)
          : p.stage == event::Progress::Measuring ? format("timing {} (first use)", p.device)
                                                  : "loading",
          !quiet_, p.stage == event::Progress::Loading ? Progress::Unit::Bytes : Progress::Unit::Kernels);
      shown_ = p.stage;
    }
    progress_->update(p.done, p.total);
    if (p.done == p.total) progress_.reset();
  }

  Result<int> generate_text() {
    auto text = text_.text([] { return kMaxFileBytes; });
    if (!text) return text.error();
    auto loaded = about_.load(*model_, gpu_.value_or(0), options(), events());
    if (!loaded) return loaded.error();
    return generate_on(*loaded->on, *loaded->tokenizer, *text);
  }

  Result<int> generate_on(const LoadedModel& loaded, const Tokenizer& tokenizer, const std::string& text) {
    Model& model = *loaded.model;
    auto session = Session::create(model);
    if (!session) return session.error();
    InterruptGuard guard;
    bool in_line = false;  // text was printed and its line is not ended
    auto g = generate(**session, tokenizer, tokenizer.encode(text), text_.settings,
                      [&](std::string_view piece, Token) {
                        if (!text_.print_tokens) {
                          print(stdout_is_terminal() ? printable(piece, true) : piece);
                          if (!piece.empty()) in_line = piece.back() != '\n';
                        }
                        return flush_output() && !InterruptGuard::interrupted();
                      });
    if (in_line) print("\n");
    if (!g) return g.error();
    if (text_.print_tokens) print(format("{}\n", fmt::join(g->tokens, ",")));
    if (text_.stats) note(stats(loaded, *g));
    return InterruptGuard::interrupted() ? kInterrupted : kDone;
  }

  std::string stats(const LoadedModel& loaded, const Generated& g) const {
    const Model& model = *loaded.model;
    const Device& d = model.device();
    const char* device = d.describe().name;
    const double steps = double(g.tokens.size()) - 1;
    Table t("ll");
    t.row({"device", format("{}, {}", d.id(), device ? printable(device) : "")});
    add_receipt(t, loaded.receipt(), d.id());
    t.row({"memory", human_bytes(model.plan().last().memory.total())});
    if (const auto& p = model.prefaulted()) t.row({"prefault", p->text()});
    t.row({"loading", format("{:.0f} ms", loaded.load_seconds * 1e3)});
    t.row({"prompt", format("{} tokens in {:.0f} ms", g.prompt_tokens, g.prompt_seconds * 1e3)});
    t.row({"generation", format("{} tokens{}", g.tokens.size(),
                                steps < 1 || g.generate_seconds <= 0
                                    ? ""
                                    : format(", {:.1f} tokens/s", steps / g.generate_seconds))});
    t.row({"finish", name_of(g.finish)});
    t.row({"seed", format("{}", text_.settings.sampler.seed)});
    return t.text();
  }

  const About& about_;
  std::string name_;
  std::optional<std::string> model_, variant_;
  std::optional<int> gpu_, threads_, context_, batch_;
  std::string cache_type_ = "f16", verify_ = "auto";
  bool quiet_ = false, list_ = false, build_info_ = false, version_ = false;
  TextOptions text_;
  ServiceOptions service_;
  std::optional<Progress> progress_;  // of `shown_`
  event::Progress::Stage shown_ = event::Progress::Loading;
};

int finish(const Result<int>& done) {
  if (!done) {
    flush_output();
    const Error e = worded(done.error());
    note("error: " + printable(e.message, true));
    if (!e.remedy.empty()) note("  " + printable(e.remedy, true));
    return exit_code(e.code);
  }
  if (flush_output()) return *done;
  if (!reader_gone()) note(format("error: cannot write the output: {}", std::strerror(errno)));
  return *done ? *done : int(kFailed);
}

}  // namespace

int run(const About& about, int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away shows up as a failed write
  try {
    return finish(Worker(about).run({argv + (argc > 0), argv + argc}));
  } catch (const std::bad_alloc&) {
    note("error: out of memory\n  close other programs, or use a smaller model or --ctx");
    return kOutOfMemory;
  } catch (const std::exception& e) {
    note(
        format("error: internal error: {}\n  this is a bug of gimbal; please report it with the command line",
               e.what()));
    return kFailed;
  }
}

}  // namespace gimbal::worker
