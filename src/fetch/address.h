// Addresses of models: a repository of Hugging Face, one file of it, or any URL of a file.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace gimbal {

// The parts of a URL, not decoded.
struct Url {
  std::string scheme, credentials, host, path, query;  // host: with the port; path: with its leading slash

  // Errors: Usage if the text is not an http or https URL.
  static Result<Url> parse(std::string_view);
  std::string origin() const { return scheme + "://" + host; }
  std::string whole() const;
  // For messages and names: without credentials and query, which may be secrets.
  std::string shown() const { return origin() + path; }
  bool is_loopback() const;
};

struct ModelAddress {
  std::string repository;         // "OWNER/REPO"; empty: a plain URL
  std::string revision = "main";  // branch, tag or commit
  std::string quant;              // as typed; empty: the first found in the default order (fetch/choice.h)
  std::string file;               // its path in the repository; empty: selected by `quant`
  std::string url;                // the whole URL of a plain file

  // "hf.co/OWNER/REPO:Q4_K_M": contains no secrets.
  std::string name() const;
};

// hf.co/, huggingface.co/, hf:// or any URL.
bool is_address(std::string_view);

// Parses OWNER/REPO[:QUANT], OWNER/REPO/FILE.gguf, and file addresses as the site shows them
// (.../blob/main/FILE, .../resolve/main/FILE), there or below $HF_ENDPOINT. Errors: Usage, with the
// expected form.
Result<ModelAddress> parse_address(std::string_view);

// $HF_ENDPOINT without trailing slashes, or https://huggingface.co.
std::string hub_endpoint();

// A path, URL-encoded: all but unreserved characters and slashes become %XX.
std::string url_path(std::string_view path);

}  // namespace gimbal
