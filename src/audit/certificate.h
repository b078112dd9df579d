// Certificates of answers: everything that decides an answer's bits, the answer, and digests of the logits
// that chose its tokens. A certificate lets another machine check the answer (audit/audit.h). It proves that
// this model with these settings gives this answer, not who computed it. docs/audit.md describes the format.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/loader.h"
#include "runtime/text_state.h"

namespace gimbal {

// The version of the arithmetic: what every exact kernel computes, to the last bit. It changes exactly when
// the hashes of pinned_bits_test change. Certificates of other versions cannot be checked by this build.
inline constexpr int kArithmetic = 1;

struct Certificate {
  static constexpr int kVersion = 2;  // the highest version of the format

  int version = 1, arithmetic = kArithmetic;  // version 2: a branch
  struct Adapter {
    std::string sha256;
    float scale = 1;
  };
  struct Model {
    std::string name;    // for people; not checked
    std::string sha256;  // of the file; of several parts: of their contents, one behind the other
    uint64_t bytes = 0;
    std::vector<Adapter> adapters;
  } model;
  struct Settings {
    int context = 0;
    std::string cache_type;     // of keys and values: "f16", "q5_0, rotated"
    bool fast_kernels = false;  // kernels with another order of sums may have run: then bits prove nothing
    std::vector<RopeChange> rope = {};  // in place of the file's values
    bool operator==(const Settings&) const = default;
  } settings;
  struct Prompt {
    std::vector<Token> tokens;  // empty: private; the auditor brings them
    std::string sha256;         // of the ids, as i32 in little-endian order
  } prompt;
  TextSettings text;    // sampling, limits and stop strings
  std::string grammar;  // GBNF; empty: none
  // Of a branch (audit/branch.h): the answer whose first tokens it keeps, and their number. Version 2.
  struct Origin {
    std::string parent;  // SHA-256 of the canonical text of that answer's certificate
    int tokens = 0;
    // Kept tokens at the beginning of this answer: given, without rows, not chosen by these settings. 0: they
    // are part of the prompt.
    int kept = 0;
  } origin;
  struct AnswerPart {
    std::vector<Token> tokens;  // without the stop token
    std::string finish;         // name_of(Finish)
  } answer;
  // A row for each token behind the kept ones, and one for the stop token, if one ended the answer
  // (runtime/top_logits.h).
  struct Logits {
    std::string rows;   // the first 8 hexadecimal digits of each row's digest
    std::string chain;  // SHA-256 over the digests, one after the other: see RowChain
  } logits;
  struct Made {
    std::string program;               // "gimbal 0.5.0"
    std::vector<std::string> devices;  // that held the model, when the answer was complete
    std::string drafts;                // what guessed tokens ahead, which changes no bit; empty: nothing
    std::string time;                  // UTC, "2026-11-25T16:00:00Z"
    double prompt_seconds = 0, seconds = 0;
  } made;  // not checked
  struct Signature {
    std::string key, value;  // Ed25519, in hexadecimal; empty: not signed
  } signature;

  bool has_stop_row() const { return answer.finish == name_of(Finish::StopToken); }
  // The rows stand for the places first_row() to end_row() - 1 of the answer.
  size_t first_row() const { return size_t(origin.kept); }
  size_t end_row() const { return answer.tokens.size() + has_stop_row(); }
  size_t rows() const { return end_row() - first_row(); }
};

// Joins the digests of an answer's rows.
class RowChain {
 public:
  void add(std::string_view digest);  // of the next row
  const std::string& rows() const { return rows_; }
  const std::string& chain() const { return chain_; }

 private:
  static constexpr size_t kShort = 8;  // digits
  // SHA-256 of "gimbal-logits-1".
  std::string rows_, chain_ = "628853ef0719b7d8db8b1c150fced743851c18ce1a1296908edbe635ed968778";
};

// SHA-256 of the ids, as a certificate has it.
std::string prompt_digest(std::span<const Token>);

// A key of the file whose value was changed, and that no certificate can name. Empty: none.
std::string changed_arithmetic(const ModelSource&);
// The file's digest, read from beginning to end; `remembered`: see digest_of_files(). Errors: Usage if
// changed_arithmetic(); Failed with the system's reason. In model_identity.cpp.
Result<Certificate::Model> certified_model(const ModelFile&, const std::vector<Lora>& adapters,
                                           bool remembered = false);

// `file`: that the plan was made from.
Certificate::Settings certified_settings(const ModelPlan&, const ModelSource& file);
// Of an answer to `prompt` by a model with these settings. `rows`: the digests, as TextSettings::certify
// gives them. The caller fills in `made`.
Certificate certificate_of(Certificate::Model model, Certificate::Settings, std::span<const Token> prompt,
                           const TextSettings&, std::string grammar, std::span<const Token> answer, Finish,
                           std::span<const std::string> rows);

// Now, in UTC, for Certificate::Made: "2026-11-25T16:00:00Z".
std::string certificate_time();

// One line of JSON. Signatures are over its canonical form: this text without the member "signature".
std::string to_text(const Certificate&);
std::string canonical_text(const Certificate&);
std::string certificate_digest(const Certificate&);  // SHA-256 of the canonical text
// Errors: Malformed for a text that is no certificate, or whose parts contradict each other: another number
// of rows than of tokens, a prompt of another digest. Unsupported for another version of the format.
Result<Certificate> read_certificate(std::string_view text);

// Signatures of certificates: Ed25519 (RFC 8032) by OpenSSL 3, which is opened when it is needed.

// Signs the canonical text with the private key in this PEM file (`openssl genpkey -algorithm ed25519`).
// Errors: Unsupported without OpenSSL; Usage for a file that cannot be read or holds another kind of key.
Status sign(Certificate&, const std::string& key_file);
// Whether the signature is of its key and of this content. Errors: Unsupported without OpenSSL.
Result<bool> signature_fits(const Certificate&);

}  // namespace gimbal
