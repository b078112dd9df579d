// A function while it is recorded: operations become ops of a program, and tensors have a place in it instead
// of values. What comes out is a RecordedProgram.
#pragma once
#include "tensors/state.h"

#include <gimbal/recorded.h>

namespace gimbal::v1 {

// The format and the place of an argument's elements in its memory.
struct Argument {
  gimbal::DType type;
  gimbal::Layout layout;
  bool operator==(const Argument&) const = default;
};
Argument argument_of(const Tensor&);

// Memory that a program is bound to at each run.
struct BoundMemory {
  enum Kind : uint8_t { Own, Given, Outside } kind;
  uint64_t bytes = 0;
  size_t argument = 0;                   // if Given
  std::shared_ptr<gimbal::Block> block;  // if Outside
};

struct RecordedProgram {
  // A result: a view of an own memory, an argument or one from outside; `whole` if it has no memory of its
  // own.
  struct Output {
    size_t bound = SIZE_MAX;  // an index of `bound`
    gimbal::DType type;
    gimbal::Layout layout;
    std::optional<Tensor> whole;
  };
  struct Check {
    size_t bound;
    int64_t numbers;
    Judge judge;
  };
  std::shared_ptr<Queue::State> queue;  // which must not be locked at the end
  std::vector<Argument> arguments;
  gimbal::Program program;
  std::vector<gimbal::Choice> choices;
  std::vector<std::string> joined;        // of ops by element: where the result goes, and why
  mutable gimbal::Executable executable;  // empty without operations; used with the queue locked
  std::vector<BoundMemory> bound;         // slots from kSlots on
  std::vector<Output> outputs;
  std::vector<Check> checks;
  std::vector<uint64_t*> runs;  // of each op's kernel, in Queue::State::runs
  uint64_t apart = 0;           // bytes of intermediate values

  ~RecordedProgram();
};

// Compares the kernels of a program that are new on its device, by `run`: the function, computed op by op.
// The error of a kernel that is wrong; nullopt: there is none.
std::optional<Error> first_uses_of(const RecordedProgram&, const std::function<Status()>& run);

class Recording : public std::enable_shared_from_this<Recording> {
 public:
  explicit Recording(std::shared_ptr<Queue::State> queue) : queue_(std::move(queue)) {}

  // The one that records calls of this thread on this queue; null: calls compute.
  static Recording* active(const std::shared_ptr<Queue::State>&);
  static Error without_values(const Tensor&);

  // The argument that the function gets.
  Tensor argument(const Argument&);
  // Memory of the function's own.
  Tensor place(gimbal::DType, std::span<const int64_t> dims);
  Tensor apply(gimbal::OpKind, const gimbal::OpParams&, std::span<const Tensor> in);
  std::optional<Tensor> check(const Tensor& found, Judge);
  // Whether it may be written: memory of the function's own.
  bool owns(const Tensor&) const;
  // Plans memory, chooses kernels and compiles. The queue is locked.
  gimbal::Result<std::shared_ptr<RecordedProgram>> finish(std::vector<Argument>,
                                                          std::span<const Tensor> results);

 private:
  struct Memory {
    BoundMemory bound;
    uint16_t root;           // the value that stands for all of it, if own
    size_t slot = SIZE_MAX;  // index of the program's bound memories; of own memory: if it is a result
  };
  std::optional<size_t> memory_of(const Tensor&);  // an index; of tensors from outside, a new one
  gimbal::Result<uint16_t> value(const Tensor&);
  std::optional<Tensor> misplaced(const Tensor&) const;
  size_t bind(RecordedProgram&, size_t memory);

  std::shared_ptr<Queue::State> queue_;
  gimbal::Program program_;
  struct Place {
    size_t memory;
    uint64_t offset;
  };
  std::vector<Place> places_;  // of values
  std::vector<Memory> memories_;
  std::map<const gimbal::Block*, size_t> outside_;
  std::map<std::string, uint16_t> known_;  // values by memory, format and layout
  struct Found {
    size_t memory;
    int64_t numbers;
    Judge judge;
  };
  std::vector<Found> found_;
};

// Calls of this thread are recorded as long as it lives.
class Recorder {
 public:
  explicit Recorder(Recording&);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  Recording* before_;
};
// Calls of this thread compute as long as it lives, even if a function is recorded.
class Unrecorded {
 public:
  Unrecorded();
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  Recording* before_;
};

}  // namespace gimbal::v1
