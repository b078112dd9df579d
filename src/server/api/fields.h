// The fields of a request. Each is read with its type and range; errors name the field. finish()
// refuses fields that were never read, so none is silently ignored. The first error wins. null counts
// as absent.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/api/error.h"

namespace gimbal::api {

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
  void wrong_as(const ApiError& e) {
    if (!error_) error_ = e;
  }

  std::string path(const std::string& name) const;  // "response_format.type"
  bool ok() const { return !error_; }
  // The first error, or one that names an unread field.
  Refused finish();
  const Refused& error() const { return error_; }
  // The fields that were not read. They count as read afterwards.
  std::vector<std::string> take_unread();

 private:
  const Json* find(const char* name);
  void expected(const char* name, const std::string& what);

  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
  Refused error_;
};

// The body of a request as an object. Errors: invalid JSON, nested too deeply, or not an object.
Refused parse_body(const std::string& text, Json& to);

}  // namespace gimbal::api
