/* The whole contract between the engine and a backend. Plain C, fixed layout, versioned.
   Backends are reached only through this table, linked or dlopen-ed alike. */
#ifndef GIMBAL_DEVICE_ABI_H
#define GIMBAL_DEVICE_ABI_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
/* A plugin may return a number that is not listed here. C++ allows this only with a fixed underlying type. */
#define GIMBAL_ANY_INT : int
#else
#define GIMBAL_ANY_INT
#endif

#define GIMBAL_ABI_VERSION 2u
#define GIMBAL_MAX_RANK 8
#define GIMBAL_MAX_INPUTS 8
#define GIMBAL_MAX_OUTPUTS 2
#define GIMBAL_LOCAL 0xffffffffu /* a slot: no memory (GIMBAL_BY_ELEMENT); offset is the value's number */
typedef enum GIMBAL_ANY_INT {
  GIMBAL_OK,
  GIMBAL_UNSUPPORTED,
  GIMBAL_OUT_OF_MEMORY,
  GIMBAL_DEVICE_LOST,
  GIMBAL_INVALID
} gimbal_code;

/* The order of a value's elements in its buffer. */
typedef enum {
  GIMBAL_DENSE = 0,  /* row after row, dim[0] fastest, blocks as in tensor/dtypes.def */
  GIMBAL_PACKED = 1, /* a weight matrix in the device's own layout: see pack() */
  GIMBAL_CACHE = 2,  /* a KV cache in the device's own layout: see cache_bytes() */
  GIMBAL_STRIDED = 3 /* elements at gimbal_value.stride; only for formats without blocks */
} gimbal_layout;

/* The number of a value's rows that an op computes in one submit. */
typedef enum {
  GIMBAL_ALL_ROWS = 0,  /* all of the last dimension */
  GIMBAL_STEP_ROWS = 1, /* gimbal_step.rows */
  GIMBAL_OUT_ROWS = 2   /* gimbal_step.out_rows */
} gimbal_extent;

typedef struct gimbal_value {      /* a tensor: where it lives and how it is laid out */
  uint32_t slot;                   /* index into the buffers bound at submit time */
  uint8_t dtype, rank;             /* tensor/dtypes.def; 0..8 */
  uint8_t layout, extent;          /* gimbal_layout; gimbal_extent of the last dimension */
  uint64_t offset;                 /* bytes; a multiple of 64, of a strided value of its element */
  uint64_t bytes;                  /* bytes that the value takes in its buffer */
  int64_t dim[GIMBAL_MAX_RANK];    /* dim[0] is the fastest-varying; unused ones are 1 */
  int64_t stride[GIMBAL_MAX_RANK]; /* elements from one index to the next; any number for a strided value,
                                      else that of contiguous elements */
} gimbal_value;

typedef struct gimbal_op {
  uint16_t kind;                  /* ops/ops.def */
  uint16_t kernel;                /* row in the device's kernel table, picked by the planner */
  uint16_t inputs, outputs;       /* how many of in[] and out[] are used */
  uint16_t in[GIMBAL_MAX_INPUTS]; /* indices into gimbal_program.values; optional inputs are the last ones */
  uint16_t out[GIMBAL_MAX_OUTPUTS];
  struct {
    double f[4];
    int64_t i[16];
  } param; /* ops/ops.def lists those in use; 0 means the parameter is absent */
} gimbal_op;

typedef struct gimbal_program { /* a straight-line list of ops: no control flow, no ownership */
  const gimbal_value* values;
  size_t n_values;
  const gimbal_op* ops;
  size_t n_ops;
} gimbal_program;

typedef struct gimbal_step {
  int32_t rows, out_rows;
} gimbal_step;

typedef enum { GIMBAL_EXACT = 0, GIMBAL_FAST = 1 } gimbal_numerics;

/* The formats and layouts that a kernel accepts as one input, or produces as one output. */
typedef struct gimbal_operand {
  uint64_t dtypes; /* as a bit set; 0: the kernel has no such input or output */
  uint8_t layout;  /* gimbal_layout */
  uint8_t strided; /* not 0: also accepts GIMBAL_STRIDED */
} gimbal_operand;

/* The quantity that a limit restricts. */
typedef enum {
  GIMBAL_DIM = 0,         /* dim[index] of a value */
  GIMBAL_ROWS = 1,        /* the last dimension of a value, as planned */
  GIMBAL_RANK = 2,        /* of a value */
  GIMBAL_LARGEST_DIM = 3, /* of a value */
  GIMBAL_ROW_VALUES = 4,  /* the product of all dimensions of a value but the last */
  GIMBAL_BYTES = 5,       /* that a value takes */
  GIMBAL_PARAM = 6        /* param.i[index] of the op */
} gimbal_measure;

/* The value that a limit restricts: an input's number, the first output, or each input and output. */
#define GIMBAL_OUTPUT 254
#define GIMBAL_EVERY_VALUE 255

typedef struct gimbal_limit {
  const char* name; /* "head_dim": for messages about rejected kernels */
  uint8_t what;     /* gimbal_measure; a host rejects kernels with a measure that it does not know */
  uint8_t value, index;
  int32_t multiple; /* the quantity must be a multiple of this; 0: any */
  int64_t min, max; /* both inclusive */
} gimbal_limit;

/* Bits of gimbal_kernel_info.params. The last: the device can compute this op part by part together with its
   neighbours, so that a dense value that only they use needs no memory (GIMBAL_LOCAL, program/join.h). */
#define GIMBAL_PARAM_I(n) (1u << (n))
#define GIMBAL_PARAM_F(n) (1u << (16 + (n)))
#define GIMBAL_BY_ELEMENT (1u << 31)
/* A row of a backend's kernel table: all that the kernel can compute. A host uses it only for ops that it
   claims completely: ops may get new inputs and parameters. Fields of later versions only widen claims. */
typedef struct gimbal_kernel_info {
  uint32_t struct_size;
  uint32_t needs;   /* bits of gimbal_device_info.features that must be set */
  const char* name; /* backend.variant.op.format */
  uint16_t op;
  int16_t rank;     /* larger wins among rows that fit */
  uint8_t numerics; /* gimbal_numerics: exact rows sum in the op's own order */
  gimbal_operand in[GIMBAL_MAX_INPUTS], out[GIMBAL_MAX_OUTPUTS];
  uint32_t params; /* GIMBAL_PARAM_ bits of the parameters that may be nonzero */
  uint32_t n_limits;
  const gimbal_limit* limits;
  float tolerance; /* of a fast row: its additional error compared to the op's own order of additions,
                      relative to the sum of the magnitudes of its terms; 0: none */
} gimbal_kernel_info;

typedef struct gimbal_device_info {
  uint32_t struct_size; /* set by the host: the available space */
  const char* name;     /* "Intel(R) Xeon(R) Processor" */
  uint64_t memory_total, memory_free;
  uint32_t features;                /* backend-defined bits */
  const char* const* feature_names; /* name of bit i; ends with NULL */
  uint32_t threads;       /* host threads that the device computes with; 0 for devices with their own cores */
  uint8_t software;       /* emulates hardware on the CPU */
  uint8_t unified_memory; /* shares memory with the host */
  const char* driver;     /* its name and version: "Mesa 22.3.6"; NULL if it has none */
  const char* pci_id;     /* "0000:65:00.0", or NULL */
  const char* compute_capability; /* the target that kernels are built for: "9.0", "gfx942", "Vulkan 1.3";
                                     NULL if it has none */
} gimbal_device_info;

typedef struct gimbal_limits {  /* peak throughput (roofline); `gimbal bench` reports percentages of it */
  uint32_t struct_size;         /* set by the host: the available space */
  double read_bytes_per_second; /* from memory that is too large for any cache */
  double int8_ops_per_second;   /* products of bytes, added up exactly; a product counts two: * and + */
  double fp32_ops_per_second;
  const char* instruction_set; /* used for the measurement of operations; valid as long as the device */
  uint32_t threads;            /* host threads that measured together; 0 for devices with their own cores */
} gimbal_limits;

typedef struct gimbal_device gimbal_device;
typedef struct gimbal_buffer gimbal_buffer;
typedef struct gimbal_executable gimbal_executable;

/* A kernel that the host brings: a function for devices that compute with the host's threads, a text for
   others; either may be missing. */
typedef struct gimbal_host_kernel {
  uint32_t struct_size;
  /* Its row. An op names this kernel by the address of this struct in param.i[0]: a limit of the row must
     allow that address alone. */
  gimbal_kernel_info info;
  void* user;
  /* The parts of one op that threads may compute side by side; at least 1. */
  int64_t (*parts)(void* user, const gimbal_op*, const gimbal_value* out);
  /* Computes parts [begin, end). The output and its memory, then the inputs and theirs. Must not throw. */
  void (*compute)(void* user, const gimbal_op*, const gimbal_value* out, unsigned char* to,
                  const gimbal_value* const* in, const unsigned char* const* from, int64_t begin,
                  int64_t end);
  /* In the kernel dialect, for GPUs: computes element `at` of the output (gpu/text/kernel_text.h). Valid as
     long as the device. */
  const char* text;
} gimbal_host_kernel;

typedef struct gimbal_backend {
  uint32_t abi_version; /* the first field in all versions */
  uint32_t struct_size; /* later versions append; a host reads only fields that both know */
  const char* name;
  int (*device_count)(void);
  /* options: "key=value" lines, NULL for none; unknown keys are refused. After a failure the text of
     last_error(NULL) names the option. cpu: threads=N, variant=NAME, limit_megabytes=N (read by measure()).
   */
  gimbal_code (*open)(int index, const char* options, gimbal_device** out);
  void (*close)(gimbal_device*);
  void (*describe)(gimbal_device*, gimbal_device_info*);
  const gimbal_kernel_info* (*kernels)(gimbal_device*, size_t* count, size_t* stride);

  gimbal_code (*alloc)(gimbal_device*, size_t bytes, gimbal_buffer** out); /* zeroed, aligned to 64 bytes */
  void (*release)(gimbal_device*, gimbal_buffer*);
  gimbal_code (*write)(gimbal_device*, gimbal_buffer*, size_t offset, const void*, size_t);
  gimbal_code (*read)(gimbal_device*, gimbal_buffer*, size_t offset, void*, size_t);

  /* Bytes that a weight matrix takes as GIMBAL_PACKED: dim[0] values a row, dim[1] rows. 0: the device has no
     packed layout for this dtype; the weight stays GIMBAL_DENSE. */
  uint64_t (*packed_bytes)(gimbal_device*, uint8_t dtype, int64_t columns, int64_t rows);
  /* Packs rows [begin, end) of a matrix, given as dense blocks; begin is a multiple of 16. Callable from
     several threads for disjoint ranges. `source` points at row `begin`; the scale of an i2_s tensor follows
     row end - 1, as it follows the last row in files. */
  gimbal_code (*pack)(gimbal_device*, gimbal_buffer*, const gimbal_value*, const void* source, int64_t begin,
                      int64_t end);
  /* Bytes of a KV cache for one layer: `pages` pages of `page` positions, heads x head_dim values each. Pages
     have equal sizes and are contiguous. */
  uint64_t (*cache_bytes)(gimbal_device*, uint8_t dtype, uint8_t is_key, int64_t head_dim, int64_t heads,
                          int64_t page, int64_t pages);

  gimbal_code (*compile)(gimbal_device*, const gimbal_program*, gimbal_executable** out);
  void (*discard)(gimbal_device*, gimbal_executable*);
  gimbal_code (*submit)(gimbal_device*, gimbal_executable*, gimbal_buffer* const* slots, size_t n_slots,
                        gimbal_step);
  gimbal_code (*wait)(gimbal_device*);
  const char* (*last_error)(
      gimbal_device*); /* of the calling thread; device may be NULL after a failed open() */

  /* Optional (may be NULL, and a table may end before it): measures the limits, in a second or two. Needs
     about 1 GB of memory during that time. Submit nothing meanwhile. */
  gimbal_code (*measure)(gimbal_device*, gimbal_limits* out);

  /* Optional, likewise: the number of times that each op of an executable has run since compile(), counted by
     the device; n_ops as compiled. Not during a submit(). */
  gimbal_code (*run_counts)(gimbal_device*, gimbal_executable*, uint64_t* counts, size_t n_ops);

  /* Optional, likewise: bytes of device memory that compile() would allocate for this program, in addition to
     the buffers of submit(); for plans. Allocates nothing itself. If absent: 0 bytes. */
  gimbal_code (*scratch_bytes)(gimbal_device*, const gimbal_program*, uint64_t* out);

  /* Optional, likewise: the inputs that determine the list of devices. While they are unchanged, a host may
     reuse an earlier list without loading this code or a driver. Lines: the name of an environment variable,
     or "PREFIX*" for all with this prefix; or a path that begins with '/', whose last part may be
     "PREFIX*SUFFIX". Need not list the loader's inputs, nor the libraries loaded while devices are counted
     and opened: the host knows them. The text may depend on the variables that it names, and is valid as long
     as the backend. Called after the devices were counted. If absent: the host always counts them again.
     */
  const char* (*depends_on)(void);

  /* Optional, likewise: a buffer over host memory, which the device reads in place; programs never write to
     it, and write() and pack() refuse to. `data` is aligned to 4096 bytes and must stay valid until
     release(). A device with this function packs each 16 rows of a matrix independently, as contiguous tiles:
     so a host can compare a part of stored weights with the result of pack(). */
  gimbal_code (*adopt)(gimbal_device*, const void* data, size_t bytes, gimbal_buffer** out);

  /* Optional, likewise: where the host can read and write a buffer in place, between wait() and the next
     submit(); NULL if this device or buffer allows it not. Valid until release(). */
  void* (*host_pointer)(gimbal_device*, gimbal_buffer*);

  /* Optional, likewise: appends a row to the kernel table. The indices of other rows do not change; the table
     may move, so the host calls kernels() again. The struct and everything it points to must stay valid as
     long as the device. Not during a submit() or compile(). */
  gimbal_code (*add_kernel)(gimbal_device*, const gimbal_host_kernel*);
} gimbal_backend;

typedef const gimbal_backend* (*gimbal_backend_entry)(void);

typedef struct gimbal_meanings {
  const uint64_t* of; /* by number: a hash; 0 if the number is unused */
  size_t count;
} gimbal_meanings;

/* A plugin exports the function gimbal_plugin_entry, of type gimbal_plugin_function. A plugin is the
   file libgimbal-backend-<name>.so; <name> is the name in its table. */
typedef struct gimbal_plugin {
  uint32_t struct_size; /* later versions append */
  uint32_t abi_version; /* of everything in this header, as the plugin was compiled */
  const char* build_id; /* its version of gimbal: shown, not compared */
  const char* compiler; /* "gcc 12.2.0": shown, not compared */
  gimbal_backend_entry backend;
  /* The plugin's numbers of ops and dtypes: device/meanings.h. A host refuses a plugin that uses a number
     with another meaning; either may know numbers that the other does not. */
  gimbal_meanings ops, dtypes;
} gimbal_plugin;
typedef const gimbal_plugin* (*gimbal_plugin_function)(void);
#define GIMBAL_PLUGIN_SYMBOL "gimbal_plugin_entry"

#ifdef __cplusplus
}
#endif
#endif
