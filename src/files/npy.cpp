#include "files/npy.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "files/array_types.h"
#include "files/plain_reader.h"

namespace gimbal {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr const char* kSaveAgain = "Write the array again with numpy.save().";

Error bad_npy(const std::string& name, const std::string& what) {
  return {Code::Malformed, format("{}: {}", name, what), kSaveAgain};
}

// Reads the few forms of Python that a header consists of: a dict of strings, True or False, and a tuple of
// numbers.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  bool take(char c) {
    blanks();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Without escapes, which no header has.
  std::optional<std::string_view> string() {
    blanks();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == text_.npos) return std::nullopt;
    const std::string_view s = text_.substr(1, end - 1);
    if (s.find('\\') != s.npos) return std::nullopt;
    text_.remove_prefix(end + 1);
    return s;
  }
  std::optional<bool> boolean() {
    blanks();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
      if (text_.starts_with(word)) return text_.remove_prefix(word.size()), value;
    return std::nullopt;
  }
  std::optional<int64_t> number() {
    blanks();
    size_t n = 0;
    uint64_t value = 0;
    for (; n < text_.size() && text_[n] >= '0' && text_[n] <= '9'; n++) {
      const auto more = checked_mul(value, 10);
      const auto sum = more ? checked_add(*more, uint64_t(text_[n] - '0')) : std::nullopt;
      if (!sum || *sum > uint64_t(std::numeric_limits<int64_t>::max())) return std::nullopt;
      value = *sum;
    }
    if (!n) return std::nullopt;
    text_.remove_prefix(n);
    return int64_t(value);
  }
  // "(3, 4)", "(3,)", "()".
  std::optional<std::vector<int64_t>> tuple() {
    std::vector<int64_t> all;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      const auto n = number();
      if (!n) return std::nullopt;
      all.push_back(*n);
      if (take(',')) continue;
      // One number in brackets is no tuple.
      if (all.size() == 1 || !take(')')) return std::nullopt;
      return all;
    }
    return all;
  }
  bool at_end() {
    blanks();
    return text_.empty();
  }
  std::string rest() const { return gimbal::quoted(text_.substr(0, 40)); }

 private:
  void blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  std::string_view text_;
};

struct Fields {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Errors: the reason, in words.
std::optional<std::string> read_fields(std::string_view text, Fields& f) {
  Literal literal(text);
  if (!literal.take('{')) return "the header is no dict";
  while (!literal.take('}')) {
    const auto key = literal.string();
    if (!key || !literal.take(':')) return "the header: expected a name and a colon, found " + literal.rest();
    bool right = false;
    if (key == "descr" && !f.descr) right = (f.descr = literal.string()).has_value();
    else if (key == "fortran_order" && !f.fortran_order)
      right = (f.fortran_order = literal.boolean()).has_value();
    else if (key == "shape" && !f.shape) right = (f.shape = literal.tuple()).has_value();
    else
      return "the header: expected descr, fortran_order and shape, each once, found " + gimbal::quoted(*key);
    if (!right) return format("the header: {}: cannot be read from {} on", *key, literal.rest());
    if (literal.take(',')) continue;
    if (!literal.take('}')) return "the header: expected a comma or the end, found " + literal.rest();
    break;
  }
  if (!literal.at_end()) return "the header: expected its end, found " + literal.rest();
  if (!f.descr || !f.fortran_order || !f.shape) return "the header lacks descr, fortran_order or shape";
  return std::nullopt;
}

Result<DType> type_of(std::string_view descr, const std::string& name) {
  const auto unsupported = [&](const char* why) {
    return Error{Code::Unsupported, format("{}: descr is {}: {}", name, gimbal::quoted(descr), why),
                 "Convert the array with numpy's astype() and save it again."};
  };
  if (descr.size() < 2) return unsupported("expected the byte order and a format, such as '<f4'");
  const char order = descr.front();
  const std::string_view letters = descr.substr(1);
  if (letters.front() == 'O') return unsupported("an array of Python's objects; these are never unpickled");
  const auto type = dtype_of_numpy(letters);
  if (!type) return unsupported("this version reads numbers and bools only");
  const bool one_byte = info(*type).bytes == 1;
  if (order == '>' && !one_byte)
    return unsupported("this version reads the byte order of this machine, '<', only");
  if (order != '<' && order != '=' && order != '|' && order != '>')
    return unsupported("the byte order is not known");
  return *type;
}

}  // namespace

Result<uint64_t> npy_header_bytes(Bytes start, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(kNpyMagic)) return bad_npy(name, "the magic number of npy files is missing");
  if (text.size() < kNpyStart)
    return bad_npy(name, format("it ends within its header, after {} bytes", text.size()));
  const auto version = uint8_t(text[6]);
  if (version < 1 || version > 3 || text[7] != 0)
    return Error{Code::Unsupported,
                 format("{}: version {}.{} of the format; this version reads 1.0, 2.0 and 3.0", name, version,
                        uint8_t(text[7])),
                 kSaveAgain};
  const uint64_t size = version == 1 ? 10 + uint64_t(read_le<uint16_t>(start.data() + 8))
                                     : 12 + uint64_t(read_le<uint32_t>(start.data() + 8));
  if (size > kMaxNpyHeader) return bad_npy(name, format("a header of {} bytes is too long", size));
  return size;
}

Result<NpyHeader> parse_npy_header(Bytes head, const std::string& name) {
  const size_t before = uint8_t(head[6]) == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + before, head.size() - before);
  Fields fields;
  if (const auto problem = read_fields(text, fields)) return bad_npy(name, *problem);
  const auto type = type_of(*fields.descr, name);
  if (!type) return type.error();
  const std::vector<int64_t>& shape = *fields.shape;
  if (shape.size() > kMaxStoredRank)
    return Error{Code::Unsupported,
                 format("{}: {} dims; this version reads up to {}", name, shape.size(), kMaxStoredRank), ""};
  NpyHeader out;
  StoredTensor& a = out.array;
  a.type = *type, a.rank = uint32_t(shape.size()), a.transposed = *fields.fortran_order && a.rank > 1;
  std::fill(std::begin(a.dim), std::end(a.dim), 1);
  for (uint32_t i = 0; i < a.rank; i++) a.dim[a.transposed ? i : a.rank - 1 - i] = shape[i];
  const auto bytes = bytes_of_dims(*type, {a.dim, a.rank});
  if (!bytes) return bad_npy(name, "the product of the dims passes 2^63");
  a.bytes = a.stored = *bytes;
  out.begin = a.offset = head.size();
  return out;
}

namespace {

Result<ModelSource> npy_of(FileBytes file, const std::string& path) {
  auto reader = std::make_shared<PlainReader>(escaped(path));
  FileBytes& kept = reader->add(std::move(file));
  const std::string name = format("'{}'", escaped(path));
  auto start = kept.head(std::min(kept.size(), kNpyStart));
  if (!start) return start.error();
  const auto size = npy_header_bytes(*start, name);
  if (!size) return size.error();
  if (*size > kept.size())
    return bad_npy(name, format("a header of {} bytes, but the file has {}", *size, kept.size()));
  auto head = kept.head(*size);
  if (!head) return head.error();
  const auto header = parse_npy_header(*head, name);
  if (!header) return header.error();
  if (header->array.bytes > kept.size() - header->begin)
    return bad_npy(name, format("expected {} bytes of values from byte {} on, found {}", header->array.bytes,
                                header->begin, kept.size() - header->begin));
  TensorTable tensors;
  tensors.add(header->array);
  reader->serve(tensors);
  return ModelSource({"npy", uint8_t((*head)[6])}, Metadata(escaped(path)), std::move(tensors),
                     std::move(reader));
}

}  // namespace

Result<ModelSource> open_npy(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file) return file.error();
  return npy_of(std::move(*file), path);
}

Result<ModelSource> parse_npy(Bytes bytes, const std::string& name) { return npy_of(FileBytes(bytes), name); }

Status write_npy(const std::string& path, DType type, std::span<const int64_t> dims, const ReadTensor& read) {
  const char* letters = numpy_name(type);
  const auto bytes = bytes_of_dims(type, dims);
  if (!letters || !bytes)
    return Error{Code::Unsupported, format("npy files have no format {}", info(type).name),
                 "Write a safetensors file, or convert the values."};
  std::string shape;
  for (int64_t d : dims) shape += format("{}{}", shape.empty() ? "" : ", ", d);
  if (dims.size() == 1) shape += ',';
  std::string head = format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                            info(type).bytes == 1 ? '|' : '<', letters, shape);
  // Padded so that the values begin at a multiple of 64, with a line's end.
  constexpr size_t kBefore = 10, kAligned = 64;
  head.resize(align_up(kBefore + head.size() + 1, kAligned) - kBefore - 1, ' ');
  head += '\n';
  std::string start(kNpyMagic);
  start += '\x01', start += '\0';
  start += char(head.size() & 0xff), start += char(head.size() >> 8);
  auto file = DraftFile::create(path);
  if (!file) return file.error();
  start += head;
  if (auto ok = file->write(start.data(), start.size()); !ok) return ok;
  if (auto ok = copy_tensor(
          *bytes, [&](uint64_t from, void* to, size_t n) { return read(0, from, to, n); }, *file);
      !ok)
    return ok;
  if (auto ok = file->sync(); !ok) return ok;
  return file->commit();
}

}  // namespace gimbal
