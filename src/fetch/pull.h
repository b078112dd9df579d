// Downloads a model by its address: resolves the address, reads the header alone, and fetches the files
// into this machine's cache, complete and checked or not at all.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fetch/pull_event.h"
#include "fetch/store.h"
#include "files/gguf.h"

namespace gimbal {

struct PullOptions {
  int connections = 4;       // parallel; from 1 to 16
  std::string sha256 = {};   // of the only file, in hexadecimal; empty: the site's
  bool public_only = false;  // a plain URL must lead to the public network, as if a site had redirected to it
};

struct PullFile {
  std::string name;  // in the repository
  uint64_t bytes = 0;
  std::string sha256;  // empty: unknown
  Place place;
  bool here = false;
};

class Pull {
 public:
  // Resolves the address on the server. Errors: those of parse_address, Curl::open, Hub and choose; Usage
  // for invalid options; `cancelled`. `watch` must outlive the result.
  static Result<std::unique_ptr<Pull>> resolve(const std::string& address, PullOptions, PullWatch& watch);
  ~Pull();

  const ModelAddress& address() const;
  const std::string& commit() const;  // of a repository
  const std::vector<PullFile>& files() const;
  uint64_t bytes() const;    // of all files
  uint64_t missing() const;  // of them, bytes of files that are not on this machine yet

  // The model's header, read with range requests into memory; the weights are not downloaded. Valid as long
  // as this object. Errors: those of open_gguf; Unsupported for a folder of safetensors, or if the server
  // does not support range requests.
  Result<ModelSource> header(const TernaryChoice& = {}) const;

  // Fetches the missing files; returns the path of the first file, or of the folder. Errors: Failed, NotFound
  // with a remedy; `cancelled`. Keeps the bytes that arrived, unless the hash is wrong.
  Result<std::string> fetch();

 private:
  struct Impl;
  explicit Pull(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
