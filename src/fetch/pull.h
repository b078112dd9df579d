// A model by its address: found out, its header read without the rest, and fetched into the cache of this
// machine, whole and checked or not at all.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fetch/pull_event.h"
#include "fetch/store.h"
#include "files/gguf.h"

namespace gimbal {

struct PullOptions {
  int connections = 4;      // at once; from 1 to 16
  std::string sha256 = {};  // of the one file, in hexadecimal digits; empty: what the site tells
};

struct PullFile {
  std::string name;  // in the repository
  uint64_t bytes = 0;
  std::string sha256;  // empty: nobody tells it
  Place place;
  bool here = false;
};

class Pull {
 public:
  // Asks what the address names. Errors: those of parse_address, Curl::open, Hub and choose; Usage for
  // options that make no sense; `cancelled`. `watch` must outlive the result.
  static Result<std::unique_ptr<Pull>> resolve(const std::string& address, PullOptions, PullWatch& watch);
  ~Pull();

  const ModelAddress& address() const;
  const std::string& commit() const;  // of a repository
  const std::vector<PullFile>& files() const;
  uint64_t bytes() const;    // of all files
  uint64_t missing() const;  // of them, what is not here as a whole file

  // The model's header over range requests: what is read lies in memory, and the weights stay where they are.
  // It can be asked while this object lives. Errors: those of open_gguf; Unsupported where the server knows
  // no ranges.
  Result<ModelSource> header(const TernaryChoice& = {}) const;

  // Fetches what is not here, and gives the path of the first file. Errors: Failed, NotFound with what to do;
  // `cancelled`. What arrived is kept, but when its hash is wrong.
  Result<std::string> fetch();

 private:
  struct Impl;
  explicit Pull(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal
