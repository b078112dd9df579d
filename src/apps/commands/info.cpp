// gimbal info: the contents of a model file, even if this version cannot run it.
#include <algorithm>
#include <map>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "model/arch.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {
namespace {

constexpr size_t kFirst = 5;       // elements of an array that are shown
constexpr size_t kLongText = 200;  // bytes of a text that JSON gives in full

struct Share {
  uint64_t tensors = 0, values = 0, bytes = 0;
};

uint64_t values_of(const StoredTensor& t) {
  return uint64_t(t.dim[0]) * uint64_t(t.dim[1]) * uint64_t(t.dim[2]) * uint64_t(t.dim[3]);
}

std::string dims(const StoredTensor& t) { return fmt::to_string(fmt::join(t.dim, t.dim + t.rank, " x ")); }

int ff_width(const Metadata& metadata, const Config& c) {
  Hyperparameters read(metadata, c.arch);
  read.layers(c.layers + c.left_out);
  return read.has("feed_forward_length") ? read.most_of("feed_forward_length") : 0;
}

Json array_json(const MetadataArray& a) {
  Json first = Json::array();
  const MetadataArray some = a.first(kFirst);  // the others are not looked at: there may be millions
  for (auto s : some.strings()) first.push_back(std::string(s.substr(0, kLongText)));
  for (float v : some.floats()) first.push_back(v);
  for (int64_t v : some.integers()) first.push_back(v);
  return {{"array_of", name_of(a.type)}, {"count", a.count}, {"first", std::move(first)}};
}

Json value_json(const MetadataValue& v) {
  return std::visit(
      [](const auto& x) -> Json {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, MetadataArray>) return array_json(x);
        else if constexpr (std::is_same_v<T, std::string_view>) {
          if (x.size() <= kLongText) return std::string(x);
          return {{"bytes", x.size()}, {"first", std::string(x.substr(0, kLongText))}};
        } else return x;
      },
      v);
}

std::string value_text(const MetadataEntry& entry) {
  const MetadataValue& v = entry.value;
  if (entry.type == MetadataType::F32)
    return format("{}", float(std::get<double>(v)));  // as short as its own precision allows
  const Json j = value_json(v);
  if (auto s = std::get_if<std::string_view>(&v))
    return shortened(*s, 80) + (s->size() > 80 ? format("  ({} bytes)", s->size()) : "");
  if (auto a = std::get_if<MetadataArray>(&v)) {
    std::string out = format("{} x {}: ", a->count, name_of(a->type));
    for (const Json& e : j["first"])
      out +=
          format("{}{}", &e == &j["first"][0] ? "" : ", ",
                 e.is_string() ? format("'{}'", shortened(e.get_ref<const std::string&>(), 16)) : e.dump());
    return out + (a->count > kFirst ? ", ..." : "");
  }
  return j.dump();
}

class Info final : public Command {
 public:
  void declare(Arguments& a) override {
    a.model(kModelHelp, model_);
    a.flag("--tensors", "also list all tensors", tensors_);
    declare_kernel_config(a, kernel_config_);
  }

  Result<int> run() override {
    auto source = open_header(model_, {kernel_config_, {}}, quiet);
    if (!source) return source.error();
    const ModelSource& f = *source->file;
    std::map<std::string, Share> mix;
    Share all;
    for (const StoredTensor& t : f.tensors())
      for (Share* s : {&mix[stored_name(t)], &all})
        s->tensors++, s->values += values_of(t), s->bytes += t.stored;
    std::vector<std::pair<std::string, Share>> types(mix.begin(), mix.end());
    std::stable_sort(types.begin(), types.end(),
                     [](auto& a, auto& b) { return a.second.bytes > b.second.bytes; });

    const auto config = configure(f);
    const auto tokenizer = Tokenizer::create(f.metadata());
    if (json) print_as_json(*source, types, all, config, tokenizer);
    else print_for_people(*source, types, all, config, tokenizer);
    return kDone;
  }

 private:
  using Types = std::vector<std::pair<std::string, Share>>;
  using MaybeTokenizer = Result<std::unique_ptr<Tokenizer>>;

  static bool is_gguf(const ModelSource& f) { return std::string_view(f.file_format().name) == "GGUF"; }
  static double share(const Share& s, const Share& all) {
    return all.bytes ? double(s.bytes) / double(all.bytes) : 0;
  }

  void print_as_json(const ModelFile& m, const Types& types, const Share& all, const Result<Config>& config,
                     const MaybeTokenizer& tokenizer) const {
    const ModelSource& f = *m.file;
    Json j{{"name", m.name},
           {"path", m.path.empty() ? Json() : Json(m.path)},
           {"format", f.file_format().name},
           {"gguf_version", is_gguf(f) ? Json(f.file_format().version) : Json()},
           {"bytes", f.file_bytes()}};
    auto arch = f.metadata().string("general.architecture");
    j["architecture"] = arch ? Json(std::string(*arch)) : Json();
    j["supported"] = bool(config);
    if (!config) j["unsupported_reason"] = config.error().message;
    j["parameters"] = all.values;
    if (config) {
      const Config& c = *config;
      j["shape"] = {
          {"layers", c.layers},         {"width", c.width},       {"ff_width", ff_width(f.metadata(), c)},
          {"heads", c.heads},           {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim},
          {"vocabulary", c.vocabulary}, {"context", c.context}};
    }
    j["tokenizer"] = tokenizer ? Json((*tokenizer)->describe()) : Json();
    if (!tokenizer) j["tokenizer_error"] = tokenizer.error().message;
    j["quantization"] = Json::array();
    for (const auto& [type, s] : types)
      j["quantization"].push_back(
          {{"type", type}, {"tensors", s.tensors}, {"bytes", s.bytes}, {"share", share(s, all)}});
    // Its keys are all different, so none is looked for: that would take the square of their number.
    Json::object_t metadata;
    metadata.reserve(f.metadata().size());
    for (const auto& [key, entry] : f.metadata())
      metadata.Container::emplace_back(std::string(key), value_json(entry.value));
    j["metadata"] = std::move(metadata);
    if (tensors_) {
      j["tensors"] = Json::array();
      for (const StoredTensor& t : f.tensors())
        j["tensors"].push_back({{"name", std::string(t.name)},
                                {"type", stored_name(t)},
                                {"dims", std::vector<int64_t>(t.dim, t.dim + t.rank)},
                                {"bytes", t.stored},
                                {"part", t.part},
                                {"offset", t.offset}});
    }
    print_json(j);
  }

  void print_for_people(const ModelFile& m, const Types& types, const Share& all,
                        const Result<Config>& config, const MaybeTokenizer& tokenizer) const {
    const ModelSource& f = *m.file;
    Table head("ll");
    head.row({"file", m.path.empty() ? "inside the program" : printable(m.path)});
    const std::string version = is_gguf(f) ? format(" v{}", f.file_format().version) : "";
    head.row({"format", format("{}{}, {}", f.file_format().name, version, human_bytes(f.file_bytes()))});
    head.row({"architecture", printable(f.metadata().string("general.architecture").value_or("none given")) +
                                  (config ? "" : "  (this version cannot run it)")});
    head.row({"parameters", human_count(all.values)});
    if (config) {
      const Config& c = *config;
      head.row(
          {"shape", format("{} layers of width {}, feed-forward {}, {} heads of {} ({} for keys and values)",
                           c.layers, c.width, ff_width(f.metadata(), c), c.heads, c.head_dim, c.kv_heads)});
      head.row({"context", format("{} positions", c.context)});
    }
    head.row({"tokenizer", tokenizer ? (*tokenizer)->describe()
                                     : "not usable: " + shortened(tokenizer.error().message, 120)});
    print(head.text());
    if (!config) print(format("\nWhy it cannot be run: {}\n", printable(config.error().message)));

    print(format("\n{}\n", bold("Formats")));
    Table formats("lrrr");
    for (const auto& [type, s] : types)
      formats.row({type, format("{} tensors", s.tensors), human_bytes(s.bytes),
                   format("{:.1f} %", 100 * share(s, all))});
    print(formats.text("  "));
    print(format("\n{}\n", bold("Metadata")));
    Table metadata("ll");
    for (const auto& [key, entry] : f.metadata()) metadata.row({printable(key), value_text(entry)});
    print(metadata.text("  "));
    if (tensors_) {
      print(format("\n{}\n", bold("Tensors")));
      Table list("llrr");
      for (const StoredTensor& t : f.tensors())
        list.row({printable(t.name), stored_name(t), dims(t), human_bytes(t.stored)});
      print(list.text("  "));
    } else {
      print(format("\n{} tensors (--tensors lists them)\n", f.tensors().size()));
    }
  }

  static std::string human_count(uint64_t n) {
    if (n >= 1000000000) return format("{:.2f} billion", double(n) / 1e9);
    if (n >= 1000000) return format("{:.1f} million", double(n) / 1e6);
    return format("{}", n);
  }

  std::string model_;
  bool tensors_ = false;
  std::string kernel_config_;
};

}  // namespace

std::unique_ptr<Command> make_info() { return std::make_unique<Info>(); }

}  // namespace gimbal
