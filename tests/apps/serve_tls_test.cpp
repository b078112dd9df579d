// gimbal serve with TLS; the client is Python's.
#include <fstream>

#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string tls_file(const std::string& name) {
  return std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/tls/" + name;
}

TEST(ServeTls, WhatAClientGets) {
  const Serving s({"--tls-cert", tls_file("cert.pem"), "--tls-key", tls_file("key.pem"), "--header-timeout",
                   "1", "--quiet"});
  ASSERT_GT(s.port, 0);
  const Ran client =
      run_program({"/usr/bin/env", "python3", std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/tls_client.py",
                   std::to_string(s.port), tls_file("cert.pem"), s.model});
  EXPECT_EQ(client.code, 0) << client.out << client.err;
  EXPECT_EQ(client.out, "ok\n");
}

TEST(ServeTls, WhatCannotBe) {
  const std::string cert = tls_file("cert.pem"), key = tls_file("key.pem");
  const auto with = [&](const std::string& c, const std::string& k) {
    return gimbal({"serve", "--port", "0", "--tls-cert", c, "--tls-key", k});
  };
  const Ran other = with(cert, tls_file("other-key.pem"));
  EXPECT_EQ(other.code, 2);
  EXPECT_SAYS(other.err, "--tls-key: ");
  EXPECT_SAYS(other.err, "mismatch");
  EXPECT_SAYS(with(cert, "/no/key").err, "No such file");
  EXPECT_SAYS(with(key, key).err, "--tls-cert: ");
  EXPECT_SAYS(with(cert, cert).err, "--tls-key: ");
  EXPECT_EQ(with(cert, tls_file("locked-key.pem")).code, 2);  // and asks nobody for a password
  EXPECT_SAYS(gimbal({"serve", "--tls-cert", cert}).err, "go together");
}

// The same program on a machine without OpenSSL: its name for the library is changed to one that is nowhere.
TEST(ServeTls, TheLibraryIsMissing) {
  std::ifstream in(std::getenv("GIMBAL"), std::ios::binary);
  std::string program((std::istreambuf_iterator<char>(in)), {});
  int found = 0;
  for (size_t at = 0; (at = program.find("libssl.so.3", at)) != program.npos; found++) program[at + 10] = '9';
  ASSERT_GE(found, 1);
  const std::string path = temporary_path("without-openssl");
  std::ofstream(path, std::ios::binary) << program;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const RunSetup setup{.environment = quiet_home()};
  const Ran r = run_program(
      {path, "serve", "--port", "0", "--tls-cert", tls_file("cert.pem"), "--tls-key", tls_file("key.pem")},
      setup);
  EXPECT_NE(r.code, 0);
  EXPECT_SAYS(r.err, "TLS needs OpenSSL 3: libssl.so.9 cannot be loaded");
  EXPECT_SAYS(r.err, "libssl3");
  EXPECT_EQ(run_program({path, "run", "-p", "a", "-n", "1", "--quiet"}, setup).code, 0);
}

}  // namespace
}  // namespace gimbal::test
