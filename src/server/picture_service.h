// A model that sees: decodes the pictures of requests, computes their rows, and hands the requests to the
// service of the text model. It has a thread of its own, so other texts go on meanwhile. The first picture
// starts it: in a worker process that is inside the sandbox, and so is the thread.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "engine/recent_pictures.h"
#include "scheduler/request.h"

namespace gimbal {

class PictureService final : public GenerationService {
 public:
  // Ends with an error soon after the watch has returned false.
  using Encode = std::function<Result<PictureRowsPtr>(std::string_view file, const PictureWatch&)>;
  static constexpr uint64_t kKeptBytes = uint64_t(64) << 20;      // of rows
  static constexpr uint64_t kWaitingBytes = uint64_t(256) << 20;  // of files
  static constexpr size_t kMostWaiting = 256;

  // `text` outlives it. `context`: positions of one text. `encode` is called by its thread alone.
  PictureService(GenerationService& text, int context, Encode encode);
  // Ends waiting requests with Finish::Cancelled.
  ~PictureService() override;

  // A request whose pictures were all seen lately does not wait. Clients take turns.
  Status submit(uint64_t id, GenerationRequest, GenerationSink) override;
  void cancel(uint64_t id) override;

 private:
  struct Job {
    uint64_t id;
    GenerationRequest request;
    GenerationSink sink;
    std::vector<std::string> digests = {};  // of its pictures
    uint64_t bytes() const;
  };
  void run();
  Job next();
  void serve(Job);
  // By picture. Errors: those of `encode`.
  Result<std::vector<PictureRowsPtr>> rows_of(Job&);
  // Puts rows in the places of pictures.
  void expand(GenerationRequest&, std::span<const PictureRowsPtr>) const;
  bool is_cancelled();

  GenerationService& text_;
  const int context_;
  const Encode encode_;
  std::mutex mutex_;  // guards the members below
  RecentPictures recent_{kKeptBytes};
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  uint64_t waiting_bytes_ = 0;
  std::string last_client_;
  uint64_t current_ = 0;                       // at work; 0: none
  bool cancelled_ = false, stopping_ = false;  // cancelled_: of the current one
  std::thread thread_;
};

}  // namespace gimbal
