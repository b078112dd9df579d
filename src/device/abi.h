/* The whole contract between the engine and a backend. Plain C, fixed layout, versioned.
   Backends are reached only through this table, linked or dlopen-ed alike. */
#ifndef GIMBAL_DEVICE_ABI_H
#define GIMBAL_DEVICE_ABI_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
/* A plugin may give a number that is not here. C++ has such a value only where the type is said. */
#define GIMBAL_ANY_INT : int
#else
#define GIMBAL_ANY_INT
#endif

#define GIMBAL_ABI_VERSION 2u
#define GIMBAL_MAX_RANK 8
#define GIMBAL_MAX_INPUTS 8
#define GIMBAL_MAX_OUTPUTS 2

typedef enum GIMBAL_ANY_INT {
  GIMBAL_OK,
  GIMBAL_UNSUPPORTED,
  GIMBAL_OUT_OF_MEMORY,
  GIMBAL_DEVICE_LOST,
  GIMBAL_INVALID
} gimbal_code;

/* How the elements of a value lie in its buffer. */
typedef enum {
  GIMBAL_DENSE = 0,  /* row after row, dim[0] fastest, blocks as tensor/dtypes.def says */
  GIMBAL_PACKED = 1, /* a weight matrix in the device's own layout: see pack() */
  GIMBAL_CACHE = 2,  /* a KV cache in the device's own layout: see cache_bytes() */
  GIMBAL_STRIDED = 3 /* element by element where gimbal_value.stride says; only for formats without blocks */
} gimbal_layout;

/* How many of a value's rows an op really computes in one submit. */
typedef enum {
  GIMBAL_ALL_ROWS = 0,  /* as many as dim says */
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
  int64_t stride[GIMBAL_MAX_RANK]; /* elements from one index to the next; of a strided value any number, of
                                      others as if the elements lay one after the other */
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
  } param; /* ops/ops.def says which are used; 0 is as if the op did not have this parameter */
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

/* What a kernel takes as one input, or gives as one output. */
typedef struct gimbal_operand {
  uint64_t dtypes; /* as a bit set; 0: the kernel has no such input or output */
  uint8_t layout;  /* gimbal_layout */
  uint8_t strided; /* not 0: GIMBAL_STRIDED will do, too */
} gimbal_operand;

/* What a limit is about. */
typedef enum {
  GIMBAL_DIM = 0,         /* dim[index] of a value */
  GIMBAL_ROWS = 1,        /* the last dimension of a value, as planned */
  GIMBAL_RANK = 2,        /* of a value */
  GIMBAL_LARGEST_DIM = 3, /* of a value */
  GIMBAL_ROW_VALUES = 4,  /* the product of all dimensions of a value but the last */
  GIMBAL_BYTES = 5,       /* that a value takes */
  GIMBAL_PARAM = 6        /* param.i[index] of the op */
} gimbal_measure;

/* Which value a limit is about: an input's number, the first output, or each input and output. */
#define GIMBAL_OUTPUT 254
#define GIMBAL_EVERY_VALUE 255

typedef struct gimbal_limit {
  const char* name; /* "head_dim": for the reason why a kernel was not taken */
  uint8_t what;     /* gimbal_measure; a host that does not know it does not take the kernel */
  uint8_t value, index;
  int32_t multiple; /* what is measured must be a multiple of this; 0: any */
  int64_t min, max; /* both inclusive */
} gimbal_limit;

/* Bits of gimbal_kernel_info.params. */
#define GIMBAL_PARAM_I(n) (1u << (n))
#define GIMBAL_PARAM_F(n) (1u << (16 + (n)))

/* One row of a backend's kernel table: all that it can do. What an op may mean and a row does not claim, the
   row is not asked for; so an op may get new optional inputs and parameters without harm to older kernels.
   For the same reason, what a later version appends to this struct can only widen what a row takes. */
typedef struct gimbal_kernel_info {
  uint32_t struct_size;
  uint32_t needs;   /* bits of gimbal_device_info.features that must be set */
  const char* name; /* backend.variant.op.format */
  uint16_t op;
  int16_t rank;     /* larger wins among rows that fit */
  uint8_t numerics; /* gimbal_numerics: the order of additions is the op's own, or not */
  gimbal_operand in[GIMBAL_MAX_INPUTS], out[GIMBAL_MAX_OUTPUTS];
  uint32_t params; /* GIMBAL_PARAM_ of those that may be other than 0 */
  uint32_t n_limits;
  const gimbal_limit* limits;
  float tolerance; /* of a fast row: how much further from the exact result it may be than the op's own order
                      of additions, in shares of the sum of its terms' magnitudes; 0: no further */
} gimbal_kernel_info;

typedef struct gimbal_device_info {
  uint32_t struct_size; /* set by the host: how much room there is */
  const char* name;     /* "Intel(R) Xeon(R) Processor" */
  uint64_t memory_total, memory_free;
  uint32_t features;                /* backend-defined bits */
  const char* const* feature_names; /* name of bit i; ends with NULL */
  uint32_t threads;       /* host threads that the device computes with; 0 for devices with their own cores */
  uint8_t software;       /* emulates hardware on the CPU */
  uint8_t unified_memory; /* shares memory with the host */
  const char* driver;     /* its name and version: "Mesa 22.3.6"; NULL where there is none */
  const char* pci_id;     /* "0000:65:00.0", or NULL */
  const char*
      compute_capability; /* what its kernels are built for: "9.0", "gfx942"; NULL where there is none */
} gimbal_device_info;

typedef struct gimbal_limits {  /* the most that a device gives: what speeds are compared with */
  uint32_t struct_size;         /* set by the host: how much room there is */
  double read_bytes_per_second; /* from a memory that no cache holds */
  double int8_ops_per_second;   /* products of bytes, added up exactly; a product counts two: * and + */
  double fp32_ops_per_second;
  const char* instruction_set; /* that the operations were measured with; valid as long as the device */
  uint32_t threads;            /* host threads that measured together; 0 for devices with their own cores */
} gimbal_limits;

typedef struct gimbal_device gimbal_device;
typedef struct gimbal_buffer gimbal_buffer;
typedef struct gimbal_executable gimbal_executable;

typedef struct gimbal_backend {
  uint32_t abi_version; /* first field for ever */
  uint32_t struct_size; /* later versions append; a host reads only what both know */
  const char* name;
  int (*device_count)(void);
  /* options: "key=value" lines, NULL for none; unknown keys are refused. The text that last_error(NULL) gives
     after a failure names the option. cpu: threads=N, variant=NAME, limit_megabytes=N (read by measure()). */
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
  /* Lays out rows [begin, end) of a matrix, given as dense blocks; begin is a multiple of 16. Callable from
     several threads for disjoint ranges. `source` points at row `begin`; the scale of an i2_s tensor lies
     behind row end - 1, as in files behind the last one. */
  gimbal_code (*pack)(gimbal_device*, gimbal_buffer*, const gimbal_value*, const void* source, int64_t begin,
                      int64_t end);
  /* Bytes of a KV cache for one layer: `pages` pages of `page` positions, heads x head_dim values each. Pages
     are equally large and one after the other. */
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
     about 1 GB of memory for that time. Nothing else may be submitted meanwhile. */
  gimbal_code (*measure)(gimbal_device*, gimbal_limits* out);

  /* Optional, likewise: how often each op of an executable was really run since compile(), counted where it
     runs; n_ops as compiled. Not while a submit() is under way. */
  gimbal_code (*run_counts)(gimbal_device*, gimbal_executable*, uint64_t* counts, size_t n_ops);

  /* Optional, likewise: bytes of the device's memory that compile() would take for this program, beside the
     buffers that submit() is given; so that plans can count them. Takes nothing itself. Without it: none. */
  gimbal_code (*scratch_bytes)(gimbal_device*, const gimbal_program*, uint64_t* out);

  /* Optional, likewise: what decides which devices there are, so that a host can tell later, without loading
     this code or a driver, that asking again would give the same answer. Lines: the name of an environment
     variable, or "PREFIX*" for all that begin so; or a path that begins with '/', whose last part may be
     "PREFIX*SUFFIX". What the loader depends on and the libraries that are loaded while devices are counted
     and opened are known to the host and need not be named. The text may depend on the variables that it
     names, is valid as long as the backend, and is asked for after the devices were. Without it: the host
     always asks again. */
  const char* (*depends_on)(void);

  /* Optional, likewise: a buffer over memory of the host's, which the device reads where it lies; programs
     never write to it, and write() and pack() refuse to. `data` is aligned to 4096 bytes and stays until
     release(). A device that has this lays out 16 rows of a matrix as if there were no others, one tile of 16
     rows behind the other: so a host can compare a part of what it kept with what pack() makes of it. */
  gimbal_code (*adopt)(gimbal_device*, const void* data, size_t bytes, gimbal_buffer** out);
} gimbal_backend;

typedef const gimbal_backend* (*gimbal_backend_entry)(void);

typedef struct gimbal_meanings {
  const uint64_t* of; /* by number: a hash; 0 where there is nothing of this number */
  size_t count;
} gimbal_meanings;

/* What a plugin exports: the function gimbal_plugin_entry, of type gimbal_plugin_function. A plugin is the
   file libgimbal-backend-<name>.so; <name> is the name in its table. */
typedef struct gimbal_plugin {
  uint32_t struct_size; /* later versions append */
  uint32_t abi_version; /* of everything in this header, as the plugin was compiled */
  const char* build_id; /* of which version of gimbal: shown, not compared */
  const char* compiler; /* "gcc 12.2.0": shown, not compared */
  gimbal_backend_entry backend;
  /* What the plugin means by the numbers of ops and dtypes: device/meanings.h. A host that means something
     else by a number that both know refuses the plugin; either may know numbers that the other does not. */
  gimbal_meanings ops, dtypes;
} gimbal_plugin;
typedef const gimbal_plugin* (*gimbal_plugin_function)(void);
#define GIMBAL_PLUGIN_SYMBOL "gimbal_plugin_entry"

#ifdef __cplusplus
}
#endif
#endif
