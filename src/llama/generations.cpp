#include "llama/generations.h"

#include <algorithm>
#include <new>

#include "base/format.h"

namespace gimbal::llama {
namespace {

enum Kind { Int = 4, Pointer = 8, Bool = 1 };  // the size, which is also the alignment

struct FieldRow {
  Kind kind;
  int first, last;
};
constexpr FieldRow kModelFields[] = {
#define GIMBAL_LLAMA_MODEL(name, kind, first, last) {kind, first, last},
#include "llama/fields.def"
};
constexpr FieldRow kContextFields[] = {
#define GIMBAL_LLAMA_CONTEXT(name, kind, first, last) {kind, first, last},
#include "llama/fields.def"
};

template <class Field, size_t n>
constexpr Layout<Field> layout_of(const FieldRow (&rows)[n], int generation) {
  Layout<Field> out;
  int end = 0;
  for (size_t i = 0; i < n; i++) {
    out.at[i] = -1;
    if (generation < rows[i].first || generation > rows[i].last) continue;
    end = (end + rows[i].kind - 1) / rows[i].kind * rows[i].kind;
    out.at[i] = end;
    end += rows[i].kind;
  }
  out.size = (end + 7) / 8 * 8;
  return out;
}

struct Known {
  const char *release, *exports, *lacks;
};
constexpr Known kKnown[] = {
#define GIMBAL_LLAMA_GENERATION(release, exports, lacks) {release, exports, lacks},
#include "discovery/llama_generations.def"
};
static_assert(std::size(kKnown) == kGenerations);

constexpr std::array<Generation, kGenerations> kAll = [] {
  std::array<Generation, kGenerations> all{};
  for (int g = 0; g < kGenerations; g++)
    all[size_t(g)] = {kKnown[g].release, kKnown[g].exports, kKnown[g].lacks,
                      layout_of<ModelField>(kModelFields, g), layout_of<ContextField>(kContextFields, g)};
  return all;
}();
static_assert(sizeof(AnyStruct) >= size_t(2 * kAll[kNewest].context.size));

// The storage must not look dead to the compiler before the call.
void call_into(AnyStruct* storage, AnyStruct (*returns)(), std::byte pattern) {
  storage->bytes.fill(pattern);
  asm volatile("" : : "r"(storage) : "memory");
  new (storage) AnyStruct(returns());
  asm volatile("" : : "r"(storage) : "memory");
}

// Defaults that every known release has. The float is the mark "take it from the model".
struct Default {
  ContextField field;
  const char* name;
  uint32_t bits;
};
constexpr Default kDefaults[] = {
    {ContextField::n_ctx, "n_ctx", 512},
    {ContextField::n_batch, "n_batch", 2048},
    {ContextField::n_ubatch, "n_ubatch", 512},
    {ContextField::n_seq_max, "n_seq_max", 1},
    {ContextField::type_k, "type_k", 1},
    {ContextField::type_v, "type_v", 1},
    {ContextField::yarn_ext_factor, "yarn_ext_factor", 0xbf800000},
};

template <class Field, size_t n>
int unwritten_fields(const MeasuredStruct& s, const Layout<Field>& layout, const FieldRow (&rows)[n]) {
  int count = 0;
  for (size_t f = 0; f < n; f++)
    for (int i = 0; layout.at[f] >= 0 && i < rows[f].kind; i++)
      if (!s.written[size_t(layout.at[f] + i)]) {
        count++;
        break;
      }
  return count;
}

// What speaks against a generation of the right sizes; empty: nothing.
std::vector<std::string> contradictions(const Generation& g, const MeasuredStruct& model,
                                        const MeasuredStruct& context,
                                        const std::function<bool(const char*)>& exported) {
  std::vector<std::string> all;
  if (!exported(g.exports)) all.push_back(format("it has no function {}", g.exports));
  if (*g.lacks && exported(g.lacks)) all.push_back(format("it has a function {}", g.lacks));
  if (const int n = unwritten_fields(model, g.model, kModelFields) +
                    unwritten_fields(context, g.context, kContextFields))
    all.push_back(format("{} fields have no default", n));
  for (const Default& d : kDefaults)
    if (const auto v = get<uint32_t>(context.value, g.context, d.field); v != d.bits)
      all.push_back(format("{} is {:#x}, not {:#x}", d.name, v, d.bits));
  if (get<void*>(context.value, g.context, ContextField::cb_eval)) all.push_back("cb_eval is set");
  return all;
}

}  // namespace

std::span<const Generation, kGenerations> generations() { return kAll; }

MeasuredStruct measure(AnyStruct (*returns)()) {
  constexpr std::byte kPatterns[] = {std::byte(0xa5), std::byte(0x5a)};
  std::array<AnyStruct, 2> found;
  for (size_t i = 0; i < 2; i++) call_into(&found[i], returns, kPatterns[i]);
  MeasuredStruct out;
  for (size_t i = 0; i < found[0].bytes.size(); i++) {
    out.written[i] = found[0].bytes[i] != kPatterns[0] || found[1].bytes[i] != kPatterns[1];
    if (out.written[i]) out.size = int(i) + 1;
  }
  out.size = (out.size + 7) / 8 * 8;
  out.value = found[0];
  return out;
}

Result<const Generation*> identify(const MeasuredStruct& model, const MeasuredStruct& context,
                                   const std::function<bool(const char*)>& exported) {
  std::string found = format("llama_model_params of {} bytes and llama_context_params of {}", model.size,
                             context.size),
              expected;
  for (const Generation& g : kAll) {
    expected +=
        format("{}{} ({} and {})", expected.empty() ? "" : ", ", g.release, g.model.size, g.context.size);
    if (g.model.size != model.size || g.context.size != context.size) continue;
    const std::vector<std::string> against = contradictions(g, model, context, exported);
    if (against.empty()) return &g;
    found += format("; not {}: {}", g.release, fmt::join(against, ", "));
  }
  return Error{Code::Unsupported,
               format("its interface is of no known generation: expected the struct sizes of {}; found {}",
                      expected, found),
               "give a libllama of one of these releases, or of one near them with the same interface",
               "unknown-generation"};
}

}  // namespace gimbal::llama
