// Plugins that work, and every way in which one does not: each must become a reason.
#include "device/library.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "device/backends.h"
#include "device/device.h"
#include "device/reason.h"
#include "support/fake_plugins.h"
#include "support/loaded.h"

namespace gimbal {
namespace {

using test::PluginFolder;

void mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}

std::string device_name(const Device& d) { return d.describe().name; }

std::unique_ptr<Device> open_device(const LibraryPtr& l) {
  auto d = Device::open(l, 0);
  EXPECT_TRUE(d) << d.error().message;
  return d ? std::move(*d) : nullptr;
}

TEST(Library, APluginTellsWhatItIs) {
  PluginFolder folder;
  auto one = Library::open(folder.put("whole")), two = Library::open(folder.put("second", "", "v2"));
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ((*one)->name(), "whole");
  EXPECT_EQ((*one)->path(), folder.file("whole"));
  EXPECT_EQ((*one)->compiler(), "a compiler");
  EXPECT_TRUE((*one)->build_id().starts_with("fake 1-")) << (*one)->build_id();
  EXPECT_GE((*one)->build_id().size(), 7u + 32u) << "the linker's fingerprint";
  EXPECT_NE((*one)->build_id().substr(7), (*two)->build_id().substr(7));
  EXPECT_EQ(device_name(*open_device(*one)), "fake, version 1");
  EXPECT_EQ(device_name(*open_device(*two)), "fake, version 2");
}

TEST(Library, FactsMayBeMissing) {
  PluginFolder folder;
  auto l = Library::open(folder.put("shy", "without-facts"));
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_EQ((*l)->compiler(), "");
  EXPECT_EQ((*l)->build_id().find_first_not_of("0123456789abcdef"), std::string::npos) << (*l)->build_id();
}

TEST(Library, OursSayVersionAndCompiler) {
  auto l = Library::open(test::toy_plugin());
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_EQ((*l)->name(), "toy");
  EXPECT_TRUE((*l)->build_id().starts_with("0.")) << (*l)->build_id();
  EXPECT_FALSE((*l)->compiler().empty());
}

TEST(Library, LinkedBackendsAreLibrariesWithoutAFile) {
  ASSERT_NE(linked_backends()[0], nullptr);
  for (LinkedBackends e = linked_backends(); *e; ++e) {
    const LibraryPtr l = Library::linked(*e);
    EXPECT_EQ(l->name(), (*e)()->name);
    EXPECT_EQ(l->path(), "");
    EXPECT_FALSE(l->compiler().empty());
    EXPECT_EQ(l->build_id(), build_id_of(reinterpret_cast<const void*>(&device_name)))
        << "both are this program";
    EXPECT_EQ(l->table().open, (*e)()->open);
  }
  EXPECT_EQ(build_id_of(nullptr), "");
}

TEST(Library, EveryBrokenContractHasItsReason) {
  struct Case {
    const char* told;
    const char* which;
    const char* reason;
    std::vector<const char*> words;
  };
  const Case cases[] = {
      {"plugin-abi=1", "v1", reason::kAbiMismatch, {"version 1 ", "version 2 "}},
      {"plugin-abi=3", "v1", reason::kAbiMismatch, {"version 3 ", "version 2 "}},
      {"plugin-bytes=8", "v1", reason::kAbiMismatch, {"8 bytes"}},
      {"abi=0", "v1", reason::kAbiMismatch, {"version 0", "version 2"}},
      {"abi=4294967295", "v1", reason::kAbiMismatch, {"version 4294967295"}},
      {"bytes=16", "v1", reason::kAbiMismatch, {"16 bytes"}},
      {"bytes=0", "v1", reason::kAbiMismatch, {"0 bytes"}},
      {"other-op=rope", "v1", reason::kAbiMismatch, {"op 4", "'rope'"}},
      {"other-format=a8_32", "v1", reason::kAbiMismatch, {"format 36", "'a8_32'"}},
      {"no-meanings", "v1", reason::kBrokenPlugin, {"but no names for them"}},
      {"null-plugin", "v1", reason::kBrokenPlugin, {"no description"}},
      {"no-backend", "v1", reason::kBrokenPlugin, {"no backend"}},
      {"null-table", "v1", reason::kBrokenPlugin, {"no table"}},
      {"no-name", "v1", reason::kBrokenPlugin, {"no name"}},
      {"named=Not A Name", "v1", reason::kBrokenPlugin, {"no name", "a-z"}},
      {"without-functions", "v1", reason::kBrokenPlugin, {"lacks functions", "submit, wait"}},
      {"", "foreign", reason::kSymbolMissing, {"gimbal_plugin_entry"}},
      {"", "undefined", reason::kSymbolMissing, {"function_that_nobody_has"}},
      {"", "vendor", reason::kLibraryMissing, {"libof-some-vendor.so"}},
  };
  int n = 0;
  for (const Case& c : cases) {
    PluginFolder folder;
    const std::string name = "bad" + std::to_string(n++), path = folder.put(name, c.told, c.which);
    auto l = Library::open(path);
    ASSERT_FALSE(l) << c.told << c.which;
    EXPECT_EQ(l.error().code, Code::NoBackend);
    EXPECT_STREQ(l.error().reason, c.reason) << l.error().message;
    mentions(l.error().message, {path.c_str()});
    for (const char* word : c.words) mentions(l.error().message, {word});
    EXPECT_FALSE(l.error().remedy.empty()) << l.error().message;
    EXPECT_EQ(l.error().message.find("/proc/self"), std::string::npos)
        << "a name that means nothing to people";
    EXPECT_FALSE(test::loaded(name)) << "what is refused is not kept";
  }
}

TEST(Library, NamesHaveUpTo64SmallLettersDigitsAndUnderscores) {
  PluginFolder folder;
  int n = 0;
  const auto open = [&](const std::string& name) {
    return Library::open(folder.put("name" + std::to_string(n++), "named=" + name));
  };
  for (const std::string& name : {std::string("a"), std::string("z_09"), std::string(64, 'n')}) {
    const auto l = open(name);
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_EQ((*l)->name(), name);
  }
  // '`', '{', '/' and ':' stand beside the letters and digits in ASCII.
  for (const std::string& name : {std::string("a`"), std::string("a{"), std::string("a/"), std::string("a:"),
                                  std::string("A"), std::string("a-b"), std::string(65, 'n')}) {
    const auto l = open(name);
    ASSERT_FALSE(l) << name;
    EXPECT_STREQ(l.error().reason, reason::kBrokenPlugin) << l.error().message;
  }
}

TEST(Library, AnOlderTableLacksOnlyWhatIsOptional) {
  PluginFolder folder;
  auto l = Library::open(folder.put("older", "older"));
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_EQ((*l)->table().measure, nullptr);
  EXPECT_EQ((*l)->table().run_counts, nullptr);
  auto d = open_device(*l);
  ASSERT_GT(d->kernel_count(), 5u);
  for (size_t i = 0; i < d->kernel_count(); i++) {
    EXPECT_NE(d->kernel(i).in[0].dtypes, 0u);
    EXPECT_EQ(d->kernel(i).params, 0u) << "what its shorter rows do not reach is not claimed";
    EXPECT_EQ(d->kernel(i).n_limits, 0u);
  }
  auto limits = d->measure();
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, Code::Unsupported);
  EXPECT_TRUE(d->allocate(64));
}

TEST(Library, ANewerTableIsReadAsFarAsItIsKnown) {
  PluginFolder folder;
  auto l = Library::open(folder.put("newer", "newer"));
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_EQ((*l)->table().struct_size, sizeof(gimbal_backend));
  auto d = open_device(*l);
  EXPECT_EQ(device_name(*d), "fake, version 1");
  ASSERT_GT(d->kernel_count(), 5u);
  for (size_t i = 0; i < d->kernel_count(); i++) {
    EXPECT_EQ(d->kernel(i).struct_size, sizeof(gimbal_kernel_info) + 64);
    EXPECT_EQ(std::string(d->kernel(i).name).find("toy."), 0u) << "its rows are longer, too";
  }
  EXPECT_TRUE(d->allocate(64));
}

// ---- files that are no library ---------------------------------------------------------------------------

class NoLibrary : public testing::Test {
 protected:
  PluginFolder folder;
  std::string good = *read_file(test::test_plugins() + "/v1/libgimbal-backend-fake.so");

  // The message.
  std::string refused(const std::string& contents) {
    const std::string path = folder.file("no_library");
    EXPECT_TRUE(write_file(path, contents));
    auto l = Library::open(path);
    if (l) {
      ADD_FAILURE() << "was opened";
      return "";
    }
    EXPECT_STREQ(l.error().reason, reason::kBrokenPlugin) << l.error().message;
    EXPECT_FALSE(l.error().remedy.empty());
    mentions(l.error().message, {path.c_str()});
    return l.error().message;
  }
  // The good file with other bytes at `at`.
  template <class T>
  std::string with(size_t at, T value) const {
    std::string s = good;
    memcpy(s.data() + at, &value, sizeof value);
    return s;
  }
};

TEST_F(NoLibrary, NothingThereOrAFolder) {
  auto l = Library::open(folder.path() + "/libgimbal-backend-absent.so");
  ASSERT_FALSE(l);
  EXPECT_STREQ(l.error().reason, reason::kPluginMissing);
  mentions(l.error().message, {"libgimbal-backend-absent.so"});
  l = Library::open(folder.path());
  ASSERT_FALSE(l);
  EXPECT_STREQ(l.error().reason, reason::kBrokenPlugin);
  mentions(l.error().message, {folder.path().c_str()});
}

TEST_F(NoLibrary, EmptyOrText) {
  mentions(refused(""), {"not a library"});
  mentions(refused("#!/bin/sh\necho this is a program\n"), {"not a library"});
  mentions(refused(std::string(4096, '\0')), {"not a library"});
}

TEST_F(NoLibrary, CutOffAnywhere) {
  for (size_t n = 1; n < 64; n++) refused(good.substr(0, n));
  for (size_t n = 64; n < good.size(); n += good.size() / 50)
    mentions(refused(good.substr(0, n)), {"is truncated"});
  mentions(refused(good.substr(0, good.size() - 1)), {"is truncated", std::to_string(good.size()).c_str()});
}

TEST_F(NoLibrary, ForAnotherMachine) {
  // e_ident[EI_CLASS], e_ident[EI_DATA], e_type, e_machine of the ELF header.
  mentions(refused(with<uint8_t>(4, 1)), {"64-bit"});
  mentions(refused(with<uint8_t>(5, 2)), {"byte order"});
  mentions(refused(with<uint16_t>(18, 3)), {"32-bit x86"});
  mentions(refused(with<uint16_t>(18, 40)), {"32-bit ARM"});
  mentions(refused(with<uint16_t>(18, 243)), {"RISC-V"});
  mentions(refused(with<uint16_t>(18, 4711)), {"4711"});
  const uint16_t other = good[18] == 62 ? 183 : 62;
  mentions(refused(with<uint16_t>(18, other)), {"64-bit ARM", "x86-64"});
  mentions(refused(with<uint16_t>(16, 1)), {"not a shared library"});
  mentions(refused(with<uint16_t>(16, 2)), {"not a shared library"});
}

TEST_F(NoLibrary, HeadersThatPointNowhere) {
  refused(with<uint64_t>(32, ~0ull));         // e_phoff
  refused(with<uint64_t>(32, good.size()));   // e_phoff
  refused(with<uint64_t>(40, ~0ull - 4096));  // e_shoff
  refused(with<uint16_t>(54, 32));            // e_phentsize
  refused(with<uint16_t>(56, 0xffff));        // e_phnum
  refused(with<uint16_t>(58, 1));             // e_shentsize
  mentions(refused(with<uint16_t>(56, 0)), {"no segment to load"});
  uint64_t parts;
  memcpy(&parts, &good[32], 8);
  while (good[parts] != 1) parts += 56;        // the first that is to be loaded
  refused(with<uint64_t>(parts + 8, ~0ull));   // p_offset of the first part
  refused(with<uint64_t>(parts + 32, ~0ull));  // p_filesz
}

TEST_F(NoLibrary, NoRoomForTheCopy) {
  const std::string path = folder.put("large");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{65536, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);  // of anything that is written
  auto l = Library::open(path);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::OutOfMemory);
  EXPECT_STREQ(l.error().reason, reason::kNotEnoughMemory);
  mentions(l.error().message, {path.c_str(), "cannot be copied"});
  EXPECT_TRUE(Library::open(path));
}

TEST_F(NoLibrary, AProgramIsNone) {
  // A position-independent program has the type of a library, and the loader refuses it.
  mentions(refused(*read_file("/proc/self/exe")), {"cannot be loaded"});
}

// ---- one name, several files -----------------------------------------------------------------------------

TEST(Library, TheSameNameGivesWhatLiesThereNow) {
  PluginFolder folder;
  const std::string path = folder.put("swapped");
  auto one = Library::open(path);
  ASSERT_TRUE(one);
  auto old = open_device(*one);

  folder.put("swapped", "", "v2");  // another file of that name
  auto two = Library::open(path);
  ASSERT_TRUE(two);
  EXPECT_EQ(device_name(*open_device(*two)), "fake, version 2");
  EXPECT_EQ(device_name(*old), "fake, version 1");

  // The same file with other contents, as `cp` leaves it: the code that runs must not change under its users.
  const std::string first = *read_file(test::test_plugins() + "/v1/libgimbal-backend-fake.so");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << first;
  auto three = Library::open(path);
  ASSERT_TRUE(three);
  EXPECT_EQ(device_name(*open_device(*three)), "fake, version 1");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "";
  EXPECT_EQ(device_name(*open_device(*two)), "fake, version 2");
  EXPECT_EQ(device_name(*open_device(*three)), "fake, version 1");
}

TEST(Library, TheLastUserLetsItGo) {
  PluginFolder folder;
  auto opened = Library::open(folder.put("leaving"));
  ASSERT_TRUE(opened);
  LibraryPtr l = *opened;
  opened = Error{};
  auto d = open_device(l);
  l.reset();
  EXPECT_TRUE(test::loaded("leaving")) << "its device is open";
  EXPECT_EQ(device_name(*d), "fake, version 1");
  EXPECT_EQ(d->library()->name(), "leaving");
  d.reset();
  EXPECT_FALSE(test::loaded("leaving"));
}

TEST(Library, CodeThatAThreadKeepsIsNeverTakenForAnother) {
  PluginFolder folder;
  std::thread([&] {
    folder.put("pinned", "pinned");
    {
      auto l = Library::open(folder.file("pinned"));
      ASSERT_TRUE(l) << l.error().message;
      EXPECT_EQ(device_name(*open_device(*l)), "fake, version 1");
    }
    EXPECT_TRUE(test::loaded("pinned"))
        << "glibc keeps it for the thread's sake; without that, this tests nothing";
    // The loader would give the old code for a descriptor of the same number.
    folder.put("pinned", "", "v2");
    auto again = Library::open(folder.file("pinned"));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(device_name(*open_device(*again)), "fake, version 2");
  }).join();
}

// ---- what a device of a plugin fails with ----------------------------------------------------------------

TEST(Library, FailuresOfItsDevicesAreTheirOwnWords) {
  PluginFolder folder;
  auto closed = Library::open(folder.put("closed", "open-fails,says=the card is asleep/wake it up"));
  ASSERT_TRUE(closed);
  auto d = Device::open(*closed, 0);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::NoBackend);
  EXPECT_STREQ(d.error().reason, reason::kOpenFailed);
  mentions(d.error().message, {"closed", "the card is asleep"});
  mentions(d.error().remedy, {"wake it up"});

  auto poor = Library::open(folder.put("poor", "no-memory"));
  ASSERT_TRUE(poor);
  auto b = open_device(*poor)->allocate(1 << 20);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, Code::OutOfMemory);
  mentions(b.error().message, {"poor:0", "1.05 MB", "no memory left"});

  auto shaky = Library::open(folder.put("shaky", "lost-at=1"));
  ASSERT_TRUE(shaky);
  auto device = open_device(*shaky);
  auto e = device->compile({});
  ASSERT_TRUE(e) << e.error().message;
  auto ran = device->submit(*e, nullptr, 0, {1, 1});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, Code::DeviceLost);
  mentions(ran.error().message, {"shaky:0", "fell off the bus"});
}

}  // namespace
}  // namespace gimbal
