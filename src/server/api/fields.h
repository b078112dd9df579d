// The fields of a request. Each is read with its type and range; errors name the field. finish()
// refuses fields that were never read, so none is silently ignored. The first error wins. null counts
// as absent.
//
// A FieldRecorder in place of a request makes the description of the APIs (openapi.h): readers then get
// samples, and no errors.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api/error.h"

namespace gimbal::api {

// One reading of a field: what may stand there.
struct FieldRead {
  enum Kind : uint8_t {
    Number,
    Whole,
    Flag,
    Text,
    Texts,
    Word,
    Object,
    List,
    Any,
    Harmless,
    Only
  } kind = Any;
  double low = 0, high = 0;             // of numbers
  std::vector<std::string> words = {};  // of a Word; of Only: the one value, as JSON
};

// While one exists, the Fields of its thread read from it.
class FieldRecorder {
 public:
  FieldRecorder();
  virtual ~FieldRecorder();
  // A sample for the reader. `path`: as Fields::path() has it.
  virtual Json sample(const std::string& path, const FieldRead&) = 0;
  virtual void needed(const std::string& path) = 0;
  virtual void finished(const std::string& path) = 0;  // an object has no fields but those read
};

class Fields {
 public:
  // `where`: the object's name in the request; empty: the request itself.
  explicit Fields(const Json& object, std::string where = "");

  std::optional<double> number(const char* name, double low, double high);
  std::optional<int64_t> whole(const char* name, int64_t low, int64_t high);
  std::optional<bool> flag(const char* name);
  std::optional<std::string> text(const char* name);
  // One of these words.
  std::optional<std::string> word(const char* name, std::initializer_list<const char*> words);
  const Json* object(const char* name);  // nullptr: absent
  const Json* array(const char* name);
  const Json* any(const char* name);
  // A text, or a list of at most `most` of them.
  std::vector<std::string> texts(const char* name, size_t most);

  // Records an error if the field is absent.
  bool need(const char* name);
  // Accepts and ignores these fields, because no value of them changes an answer.
  void harmless(std::initializer_list<const char*> names);
  // Refuses a known but unsupported field, unless it has the value that equals its absence.
  void refuse(const char* name, const char* why, const Json& unless = Json());
  // Records an error about a field that was read.
  void wrong(const std::string& name, const std::string& message);
  void wrong_as(const ApiError& e);

  std::string path(const std::string& name) const;  // "response_format.type"
  bool ok() const { return !error_; }
  // The first error, or one that names an unread field.
  Refused finish();
  const Refused& error() const { return error_; }
  // The fields that were not read. They count as read afterwards.
  std::vector<std::string> take_unread();

 private:
  const Json* find(const char* name, FieldRead read);
  void expected(const char* name, const std::string& what);

  std::list<Json> samples_;  // of a FieldRecorder
  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
  Refused error_;
};

// The body of a request as an object. `list`: the field that a body stands for if it is a list; nullptr: it
// may be none. Errors: invalid JSON, nested too deeply, or not an object.
Refused parse_body(const std::string& text, Json& to, const char* list = nullptr);

}  // namespace gimbal::api
