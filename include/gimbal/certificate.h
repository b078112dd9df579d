// Certificates of answers, and their audit. A certificate lets another machine check that a model with these
// settings gives this answer. docs/audit.md has its meaning and its format.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/error.h"
#include "gimbal/settings.h"
#include "gimbal/tokenizer.h"

namespace gimbal::v1 {

// A handle: copies share one certificate, and a change makes a new one.
class Certificate {
 public:
  // From the text of a certificate. Errors: Malformed for a text that is none, or whose parts contradict each
  // other; Unsupported for another version of the format.
  static Result<Certificate> parse(std::string_view text);
  // From a file. Errors: those above; NotFound and Failed with the system's reason.
  static Result<Certificate> read(const std::string& path);

  std::string text() const;  // one line of JSON, with a newline
  // Replaces the file. Errors: Failed with the system's reason.
  Status write(const std::string& path) const;

  // The same without the prompt's tokens; their digest stays. It is not signed.
  Certificate without_prompt() const;
  // The same, signed with the private key in this PEM file (`openssl genpkey -algorithm ed25519`). Errors:
  // Unsupported without OpenSSL 3; Usage for a file that cannot be read or holds another kind of key.
  Result<Certificate> sign(const std::string& key_file) const;
  // Whether it is signed, and the signature is of this content. Errors: Unsupported without OpenSSL 3.
  Result<bool> verify() const;
  std::string signer() const;  // the public Ed25519 key, 64 hexadecimal digits; empty: not signed

  std::string model() const;          // the name, for people
  std::string model_sha256() const;   // of the file
  std::vector<Token> prompt() const;  // empty: private
  std::vector<Token> answer() const;  // without the stop token

  struct Impl;

 private:
  friend struct Access;
  explicit Certificate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

struct AuditOptions {
  std::string model;              // in place of the ones that the certificates name; empty: those
  std::vector<LoraAdapter> lora;  // of the answers
  std::vector<Token> prompt;      // of certificates without one
  std::string signer;             // accept only certificates that this key signed; empty: any
  std::optional<int> sample;      // check this many positions of each answer, drawn at random; none: all
  std::optional<uint64_t> seed;   // of that draw; none: a new one for each audit
  std::function<void(size_t done, size_t total)> on_progress = {};  // in tokens
};

struct Audit {
  enum Verdict {
    Same,        // all rows of logits, all tokens and the end of the answer are the same
    Differs,     // `subject` is the first thing that differs
    CannotTell,  // another version of the arithmetic, or fast kernels; or `error`
  } verdict = Same;
  // "model", "adapters", "prompt", "signature", "logits", "token", "end", "chain", "arithmetic",
  // "fast-kernels"; "nothing".
  std::string subject;
  int position = -1;  // of the answer's token; -1: of none
  std::string expected, found, explanation;
  int rows = 0;                     // of logits that were compared
  std::optional<Error> error = {};  // why this certificate could not be checked
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
