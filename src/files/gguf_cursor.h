// Reads the header of a GGUF file in order, within its bounds. All errors have the same form: the file, the
// byte, the expected and the found value.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "files/file_bytes.h"

namespace gimbal {

constexpr uint64_t kMaxNameBytes = 65535;  // the format's limit for keys; used for tensor names too

// After an error all readers return false, and error() has the reason. Never reads past the end.
class GgufCursor {
 public:
  // `file` is the name used in errors. The bytes must outlive the cursor and all views that it returns.
  GgufCursor(FileBytes& bytes, std::string file) : bytes_(bytes), file_(escaped(file)) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  uint64_t size() const { return bytes_.size(); }
  // The bytes read since `begin`.
  Bytes since(uint64_t begin) const { return {head_ + begin, offset_ - begin}; }
  // The offset in the file of a returned view.
  uint64_t offset_of(const void* p) const { return uint64_t(static_cast<const std::byte*>(p) - head_); }

  // The current element, for errors: "metadata entry 3 of 25", and its name once it is known.
  void enter(const char* kind, uint64_t number, uint64_t count);
  void named(std::string_view name) { name_ = name; }
  void leave() { kind_ = nullptr; }

  template <class T>
  [[nodiscard]] bool read(const char* field, T& out) {
    Bytes raw;
    if (!take(field, sizeof(T), raw)) return false;
    out = read_le<T>(raw.data());
    return true;
  }
  [[nodiscard]] bool take(const char* field, uint64_t size, Bytes& out);
  // A 64-bit length, then that many bytes of any kind.
  [[nodiscard]] bool string(const char* field, std::string_view& out);
  // The same, but 1 to 65535 bytes of UTF-8: a metadata key or the name of a tensor.
  [[nodiscard]] bool name(const char* field, std::string_view& out);

  // Records the error and answers false. `at` is the byte in the file that is to blame.
  bool fail(uint64_t at, std::string_view field, std::string_view expected, std::string_view found,
            Code code = Code::Malformed, std::string_view remedy = {});
  // The same for a file that ends too early.
  bool fail_truncated(uint64_t at, std::string_view field, std::string_view expected, std::string_view found);
  const Error& error() const { return *error_; }

 private:
  std::string about(std::string_view field) const;
  bool need(uint64_t end);  // the first `end` bytes in memory; the file has them

  FileBytes& bytes_;
  const std::byte* head_ = nullptr;  // of the file, once something was read
  std::string file_;
  uint64_t offset_ = 0;
  const char* kind_ = nullptr;
  uint64_t number_ = 0, count_ = 0;
  std::string_view name_;
  std::optional<Error> error_;
};

}  // namespace gimbal
