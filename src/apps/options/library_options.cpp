#include "apps/options/library_options.h"

#include <algorithm>
#include <thread>

#include "apps/toolkit/library_places.h"
#include "apps/toolkit/terminal.h"
#include "base/folders.h"
#include "base/format.h"
#include "model/arch.h"
#include "runtime/model_plan.h"

namespace gimbal {
namespace {

constexpr std::chrono::seconds kPatience(600);  // for one answer of the library: a long prompt takes minutes
constexpr int kDefaultContext = 4096;

// Settings that the library has, too, or that decide nothing there.
constexpr std::string_view kShared[] = {
    "backend", "threads", "context", "chat_template", "strict", "allow_software_devices", "refresh"};

Error needs_our_engine(std::string_view option) {
  return {Code::Usage,
          format("{} belongs to gimbal's own engine, and --backend llama.cpp runs a library", option),
          "leave one of them out"};
}

bool shared(const EngineSetting& s) {
  return std::find(std::begin(kShared), std::end(kShared), s.field) != std::end(kShared);
}

template <class T>
bool equal(const T& a, const T& b) {
  return a == b;
}
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>&) {
  return a.empty();
}

bool is_default(const EngineSetting& s, const CommonOptions& o) {
  const CommonOptions none;
  return std::visit([&](auto member) { return equal(o.*member, none.*member); }, s.member);
}

Error not_found(const LibrarySearch& search) {
  std::string places;
  for (const SearchedPlace& p : search.searched)
    places += format("{}{} ({}): {}", places.empty() ? "" : "; ", p.path, p.tier, p.outcome);
  return {Code::NotFound, format("no libllama was found: {}", printable(places)),
          "name one: --library PATH of libllama.so"};
}

// The file's own length, up to that of gimbal's engine. The library computes architectures that gimbal does
// not know.
int context_of(const ModelSource& file) {
  if (const auto config = configure(file)) return default_context(*config);
  const std::string arch(file.metadata().string("general.architecture").value_or(""));
  const auto trained = file.metadata().unsigned_integer(arch + ".context_length");
  return trained ? int(std::clamp<uint64_t>(*trained, 1, kDefaultContext)) : kDefaultContext;
}

}  // namespace

bool in_library(const CommonOptions& o) { return o.library || o.backend == kLibraryBackend; }

Status check_library_options(const CommonOptions& o, OwnOptions own) {
  if (o.library && o.backend != "auto" && o.backend != kLibraryBackend)
    return Error{Code::Usage,
                 format("--library runs the model in a libllama, and --backend {} does not", o.backend),
                 "give only one of them"};
  for (const EngineSetting& s : kEngineSettings) {
    const std::string_view option = s.option ? s.option : s.field;
    if (!shared(s) && !is_default(s, o)) return needs_our_engine(option.substr(0, option.find(',')));
  }
  for (const auto& [option, given] : own)
    if (given) return needs_our_engine(option);
  if (!o.lora_texts.empty()) return needs_our_engine("--lora");
  if (o.split_list) return needs_our_engine("--split");
  if (o.order_list) return needs_our_engine("--backend-order");
  if (std::any_of(o.named_device.begin(), o.named_device.end(), [](auto& d) { return d.has_value(); }))
    return needs_our_engine("an option that names a device");
  return Done{};
}

Result<ChosenLibrary> choose_library(const CommonOptions& o, const ModelSource& file) {
  if (auto ok = check_library_options(o); !ok) return ok.error();
  ChosenLibrary out;
  if (o.library) {
    out.path = *o.library, out.why = "--library";
  } else {
    const LibrarySearch search = find_libraries(library_places());
    if (search.failure) return *search.failure;
    const FoundLibrary* found = search.of("llama");
    if (!found) return not_found(search);
    out.path = found->path, out.why = found->tier;
  }
  out.texts.context = o.context > 0 ? o.context : context_of(file);
  out.texts.threads = o.threads ? *o.threads : int(std::max(1u, std::thread::hardware_concurrency()));
  return out;
}

Result<llama::LlamaProcess> start_library(const ChosenLibrary& chosen, const std::string& model_path) {
  auto process = llama::LlamaProcess::start({program_path(), "llama-worker"}, chosen.path, kPatience);
  if (!process) return process.error();
  if (auto model = process->load(model_path); !model) return model.error();
  return process;
}

std::string describe(const ChosenLibrary& chosen, const llama::LibraryFacts& facts) {
  return format(
      "libllama of release {}, {} ({}): in a process of its own, on the CPU; its bits are its own, and "
      "gimbal verifies none of them",
      printable(facts.release), printable(chosen.path), printable(chosen.why));
}

}  // namespace gimbal
