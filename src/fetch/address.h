// What the address of a model names: a repository of Hugging Face, one file of it, or a file anywhere.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace gimbal {

// A URL in its parts; nothing is decoded.
struct Url {
  std::string scheme, credentials, host, path, query;  // host: with the port; path: from its slash on

  // Errors: Usage for what is no http or https URL.
  static Result<Url> parse(std::string_view);
  std::string origin() const { return scheme + "://" + host; }
  std::string whole() const;
  // For people and for names: without credentials and query, which may be secrets.
  std::string shown() const { return origin() + path; }
  bool is_loopback() const;
};

struct ModelAddress {
  std::string repository;         // "OWNER/REPO"; empty: a plain URL
  std::string revision = "main";  // branch, tag or commit
  std::string quant;              // as it was typed; empty: the first of the default order (fetch/choice.h)
  std::string file;               // its path in the repository; empty: `quant` decides
  std::string url;                // of a plain one, whole

  // "hf.co/OWNER/REPO:Q4_K_M": nothing of it is a secret.
  std::string name() const;
};

// hf.co/, huggingface.co/, hf:// or any URL.
bool is_address(std::string_view);

// Of a repository: OWNER/REPO[:QUANT], OWNER/REPO/FILE.gguf, and the addresses of files as the site shows
// them (.../blob/main/FILE, .../resolve/main/FILE), there or below $HF_ENDPOINT. Errors: Usage, with what
// was expected.
Result<ModelAddress> parse_address(std::string_view);

// $HF_ENDPOINT without slashes at its end, or https://huggingface.co.
std::string hub_endpoint();

// A path as a URL has it: all but unreserved characters and slashes as %XX.
std::string url_path(std::string_view path);

}  // namespace gimbal
