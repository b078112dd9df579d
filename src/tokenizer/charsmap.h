// SentencePiece's precompiled normalisation (tokenizer.ggml.precompiled_charsmap): maps character sequences
// to replacements, such as full-width to plain letters. The map is a double array in the file: 4 bytes with
// the size of the array, its 32-bit units (XOR-compressed: Kanda, 2018), then the replacements, each
// terminated by a zero.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"

namespace gimbal {

class Charsmap {
 public:
  // For a file without the key: a map that changes nothing. Errors: Malformed. Replacements outside of the
  // data are detected only when a text needs them; such a text stays unchanged.
  static Result<Charsmap> read(const Metadata& metadata);
  // The map's bytes, of another source. Errors: Malformed.
  static Result<Charsmap> parse(std::string_view data);

  struct Match {
    size_t bytes = 0;  // of the text; 0: no replacement there
    std::string_view replacement;
  };
  // The longest sequence at the beginning of `text` that has a replacement.
  Match longest(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace gimbal
