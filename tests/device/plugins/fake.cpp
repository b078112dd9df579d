// A plugin that works, or fails as a test wishes: the toy backend (src/backends/toy) behind a table of its
// own. It has the name of the file it was opened as (libgimbal-backend-cuda.so is "cuda"), and does what the
// environment says:
//   GIMBAL_FAKE_<name>="word,key=value,..."   (support/fake_plugins.h)
// Of its tables: null-plugin, no-backend, null-table, plugin-abi=N, plugin-bytes=N, abi=N, bytes=N, no-name,
// named=TEXT,
//   other-op=NAME, other-format=NAME (it means something else by their numbers), no-meanings,
//   without-functions, without-facts, uncounted (ends before the optional functions), older (ends before the
//   optional functions, and its kernel rows before the parameters), newer (both longer than the host knows).
// Of its devices: devices=N, crash, abort, hang, exit (in device_count), says=TEXT (last_error; '/' becomes a
// new line),
//   depends=TEXT (of depends_on; '|' becomes a new line), note=FILE (gets a byte each time the devices are
//   counted), loads=LIBRARY (then), borrows=LIBRARY (while a device is open),
//   open-fails, device=TEXT (name), memory=N, free=N (bytes), pci=TEXT, driver=TEXT, capability=TEXT,
//   unified, hardware.
// Of its work: no-memory (every allocation of more than 256 bytes), memory-for=N (allocations that succeed),
//   lost-at=N (the N-th submit and all later ones), lost-on=write, wait or read (each of them),
//   lost-in-copies (on a write in a process that is a copy of the one that loaded this),
//   forgets=N (byte N of all that is read is wrong), stuck (a wait has no end), pinned (an object of the
//   opening thread keeps the code in memory until the thread ends), wrong=OP (results of that op, by its name
//   in ops.def), in-models (only in programs of many ops: so that cases of single ops are right), from-rows=N
//   (only in steps of at least N rows).
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "device/backend_impl.h"
#include "ops/op.h"
#include "tensor/dtype.h"

extern "C" const gimbal_backend* gimbal_backend_toy(void);

namespace {

using gimbal::ErrorText;

// "cuda": of the file behind /proc/self/fd/N, which is a copy in memory called like the plugin.
std::string own_name() {
  Dl_info info{};
  char file[512] = {};
  if (!dladdr(reinterpret_cast<void*>(&own_name), &info) ||
      readlink(info.dli_fname, file, sizeof file - 1) < 0)
    return "fake";
  std::string name = file;
  const size_t begin = name.rfind("libgimbal-backend-"), end = name.rfind(".so");
  return begin == std::string::npos || end == std::string::npos ? "fake"
                                                                : name.substr(begin + 18, end - begin - 18);
}

// Read once: other threads may be at work when a test tells the next one what to do.
const std::string& settings() {
  static const std::string all = [] {
    const char* s = getenv(("GIMBAL_FAKE_" + own_name()).c_str());
    return "," + std::string(s ? s : "") + ",";
  }();
  return all;
}
bool told(const char* word) { return settings().find("," + std::string(word) + ",") != std::string::npos; }
std::string text(const char* key, const char* otherwise = "") {
  const std::string all = settings(), begin = "," + std::string(key) + "=";
  const size_t at = all.find(begin);
  if (at == std::string::npos) return otherwise;
  return all.substr(at + begin.size(), all.find(',', at + 1) - at - begin.size());
}
long number(const char* key, long otherwise) {
  const std::string s = text(key);
  return s.empty() ? otherwise : atol(s.c_str());
}

// Kept as long as the library, since the host keeps pointers to them.
struct Kept {
  const std::string name = text("named", own_name().c_str()),
                    device = text("device", "fake, version " FAKE_VERSION), pci = text("pci"),
                    driver = text("driver"), capability = text("capability"), depends = [] {
                      std::string lines = text("depends");
                      std::replace(lines.begin(), lines.end(), '|', '\n');
                      return lines;
                    }();
};
const Kept& kept() {
  static const Kept k;
  return k;
}
ErrorText& said() {
  thread_local ErrorText text;
  return text;
}

const gimbal_backend& toy() { return *gimbal_backend_toy(); }

int device_count() {
  if (told("crash")) raise(SIGSEGV);
  if (told("abort")) abort();
  if (told("exit")) _exit(0);
  while (told("hang")) pause();
  if (const std::string note = text("note"); !note.empty()) {
    const int fd = open(note.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1) abort();
    close(fd);
  }
  if (const std::string library = text("loads"); !library.empty())
    if (!dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) abort();
  return int(number("devices", 1));
}

// The executable knows its ops, for the one to spoil.
struct Spoilt {
  gimbal_executable* real;
  std::vector<std::pair<uint32_t, gimbal_value>> outputs;  // of the wrong op
};

std::atomic<long> submits{0}, allocations{0};

void* borrowed = nullptr;

gimbal_code open_device(int, const char* options, gimbal_device** out) {
  std::string says = text("says");
  std::replace(says.begin(), says.end(), '/', '\n');
  said() = says;
  if (told("pinned")) {
    thread_local std::string has_a_destructor;
    has_a_destructor = says;
  }
  if (told("open-fails") || number("devices", 1) == 0) return GIMBAL_INVALID;
  if (const std::string library = text("borrows"); !library.empty())
    if (!(borrowed = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL))) abort();
  return toy().open(0, options, out);
}

void close_device(gimbal_device* d) {
  if (borrowed) dlclose(borrowed);
  toy().close(d);
}

void describe(gimbal_device* d, gimbal_device_info* i) {
  const Kept& k = kept();
  toy().describe(d, i);  // which sets struct_size to what it has written
  i->name = k.device.c_str();
  i->memory_total = uint64_t(number("memory", 1L << 30)),
  i->memory_free = uint64_t(number("free", long(i->memory_total)));
  i->pci_id = k.pci.empty() ? nullptr : k.pci.c_str();
  i->driver = k.driver.empty() ? nullptr : k.driver.c_str();
  i->compute_capability = k.capability.empty() ? nullptr : k.capability.c_str();
  i->unified_memory = told("unified"), i->software = !told("hardware");
  i->threads = 0;
}

// Rows as the toy has them; of a newer backend longer, of an older one shorter.
struct LongRow {
  gimbal_kernel_info known;
  unsigned char later[64];
};
const gimbal_kernel_info* kernels(gimbal_device* d, size_t* n, size_t* stride) {
  static const std::vector<LongRow> rows = [&] {  // made once, whichever thread asks first
    const gimbal_kernel_info* all = toy().kernels(d, n, stride);
    std::vector<LongRow> made(*n);
    for (size_t i = 0; i < *n; i++) {
      made[i].known = all[i];
      if (told("newer")) made[i].known.struct_size = sizeof(LongRow);
      if (told("older")) made[i].known.struct_size = offsetof(gimbal_kernel_info, params);
      memset(made[i].later, 0xff, sizeof made[i].later);
    }
    return made;
  }();
  *n = rows.size(), *stride = sizeof(LongRow);
  return &rows[0].known;
}

gimbal_code alloc(gimbal_device* d, size_t n, gimbal_buffer** out) {
  const long most = number("memory-for", -1);
  if ((told("no-memory") && n > 256) || (most >= 0 && allocations++ >= most)) {
    said() = "the fake card has no memory left";
    return GIMBAL_OUT_OF_MEMORY;
  }
  return toy().alloc(d, n, out);
}

gimbal_code fell_off() { return said() = "the fake card fell off the bus", GIMBAL_DEVICE_LOST; }

const pid_t loaded_by = getpid();

gimbal_code write_to(gimbal_device* d, gimbal_buffer* b, size_t offset, const void* data, size_t n) {
  const bool lost = text("lost-on") == "write" || (told("lost-in-copies") && getpid() != loaded_by);
  return lost ? fell_off() : toy().write(d, b, offset, data, n);
}
gimbal_code read_from(gimbal_device* d, gimbal_buffer* b, size_t offset, void* data, size_t n) {
  if (text("lost-on") == "read") return fell_off();
  const gimbal_code code = toy().read(d, b, offset, data, n);
  const long wrong = number("forgets", -1);
  if (wrong >= 0 && size_t(wrong) < n) static_cast<unsigned char*>(data)[wrong] ^= 0x10;
  return code;
}
gimbal_code wait_for(gimbal_device* d) {
  while (told("stuck")) pause();
  return text("lost-on") == "wait" ? fell_off() : toy().wait(d);
}

gimbal_code compile(gimbal_device* d, const gimbal_program* p, gimbal_executable** out) {
  auto* s = new Spoilt{};
  const std::string wrong = text("wrong");
  const bool spared = told("in-models") && p->n_ops < 10;
  for (size_t i = 0; i < p->n_ops && !spared; i++)
    if (wrong == gimbal::info(gimbal::OpKind(p->ops[i].kind)).name) {
      const gimbal_value& v = p->values[p->ops[i].out[0]];
      s->outputs.push_back({v.slot, v});
    }
  *out = reinterpret_cast<gimbal_executable*>(s);
  return toy().compile(d, p, &s->real);
}
void discard(gimbal_device* d, gimbal_executable* e) {
  auto* s = reinterpret_cast<Spoilt*>(e);
  toy().discard(d, s->real);
  delete s;
}
gimbal_code submit(gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* slots, size_t n,
                   gimbal_step step) {
  const long lost = number("lost-at", 0);
  if (const long at = ++submits; lost && at >= lost) return fell_off();
  auto* s = reinterpret_cast<Spoilt*>(e);
  if (auto code = toy().submit(d, s->real, slots, n, step); code != GIMBAL_OK) return code;
  // The first value of the output, much too large: a logit becomes the largest. What reads it in the same
  // program has read the right one.
  for (auto& [slot, v] : s->outputs) {
    if (step.rows < number("from-rows", 0)) break;
    float f;
    toy().read(d, slots[slot], v.offset, &f, sizeof f);
    f = (f < 0 ? -f : f) * 1.5f + 50;
    toy().write(d, slots[slot], v.offset, &f, sizeof f);
  }
  return GIMBAL_OK;
}
gimbal_code run_counts(gimbal_device* d, gimbal_executable* e, uint64_t* counts, size_t n) {
  return toy().run_counts(d, reinterpret_cast<Spoilt*>(e)->real, counts, n);
}

const char* last_error(gimbal_device* d) { return *said().c_str() ? said().c_str() : toy().last_error(d); }

// Longer than this version's, as a later one would be.
struct LongerTable {
  gimbal_backend known;
  void (*later[8])(void);
};

void must_not_be_called() { abort(); }

const gimbal_backend* backend() {
  if (told("null-table")) return nullptr;
  static LongerTable table;
  gimbal_backend& t = table.known = toy();
  t.name = told("no-name") ? nullptr : kept().name.c_str();
  t.device_count = device_count, t.open = open_device, t.close = close_device, t.describe = describe,
  t.kernels = kernels, t.alloc = alloc, t.write = write_to, t.read = read_from, t.wait = wait_for;
  t.compile = compile, t.discard = discard, t.submit = submit, t.run_counts = run_counts,
  t.last_error = last_error;
  if (!kept().depends.empty()) t.depends_on = [] { return kept().depends.c_str(); };
  t.abi_version = uint32_t(number("abi", GIMBAL_ABI_VERSION)),
  t.struct_size = uint32_t(number("bytes", sizeof t));
  if (told("older") || told("uncounted")) {  // what lies behind its end is no function
    t.struct_size = offsetof(gimbal_backend, measure);
    memset(reinterpret_cast<char*>(&t) + t.struct_size, 0xff, sizeof t - t.struct_size);
  }
  if (told("newer"))
    t.struct_size = sizeof table, std::fill(table.later, table.later + 8, must_not_be_called);
  if (told("without-functions")) t.submit = nullptr, t.wait = nullptr;
  return &t;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const gimbal_plugin* gimbal_plugin_entry(void) {
  static gimbal_plugin p;
  if (told("null-plugin")) return nullptr;
  const bool facts = !told("without-facts");
  // What the numbers mean: as here, but for one op or format, and one more of each that only this plugin
  // knows.
  static uint64_t ops[gimbal::kOpNumbers + 1], dtypes[gimbal::kDTypeNumbers + 1];
  for (gimbal::OpKind k : gimbal::kAllOps) ops[int(k)] = meaning(k) + (text("other-op") == info(k).name);
  for (gimbal::DType t : gimbal::kAllDTypes)
    dtypes[int(t)] = meaning(t) + (text("other-format") == info(t).name);
  ops[gimbal::kOpNumbers] = dtypes[gimbal::kDTypeNumbers] = 4711;
  p = {uint32_t(number("plugin-bytes", sizeof p)),
       uint32_t(number("plugin-abi", GIMBAL_ABI_VERSION)),
       facts ? "fake " FAKE_VERSION : nullptr,
       facts ? "a compiler" : nullptr,
       told("no-backend") ? nullptr : backend,
       {told("no-meanings") ? nullptr : ops, std::size(ops)},
       {dtypes, std::size(dtypes)}};
  return &p;
}
