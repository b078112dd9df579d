// Reads the JSON files of a folder: as a tree, except for large lists and maps, which pass by value by value.
// (A tree of a vocabulary would take seconds: the tree's objects search their members in turn.)
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace gimbal {

class JsonText {
 public:
  virtual ~JsonText() = default;
  // `path` is used in errors. Errors: Malformed for a text that is no JSON object, is nested more than
  // kMaxDepth times, or has an object of more than kMaxMembers in the tree.
  Status parse(std::string_view text, const std::string& path);
  const Json& tree() const { return tree_; }

  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxMembers = 4096;

 protected:
  // Whether the list or object under this dotted path ("model.vocab") passes by instead of becoming part of
  // the tree.
  virtual bool passes(const std::string& /*path*/) { return false; }
  // Its values: of the object's members, by name; of lists within it, without a name. `depth`: 1 is directly
  // in it.
  virtual void text(const std::string& /*path*/, int /*depth*/, const std::string& /*name*/,
                    std::string& /*value*/) {}
  virtual void number(const std::string& /*path*/, int /*depth*/, const std::string& /*name*/,
                      double /*value*/) {}

 private:
  class Handler;
  Json tree_;
};

// The tree of a text or a file, without a member that this program does not need. Errors: as above; those of
// read_file().
Result<Json> parse_json_object(std::string_view text, const std::string& path, const char* without = "");
Result<Json> read_json_object(const std::string& path, uint64_t max_bytes);

}  // namespace gimbal
