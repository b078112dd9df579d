// A GGUF model file (versions 2 and 3): typed metadata and the table of tensors in memory, weights read when
// they are wanted. Everything in the file is hostile until checked; after open() succeeds, every tensor's
// bytes lay inside the file and every accessor is total. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "files/gguf_bytes.h"
#include "files/ternary_layout.h"
#include "tensor/dtype.h"

namespace gimbal {

// The value types of GGUF metadata, with their ids in the file.
enum class GgufType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
const char* name_of(GgufType);

// An array of metadata: it stays as it is in the file and is decoded on demand (vocabularies have 10^5
// strings).
struct GgufArray {
  GgufType type = GgufType::U8;  // of the elements; never Array (nested arrays are refused)
  uint64_t count = 0;
  Bytes data;  // `count` encoded elements, already walked once and found whole

  std::vector<std::string_view> strings() const;  // empty unless type is String; views into the file's header
  std::vector<int64_t> integers() const;          // any integer or bool type; empty for others
  std::vector<float> floats() const;              // F32 or F64; empty for others
  GgufArray first(uint64_t n) const;              // its first `n` elements, or all
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;
struct GgufEntry {
  GgufType type;
  GgufValue value;  // unsigned types as uint64_t, signed as int64_t, floats as double
};

struct GgufTensor {
  std::string_view name;
  DType type;
  uint32_t rank;    // 1..4
  int64_t dim[4];   // dim[0] is the fastest-varying (a row); unused dims are 1; all are > 0
  uint64_t offset;  // in the file `part`, from the file's start
  uint32_t part;    // which file of a split model
  uint64_t bytes;   // info(type).bytes-sized blocks, row after row; behind them tensor_tail_bytes(type): what
                    // read() gives
  uint64_t stored;  // bytes in the file: the same, but where the order of the bytes is another
  Ternary ternary = Ternary::None;  // that order; read() gives rows of i2_s64 then
  TernaryTiles tiles;               // of that order, where they are known
};

// The name of the format that a tensor has in the file.
const char* stored_name(const GgufTensor&);

class Gguf {
 public:
  // Opens a file and, when its metadata says it is the first part of a split model
  // (split.count > 1, NAME-00001-of-0000N.gguf), all the other parts beside it.
  // Errors: NotFound/Failed from the system; Malformed with file, offset, expected and found.
  // `choice`: how ternary weights lie, where the file does not tell (files/ternary_layout.h). `from`: where
  // the files lie, if not in the file system; its errors then.
  static Result<Gguf> open(const std::string& path, const TernaryChoice& choice = {},
                           const RemoteFolder* from = nullptr);
  // Takes the tensors of another file, as if they were in this one, under names with a suffix. Its metadata
  // is left behind; what they are to the model, `alpha` and `scale` say (model/lora.h). Errors: Malformed
  // when a name is there already.
  struct Joined {
    std::string suffix;
    float alpha, scale;
  };
  Status join(Gguf other, const Joined& as);
  const std::vector<Joined>& joined() const { return joined_; }
  // Parses a file that is already in memory, which must outlive the result. `name` is used in errors. No
  // split parts.
  static Result<Gguf> parse(Bytes bytes, const std::string& name);

  const std::string& path() const { return path_; }  // for messages: escaped (base/text.h)
  uint32_t version() const { return version_; }
  uint64_t file_bytes() const;  // of all parts together
  // Tells one state of the file from another, without reading its weights: a hash of the header of each part,
  // its size, and when it was written.
  struct Identity {
    uint64_t bytes, headers;
    int64_t modified;  // nanoseconds since 1970, of the part that was written last
    bool operator==(const Identity&) const = default;
  };
  Identity identity() const;

  const std::map<std::string_view, GgufEntry>& metadata() const { return metadata_; }
  // Typed lookups. They answer nullopt when the key is absent or of another kind, or the number does not fit.
  const GgufEntry* find(std::string_view key) const;
  std::optional<uint64_t> unsigned_integer(std::string_view key) const;  // any integer type >= 0
  std::optional<double> number(std::string_view key) const;              // any numeric type
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  const GgufArray* array(std::string_view key) const;

  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in file order
  const GgufTensor* tensor(std::string_view name) const;
  // Bytes [offset, offset + bytes) of a tensor's data, which must lie inside it, into memory of the caller's.
  // Callable from several threads. Errors: Malformed when the file has become shorter; Failed from the
  // system.
  Status read(const GgufTensor&, uint64_t offset, void* to, size_t bytes) const;
  // All of a tensor, for small ones.
  Result<std::vector<std::byte>> read(const GgufTensor&) const;
  // Of the first tensor whose weights nobody can read, because the layout is not known: why. Errors:
  // Unsupported, with the choice.
  Status readable() const;
  // Whether the path names the file, or one of its parts, under whatever name.
  bool is(const std::string& path) const;

 private:
  friend class GgufParser;
  Status read_relaid(const GgufTensor&, uint64_t offset, std::byte* to, size_t bytes) const;
  std::string path_;
  uint32_t version_ = 0;
  std::deque<GgufBytes> files_;  // one per part; they stay where they are
  TernaryChoice choice_;
  std::map<std::string_view, GgufEntry> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<Joined> joined_;
  std::deque<std::string> joined_names_;
  std::map<std::string_view, size_t> tensor_index_;
};

}  // namespace gimbal
