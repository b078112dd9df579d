// What running a model will take, found from the file's header alone: the programs, the kernel of every op,
// and every byte of memory, on each device that holds a stage of the model. Loading does what it says, and
// nothing more is allocated afterwards.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/arch.h"
#include "model/state.h"
#include "program/partition.h"
#include "program/place.h"
#include "runtime/top_logits.h"

namespace gimbal {

class PackedFile;

// The positions of a context that nobody asked for: the model's own, at most 4096.
int default_context(const Config&);

// The most tokens that are worth drafting at once: with the token before them a step of 16 rows.
inline constexpr int kMaxDrafts = 15;

struct ModelPlan;

struct RunOptions {
  int context = 0;     // positions per sequence; 0: the model's own, at most 4096
  int batch = 256;     // rows of a prompt computed at once
  int logit_rows = 1;  // rows of one step that logits can be asked for
  int drafts = 0;      // tokens drafted at most for a step (runtime/drafting.h), which get logits, too
  int sequences = 1;   // conversations held at once
  // Positions of KV cache for all sequences together; 0: a whole context for each. With fewer, a step fails
  // when no page is free (Code::OutOfMemory), and nothing has changed then.
  int64_t cache_positions = 0;
  DType cache_type = DType::F16;  // one of kCacheTypes (ops/shapes.h)
  KernelPreference kernels;
  int first_layers = 0;             // leaves out all layers behind these many, to try the others; 0: none
  bool embeddings = false;          // rows may have embeddings in place of tokens
  bool hidden = false;              // Wants::hidden can be asked for; always can of an encoder
  bool logits = true;               // Wants::logits can be asked for, and top; never can of an encoder
  bool states = false;              // Batch::states can be asked for, where the model has them
  const ModelArch* arch = nullptr;  // in place of the one that the file names; outlives what is made of it
  // Of a model that will be loaded before this one: its memory is not free. Outlives what is planned.
  const ModelPlan* beside = nullptr;
  // Bytes of the host's memory that are free and that other processes will take.
  uint64_t promised = 0;
};

// Bytes on one device. The first five are what is allocated there, a buffer each; the sixth is what its
// programs take besides; the seventh is none of the device's, but the host's (memory_check.h).
struct MemoryPlan {
  uint64_t weights = 0, cache = 0, step = 0, activations = 0, output = 0;
  uint64_t scratch = 0, sessions = 0;
  uint64_t transfer = 0;  // of `step` and `output`: what lies there on its way to or from another device
  uint64_t free = 0;      // on the device for this model when the plan was made: free_for()
  uint64_t total() const { return weights + cache + step + activations + output + scratch + sessions; }
};

// One program per bucket of rows: 1, 2, 4, 8 ... and a whole batch, each with the kernels for so many. A step
// runs in the smallest that holds it. They share weights, caches and memory.
struct Bucket {
  int rows;
  Program program;
  std::vector<Choice> choices;             // the kernel of every op, with reasons
  std::vector<StepInput> inputs;           // at the same offsets in every stage
  uint64_t step_bytes = 0;                 // of the step's own data; behind it lies what is transferred
  std::vector<Transfer> in;                // from earlier stages
  std::optional<Value> outputs[kOutputs];  // in the last stage
};

// Layers for one device, asked for. In a list, the first entry has the embedding table, too, and the last the
// output head; either may have 0 layers, and then holds only that.
struct Placement {
  const Device* device;  // outlives what is made of it
  int layers;
  std::string why;  // for people; may be empty
};

// Consecutive layers on one device.
struct Stage {
  const Device* device;  // outlives the plan
  int first_layer = 0, layers = 0;
  bool embedding = false, head = false;  // holds the embedding table; the output norm and head
  std::string why;
  std::vector<Bucket> buckets;  // by rising rows
  MemoryPlan memory;
  std::vector<TopLogitsProgram> top = {};         // by rising k; with the output head only
  std::shared_ptr<const PackedFile> packed = {};  // where its weights are, laid out already: packed_weights.h
};
std::string contents(const Stage&);  // "the embedding and layers 0 to 3"

struct ModelPlan {
  std::string source;  // names the file in errors: escaped
  Config config;
  RunOptions options;            // context filled in
  std::vector<StatePool> pools;  // what the model remembers of its sequences
  std::vector<Stage> stages;     // in the order in which a step passes them; at least one
  // Rows see later ones of their sequence, so that a step must have all of it.
  bool whole_texts = false;
  // Each row has a token, and in Row::embedding a state besides.
  bool takes_states = false;
  int embedding_parts = 1;  // of the model's width each: see Recorder::add_embedded()
  uint64_t file_bytes = 0;  // of all parts of the model's file

  bool split() const { return stages.size() > 1; }
  // The bucket that a step of so many rows runs in.
  size_t bucket_for(int rows) const;
  // Of embeddings that may take the place of tokens; 0: none may.
  int embedding_width() const { return options.embeddings ? config.width * embedding_parts : 0; }
  // The first bucket, and of the others the largest of each run with the same kernels: what is worth showing.
  std::vector<size_t> distinct_buckets() const;
  // Where the output head is; of an undivided model, where everything is.
  const Stage& last() const { return stages.back(); }
  const Device& device() const { return *last().device; }
  int width(Output) const;  // numbers that a row gets; 0: the model has no such output
  int max_top() const { return last().top.empty() ? 0 : last().top.back().k; }  // see Batch::top
  // Whether a new sequence can get so many tokens, at once or in steps. Errors: Usage, naming the option.
  Status check_text(size_t tokens) const;
  // The largest page of any state, if sequences can share pages: what passes through the host to copy one.
  uint64_t page_bytes() const;

  // Host memory. Of all steps: their data for every stage, what is read back, which pages are in use, and
  // about what the devices keep of the programs.
  uint64_t steps_bytes() const;
  // Of each conversation: tokens, pages, a batch, and what a sampler holds.
  uint64_t session_bytes() const;
  uint64_t host_bytes() const { return steps_bytes() + uint64_t(options.sequences) * session_bytes(); }
};

// The whole model on one device. Errors: those of configure(); Unsupported ops or formats; Usage for options
// out of range.
Result<ModelPlan> make_model_plan(const ModelSource& file, const Device& device, const RunOptions& options);
// Its layers over a list of devices, in order; a device may come more than once. Entries in the middle with 0
// layers are left out. Errors: those above; Usage when the layers do not add up to the model's.
Result<ModelPlan> make_model_plan(const ModelSource& file, std::span<const Placement> where,
                                  const RunOptions& options);

}  // namespace gimbal
