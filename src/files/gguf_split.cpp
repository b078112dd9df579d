// Opening a model that may lie in several files, and the names of those.
#include "files/gguf.h"

#include <limits>
#include <memory>

#include "base/format.h"
#include "base/text.h"
#include "files/gguf_parser.h"
#include "files/gguf_reader.h"

namespace gimbal {

namespace {

bool take_number(std::string_view& from_end, uint32_t& out) {
  constexpr size_t kDigits = 5;
  if (from_end.size() < kDigits) return false;
  out = 0;
  for (char c : from_end.substr(from_end.size() - kDigits)) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + uint32_t(c - '0');
  }
  from_end.remove_suffix(kDigits);
  return true;
}

bool take_suffix(std::string_view& s, std::string_view suffix) {
  if (!s.ends_with(suffix)) return false;
  s.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<SplitName> split_name(std::string_view path) {
  SplitName name;
  if (!take_suffix(path, ".gguf") || !take_number(path, name.count) || !take_suffix(path, "-of-") ||
      !take_number(path, name.number) || !take_suffix(path, "-"))
    return std::nullopt;
  if (name.number == 0 || name.number > name.count) return std::nullopt;
  name.stem = path;
  return name;
}

std::string SplitName::path(uint32_t part_number) const {
  return format("{}-{:05}-of-{:05}.gguf", stem, part_number, count);
}

// Opens a model that may have several files. The first part has the metadata of the model; of the others only
// their place in it is read.

namespace {

constexpr uint64_t kMaxParts = std::numeric_limits<uint16_t>::max();  // split.count is a 16-bit number
constexpr uint64_t kMaxTensors = std::numeric_limits<int32_t>::max();

// The place of one file in a split model, from its metadata.
struct SplitKeys {
  uint64_t no = 0, count = 1, tensors = 0;  // tensors: of all parts together, 0 when not said
};

Result<SplitKeys> split_keys(GgufParser& parser) {
  auto count = parser.bounded("split.count", kMaxParts, 1);
  if (!count) return count.error();
  auto no = parser.bounded("split.no", kMaxParts, 0);
  if (!no) return no.error();
  auto tensors = parser.bounded("split.tensors.count", kMaxTensors, 0);
  if (!tensors) return tensors.error();
  return SplitKeys{*no, *count, *tensors};
}

Error mismatch(const std::string& path, GgufParser& parser, const char* key, uint64_t expected,
               uint64_t found) {
  return {Code::Malformed,
          format("'{}' at byte {}: {}: expected {}, found {}", escaped(path), parser.value_offset(key), key,
                 expected, found),
          "The parts do not belong together, or one was renamed: download the parts of one model into one "
          "folder."};
}

// Checks that the file that the user named is the first part and carries its name. Gives the names of the
// others.
Result<SplitName> first_part(const std::string& path, const SplitKeys& keys, GgufParser& parser) {
  const auto name = split_name(path);
  if (keys.no >= keys.count)
    return Error{Code::Malformed,
                 format("'{}' at byte {}: split.no: expected less than {}, the number of parts, found {}",
                        escaped(path), parser.value_offset("split.no"), keys.count, keys.no),
                 "The file is damaged: download it again."};
  const auto expected = format("NAME-{:05}-of-{:05}.gguf", keys.no + 1, keys.count);
  if (!name || name->count != keys.count || name->number != keys.no + 1)
    return Error{
        Code::Malformed,
        format(
            "'{}' at byte {}: file name of part {} of {} of a split model: expected {}, found another name",
            escaped(path), parser.value_offset("split.count"), keys.no + 1, keys.count, expected),
        format("The other parts are found by name: rename the file to {}.", expected)};
  if (keys.no != 0)
    return Error{Code::Usage,
                 format("'{}' is part {} of {} of a split model", escaped(path), keys.no + 1, keys.count),
                 format("Open the first part: '{}'.", escaped(name->path(1)))};
  return *name;
}

// A model that is being opened.
struct Opening {
  std::shared_ptr<GgufReader> reader;
  TensorTable tensors;

  Opening(const std::string& path, const TernaryChoice& choice)
      : reader(std::make_shared<GgufReader>(escaped(path), choice)) {}

  GgufParser parser(FileBytes file, const std::string& path, uint32_t part) {
    return {tensors, reader->add(std::move(file)), path, part, reader->choice()};
  }

  ModelSource done(GgufParser& first) {
    Metadata metadata = first.take_metadata();
    for (const StoredTensor& t : tensors) {
      if (t.ternary == Ternary::None || t.tiles.tile_rows) continue;
      Error e = ternary_tiles(t.ternary, t.dim[1], t.dim[0], reader->choice()).error();
      e.message = format("{}: tensor {}: {}", metadata.source(), quoted(t.name), e.message);
      tensors.unreadable(std::move(e));
    }
    reader->serve(tensors);
    return {{"GGUF", first.version()}, std::move(metadata), std::move(tensors), std::move(reader)};
  }
};

// Opens part number `part` (0 is the first) of a split model and adds its tensors. `from`: as open_gguf.
// Errors: those of GgufParser::run, NotFound, Failed.
Status add_part(Opening& model, const std::string& first, const SplitName& name, uint32_t part,
                const RemoteFolder* from) {
  const std::string path = name.path(part + 1);
  auto file = FileBytes::open(path, from);
  if (!file) {
    Error error = file.error();
    error.message = format("part {} of {} of the split model '{}': {}", part + 1, name.count, escaped(first),
                           error.message);
    if (error.code == Code::NotFound) error.remedy = "Download all the parts into one folder.";
    return error;
  }
  GgufParser parser = model.parser(std::move(*file), path, part);
  if (auto done = parser.run(); !done) return done.error();
  const auto keys = split_keys(parser);
  if (!keys) return keys.error();
  if (keys->count != name.count) return mismatch(path, parser, "split.count", name.count, keys->count);
  if (keys->no != part) return mismatch(path, parser, "split.no", part, keys->no);
  return Done{};
}

}  // namespace

Result<ModelSource> open_gguf(const std::string& path, const TernaryChoice& choice,
                              const RemoteFolder* from) {
  Opening model(path, choice);
  auto file = FileBytes::open(path, from);
  if (!file) return file.error();
  GgufParser parser = model.parser(std::move(*file), path, 0);
  if (auto done = parser.run(); !done) return done.error();
  const auto keys = split_keys(parser);
  if (!keys) return keys.error();
  if (keys->count > 1) {
    const auto name = first_part(path, *keys, parser);
    if (!name) return name.error();
    for (uint32_t part = 1; part < keys->count; part++)
      if (auto done = add_part(model, path, *name, part, from); !done) return done.error();
    if (keys->tensors && keys->tensors != model.tensors.size())
      return mismatch(path, parser, "split.tensors.count", model.tensors.size(), keys->tensors);
  }
  return model.done(parser);
}

Result<ModelSource> parse_gguf(Bytes bytes, const std::string& name) {
  Opening model(name, {});
  GgufParser parser = model.parser(FileBytes(bytes), name, 0);
  if (auto done = parser.run(); !done) return done.error();
  const auto keys = split_keys(parser);
  if (!keys) return keys.error();
  if (keys->count > 1)
    return Error{Code::Unsupported,
                 format("'{}' at byte {}: split.count: expected a model in one piece, found part {} of {}",
                        name, parser.value_offset("split.count"), keys->no + 1, keys->count),
                 "A split model can only be opened from its files."};
  return model.done(parser);
}

}  // namespace gimbal
